//! The last states without a socket: orphaned FIN-WAIT-2 and TIME-WAIT, for which Linux keeps a small entry with rules of
//! its own (tcp_timewait_state_process).

use super::Input;
use crate::ConnectionError;
use crate::arrival::Arrival;
use crate::flags::{ConnectionFlags, ReceiverFlags};
use crate::offset::Offset;
use crate::outcome::ResetReply;
use inhost_event::{Drop, TcpState};

impl Input<'_, '_> {
    /// A segment for it.
    pub(super) fn arrive_minimal(&mut self, arrival: &Arrival<'_>) {
        if self.tcb.common.state == TcpState::TimeWait {
            // No data is sent any more, so ECE has no purpose.
            self.tcb.receiver.flags.clear(ReceiverFlags::ECHO_CONGESTION);
        }
        let is_old = self.tcb.receiver.is_older_than_known(&self.tcb.common, arrival, self.env.now);
        let (start, end, next) = (arrival.first, arrival.end(), self.tcb.receiver.space.next());
        if self.tcb.common.state == TcpState::TimeWait {
            return self.arrive_in_time_wait(arrival, is_old);
        }
        let flags = arrival.header.flags;
        if is_old || !is_within(start, end, next, self.tcb.receiver.space.edge()) {
            self.outcome.dropped = Some(Drop::OutOfWindow);
            return self.tcb.receiver.answer_unacceptable(&mut self.tcb.common, arrival, self.env.now);
        }
        if flags.rst() {
            return self.tcb.finish(None, self.env, self.outcome);
        }
        if flags.syn() && next <= start {
            return self.end_minimal(arrival);
        }
        if !flags.ack() || end <= next || start == end {
            self.outcome.dropped = Some(Drop::OutOfWindow);
            return;
        }
        if !flags.fin() || end != next + 1 {
            return self.end_minimal(arrival);
        }
        self.tcb.receiver.space.receive_fin();
        self.tcb.sender.peer_answers();
        // Its numbers are known to be in order.
        self.tcb.receiver.note_segment(
            &self.tcb.common,
            self.tcb.receiver.space.acknowledged(),
            arrival.header.options.timestamps,
            self.env.now,
        );
        self.tcb.enter_time_wait(self.env, self.outcome);
        self.tcb.receiver.flags.set(ReceiverFlags::ACKNOWLEDGE);
    }
    fn arrive_in_time_wait(&mut self, arrival: &Arrival<'_>, is_old: bool) {
        let flags = arrival.header.flags;
        let (start, end) = (arrival.first, arrival.end());
        self.outcome.dropped = Some(Drop::OutOfWindow);
        if !is_old && start == self.tcb.receiver.space.next() && (start == end || flags.rst()) {
            if flags.rst() {
                return self.tcb.finish(None, self.env, self.outcome);
            }
            self.tcb.common.linger_at = self.env.now + self.tcb.common.config.time_wait;
            self.tcb.sender.peer_answers();
            // Its numbers are known to be in order.
            self.tcb.receiver.note_segment(
                &self.tcb.common,
                self.tcb.receiver.space.acknowledged(),
                arrival.header.options.timestamps,
                self.env.now,
            );
            return;
        }
        if flags.rst() {
            return;
        }
        let begins = flags.syn() && !flags.ack() && !is_old && self.tcb.receiver.space.next() < start;
        if begins {
            // Such a SYN could begin another connection, if there were a listener: the challenge limit does not apply.
            self.tcb.receiver.flags.set(ReceiverFlags::ACKNOWLEDGE);
            return;
        }
        if is_old || flags.ack() {
            self.tcb.common.linger_at = self.env.now + self.tcb.common.config.time_wait;
        }
        self.tcb.receiver.answer_unacceptable(&mut self.tcb.common, arrival, self.env.now);
    }
    /// Our FIN was acknowledged: processes the rest of the segment for the reduced state that follows. True if nothing
    /// more is to be done with it.
    pub(super) fn becomes_minimal(&mut self, before: TcpState, arrival: &Arrival<'_>) -> bool {
        if before == self.tcb.common.state || !self.tcb.common.is_minimal() {
            return false;
        }
        let fin = arrival.header.flags.fin();
        if before == TcpState::Closing {
            self.tcb.begin_minimal();
            self.tcb.receiver.sack_sent(&self.tcb.common, self.env.pool);
            return true;
        }
        let goes_on = self.tcb.receiver.space.next() < arrival.end().back(u32::from(fin));
        if goes_on && arrival.first != arrival.end() {
            self.tcb.begin_minimal();
            self.end_minimal(arrival);
            return true;
        }
        if fin {
            // The FIN is still processed; the connection keeps its full state.
            self.tcb.common.flags.set(ConnectionFlags::FULL_STATE);
            return false;
        }
        self.tcb.begin_minimal();
        if let Some(buffers) = &mut self.tcb.receiver.buffers {
            buffers.reassembly.clear(self.env.pool);
        }
        true
    }
    /// No application can read this data: it is answered as if there were no connection.
    fn end_minimal(&mut self, arrival: &Arrival<'_>) {
        self.outcome.reset = ResetReply::to(arrival.header, arrival.whole_bytes as usize);
        self.tcb.finish(Some(ConnectionError::Aborted), self.env, self.outcome);
    }
}

/// Whether a segment from `start` to `end` touches the window from `next` to `edge`.
fn is_within(start: Offset, end: Offset, next: Offset, edge: Offset) -> bool {
    start == next || (next < end && start < edge) || (start == edge && start == end)
}
