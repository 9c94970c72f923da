//! The receiving half of a connection: its sequence space, what arrived, and when that is acknowledged.

pub(crate) mod acceptability;
pub(crate) mod ack_timing;
mod answer;
pub(crate) mod buffers;
pub(crate) mod data;
mod detail;
mod ecn;
pub(crate) mod reassembly;
pub(crate) mod sack;
pub(crate) mod sizing;
pub(crate) mod space;
mod urgent;
pub(crate) mod window;

use crate::common::Common;
use crate::flags::{ConnectionFlags, ReceiverFlags};
use crate::receiver::ack_timing::AckTiming;
use crate::receiver::buffers::ReceiveBuffers;
use crate::receiver::space::ReceiveSpace;
use crate::receiver::window::scale_for;
use crate::{Config, Environment, PlainHeader};
use alloc::boxed::Box;
use inhost_base::{Instant, Sequence};
use inhost_event::{ReceiveCause, TcpState};

/// What counts as full-sized until larger segments were seen.
const LEAST_RECEIVE_MSS: u16 = 536;

/// What arrives, until it is read.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Receiver {
    /// Made when there is data, freed after [`crate::connection::timers::SHRINK_AFTER`] without.
    pub buffers: Option<Box<ReceiveBuffers>>,
    /// The delayed acknowledgment's.
    pub acknowledge_at: Instant,
    /// When the last segment arrived.
    pub received_at: Instant,
    pub space: ReceiveSpace,
    /// `TS.Recent` (RFC 7323 §3)
    pub timestamp_recent: u32,
    /// Hour of the host's time when that was learned.
    pub timestamp_hour: u16,
    /// How soon data is acknowledged.
    pub ack_timing: AckTiming,
    pub flags: ReceiverFlags,
}

impl Receiver {
    /// The initial state.
    #[inline]
    pub fn new(config: &Config, now: Instant) -> Self {
        Receiver {
            buffers: None,
            acknowledge_at: Instant::FAR_FUTURE,
            received_at: now,
            space: ReceiveSpace::new(scale_for(config), LEAST_RECEIVE_MSS),
            timestamp_recent: 0,
            timestamp_hour: 0,
            ack_timing: AckTiming::new(now),
            flags: ReceiverFlags::default(),
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
    /// The application reads no more.
    pub fn close(&mut self, common: &mut Common, env: &mut Environment<'_>) {
        common.flags.insert(ConnectionFlags::RECEIVE_CLOSED);
        if let Some(buffers) = &mut self.buffers {
            buffers.receive.clear(env.pool);
        }
        if common.state == TcpState::FinWait2 && common.linger_at == Instant::FAR_FUTURE {
            common.linger_at = env.now + common.config.fin_wait_2;
        }
        self.was_read(common);
    }
    /// The timestamps of a segment sent at `now`, where they were negotiated.
    pub fn timestamps_to_send(&self, common: &Common, now: Instant) -> Option<(u32, u32)> {
        common
            .flags
            .contains(ConnectionFlags::TIMESTAMPS)
            .then(|| (common.timestamp(now), self.timestamp_recent))
    }
    /// What receiving waits for.
    #[inline]
    pub fn receive_cause(&self, common: &Common) -> ReceiveCause {
        if common.opens() {
            return ReceiveCause::Opening;
        }
        if let Some(buffers) = &self.buffers {
            if !buffers.receive.is_empty() {
                let closed = self.space.window() == 0 && common.expects_data();
                return if closed { ReceiveCause::WindowClosed } else { ReceiveCause::ApplicationSlow };
            }
            if !buffers.reassembly.is_empty() {
                return ReceiveCause::Hole;
            }
        }
        if common.peer_has_closed() || common.state == TcpState::Closed {
            ReceiveCause::Closed
        } else {
            ReceiveCause::AwaitingData
        }
    }
    /// The plain header of a segment sent now: sequence, acknowledgment, window and timestamps.
    // spec: RFC7323 3.2-2
    #[inline]
    pub fn plain_header(&self, common: &Common, sequence: Sequence, env: &Environment<'_>) -> PlainHeader {
        PlainHeader {
            sequence,
            acknowledgment: self.space.sequence(self.space.next()),
            window: self.window_to_offer(common, env.pool),
            push: false,
            timestamps: self.timestamps_to_send(common, env.now),
        }
    }
}
