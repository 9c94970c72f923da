//! A connection: its sender and its receiver, and what concerns both.

mod application;
#[cfg(feature = "detail")]
mod detail;

mod icmp;
mod info;
mod next;
pub(crate) mod open;
mod options;
mod receive;
pub(crate) mod timers;
mod transmit;

pub use crate::connection::options::ConnectionOption;

use crate::common::Common;
use crate::flags::ConnectionFlags;
use crate::ledger::Accounts;
use crate::receiver::{ReceiveBuffers, ReceiveView, Receiver};
use crate::sender::next::Next;
use crate::sender::{SendView, Sender};
use crate::{Changes, Config, ConnectionError, Environment, Ledgers, SoftError};
use alloc::sync::Arc;
use inhost_base::Instant;
#[cfg(feature = "freeze")]
use inhost_base::freeze::Invalid;
use inhost_buf::Pool;
#[cfg(feature = "freeze")]
use inhost_buf::freeze::ThawPacket;
use inhost_event::{Disconnected, Event, Mask, SendCause, TcpState};

/// One TCP connection of RFC 9293, from its SYN to the end of TIME-WAIT. A listener is the stack's.
///
/// It is driven by its owner, in rounds: [`receive`](Connection::receive) for every segment that arrived; then
/// [`timeout`](Connection::timeout) when [`deadline`](Connection::deadline) has come; then the application's calls;
/// and at the end of the round [`transmit`](Connection::transmit) once, when
/// [`wants_transmit`](Connection::wants_transmit). Nothing else makes a segment, so that what the round has made due
/// (acknowledgment, reply, window update) shares segments (MIT §3.3). The one exception is a
/// [`ResetReply`](crate::ResetReply) in an [`Outcome`](crate::Outcome), which the owner sends at once.
///
/// - Any call may come at any time; a spurious one changes nothing. `now` never goes back.
/// - After each call that takes an [`Environment`], `deadline` and `wants_transmit` may have changed. `wants_transmit`
///   is true exactly when `transmit`, with room on the link, would send a segment.
/// - State changes by `transmit` only as far as its output accepted segments, unless what it refuses counts as lost
///   ([`Config::refusal_retry`](crate::Config::refusal_retry)).
/// - Before it is dropped, [`clear`](Connection::clear) gives its buffers back to the pool.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct Connection {
    common: Common,
    sender: Sender,
    receiver: Receiver,
    accounts: Accounts,
}

