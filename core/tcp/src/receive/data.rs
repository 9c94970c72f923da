//! Data and FIN (RFC 9293 §3.10.7.4, seventh and eighth step).

use super::Arrival;
use crate::marks::{Marks, ReceiveMarks};
use crate::outcome::{Changes, Outcome, ResetReply};
use crate::phase::Allows;
use crate::policy::DelayedAck;
use crate::promptness::{Coming, QUICK_AFTER_TROUBLE};
use crate::reassembly::Room;
use crate::window::tighten;
use crate::{Connection, ConnectionError, Environment};
use core::slice::from_mut;
use inhost_base::{Instant, Sequence};
use inhost_buf::{Batch, Packet};
use inhost_event::{Drop, TcpPhase};

/// Least payload ahead of a hole with which the window grows.
const GROWING_AHEAD_BYTES: u32 = 8;
/// Duplicate acknowledgments owed at a time: one for each segment of a batch.
const MOST_DUPLICATES_DUE: u8 = Batch::LIMIT as u8;

impl Connection {
    pub(crate) fn take_data(
        &mut self,
        arrival: &mut Arrival<'_>,
        env: &mut Environment<'_>,
        outcome: &mut Outcome,
    ) {
        if arrival.is_repeated {
            // Nothing of it is new: its sender missed our acknowledgment.
            self.receiver.marks.set(ReceiveMarks::ACKNOWLEDGE);
            self.receiver.marks.set(ReceiveMarks::SCHEDULED);
            self.hurry_acknowledgments(QUICK_AFTER_TROUBLE);
        }
        if arrival.payload.is_empty() && !arrival.fin {
            return;
        }
        if !self.common.phase.expects_data() {
            // After the peer's FIN there is nothing more to take.
            if self.common.config.policy.unread_data_has_no_connection
                && arrival.header.sequence.precedes(self.receiver.space.next)
            {
                self.take_behind_fin(arrival, env, outcome);
            }
            return;
        }
        if self.common.marks.has(Marks::ECN) {
            self.take_congestion_mark(arrival.ecn);
        }
        if self.common.marks.has(Marks::RECEIVE_CLOSED)
            && (!arrival.payload.is_empty() || self.is_fin_of_unread(arrival))
        {
            return self.discard_data(arrival, env, outcome);
        }
        if arrival.start != self.receiver.space.next {
            return self.keep_for_later(arrival, env, outcome);
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
            self.finish(Some(ConnectionError::ResetAfterEnd), env, outcome);
        } else if arrival.fin && arrival.end() == self.receiver.space.next + 1 {
            self.receiver.space.next += 1;
            self.receiver.space.edge = self.receiver.space.edge.later(self.receiver.space.next);
            self.receiver.marks.set(ReceiveMarks::SCHEDULED);
            self.note_data(arrival.coming(), env.now);
            self.sack_told(env.pool);
        }
    }
    /// The next bytes, which may lie in several pieces, and whatever they connect to. Whoever calls sees to when they are
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
            self.note_data(coming, env.now);
            if coming.bytes >= u32::from(self.receiver.receive_mss) {
                self.measure_as_receiver(timestamps, env.now);
            }
            let buffers = self.receiver.buffers.get_or_insert_default();
            for piece in payload {
                buffers.receive.push(tighten(piece.take(), env.pool), env.pool);
            }
            let next = self.receiver.space.next + length;
            had_hole = !buffers.reassembly.is_empty();
            let joined = if had_hole && !fin { self.fill_hole(next, env) } else { 0 };
            self.receiver.space.next = next + joined;
            self.receiver.promptness.duplicates_due = 0;
            self.receiver.received_bytes += u64::from(length + joined);
            self.receiver.marks.set(ReceiveMarks::SCHEDULED);
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
        self.release_small();
        let tells = self.common.marks.has(Marks::SACK) && self.common.config.duplicate_sack;
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
            && self.common.phase != TcpPhase::Established
        {
            // Linux acknowledges the FIN before it forgets what lay ahead.
            buffers.reassembly.duplicate = before;
        }
        let is_filled = buffers.reassembly.is_empty();
        if is_filled || !self.acks_adapt() {
            self.receiver.marks.set(ReceiveMarks::ACKNOWLEDGE);
        }
        joined
    }
    /// Data ahead of a hole: kept if there is room, and acknowledged at once either way, so that the sender sees a
    /// duplicate (RFC 5681 §4.2). Each such segment is owed one of its own, for the sender counts them: segments that
    /// come in one batch would otherwise never make three.
    // spec: RFC5681 3.2-1; RFC2018 4-4
    fn keep_for_later(
        &mut self,
        arrival: &mut Arrival<'_>,
        env: &mut Environment<'_>,
        outcome: &mut Outcome,
    ) {
        self.receiver.marks.set(ReceiveMarks::SCHEDULED);
        if !self.acks_adapt() {
            self.receiver.marks.set(ReceiveMarks::ACKNOWLEDGE);
            self.receiver.promptness.duplicates_due =
                self.receiver.promptness.duplicates_due.saturating_add(1).min(MOST_DUPLICATES_DUE);
        } else if self.common.marks.has(Marks::SACK) && arrival.whole_bytes >= GROWING_AHEAD_BYTES {
            self.grow_window(arrival.whole_bytes);
        }
        if env.pool.is_under_pressure() {
            outcome.dropped = Some(Drop::NoMemory);
            return;
        }
        if self.acks_adapt() {
            self.measure_segments(arrival.coming());
        }
        // What was offered fits the buffer in force, unless that has shrunk since: then it comes again.
        let limit = self.receive_buffer_bytes();
        let pieces = self.common.config.reassembly_limit_pieces;
        let tells_duplicates = self.common.marks.has(Marks::SACK) && self.common.config.duplicate_sack;
        let (start, end) = (arrival.start, arrival.start + arrival.payload.len() as u32);
        let fin = arrival.fin;
        let buffers = self.receiver.buffers.get_or_insert_default();
        let fin_came_before = fin && buffers.reassembly.ends_by(end);
        let is_new = !fin || buffers.reassembly.insert_fin(start, end);
        if arrival.payload.is_empty() || !is_new {
            if !tells_duplicates {
                buffers.reassembly.duplicate = None;
            }
            return;
        }
        let room = Room { capacity_bytes: limit.saturating_sub(buffers.receive.capacity_bytes()), pieces };
        let packet = arrival.payload.take();
        if !buffers.reassembly.insert(start, packet, room, env.pool) {
            outcome.dropped = Some(Drop::QueueFull);
        }
        if fin {
            buffers.reassembly.repeat_fin(end, fin_came_before);
        }
        if !tells_duplicates {
            buffers.reassembly.duplicate = None;
        }
    }
    /// Whether a FIN says that data is on its way for which nobody is left, as Linux has it.
    fn is_fin_of_unread(&self, arrival: &Arrival<'_>) -> bool {
        let is_closed = matches!(self.common.phase, TcpPhase::FinWait1 | TcpPhase::FinWait2);
        is_closed
            && self.common.config.policy.unread_data_has_no_connection
            && self.receiver.space.next.precedes(arrival.start)
    }
    /// Nobody will read this. While we may still send it is taken and forgotten; when both sides of the socket are
    /// closed the peer is told by a reset that its data is lost (RFC 9293 §3.6.1).
    fn discard_data(&mut self, arrival: &mut Arrival<'_>, env: &mut Environment<'_>, outcome: &mut Outcome) {
        if self.common.phase != TcpPhase::Established {
            return self.refuse_data(arrival, env, outcome);
        }
        self.receiver.marks.set(ReceiveMarks::ACKNOWLEDGE);
        if arrival.start == self.receiver.space.next {
            self.receiver.space.next += arrival.payload.len() as u32;
            self.receiver.space.edge = self.receiver.space.edge.later(self.receiver.space.next);
            self.receiver.received_bytes += arrival.payload.len() as u64;
            self.urgent_follows_reading();
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
        if at_once || !self.may_delay_fin() {
            self.receiver.marks.set(ReceiveMarks::ACKNOWLEDGE);
        }
        if self.may_delay_fin() {
            self.schedule_for_fin();
        }
        if self.common.phase == TcpPhase::FinWait1 && self.acks_adapt() {
            self.common.marks.set(Marks::APART);
        }
        // Where its acknowledgment goes at once, Linux still tells what came beyond it.
        let tells = self.acks_adapt() && self.common.phase != TcpPhase::Established;
        if let Some(buffers) = &mut self.receiver.buffers
            && buffers.reassembly.has_news()
            && !tells
        {
            buffers.reassembly.clear(env.pool);
        }
        outcome.changes |= Changes::PEER_CLOSED | Changes::READABLE;
        match self.common.phase {
            TcpPhase::Established => self.enter(TcpPhase::CloseWait, env),
            TcpPhase::FinWait1 => self.enter(TcpPhase::Closing, env),
            TcpPhase::FinWait2 => self.enter_time_wait(env),
            _ => {}
        }
    }
    /// Both sides are closed, and our last acknowledgment may be lost.
    // spec: RFC9293 MUST-13 (TIME-WAIT lasts twice the segment lifetime)
    pub(crate) fn enter_time_wait(&mut self, env: &mut Environment<'_>) {
        if self.common.config.policy.minimal_last_states && !self.is_small() {
            self.challenges = 0;
        }
        self.enter(TcpPhase::TimeWait, env);
        self.sender.retransmit_at = Instant::FAR_FUTURE;
        self.linger_at = env.now + self.common.config.time_wait;
        self.sender.recovery.end();
        if self.has_buffers() && self.holds_nothing() && !self.has_sack_news() {
            // Nothing comes any more that they were for.
            self.clear(env.pool);
        }
    }
}
