//! Data and FIN (RFC 9293 §3.10.7.4, seventh and eighth step).

use super::Arrival;
use crate::marks::Marks;
use crate::outcome::{Changes, Outcome, ResetReply};
use crate::phase::Allows;
use crate::reassembly::Room;
use crate::window::tighten;
use crate::{Connection, ConnectionError, Environment};
use core::slice::from_mut;
use inhost_base::Instant;
use inhost_buf::{Batch, Packet};
use inhost_event::{Drop, TcpPhase};

/// Duplicate acknowledgments owed at a time: one for each segment of a batch.
const MOST_DUPLICATES_DUE: u8 = Batch::LIMIT as u8;

impl Connection {
    pub(crate) fn take_data(
        &mut self,
        arrival: &mut Arrival<'_>,
        env: &mut Environment<'_>,
        outcome: &mut Outcome,
    ) {
        if arrival.payload.is_empty() && !arrival.fin {
            return;
        }
        if !self.phase.expects_data() {
            // After the peer's FIN there is nothing more to take.
            if self.phase == TcpPhase::TimeWait
                && self.config.unread_is_unknown
                && !arrival.payload.is_empty()
            {
                self.marks.set(Marks::ACKNOWLEDGE);
            }
            let behind_fin =
                arrival.header.sequence.precedes(self.receive.next) && !arrival.payload.is_empty();
            if behind_fin && self.config.unread_is_unknown && self.phase != TcpPhase::TimeWait {
                outcome.reset = ResetReply::to(arrival.header, arrival.payload.len());
                self.finish(Some(ConnectionError::Aborted), env, outcome);
            }
            return;
        }
        if self.marks.has(Marks::RECEIVE_CLOSED) && !arrival.payload.is_empty() {
            return self.discard_data(arrival, env, outcome);
        }
        if arrival.start != self.receive.next {
            return self.keep_for_later(arrival, env, outcome);
        }
        let Arrival { header, payload, fin, .. } = arrival;
        self.take_in_order(
            from_mut(*payload),
            *fin,
            header.flags.psh(),
            header.options.timestamps,
            env,
            outcome,
        );
    }
    /// The next bytes, which may lie in several pieces, and whatever they connect to.
    // spec: RFC5681 3.2-2
    #[inline]
    pub(crate) fn take_in_order(
        &mut self,
        payload: &mut [Packet],
        fin: bool,
        pushed: bool,
        timestamps: Option<(u32, u32)>,
        env: &mut Environment<'_>,
        outcome: &mut Outcome,
    ) {
        let length: u32 = payload.iter().map(|piece| piece.len() as u32).sum();
        if length > 0 {
            let most = self.path_mss;
            self.receive_mss = self.receive_mss.max((length.min(u32::from(most))) as u16);
            self.note_data(length, pushed, env.now);
            if fin {
                self.note_last_data();
            }
            if length >= u32::from(self.receive_mss) {
                self.measure_as_receiver(timestamps, env.now);
            }
            let buffers = self.buffers.get_or_insert_default();
            for piece in payload {
                buffers.receive.push(tighten(piece.take(), env.pool), env.pool);
            }
            let next = self.receive.next + length;
            let had_hole = !buffers.reassembly.is_empty();
            if had_hole && self.marks.has(Marks::SACK) && self.config.duplicate_sack {
                buffers.reassembly.note_overlap(next);
            }
            let joined = if had_hole {
                buffers.reassembly.drain_into(next, &mut buffers.receive, env.pool)
            } else {
                0
            };
            self.receive.next = next + joined;
            self.duplicates_due = 0;
            self.received_bytes += u64::from(length + joined);
            outcome.changes |= Changes::READABLE;
            if had_hole {
                // RFC 5681 §4.2: what fills a hole is acknowledged at once.
                self.marks.set(Marks::ACKNOWLEDGE);
            } else {
                self.schedule_acknowledgment(env.now);
            }
        }
        let fin_came_ahead =
            self.buffers.as_ref().is_some_and(|buffers| buffers.reassembly.ends_by(self.receive.next));
        if fin || fin_came_ahead {
            self.take_fin(fin_came_ahead, env, outcome);
        }
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
        self.marks.set(Marks::ACKNOWLEDGE);
        self.hurry_acknowledgments();
        self.duplicates_due = self.duplicates_due.saturating_add(1).min(MOST_DUPLICATES_DUE);
        if env.pool.is_under_pressure() {
            outcome.dropped = Some(Drop::NoMemory);
            return;
        }
        // What was offered fits the buffer in force, unless that has shrunk since: then it comes again.
        let limit = self.receive_buffer_bytes();
        let pieces = self.config.reassembly_limit_pieces;
        let tells_duplicates = self.marks.has(Marks::SACK) && self.config.duplicate_sack;
        let (start, end) = (arrival.start, arrival.start + arrival.payload.len() as u32);
        let fin = arrival.fin;
        let buffers = self.buffers.get_or_insert_default();
        if fin {
            buffers.reassembly.fin = Some(end);
        }
        if arrival.payload.is_empty() {
            return;
        }
        let room = Room { capacity_bytes: limit.saturating_sub(buffers.receive.capacity_bytes()), pieces };
        let packet = arrival.payload.take();
        if !buffers.reassembly.insert(start, packet, room, env.pool) {
            outcome.dropped = Some(Drop::QueueFull);
        }
        if !tells_duplicates {
            buffers.reassembly.duplicate = None;
        }
    }
    /// Nobody will read this. While we may still send it is taken and forgotten; when both sides of the socket are
    /// closed the peer is told by a reset that its data is lost (RFC 9293 §3.6.1).
    fn discard_data(&mut self, arrival: &mut Arrival<'_>, env: &mut Environment<'_>, outcome: &mut Outcome) {
        if self.phase != TcpPhase::Established {
            outcome.reset = if self.config.unread_is_unknown {
                ResetReply::to(arrival.header, arrival.payload.len())
            } else {
                Some(self.last_word(env.now))
            };
            return self.finish(Some(ConnectionError::Aborted), env, outcome);
        }
        self.marks.set(Marks::ACKNOWLEDGE);
        if arrival.start == self.receive.next {
            self.receive.next += arrival.payload.len() as u32;
            self.receive.edge = self.receive.edge.later(self.receive.next);
            self.received_bytes += arrival.payload.len() as u64;
            self.urgent_follows_reading();
            if arrival.fin {
                self.take_fin(true, env, outcome);
            }
        }
    }
    /// The peer's stream is complete. `at_once`: it is acknowledged without delay in any case.
    fn take_fin(&mut self, at_once: bool, env: &mut Environment<'_>, outcome: &mut Outcome) {
        self.receive.next += 1;
        self.receive.edge = self.receive.edge.later(self.receive.next);
        if at_once || !self.may_delay_fin() {
            self.marks.set(Marks::ACKNOWLEDGE);
        } else {
            self.schedule_for_fin(env.now);
        }
        if let Some(buffers) = &mut self.buffers
            && (buffers.reassembly.has_news() || buffers.reassembly.fin.is_some())
        {
            buffers.reassembly.clear(env.pool);
        }
        outcome.changes |= Changes::PEER_CLOSED | Changes::READABLE;
        match self.phase {
            TcpPhase::Established => self.enter(TcpPhase::CloseWait, env),
            TcpPhase::FinWait1 => self.enter(TcpPhase::Closing, env),
            TcpPhase::FinWait2 => self.enter_time_wait(env),
            _ => {}
        }
    }
    /// Both sides are closed, and our last acknowledgment may be lost.
    // spec: RFC9293 MUST-13 (TIME-WAIT lasts twice the segment lifetime)
    pub(crate) fn enter_time_wait(&mut self, env: &mut Environment<'_>) {
        self.enter(TcpPhase::TimeWait, env);
        self.retransmit_at = Instant::FAR_FUTURE;
        self.linger_at = env.now + self.config.time_wait;
        self.recovery.end();
        if self.buffers.as_ref().is_some_and(|buffers| buffers.are_empty()) {
            // Nothing comes any more that they were for.
            self.clear(env.pool);
        }
    }
}