impl Connection {
    /// Whether [`Connection::transmit`] would send something at `now`.
    #[inline]
    pub fn wants_transmit(&self, now: Instant) -> bool {
        // The decision is made when an event changes it; the time alone changes nothing before `timeout`. Every call
        // that may change it ends with `update`.
        let _ = now;
        debug_assert_eq!(self.common.has(ConnectionFlags::WANTS_TRANSMIT), self.next_segment().is_ok());
        self.common.has(ConnectionFlags::WANTS_TRANSMIT)
    }
    /// The receiving half, to be read.
    pub fn receiver(&self) -> ReceiveView<'_> {
        ReceiveView::new(&self.common, &self.receiver)
    }
    /// The sending half, to be read.
    pub fn sender(&self) -> SendView<'_> {
        SendView::new(&self.common, &self.sender)
    }
    /// The connection's configuration, as it is shared among connections that changed nothing of it.
    pub fn config(&self) -> &Arc<Config> {
        self.common.config()
    }
    /// The state of RFC 9293 §3.3.2.
    pub fn state(&self) -> TcpState {
        self.common.state()
    }
    /// Why the connection ended, when it did not end by both sides closing.
    // spec: RFC9293 MUST-12 (the user can tell an abort from a close)
    pub fn error(&self) -> Option<ConnectionError> {
        self.common.error()
    }
    /// The latest trouble that did not end the connection.
    // spec: RFC9293 MUST-47 (soft errors are reported)
    pub fn soft_error(&self) -> Option<SoftError> {
        self.common.soft_error()
    }
    /// Both ledgers as they stand at `now`; each sums exactly to the connection's age.
    pub fn ledgers(&self, now: Instant) -> Ledgers {
        self.accounts.at(now)
    }
    /// Memory that the connection holds besides its own entry, by capacity: queues with their packet buffers, records of
    /// data in flight, and all lists.
    pub fn held_bytes(&self) -> usize {
        self.sender.held_bytes() + self.receiver.buffers().map_or(0, ReceiveBuffers::held_bytes)
    }
    /// Frees memory while the host is short of it and this connection holds much: out-of-order data is discarded, to be
    /// retransmitted (RFC 2018 §8), and the window grows from its initial size again. The advertised window is not
    /// reduced.
    pub fn shrink(&mut self, env: &mut Environment<'_>) {
        self.receiver.shrink_into(env.pool());
        self.update(env);
    }
    /// Releases all memory to the pool. Afterwards the connection behaves like one without data.
    pub fn clear(&mut self, pool: &mut Pool) {
        self.receiver.clear(pool);
        self.accounts.delivered(self.sender.clear(pool));
    }
    /// Whether there is a box of queues, with nothing queued, in flight or received.
    pub(crate) fn holds_empty_buffers(&self) -> bool {
        let has_buffers = self.sender.buffers().is_some() || self.receiver.buffers().is_some();
        has_buffers && self.sender.holds_nothing() && self.receiver.holds_nothing()
    }

    /// For tests of the whole host: from now on each number of ours on the wire is `send_by` higher, and each of the
    /// peer's is expected `receive_by` higher, modulo 2^32, as though so much had been sent and received. False, and no
    /// change, during the handshake and after the end.
    ///
    /// The peer knows nothing of it: the caller translates what passes between the two from now on. In segments that this
    /// end sends, and in datagrams quoted in ICMP errors that it gets, the sequence number is `send_by` too high for the
    /// peer; the acknowledgment number and the SACK blocks of the peer's segments are `send_by` too low for this end. The
    /// same holds for `receive_by` the other way. Jumps add up.
    #[doc(hidden)]
    pub fn renumber(&mut self, send_by: u32, receive_by: u32) -> bool {
        let may_jump = !self.common.opens() && self.common.state() != TcpState::Closed;
        if may_jump {
            self.sender.renumber(send_by);
            self.receiver.renumber(receive_by);
        }
        may_jump
    }

    /// Calls `act` with each packet of a thawed connection, and checks the connection. `config` is how it behaves, which
    /// is not written with it.
    #[cfg(feature = "freeze")]
    pub fn thaw(&mut self, config: Arc<Config>, act: ThawPacket<'_>) -> Result<(), Invalid> {
        self.common.thaw(config)?;
        self.sender.thaw(&self.common, act)?;
        self.receiver.thaw(act)
    }
    /// What tests look into.
    #[cfg(test)]
    pub(crate) fn parts(&self) -> (&Common, &Sender) {
        (&self.common, &self.sender)
    }

    // What the rest of the crate shares.

    /// Ends the connection: CLOSED, no timers, nothing to send. Received data stays readable unless the end is an error
    /// (RFC 9293 §3.10.7.4: a reset flushes the queues).
    pub(crate) fn finish(&mut self, error: Option<ConnectionError>, env: &mut Environment<'_>) {
        if self.common.state() == TcpState::Closed {
            return;
        }
        let keeps_data = error.is_none() || self.common.policy().received_data_survives_reset;
        self.receiver.end(keeps_data, env.pool());
        self.sender.end(env.pool());
        if self.common.state() != TcpState::TimeWait {
            env.changed(Changes::ENDED);
        }
        self.common.end(error, env);
        env.changed(Changes::CLOSED | Changes::READABLE | Changes::WRITABLE);
        if error.is_some() {
            env.changed(Changes::ERROR);
        }
        let (socket, now) = (env.socket(), env.now());
        let (sent_bytes, received_bytes) =
            (self.sender.acknowledged_bytes(), self.receiver.space().received_bytes());
        let age = self.accounts.at(now).send.total();
        env.emit(Mask::CONNECTION, || {
            Event::Disconnected(Disconnected { socket, age, sent_bytes, received_bytes })
        });
    }
    /// Both sides are closed, and our last acknowledgment may be lost.
    // spec: RFC9293 MUST-13 (TIME-WAIT lasts twice the segment lifetime)
    fn enter_time_wait(&mut self, env: &mut Environment<'_>) {
        self.common.enter(TcpState::TimeWait, env);
        env.changed(Changes::ENDED);
        self.sender.stop();
        self.common.linger_until(env.now() + self.common.config().time_wait);
        if self.holds_empty_buffers() && !self.receiver.has_sack_news(&self.common) {
            // No more data is expected, so the queues are freed.
            self.clear(env.pool());
        }
    }
    /// Decides what is sent next, and updates both ledgers and the persist timer: done at the end of every call, but for
    /// [`Connection::receive_predicted`], whose caller does it once for all segments of a round.
    #[inline(always)]
    pub fn update(&mut self, env: &mut Environment<'_>) {
        let next = self.next_segment();
        self.common.set(ConnectionFlags::WANTS_TRANSMIT, next.is_ok());
        self.update_with(next, env);
    }
    /// As [`Self::update`], where the next segment is known.
    #[inline(always)]
    pub(crate) fn update_with(&mut self, next: Result<Next, SendCause>, env: &mut Environment<'_>) {
        let cause = self.sender.cause(&self.common, next, self.accounts.send_cause(), env.now());
        self.accounts.wait_for(cause, self.receiver.receive_cause(&self.common), env);
    }
}
