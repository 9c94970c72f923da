//! What is left of a connection once nobody holds it: FIN-WAIT-2 after the application has let go, and TIME-WAIT, where
//! Linux keeps a small entry with rules of its own (tcp_timewait_state_process).

use crate::arrival::Arrival;
use crate::flags::{ConnectionFlags, ReceiverFlags};
use crate::outcome::{Outcome, ResetReply};
use crate::{Connection, ConnectionError, Environment};
use inhost_base::{Instant, Sequence};
use inhost_event::{Drop, TcpState};

impl Connection {
    /// Whether TIME-WAIT lasts though the application aborts: RFC 9293 §3.10.5 ends it there, but Linux has left the
    /// socket by then.
    pub fn outlives_abort(&self) -> bool {
        self.common.config.policy.minimal_last_states && self.common.state == TcpState::TimeWait
    }
    /// A segment for it.
    pub(super) fn arrive_in_small(
        &mut self,
        arrival: &Arrival<'_>,
        env: &mut Environment<'_>,
        outcome: &mut Outcome,
    ) {
        if self.common.state == TcpState::TimeWait {
            // Nobody sends any more who could go slower.
            self.receiver.flags.clear(ReceiverFlags::ECHO_CONGESTION);
        }
        let is_old = self.receiver.is_older_than_known(&self.common, arrival);
        let (start, end, next) = (arrival.header.sequence, arrival.end(), self.receiver.space.next);
        if self.common.state == TcpState::TimeWait {
            return self.arrive_in_time_wait(arrival, is_old, env, outcome);
        }
        let flags = arrival.header.flags;
        if is_old || !is_within(start, end, next, self.receiver.space.edge) {
            return self.answer_small(arrival, env, outcome);
        }
        if flags.rst() {
            return self.finish(None, env, outcome);
        }
        if flags.syn() && next.at_or_before(start) {
            return self.end_small(arrival, env, outcome);
        }
        if !flags.ack() || end.at_or_before(next) || start == end {
            outcome.dropped = Some(Drop::OutOfWindow);
            return;
        }
        if !flags.fin() || end != next + 1 {
            return self.end_small(arrival, env, outcome);
        }
        self.receiver.space.next = end;
        self.receiver.space.edge = self.receiver.space.edge.later(end);
        self.keep_timestamp(arrival.header.options.timestamps, env.now);
        self.enter_time_wait(env);
        self.receiver.flags.set(ReceiverFlags::ACKNOWLEDGE);
    }
    fn arrive_in_time_wait(
        &mut self,
        arrival: &Arrival<'_>,
        is_old: bool,
        env: &mut Environment<'_>,
        outcome: &mut Outcome,
    ) {
        let flags = arrival.header.flags;
        let (start, end) = (arrival.header.sequence, arrival.end());
        outcome.dropped = Some(Drop::OutOfWindow);
        if !is_old && start == self.receiver.space.next && (start == end || flags.rst()) {
            if flags.rst() {
                return self.finish(None, env, outcome);
            }
            self.linger_at = env.now + self.common.config.time_wait;
            self.keep_timestamp(arrival.header.options.timestamps, env.now);
            return;
        }
        if flags.rst() {
            return;
        }
        let begins = flags.syn() && !flags.ack() && !is_old && self.receiver.space.next.precedes(start);
        if begins {
            // It could begin another connection, and nobody listens for it: no limit counts that.
            self.receiver.flags.set(ReceiverFlags::ACKNOWLEDGE);
            return;
        }
        if is_old || flags.ack() {
            self.linger_at = env.now + self.common.config.time_wait;
        }
        self.answer_small(arrival, env, outcome);
    }
    /// The acknowledgment of our FIN came: what of the segment is for the smaller state that this brings. True where
    /// nothing more is to be done with it.
    pub(super) fn becomes_small(
        &mut self,
        before: TcpState,
        arrival: &Arrival<'_>,
        env: &mut Environment<'_>,
        outcome: &mut Outcome,
    ) -> bool {
        if before == self.common.state || !self.common.is_small() {
            return false;
        }
        let fin = arrival.header.flags.fin();
        if before == TcpState::Closing {
            self.begin_small();
            self.receiver.sack_told(&self.common, env.pool);
            return true;
        }
        let goes_on = self.receiver.space.next.precedes(arrival.end().back(u32::from(fin)));
        if goes_on && arrival.header.sequence != arrival.end() {
            self.begin_small();
            self.end_small(arrival, env, outcome);
            return true;
        }
        if fin {
            // It is still taken; an old one leaves the connection whole.
            self.common.flags.set(ConnectionFlags::WHOLE);
            return false;
        }
        self.begin_small();
        if let Some(buffers) = &mut self.receiver.buffers {
            buffers.reassembly.clear(env.pool);
        }
        true
    }
    /// It has counts of its own, and waits for nothing.
    pub(crate) fn begin_small(&mut self) {
        self.challenges = 0;
        self.receiver.acknowledge_at = Instant::FAR_FUTURE;
        self.receiver.flags.clear(ReceiverFlags::ACKNOWLEDGE | ReceiverFlags::SCHEDULED);
    }
    /// There is nobody for this data: it is answered as if there were no connection.
    fn end_small(&mut self, arrival: &Arrival<'_>, env: &mut Environment<'_>, outcome: &mut Outcome) {
        outcome.reset = ResetReply::to(arrival.header, arrival.whole_bytes as usize);
        self.finish(Some(ConnectionError::Aborted), env, outcome);
    }
    /// Tells the peer where we are, what has no part of a stream not too often.
    fn answer_small(&mut self, arrival: &Arrival<'_>, env: &mut Environment<'_>, outcome: &mut Outcome) {
        outcome.dropped = Some(Drop::OutOfWindow);
        if arrival.bears_stream() || self.may_challenge(env) {
            self.receiver.flags.set(ReceiverFlags::ACKNOWLEDGE);
        }
    }
}

/// Whether a segment from `start` to `end` touches the window from `next` to `edge`.
fn is_within(start: Sequence, end: Sequence, next: Sequence, edge: Sequence) -> bool {
    start == next || (next.precedes(end) && start.precedes(edge)) || (start == edge && start == end)
}
