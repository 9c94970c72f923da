//! Counts of the frames of a run.

use std::cell::RefCell;
use std::rc::Rc;

use inhost_base::Instant;
use inhost_sim::{Seen, SeenSegment, Watcher};

/// Counts of one host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostTally {
    /// TCP segments with data that it sent.
    pub(crate) data_segments_sent: u64,
    /// TCP segments without data that it sent, SYN and FIN included.
    pub(crate) bare_segments_sent: u64,
    /// TCP segments with data that it took from its card.
    pub(crate) data_segments_received: u64,
    /// Bytes of data in those that it sent.
    pub(crate) data_bytes_sent: u64,
    /// When it took the last frame from its card.
    pub(crate) received_at: Instant,
    /// When the last of the data segments was made that were sent before any was acknowledged, and when the first
    /// acknowledgment of data came.
    pub(crate) first_window_at: Option<Instant>,
    pub(crate) first_acknowledged_at: Option<Instant>,
}

const NOTHING: HostTally = HostTally {
    data_segments_sent: 0,
    bare_segments_sent: 0,
    data_segments_received: 0,
    data_bytes_sent: 0,
    received_at: Instant::ZERO,
    first_window_at: None,
    first_acknowledged_at: None,
};

/// The counts of all hosts. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Tally(Rc<RefCell<Vec<HostTally>>>);

impl Tally {
    pub(crate) fn of(&self, host: usize) -> HostTally {
        self.0.borrow().get(host).copied().unwrap_or(NOTHING)
    }
    fn change(&self, host: usize, change: impl FnOnce(&mut HostTally)) {
        let mut hosts = self.0.borrow_mut();
        let count = hosts.len().max(host + 1);
        hosts.resize(count, NOTHING);
        change(&mut hosts[host]);
    }
}

impl Watcher for Tally {
    fn sent(&mut self, host: usize, frame: &Seen<'_>) {
        let Some(seen) = SeenSegment::of(frame) else { return };
        let data_bytes = seen.segment.payload.len() as u64;
        self.change(host, |tally| {
            tally.data_segments_sent += u64::from(data_bytes > 0);
            tally.bare_segments_sent += u64::from(data_bytes == 0);
            tally.data_bytes_sent += data_bytes;
            if data_bytes > 0 && tally.first_acknowledged_at.is_none() {
                tally.first_window_at = Some(frame.at);
            }
        });
    }
    fn delivered(&mut self, host: usize, frame: &Seen<'_>) {
        let data_segments =
            SeenSegment::of(frame).map_or(0, |seen| u64::from(!seen.segment.payload.is_empty()));
        self.change(host, |tally| {
            tally.data_segments_received += data_segments;
            tally.received_at = frame.at;
            if tally.data_segments_sent > 0 {
                tally.first_acknowledged_at.get_or_insert(frame.at);
            }
        });
    }
}
