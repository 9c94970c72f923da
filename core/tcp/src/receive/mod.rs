//! What a segment that arrives does (RFC 9293 §3.10.7), in the order of its steps, and a straight road for the
//! common case.

mod acceptability;
mod acknowledgment;
mod closing;
mod data;
mod reset;
mod straight;

use crate::marks::Marks;
use crate::outcome::Outcome;
use crate::{Connection, Ecn, Environment, Header};
use inhost_base::{Instant, Sequence};
use inhost_buf::Packet;
use inhost_event::{Drop, Event, Mask, SegmentReceived, TcpPhase};
use inhost_wire::tcp::Flags;

/// A segment on its way through the steps.
pub(crate) struct Arrival<'a> {
    pub header: &'a Header,
    /// Its data, cut to what is new and within the window.
    pub payload: &'a mut Packet,
    /// Number of the first byte of `payload`.
    pub start: Sequence,
    /// It ends the peer's stream, after `payload`.
    pub fin: bool,
    /// The mark that its IP header bore.
    pub ecn: Ecn,
}

impl Arrival<'_> {
    /// Whether it carries a part of a stream that goes on: data or FIN, and no SYN.
    pub fn bears_stream(&self) -> bool {
        let flags = self.header.flags;
        !flags.syn() && (!self.payload.is_empty() || flags.fin())
    }
}

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
        if ecn != Ecn::CongestionExperienced
            && let Some(plain) = header.plain()
            && self.is_predicted(&plain, payload.len())
        {
            self.arrive_as_predicted(&plain, core::slice::from_mut(payload), env, &mut outcome);
            return outcome;
        }
        let mut arrival = Arrival { header, payload, start: header.sequence, fin: header.flags.fin(), ecn };
        match self.phase {
            TcpPhase::Closed => {
                outcome.reset = crate::ResetReply::to(header, arrival.payload.len());
                outcome.dropped = Some(Drop::NoSocket);
            }
            TcpPhase::SynSent => self.arrive_in_syn_sent(&mut arrival, env, &mut outcome),
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
        if self.answers_simultaneous_open(arrival.header) {
            // spec: RFC9293 MUST-10 (the other's SYN has come before; here only its acknowledgment is new)
            self.heard(arrival.header.sequence, arrival.header.options.timestamps, env.now);
            self.take_acknowledgment(arrival, env, outcome);
            if self.config.answers_crossing_syn {
                self.note_repeated(arrival.header.sequence, arrival.header.sequence + 1);
                self.marks.set(Marks::ACKNOWLEDGE);
            }
            return;
        }
        if !flags.intersects(Flags::ACK | Flags::RST | Flags::SYN) && self.config.needs_acknowledgment_flag {
            outcome.dropped = Some(Drop::OutOfWindow);
            return;
        }
        if self.config.resets_bad_handshakes && self.ends_bad_handshake(arrival, env, outcome) {
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
            return self.challenge(env, outcome);
        }
        if !flags.ack() {
            outcome.dropped = Some(Drop::OutOfWindow);
            return;
        }
        if !self.take_acknowledgment(arrival, env, outcome) {
            return;
        }
        // Only now is it believed: an acknowledgment out of range must not even leave its timestamp behind.
        self.heard(arrival.header.sequence, arrival.header.options.timestamps, env.now);
        self.take_congestion_mark(arrival);
        self.take_urgent(arrival, outcome);
        self.take_data(arrival, env, outcome);
        self.release_small();
        self.acknowledge_quickly();
    }
    /// RFC 3168 §6.1.3: a mark is echoed until the peer says that it has reduced its window.
    fn take_congestion_mark(&mut self, arrival: &Arrival<'_>) {
        if !self.marks.has(Marks::ECN) {
            return;
        }
        let before = self.marks.has(Marks::ECHO_CONGESTION);
        if arrival.header.flags.cwr() {
            self.marks.clear(Marks::ECHO_CONGESTION);
        }
        if arrival.ecn == Ecn::CongestionExperienced && !arrival.payload.is_empty() {
            self.marks.set(Marks::ECHO_CONGESTION);
        }
        if before != self.marks.has(Marks::ECHO_CONGESTION) {
            // The sooner it knows the better.
            self.marks.set(Marks::ACKNOWLEDGE);
        }
    }
    /// Whether this is the SYN and ACK of a peer that called while we called (RFC 9293 §3.5, figure 8).
    fn answers_simultaneous_open(&self, header: &Header) -> bool {
        let kind = header.flags & (Flags::SYN | Flags::ACK | Flags::RST | Flags::FIN);
        self.phase == TcpPhase::SynReceived
            && self.marks.has(Marks::ACTIVE)
            && kind == Flags::SYN | Flags::ACK
            && header.sequence == self.receive.initial
            && self.send.unacknowledged.precedes(header.acknowledgment)
            && header.acknowledgment.at_or_before(self.send.next)
    }
    /// The peer is alive; its timestamp is kept for the echo (RFC 7323 §4.3).
    // spec: RFC7323 3.2-6, 4.3-1, 4.3-2, 4.3-3, 5.2-1
    fn heard(&mut self, sequence: Sequence, timestamps: Option<(u32, u32)>, now: Instant) {
        self.received_at = now;
        self.keep_alive_probes = 0;
        self.marks.clear(Marks::SILENCE);
        if let Some((value, _)) = timestamps
            && self.marks.has(Marks::TIMESTAMPS)
            && sequence.at_or_before(self.receive.acknowledged)
            && value.wrapping_sub(self.timestamps.recent) as i32 >= 0
        {
            self.timestamps.recent = value;
            self.timestamps.recent_second = (now.as_nanos() / 1_000_000_000) as u32;
        }
    }
}
