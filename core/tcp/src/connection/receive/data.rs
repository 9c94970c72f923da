//! Data and FIN (RFC 9293 §3.10.7.4, seventh and eighth step).

use crate::arrival::{Arrival, Coming};
use crate::flags::{ConnectionFlags, ReceiverFlags};
use crate::outcome::{Changes, Outcome, ResetReply};
use crate::policy::DelayedAck;
use crate::receiver::ack_timing::QUICK_AFTER_TROUBLE;
use crate::receiver::window::tighten;
use crate::state::Allows;
use crate::{Connection, ConnectionError, Environment};
use core::slice::from_mut;
use inhost_base::{Instant, Sequence};
use inhost_buf::Packet;
use inhost_event::TcpState;

impl Connection {
    pub(crate) fn take_data(
        &mut self,
        arrival: &mut Arrival<'_>,
        env: &mut Environment<'_>,
        outcome: &mut Outcome,
    ) {
        if arrival.is_repeated {
            // Nothing of it is new: its sender missed our acknowledgment.
            self.receiver.flags.set(ReceiverFlags::ACKNOWLEDGE);
            self.receiver.flags.set(ReceiverFlags::SCHEDULED);
            self.receiver.hurry_acknowledgments(&self.common, QUICK_AFTER_TROUBLE);
        }
        if arrival.payload.is_empty() && !arrival.fin {
            return;
        }
        if !self.common.state.expects_data() {
            // After the peer's FIN there is nothing more to take.
            if self.common.config.policy.unread_data_has_no_connection
                && arrival.header.sequence.precedes(self.receiver.space.next)
            {
                self.take_behind_fin(arrival, env, outcome);
            }
            return;
        }
        if self.common.flags.has(ConnectionFlags::ECN) {
            self.receiver.take_congestion_mark(&self.common, arrival.ecn);
        }
        if self.common.flags.has(ConnectionFlags::RECEIVE_CLOSED)
            && (!arrival.payload.is_empty() || self.receiver.is_fin_of_unread(&self.common, arrival))
        {
            return self.discard_data(arrival, env, outcome);
        }
        if arrival.start != self.receiver.space.next {
            return self.receiver.keep_for_later(&self.common, arrival, env, outcome);
        }
        let coming = arrival.coming();
        let Arrival { header, payload, fin, .. } = arrival;
        self.take_in_order(from_mut(*payload), *fin, coming, header.options.timestamps, env, outcome);
    }
    /// What goes on behind the peer's FIN: data has nobody to read it, and another FIN, in the next place, is as the first.
    fn take_behind_fin(&mut self, arrival: &Arrival<'_>, env: &mut Environment<'_>, outcome: &mut Outcome) {
        if !arrival.payload.is_empty() {
            outcome.reset = ResetReply::to(arrival.header, arrival.payload.len());
            // It takes nothing from the end of the stream, which came before.
            let error = match self.common.state {
                TcpState::Closing | TcpState::LastAck
                    if self.common.config.policy.reset_after_fin_is_closed =>
                {
                    ConnectionError::ResetAtEnd
                }
                _ => ConnectionError::ResetAfterEnd,
            };
            self.finish(Some(error), env, outcome);
        } else if arrival.fin && arrival.end() == self.receiver.space.next + 1 {
            self.receiver.space.next += 1;
            self.receiver.space.edge = self.receiver.space.edge.later(self.receiver.space.next);
            self.receiver.flags.set(ReceiverFlags::SCHEDULED);
            self.receiver.note_data(&self.common, &self.sender.round_trip, arrival.coming(), env.now);
            self.receiver.sack_told(&self.common, env.pool);
        }
    }
    /// The next bytes, which may lie in several pieces, and whatever they connect to. The caller sees to when they are
    /// acknowledged, where nothing says here that it is at once.
    // spec: RFC5681 3.2-2
    #[inline]
    pub(crate) fn take_in_order(
        &mut self,
        payload: &mut [Packet],
        fin: bool,
        coming: Coming,
        timestamps: Option<(u32, u32)>,
        env: &mut Environment<'_>,
        outcome: &mut Outcome,
    ) {
        let length: u32 = payload.iter().map(|piece| piece.len() as u32).sum();
        let mut had_hole = false;
        if length > 0 {
            self.receiver.note_data(&self.common, &self.sender.round_trip, coming, env.now);
            if coming.bytes >= u32::from(self.receiver.receive_mss) {
                self.receiver.measure_as_receiver(&self.common, timestamps, env.now);
            }
            let buffers = self.receiver.buffers.get_or_insert_default();
            for piece in payload {
                buffers.receive.push(tighten(piece.take(), env.pool), env.pool);
            }
            let next = self.receiver.space.next + length;
            had_hole = !buffers.reassembly.is_empty();
            let joined = if had_hole && !fin { self.fill_hole(next, env) } else { 0 };
            self.receiver.space.next = next + joined;
            self.receiver.ack_timing.duplicates_due = 0;
            self.receiver.received_bytes += u64::from(length + joined);
            self.receiver.flags.set(ReceiverFlags::SCHEDULED);
            outcome.changes |= Changes::READABLE;
        }
        if fin {
            return self.take_fin(false, env, outcome);
        }
        if had_hole
            && self.receiver.buffers.as_ref().is_some_and(|b| b.reassembly.ends_by(self.receiver.space.next))
        {
            self.take_fin(true, env, outcome);
        }
    }
    /// What comes in order reaches to `next`: the bytes that follow it were here already. What fills a hole is
    /// acknowledged at once (RFC 5681 §4.2).
    #[inline(never)]
    fn fill_hole(&mut self, next: Sequence, env: &mut Environment<'_>) -> u32 {
        self.sender.release_small(&self.common);
        let tells = self.common.flags.has(ConnectionFlags::SACK) && self.common.config.duplicate_sack;
        let Some(buffers) = &mut self.receiver.buffers else { return 0 };
        if tells {
            buffers.reassembly.note_overlap(next);
        }
        let before = buffers.reassembly.recent().next();
        let joined = buffers.reassembly.drain_into(next, &mut buffers.receive, env.pool);
        if tells
            && buffers.reassembly.ends_by(next + joined)
            && buffers.reassembly.duplicate.is_none()
            && self.common.config.policy.delayed_ack == DelayedAck::Adaptive
            && self.common.state != TcpState::Established
        {
            // Linux acknowledges the FIN before it forgets what lay ahead.
            buffers.reassembly.duplicate = before;
        }
        let is_filled = buffers.reassembly.is_empty();
        if is_filled || !self.common.acks_adapt() {
            self.receiver.flags.set(ReceiverFlags::ACKNOWLEDGE);
        }
        joined
    }
    /// Nobody will read this. While we may still send it is taken and forgotten; when both sides of the socket are
    /// closed the peer is told by a reset that its data is lost (RFC 9293 §3.6.1).
    fn discard_data(&mut self, arrival: &mut Arrival<'_>, env: &mut Environment<'_>, outcome: &mut Outcome) {
        if self.common.state != TcpState::Established {
            return self.refuse_data(arrival, env, outcome);
        }
        self.receiver.flags.set(ReceiverFlags::ACKNOWLEDGE);
        if arrival.start == self.receiver.space.next {
            self.receiver.space.next += arrival.payload.len() as u32;
            self.receiver.space.edge = self.receiver.space.edge.later(self.receiver.space.next);
            self.receiver.received_bytes += arrival.payload.len() as u64;
            self.receiver.urgent_follows_reading(&self.common);
            if arrival.fin {
                self.take_fin(true, env, outcome);
            }
        }
    }
    /// Data for which nobody is left ends the connection (RFC 1122 §4.2.2.13).
    #[cold]
    pub(super) fn refuse_data(
        &mut self,
        arrival: &Arrival<'_>,
        env: &mut Environment<'_>,
        outcome: &mut Outcome,
    ) {
        outcome.reset = if self.common.config.policy.unread_data_has_no_connection {
            ResetReply::to(arrival.header, arrival.payload.len())
        } else {
            Some(self.last_word(env.now))
        };
        self.finish(Some(ConnectionError::Aborted), env, outcome);
    }
    /// The peer's stream is complete. `at_once`: it is acknowledged without delay in any case.
    fn take_fin(&mut self, at_once: bool, env: &mut Environment<'_>, outcome: &mut Outcome) {
        self.receiver.space.next += 1;
        self.receiver.space.edge = self.receiver.space.edge.later(self.receiver.space.next);
        if at_once || !self.common.may_delay_fin() {
            self.receiver.flags.set(ReceiverFlags::ACKNOWLEDGE);
        }
        if self.common.may_delay_fin() {
            self.receiver.schedule_for_fin();
        }
        if self.common.state == TcpState::FinWait1 && self.common.acks_adapt() {
            self.common.flags.set(ConnectionFlags::APART);
        }
        // Where its acknowledgment goes at once, Linux still tells what came beyond it.
        let tells = self.common.acks_adapt() && self.common.state != TcpState::Established;
        if let Some(buffers) = &mut self.receiver.buffers
            && buffers.reassembly.has_news()
            && !tells
        {
            buffers.reassembly.clear(env.pool);
        }
        outcome.changes |= Changes::PEER_CLOSED | Changes::READABLE;
        match self.common.state {
            TcpState::Established => self.enter(TcpState::CloseWait, env),
            TcpState::FinWait1 => self.enter(TcpState::Closing, env),
            TcpState::FinWait2 => self.enter_time_wait(env),
            _ => {}
        }
    }
    /// Both sides are closed, and our last acknowledgment may be lost.
    // spec: RFC9293 MUST-13 (TIME-WAIT lasts twice the segment lifetime)
    pub(crate) fn enter_time_wait(&mut self, env: &mut Environment<'_>) {
        if self.common.config.policy.minimal_last_states && !self.common.is_small() {
            self.challenges = 0;
        }
        self.enter(TcpState::TimeWait, env);
        self.sender.retransmit_at = Instant::FAR_FUTURE;
        self.linger_at = env.now + self.common.config.time_wait;
        self.sender.recovery.end();
        if self.has_buffers() && self.holds_nothing() && !self.receiver.has_sack_news(&self.common) {
            // Nothing comes any more that they were for.
            self.clear(env.pool);
        }
    }
}
