//! Recent traffic: frames to mutate, the last segment of each connection, and the victim's replies.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use inhost_base::{Endpoint, IpAddr};
use inhost_wire::protocol;
use inhost_wire::tcp::TcpHeader;

use super::world::VICTIM;
use crate::network::{Seen, Watcher};
use crate::segment::{SeenSegment, ip_of};

/// Frames kept for each link.
const KEPT: usize = 64;

/// Seen by a [`Watcher`] at the victim.
#[derive(Debug, Default)]
pub(super) struct Recent {
    /// The last header that came to the victim, by the victim's end and the peer's.
    pub headers: BTreeMap<(Endpoint, Endpoint), TcpHeader>,
    /// Frames that came to the victim, by link.
    pub frames: [VecDeque<Vec<u8>>; 2],
    /// Resets of the victim.
    pub resets: Rate,
    /// ICMP errors of the victim.
    pub errors: Rate,
    /// Frames that the victim sent.
    pub sent: u64,
    /// Segments of the victim without data, SYN, FIN and RST.
    pub bare_acknowledgments: u64,
}

/// Counts what happens in each second, and keeps the most.
#[derive(Debug, Default)]
pub(super) struct Rate {
    second: u64,
    count: u64,
    /// The most in one second.
    pub most: u64,
    /// In all.
    pub total: u64,
}

impl Rate {
    fn count(&mut self, second: u64) {
        if second != self.second {
            (self.second, self.count) = (second, 0);
        }
        self.count += 1;
        self.total += 1;
        self.most = self.most.max(self.count);
    }
}

impl Watcher for Rc<RefCell<Recent>> {
    fn sent(&mut self, host: usize, frame: &Seen<'_>) {
        if host != VICTIM {
            return;
        }
        let recent = &mut *self.borrow_mut();
        recent.sent += 1;
        let second = frame.at.as_millis() / 1000;
        if let Some(SeenSegment { segment, .. }) = SeenSegment::of(frame) {
            if segment.flags.rst() {
                recent.resets.count(second);
            } else if segment.sequence_length() == 0 {
                recent.bare_acknowledgments += 1;
            }
        } else if is_icmp_error(frame) {
            recent.errors.count(second);
        }
    }
    fn delivered(&mut self, host: usize, frame: &Seen<'_>) {
        if host != VICTIM {
            return;
        }
        let recent = &mut *self.borrow_mut();
        let frames = &mut recent.frames[usize::from(!frame.is_ethernet)];
        let mut kept = if frames.len() >= KEPT { frames.pop_front().unwrap_or_default() } else { Vec::new() };
        kept.clear();
        kept.extend_from_slice(frame.bytes);
        frames.push_back(kept);
        if let Some(SeenSegment { from, to, segment }) = SeenSegment::of(frame) {
            recent.headers.insert((to, from), segment.header());
        }
    }
}

fn is_icmp_error(frame: &Seen<'_>) -> bool {
    match ip_of(frame) {
        Some((IpAddr::V4(_), _, protocol::ICMPV4, payload)) => {
            payload.first().is_some_and(|kind| matches!(kind, 3 | 4 | 11 | 12))
        }
        Some((IpAddr::V6(_), _, protocol::ICMPV6, payload)) => {
            payload.first().is_some_and(|&kind| kind < 128)
        }
        _ => false,
    }
}
