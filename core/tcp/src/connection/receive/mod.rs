//! What a segment that arrives does (RFC 9293 §3.10.7), in the order of its steps, and a fast path for the common case.

mod acknowledgment;
mod data;
mod handshake;
mod predicted;

use crate::arrival::Arrival;
use crate::flags::ConnectionFlags;
use crate::{Connection, Ecn, Environment, Header, Outcome, ResetReply};
use inhost_buf::Packet;
use inhost_event::{Drop, Event, Mask, SegmentReceived, TcpState};
use inhost_wire::tcp::Flags;

impl Connection {
    /// Processes a segment for this connection. `payload`'s window is the segment's data; accepted data is taken from it,
    /// and the caller returns the rest to the pool. Where the host has no memory for more data of this connection, and so not
    /// `keeps_data`, what the peer acknowledges counts, and its data is left for it to send again.
    pub fn receive(
        &mut self,
        header: &Header,
        payload: &mut Packet,
        ecn: Ecn,
        keeps_data: bool,
        env: &mut Environment<'_>,
    ) -> Outcome {
        tell_received(header, payload.len() as u32, env);
        let ecn_tells = self.common.has(ConnectionFlags::ECN) && self.receiver.tells_of_congestion(ecn);
        if !ecn_tells
            && keeps_data
            && let Some(plain) = header.plain()
            && self.is_predicted(&plain, payload.len())
        {
            self.receive_predicted(&plain, core::slice::from_mut(payload), false, env);
        } else {
            let first = self.receiver.space().offset(header.sequence);
            let mut arrival = Arrival {
                header,
                first,
                acknowledgment: self.sender.space().offset(header.acknowledgment),
                whole_bytes: payload.len() as u32,
                payload: payload.take(),
                is_repeated: false,
                start: first,
                fin: header.flags.fin(),
                ecn,
                keeps_data,
            };
            match self.common.state() {
                TcpState::Closed => {
                    env.reply(ResetReply::to(header, arrival.payload.len()));
                    env.discarded(Drop::NoSocket);
                }
                TcpState::SynSent => self.arrive_in_syn_sent(&mut arrival, env),
                _ => self.arrive_synchronised(&mut arrival, env),
            }
            *payload = arrival.payload;
        }
        self.update(env);
        env.take_outcome()
    }

    /// SYN-RECEIVED and every later state (RFC 9293 §3.10.7.4), step by step.
    // spec: RFC5961 4.2-1
    fn arrive_synchronised(&mut self, arrival: &mut Arrival<'_>, env: &mut Environment<'_>) {
        let flags = arrival.header.flags;
        if self.sender.answers_simultaneous_open(&self.common, arrival) {
            // spec: RFC9293 MUST-10 (the other's SYN has come before; here only its acknowledgment is new)
            self.sender.peer_answers();
            self.receiver.note_segment(
                &self.common,
                arrival.first,
                arrival.header.options.timestamps,
                env.now(),
            );
            self.take_acknowledgment(arrival, env);
            if self.common.config().policy.acknowledges_crossing_answer {
                self.receiver.acknowledge_again(&self.common);
                self.receiver.note_repeated(&self.common, arrival.first, arrival.first + 1);
            }
            return;
        }
        let answers =
            self.common.state() == TcpState::SynReceived && !self.common.has(ConnectionFlags::ACTIVE_OPEN);
        if !flags.intersects(Flags::ACK | Flags::RST | Flags::SYN)
            && self.common.config().policy.segments_need_ack_flag
            && !answers
        {
            env.discarded(Drop::OutOfWindow);
            return;
        }
        let says_nothing = self.sender.learns_nothing_from(arrival);
        if !self.receiver.is_acceptable(&mut self.common, arrival, says_nothing, env) {
            return;
        }
        if flags.rst() {
            if self.receiver.believes_reset(&mut self.common, arrival, env) {
                self.finish(self.common.reset_error(), env);
            }
            return;
        }
        if flags.syn() {
            // RFC 5961 §4.2: a peer that restarted answers the challenge by a reset.
            return self.receiver.challenge(&mut self.common, env);
        }
        if !flags.ack() {
            env.discarded(Drop::OutOfWindow);
            return;
        }
        if !self.take_acknowledgment(arrival, env) {
            return;
        }
        // An acknowledgment out of range must not update even the timestamp.
        self.sender.peer_answers();
        self.receiver.note_segment(&self.common, arrival.first, arrival.header.options.timestamps, env.now());
        self.receiver.take_window_reduced(&self.common, arrival);
        self.receiver.take_urgent(&self.common, arrival, env);
        self.take_data(arrival, env);
        self.sender.release_held_writes(&self.common);
        if self.common.state() != TcpState::Closed {
            self.receiver.schedule_what_came(&self.common, arrival, env.now());
        }
    }
}

/// Tells the event sink of a segment.
fn tell_received(header: &Header, payload_bytes: u32, env: &mut Environment<'_>) {
    let socket = env.socket();
    env.emit(Mask::SEGMENT, || {
        Event::SegmentReceived(SegmentReceived {
            socket,
            sequence: header.sequence,
            acknowledgment: header.flags.ack().then_some(header.acknowledgment),
            flags: header.flags.bits(),
            payload_bytes,
            window_field: header.window,
        })
    });
}
