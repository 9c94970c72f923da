//! The sending half of a connection: its sequence space, what is in flight, and how fast more follows.

pub(crate) mod acknowledgment;
mod application;
pub(crate) mod burst;
mod closing;
mod connection;
mod fast_open;
mod icmp;
mod numbers;
pub(crate) mod open;
mod pace;
pub(crate) mod probe;
pub(crate) mod recovery;
mod refusal;
mod reset;
mod run;
pub(crate) mod search;
mod sizing;
mod timers;
pub(crate) mod transmit;
mod urgent;

use crate::Config;
use crate::buffers::SendBuffers;
use crate::history::History;
use crate::marks::SendMarks;
use crate::rtt::RoundTrip;
use crate::sender::recovery::Recovery;
use inhost_base::{Instant, Sequence};
use inhost_congestion::Congestion;

/// What is sent, until it is acknowledged.
#[derive(Debug)]
pub(crate) struct Sender {
    /// Made when there is data to send, freed after [`crate::timers::TIDY_AFTER`] without.
    pub buffers: Option<Box<SendBuffers>>,
    /// Made when there is something to tell.
    pub history: Option<Box<History>>,
    pub congestion: Congestion,
    pub round_trip: RoundTrip,
    /// The retransmission timer; while the peer's window holds us up, the persist timer.
    pub retransmit_at: Instant,
    /// When the peer last showed that it gets what is sent, or when something began to wait for that.
    pub progress_at: Instant,
    /// When data last left.
    pub sent_at: Instant,
    pub acknowledged_bytes: u64,
    pub space: SendSpace,
    pub recovery: Recovery,
    /// Our timestamp at the last time-out, or at birth: an older echo is no measure of the round trip.
    pub least_echo: u32,
    pub keep_alive_probes: u8,
    pub marks: SendMarks,
    /// Bits by which the peer's windows are shifted.
    pub scale: u8,
}

/// The send sequence space (RFC 9293 §3.3.1).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SendSpace {
    /// `SND.UNA`
    pub unacknowledged: Sequence,
    /// `SND.NXT`: after all that was ever sent.
    pub next: Sequence,
    /// `SND.WND`, in bytes.
    // spec: RFC9293 MUST-1 (unsigned)
    pub window: u32,
    /// `SND.WL1`
    pub window_sequence: Sequence,
    /// `SND.WL2`
    pub window_acknowledgment: Sequence,
    /// Largest window that the peer offered.
    pub largest_window: u32,
    /// `SND.UP`: after the last urgent byte; at or before `unacknowledged` when nothing is urgent.
    pub urgent: Sequence,
    /// After the last pushed byte.
    pub push: Sequence,
}

impl Sender {
    /// One that has sent nothing, and begins with `initial`.
    #[inline]
    pub fn new(config: &Config, initial: Sequence, now: Instant) -> Self {
        let mut round_trip = RoundTrip::default();
        round_trip.begin(initial);
        Sender {
            buffers: None,
            history: None,
            congestion: Congestion::new(config.congestion),
            round_trip,
            retransmit_at: Instant::FAR_FUTURE,
            progress_at: now,
            sent_at: now,
            acknowledged_bytes: 0,
            space: SendSpace {
                unacknowledged: initial,
                next: initial,
                window_acknowledgment: initial,
                urgent: initial,
                push: initial,
                ..SendSpace::default()
            },
            recovery: Recovery::new(initial),
            least_echo: 0,
            keep_alive_probes: 0,
            marks: SendMarks::default(),
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
    /// What was met so far, made when it is not there.
    pub fn history_mut(&mut self) -> &mut History {
        self.history.get_or_insert_default()
    }
}
