//! The receiving half of a connection: its sequence space, what arrived, and when that is acknowledged.

mod acceptability;
mod application;
mod connection;
mod control;
mod data;
mod last_states;
pub(crate) mod promptness;
mod receive;
mod reset;
pub(crate) mod sack;
pub(crate) mod sizing;
mod transmit;
mod urgent;
pub(crate) mod window;

use crate::Config;
use crate::buffers::ReceiveBuffers;
use crate::marks::ReceiveMarks;
use crate::receiver::promptness::Promptness;
use crate::receiver::window::scale_for;
use inhost_base::{Instant, Sequence};

/// What counts as full-sized until larger segments were seen.
const LEAST_RECEIVE_MSS: u16 = 536;

/// What arrives, until it is read.
#[derive(Debug)]
pub(crate) struct Receiver {
    /// Made when there is data, freed after [`crate::timers::TIDY_AFTER`] without.
    pub buffers: Option<Box<ReceiveBuffers>>,
    /// The delayed acknowledgment's.
    pub acknowledge_at: Instant,
    /// When the last segment came.
    pub received_at: Instant,
    pub received_bytes: u64,
    pub space: ReceiveSpace,
    /// `TS.Recent` (RFC 7323 §3)
    pub timestamp_recent: u32,
    /// Second of the host's time when that was learned.
    pub timestamp_second: u32,
    /// How soon data is acknowledged.
    pub promptness: Promptness,
    pub marks: ReceiveMarks,
    /// Bits by which our windows are shifted.
    pub scale: u8,
    /// Payload of what counts as a full-sized segment of the peer's.
    pub receive_mss: u16,
}

/// The receive sequence space (RFC 9293 §3.3.1).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReceiveSpace {
    /// `IRS`
    pub initial: Sequence,
    /// `RCV.NXT`
    pub next: Sequence,
    /// `RCV.NXT + RCV.WND`: the furthest that was offered. It never moves back.
    pub edge: Sequence,
    /// The last acknowledgment that left.
    pub acknowledged: Sequence,
    /// `RCV.UP`: after the last urgent byte; at or before what is read when nothing is urgent.
    pub urgent: Sequence,
}

impl Receiver {
    /// One that has heard nothing.
    #[inline]
    pub fn new(config: &Config, now: Instant) -> Self {
        Receiver {
            buffers: None,
            acknowledge_at: Instant::FAR_FUTURE,
            received_at: now,
            received_bytes: 0,
            space: ReceiveSpace::default(),
            timestamp_recent: 0,
            timestamp_second: 0,
            promptness: Promptness::new(now),
            marks: ReceiveMarks::default(),
            scale: scale_for(config),
            receive_mss: LEAST_RECEIVE_MSS,
        }
    }
    /// The box of queues, made when it is not there.
    #[inline]
    pub fn buffers_mut(&mut self) -> &mut ReceiveBuffers {
        match &mut self.buffers {
            Some(buffers) => buffers,
            none => none.get_or_insert_default(),
        }
    }
}
