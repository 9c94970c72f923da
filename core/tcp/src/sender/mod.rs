//! The sending half of a connection: its sequence space, what is in flight, and how fast more follows.
//!
//! Where its state goes: what each connection has at all times, into [`Sender`] (whose size `tests/sizes.rs` limits); what only
//! matters while something is queued or in flight, into [`SendBuffers`], which is freed when nothing is; what few connections
//! need, but need then for good, into [`History`].

pub(crate) mod acknowledgment;
pub(crate) mod buffers;
pub(crate) mod burst;
mod commit;
mod detail;
mod expiry;
pub(crate) mod flight;
pub(crate) mod handshake;
pub(crate) mod loss;
pub(crate) mod next;
mod pace;
pub(crate) mod probe;
pub(crate) mod recovery;
pub(crate) mod reduction;
mod run;
pub(crate) mod search;
pub(crate) mod space;
pub(crate) mod timer;
mod view;
mod window;
mod write;

pub use crate::sender::view::{SendQueue, SendView};

use crate::Config;
use crate::flags::SenderFlags;
use crate::offset::Offset;
use crate::sender::buffers::SendBuffers;
use crate::sender::recovery::Recovery;
use crate::sender::search::Search;
use crate::sender::space::SendSpace;
use crate::sender::timer::RetransmissionTimer;
use alloc::boxed::Box;
use inhost_base::{Instant, Sequence};
use inhost_congestion::Congestion;

/// The sending half: its sequence space, the data queued and in flight, and loss recovery.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Sender {
    /// Made when there is data to send, freed after [`crate::connection::timers::SHRINK_AFTER`] without.
    pub buffers: Option<Box<SendBuffers>>,
    /// Made when there is something to record.
    pub history: Option<Box<History>>,
    pub congestion: Congestion,
    pub timer: RetransmissionTimer,
    /// When data was last sent.
    pub sent_at: Instant,
    pub space: SendSpace,
    pub recovery: Recovery,
    /// Our timestamp at the last time-out, or at birth: an older echo is not a measure of the round trip.
    pub least_echo: u32,
    pub keep_alive_probes: u8,
    pub flags: SenderFlags,
    /// Bits by which the peer's windows are shifted.
    pub scale: u8,
}

/// Counts for instruments, and state that few connections need, but need as long as they live.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct History {
    pub retransmitted_bytes: u64,
    pub retransmitted_segments: u32,
    pub timeouts: u32,
    /// Number of reordering events of our data.
    pub reorderings: u32,
    /// Number of reports of duplicate data (D-SACK).
    pub duplicate_sacks: u32,
    /// Reductions of the window that a router asked for.
    pub congestion_marks: u32,
    /// The search for the path MTU, once it has begun.
    pub search: Option<Search>,
}

impl Sender {
    /// One that has sent nothing, and begins with `initial`.
    #[inline]
    pub fn new(config: &Config, initial: Sequence, now: Instant) -> Self {
        Sender {
            buffers: None,
            history: None,
            congestion: Congestion::new(&config.congestion),
            timer: RetransmissionTimer { at: Instant::FAR_FUTURE, progress_at: now },
            sent_at: now,
            space: SendSpace::new(initial),
            recovery: Recovery::new(Offset::SYN),
            least_echo: 0,
            keep_alive_probes: 0,
            flags: SenderFlags::default(),
            scale: 0,
        }
    }
    /// The box of queues, made when it is not there.
    #[inline]
    pub fn buffers_mut(&mut self) -> &mut SendBuffers {
        match &mut self.buffers {
            Some(buffers) => buffers,
            none => none.get_or_insert_default(),
        }
    }
    /// The connection's history, made if it does not exist.
    pub fn history_mut(&mut self) -> &mut History {
        self.history.get_or_insert_default()
    }
    /// Bytes of the stream that the peer has acknowledged.
    #[inline]
    pub fn acknowledged_bytes(&self) -> u64 {
        let others = 1 + u64::from(self.flags.contains(SenderFlags::FIN_ACKNOWLEDGED));
        self.space.unacknowledged().count().saturating_sub(others)
    }
    /// Bytes in the send queue.
    #[inline]
    pub fn queued_bytes(&self) -> u32 {
        self.buffers.as_ref().map_or(0, |buffers| buffers.send.len() as u32)
    }
    /// After the last byte of the stream so far. Meaningful from ESTABLISHED until our FIN is acknowledged.
    #[inline]
    pub fn stream_end(&self) -> Offset {
        self.space.unacknowledged() + self.queued_bytes()
    }
    /// Payload of a full segment of ours.
    #[inline]
    pub fn segment_bytes(&self) -> u32 {
        self.congestion.window.segment_bytes
    }
    /// Payload of a full segment with a SACK option of `sack_bytes`, which takes space from the data (RFC 9293 §3.7.1).
    #[inline]
    pub fn payload_limit(&self, sack_bytes: u32) -> u32 {
        let segment = self.segment_bytes();
        if sack_bytes == 0 { segment } else { segment.saturating_sub(sack_bytes).max(1) }
    }
    /// Bytes thought to be in the network.
    // spec: RFC5681 3.2-6; RFC6675 4-3
    #[inline]
    pub fn in_flight_bytes(&self) -> u32 {
        let outstanding = self.space.outstanding_bytes();
        let counted = u32::from(self.recovery.duplicates) * self.segment_bytes();
        let sacked_or_lost = self.buffers.as_ref().map_or(0, |buffers| buffers.flight.sacked_or_lost_bytes());
        outstanding.saturating_sub(sacked_or_lost + counted)
    }
}
