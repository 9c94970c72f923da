//! What a segment that arrives does (RFC 9293 §3.10.7), in the order of its steps, and a straight road for the
//! common case.

mod acceptability;
mod acknowledgment;
mod data;
mod last_states;
pub(crate) mod reset;
mod straight;

use crate::arrival::Arrival;
use crate::flags::{ConnectionFlags, ReceiverFlags, SenderFlags};
use crate::outcome::Outcome;
use crate::receiver::ack_timing::QUICK_AFTER_TROUBLE;
use crate::{Connection, Ecn, Environment, Header};
use inhost_base::{Instant, Sequence};
use inhost_buf::Packet;
use inhost_event::{Drop, Event, Mask, SegmentReceived, TcpState};
use inhost_wire::tcp::Flags;

impl Connection {
    pub(crate) fn arrive(
        &mut self,
        header: &Header,
        payload: &mut Packet,
        ecn: Ecn,
        env: &mut Environment<'_>,
    ) -> Outcome {
        let mut outcome = Outcome::default();
        let socket = env.socket;
        env.emit(Mask::SEGMENT, || {
            Event::SegmentReceived(SegmentReceived {
                socket,
                sequence: header.sequence,
                acknowledgment: header.flags.ack().then_some(header.acknowledgment),
                flags: header.flags.bits(),
                payload_bytes: payload.len() as u32,
                window_field: header.window,
            })
        });
        let ecn_tells = self.common.flags.has(ConnectionFlags::ECN) && self.receiver.tells_of_congestion(ecn);
        if !ecn_tells
            && let Some(plain) = header.plain()
            && self.is_predicted(&plain, payload.len())
        {
            self.arrive_as_predicted(&plain, core::slice::from_mut(payload), env, &mut outcome);
            return outcome;
        }
        let (whole_bytes, start) = (payload.len() as u32, header.sequence);
        let (fin, is_repeated) = (header.flags.fin(), false);
        let mut arrival = Arrival { header, payload, is_repeated, whole_bytes, start, fin, ecn };
        match self.common.state {
            TcpState::Closed => {
                outcome.reset = crate::ResetReply::to(header, arrival.payload.len());
                outcome.dropped = Some(Drop::NoSocket);
            }
            TcpState::SynSent => self.arrive_in_syn_sent(&mut arrival, env, &mut outcome),
            _ => self.arrive_synchronised(&mut arrival, env, &mut outcome),
        }
        outcome
    }

