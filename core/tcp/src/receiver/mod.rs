//! The receiving half of a connection: its sequence space, what arrived, and when that is acknowledged.

pub(crate) mod acceptability;
pub(crate) mod ack_timing;
pub(crate) mod data;
#[cfg(feature = "detail")]
mod detail;
mod ecn;
mod handshake;
pub(crate) mod sack;
pub(crate) mod sizing;
pub(crate) mod space;
mod view;
pub(crate) mod window;

pub use crate::receiver::view::ReceiveView;

use crate::common::Common;
use crate::flags::{ConnectionFlags, ReceiverFlags};
use crate::receiver::ack_timing::AckTiming;
use crate::receiver::sizing::Sizing;
use crate::receiver::space::ReceiveSpace;
use crate::receiver::window::scale_for;
use crate::{Config, Environment, PlainHeader};
use alloc::boxed::Box;
use inhost_base::{Deadline, Instant, Sequence};
use inhost_buf::{Pool, ReassemblyQueue, ReceiveQueue};
use inhost_event::{ReceiveCause, TcpState};
use inhost_wire::tcp::Flags;

/// What counts as full-sized until larger segments were seen.
const LEAST_RECEIVE_MSS: u16 = 536;

/// What arrives, until it is read.
#[derive(Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Receiver {
    /// Made when there is data, freed after [`crate::connection::timers::SHRINK_AFTER`] without.
    buffers: Option<Box<ReceiveBuffers>>,
    /// The delayed acknowledgment's.
    acknowledge_at: Deadline,
    /// When the last segment arrived.
    received_at: Instant,
    space: ReceiveSpace,
    /// `TS.Recent` (RFC 7323 §3)
    timestamp_recent: u32,
    /// Hour of the host's time when that was learned.
    timestamp_hour: u16,
    /// How soon data is acknowledged.
    ack_timing: AckTiming,
    flags: ReceiverFlags,
}

/// What a receiver keeps only while it has data: the queues, and the measurement of the receive rate.
#[derive(Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct ReceiveBuffers {
    /// In order, for the application.
    receive: ReceiveQueue,
    /// Out-of-order data.
    reassembly: ReassemblyQueue,
    sizing: Sizing,
}

impl ReceiveBuffers {
    /// Whether nothing is held.
    pub fn are_empty(&self) -> bool {
        self.receive.is_empty() && self.reassembly.is_empty()
    }
    /// Memory that received data pins.
    pub fn received_capacity_bytes(&self) -> usize {
        self.receive.capacity_bytes() + self.reassembly.capacity_bytes()
    }
    /// All memory that is held, by capacity.
    pub fn held_bytes(&self) -> usize {
        size_of::<ReceiveBuffers>() + self.receive.capacity_bytes() + self.reassembly.held_bytes()
    }
}

impl Receiver {
    /// The initial state.
    #[inline]
    pub fn new(config: &Config, now: Instant) -> Self {
        let space = ReceiveSpace::new(scale_for(config), LEAST_RECEIVE_MSS);
        Receiver { received_at: now, space, ack_timing: AckTiming::new(now), ..Receiver::default() }
    }
    /// `RCV.*`
    pub fn space(&self) -> &ReceiveSpace {
        &self.space
    }
    /// The queues, where there are any.
    pub fn buffers(&self) -> Option<&ReceiveBuffers> {
        self.buffers.as_deref()
    }
    /// Whether a flag is set.
    pub fn has(&self, flag: ReceiverFlags) -> bool {
        self.flags.contains(flag)
    }
    /// When a delayed acknowledgment is due.
    pub fn acknowledge_at(&self) -> Deadline {
        self.acknowledge_at
    }
    /// When the last segment arrived.
    pub fn received_at(&self) -> Instant {
        self.received_at
    }
    /// The host slept for a part of the peer's silence: it counts from `at` on.
    pub fn silent_from(&mut self, at: Instant) {
        self.received_at = at;
    }
    /// `TS.Recent`
    pub fn timestamp_recent(&self) -> u32 {
        self.timestamp_recent
    }
    /// Whether nothing is held.
    pub fn holds_nothing(&self) -> bool {
        self.buffers.as_ref().is_none_or(|buffers| buffers.are_empty())
    }
    /// Each number of the peer's on the wire is `by` higher from now on.
    pub fn renumber(&mut self, by: u32) {
        self.space.renumber(by);
    }
    /// Releases all memory to the pool.
    pub fn clear(&mut self, pool: &mut Pool) {
        if let Some(mut buffers) = self.buffers.take() {
            buffers.receive.clear(pool);
            buffers.reassembly.clear(pool);
        }
    }
    /// The connection is over: nothing is acknowledged any more. Data in order stays readable if it is kept.
    pub fn end(&mut self, keeps_data: bool, pool: &mut Pool) {
        self.acknowledge_at.stop();
        self.flags.remove(ReceiverFlags::ACKNOWLEDGE);
        if let Some(buffers) = &mut self.buffers {
            buffers.reassembly.clear(pool);
            if !keeps_data {
                buffers.receive.clear(pool);
            }
        }
    }
    /// Calls `act` with each packet of a thawed receiver, and checks it.
    #[cfg(feature = "freeze")]
    pub fn thaw(
        &mut self,
        act: inhost_buf::freeze::ThawPacket<'_>,
    ) -> Result<(), inhost_base::freeze::Invalid> {
        use {crate::common::MAX_SCALE, inhost_base::freeze::require};
        if let Some(buffers) = &mut self.buffers {
            buffers.receive.thaw(act)?;
            buffers.reassembly.thaw(act)?;
        }
        require(self.space.scale() <= MAX_SCALE, "a window scale")?;
        require(self.space.window() <= 1 << 30, "a receive window")
    }
    /// The application reads no more.
    pub fn close(&mut self, common: &mut Common, env: &mut Environment<'_>) {
        common.set(ConnectionFlags::RECEIVE_CLOSED, true);
        if let Some(buffers) = &mut self.buffers {
            buffers.receive.clear(env.pool());
        }
        if common.state() == TcpState::FinWait2 && !common.linger_at().is_set() {
            common.linger_until(env.now() + common.config().fin_wait_2);
        }
        self.was_read(common);
    }
    /// The timestamps of a segment sent at `now`, where they were negotiated.
    pub fn timestamps_to_send(&self, common: &Common, now: Instant) -> Option<(u32, u32)> {
        common.has(ConnectionFlags::TIMESTAMPS).then(|| (common.timestamp(now), self.timestamp_recent))
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
        if common.peer_has_closed() || common.state() == TcpState::Closed {
            ReceiveCause::Closed
        } else {
            ReceiveCause::AwaitingData
        }
    }
    /// The plain header of a segment sent now: sequence, acknowledgment, window and timestamps.
    // spec: RFC7323 3.2-2
    #[inline]
    pub fn plain_header(
        &self,
        common: &Common,
        sequence: Sequence,
        env: &mut Environment<'_>,
    ) -> PlainHeader {
        PlainHeader {
            sequence,
            acknowledgment: self.space.sequence(self.space.next()),
            window: self.window_to_offer(common, env.pool()),
            flags: Flags::ACK,
            timestamps: self.timestamps_to_send(common, env.now()),
        }
    }
}