    /// SYN-RECEIVED and every later state (RFC 9293 §3.10.7.4), step by step.
    // spec: RFC5961 4.2-1
    fn arrive_synchronised(
        &mut self,
        arrival: &mut Arrival<'_>,
        env: &mut Environment<'_>,
        outcome: &mut Outcome,
    ) {
        let flags = arrival.header.flags;
        if self.common.is_small() {
            return self.arrive_in_small(arrival, env, outcome);
        }
        if self.answers_simultaneous_open(arrival.header) {
            // spec: RFC9293 MUST-10 (the other's SYN has come before; here only its acknowledgment is new)
            self.heard(arrival.header.sequence, arrival.header.options.timestamps, env.now);
            self.take_acknowledgment(arrival, env, outcome);
            if self.common.config.policy.answers_crossing_syn {
                self.receiver.hurry_acknowledgments(&self.common, QUICK_AFTER_TROUBLE);
                self.receiver.flags.set(ReceiverFlags::SCHEDULED);
                self.receiver.note_repeated(
                    &self.common,
                    arrival.header.sequence,
                    arrival.header.sequence + 1,
                );
                self.receiver.flags.set(ReceiverFlags::ACKNOWLEDGE);
            }
            return;
        }
        if self.common.config.policy.bad_handshakes_are_reset
            && self.ends_bad_handshake(arrival, env, outcome)
        {
            return;
        }
        let answers =
            self.common.state == TcpState::SynReceived && !self.common.flags.has(ConnectionFlags::ACTIVE);
        if !flags.intersects(Flags::ACK | Flags::RST | Flags::SYN)
            && self.common.config.policy.segments_need_ack_flag
            && !answers
        {
            outcome.dropped = Some(Drop::OutOfWindow);
            return;
        }
        if !self.is_acceptable(arrival, env, outcome) {
            return;
        }
        if flags.rst() {
            return self.take_reset(arrival, env, outcome);
        }
        if flags.syn() {
            // RFC 5961 §4.2: a peer that restarted answers the challenge by a reset.
            return self.challenge_syn(env, outcome);
        }
        if !flags.ack() {
            outcome.dropped = Some(Drop::OutOfWindow);
            return;
        }
        // Only where something depends on it.
        let was_plain = (self.common.acks_adapt() || self.common.config.policy.old_acks_update_nothing)
            && self.is_plain_acknowledgment(arrival);
        let (before, is_old) =
            (self.common.state, arrival.header.acknowledgment.precedes(self.sender.space.unacknowledged));
        if !self.take_acknowledgment(arrival, env, outcome) {
            if was_plain {
                // The challenge goes first.
                self.sender.release_small(&self.common);
                self.common
                    .flags
                    .put(ConnectionFlags::APART, self.receiver.flags.has(ReceiverFlags::ACKNOWLEDGE));
            }
            return;
        }
        // Only now is it believed: an acknowledgment out of range must not even leave its timestamp behind.
        if is_old && !was_plain && self.common.config.policy.old_acks_update_nothing {
            self.receiver.received_at = env.now;
        } else {
            self.heard(arrival.header.sequence, arrival.header.options.timestamps, env.now);
            self.receiver.take_window_reduced(&self.common, arrival);
        }
        if before != self.common.state && self.becomes_small(before, arrival, env, outcome) {
            return;
        }
        self.receiver.take_urgent(&self.common, arrival, outcome);
        self.take_data(arrival, env, outcome);
        self.sender.release_small(&self.common);
        self.schedule_what_came(arrival, was_plain, env.now);
    }
    /// When what waits to be acknowledged is, now that this segment is taken.
    fn schedule_what_came(&mut self, arrival: &Arrival<'_>, was_plain: bool, now: Instant) {
        if !self.receiver.flags.has(ReceiverFlags::SCHEDULED) || self.common.state == TcpState::Closed {
            return;
        }
        if self.common.acks_adapt() {
            if arrival.header.flags.cwr()
                && self.common.flags.has(ConnectionFlags::ECN)
                && arrival.bears_stream()
            {
                // Its window may be very small.
                self.receiver.flags.set(ReceiverFlags::ACKNOWLEDGE);
            }
            // A plain acknowledgment is a matter of the sender's alone.
            if arrival.bears_stream() || !was_plain {
                self.receiver.schedule_adaptive(&self.common, &self.sender.round_trip, now);
            }
        } else if arrival.bears_stream() && !self.receiver.flags.has(ReceiverFlags::ACKNOWLEDGE) {
            self.schedule_acknowledgment(now);
        }
    }
    /// Whether a segment without data is an acknowledgment like others before: in its place, with the same window, and
    /// with nothing held that waits for something.
    fn is_plain_acknowledgment(&self, arrival: &Arrival<'_>) -> bool {
        let header = arrival.header;
        let expected = self.common.flags.has(ConnectionFlags::TIMESTAMPS);
        self.common.state == TcpState::Established
            && header.flags.without(Flags::PSH) == Flags::ACK
            && header.sequence == self.receiver.space.next
            && header.acknowledgment.at_or_before(self.sender.space.next)
            && u32::from(header.window) << self.sender.scale == self.sender.space.window
            && header.options.sack.is_empty()
            && header.options.timestamps.is_some() == expected
            && (self.receiver.received_bytes > 0
                || !self.common.flags.has(ConnectionFlags::ACTIVE)
                || self.sender.scale == 0)
            && self.receiver.buffers.as_ref().is_none_or(|buffers| buffers.reassembly.is_empty())
    }
    /// Whether this is the SYN and ACK of a peer that called while we called (RFC 9293 §3.5, figure 8).
    fn answers_simultaneous_open(&self, header: &Header) -> bool {
        let kind = header.flags & (Flags::SYN | Flags::ACK | Flags::RST | Flags::FIN);
        self.common.state == TcpState::SynReceived
            && self.common.flags.has(ConnectionFlags::ACTIVE)
            && kind == Flags::SYN | Flags::ACK
            && header.sequence == self.receiver.space.initial
            && self.sender.space.unacknowledged.precedes(header.acknowledgment)
            && header.acknowledgment.at_or_before(self.sender.space.next)
    }
    /// The peer is alive; its timestamp is kept for the echo (RFC 7323 §4.3).
    // spec: RFC7323 3.2-6, 4.3-1, 4.3-2, 4.3-3, 5.2-1
    fn heard(&mut self, sequence: Sequence, timestamps: Option<(u32, u32)>, now: Instant) {
        self.receiver.received_at = now;
        self.sender.keep_alive_probes = 0;
        self.sender.flags.clear(SenderFlags::SILENCE);
        if let Some((value, _)) = timestamps
            && self.common.flags.has(ConnectionFlags::TIMESTAMPS)
            && sequence.at_or_before(self.receiver.space.acknowledged)
            && value.wrapping_sub(self.receiver.timestamp_recent) as i32 >= 0
        {
            self.receiver.timestamp_recent = value;
            self.receiver.timestamp_second = (now.as_nanos() / 1_000_000_000) as u32;
        }
    }
    /// The same for a segment of which more is known than its numbers.
    fn keep_timestamp(&mut self, timestamps: Option<(u32, u32)>, now: Instant) {
        self.heard(self.receiver.space.acknowledged, timestamps, now);
    }
}
