//! What a segment that arrives does (RFC 9293 §3.10.7), in the order of its steps, and a fast path for the common case.

mod acceptability;
mod acknowledgment;
mod data;
mod handshake;
mod network_error;
mod predicted;
mod reset;

use crate::arrival::Arrival;
use crate::flags::{ConnectionFlags, ReceiverFlags};
use crate::outcome::Outcome;
use crate::receiver::ack_timing::QUICK_AFTER_TROUBLE;
use crate::{Connection, Ecn, Environment, Header, ResetReply};
use inhost_buf::Packet;
use inhost_event::{Drop, Event, Mask, SegmentReceived, TcpState};
use inhost_wire::tcp::Flags;

/// The processing of one segment: its steps read and change the connection, and add to the outcome.
pub(super) struct Input<'a, 'e> {
    pub tcb: &'a mut Connection,
    pub env: &'a mut Environment<'e>,
    pub outcome: &'a mut Outcome,
    /// Whether the host has memory for data.
    pub keeps_data: bool,
}

impl Input<'_, '_> {
    /// Takes a segment through the steps of its state.
    pub fn segment(&mut self, header: &Header, payload: &mut Packet, ecn: Ecn) {
        let socket = self.env.socket;
        self.env.emit(Mask::SEGMENT, || {
            Event::SegmentReceived(SegmentReceived {
                socket,
                sequence: header.sequence,
                acknowledgment: header.flags.ack().then_some(header.acknowledgment),
                flags: header.flags.bits(),
                payload_bytes: payload.len() as u32,
                window_field: header.window,
            })
        });
        let ecn_tells = self.tcb.common.flags.contains(ConnectionFlags::ECN)
            && self.tcb.receiver.tells_of_congestion(ecn);
        if !ecn_tells
            && self.keeps_data
            && let Some(plain) = header.plain()
            && self.tcb.is_predicted(&plain, payload.len())
        {
            let payload = core::slice::from_mut(payload);
            return self.take_predicted(&plain, payload);
        }
        let first = self.tcb.receiver.space.offset(header.sequence);
        let mut arrival = Arrival {
            header,
            first,
            acknowledgment: self.tcb.sender.space.offset(header.acknowledgment),
            whole_bytes: payload.len() as u32,
            payload,
            is_repeated: false,
            start: first,
            fin: header.flags.fin(),
            ecn,
        };
        match self.tcb.common.state {
            TcpState::Closed => {
                self.outcome.reset = ResetReply::to(header, arrival.payload.len());
                self.outcome.dropped = Some(Drop::NoSocket);
            }
            TcpState::SynSent => self.arrive_in_syn_sent(&mut arrival),
            _ => self.arrive_synchronised(&mut arrival),
        }
    }

    /// SYN-RECEIVED and every later state (RFC 9293 §3.10.7.4), step by step.
    // spec: RFC5961 4.2-1
    fn arrive_synchronised(&mut self, arrival: &mut Arrival<'_>) {
        let flags = arrival.header.flags;
        if self.tcb.sender.answers_simultaneous_open(&self.tcb.common, arrival) {
            // spec: RFC9293 MUST-10 (the other's SYN has come before; here only its acknowledgment is new)
            self.tcb.sender.peer_answers();
            self.tcb.receiver.note_segment(
                &self.tcb.common,
                arrival.first,
                arrival.header.options.timestamps,
                self.env.now,
            );
            self.take_acknowledgment(arrival);
            if self.tcb.common.config.policy.acknowledges_crossing_answer {
                self.tcb.receiver.enter_quick_ack_mode(&self.tcb.common, QUICK_AFTER_TROUBLE);
                self.tcb.receiver.flags.insert(ReceiverFlags::SCHEDULED);
                self.tcb.receiver.note_repeated(&self.tcb.common, arrival.first, arrival.first + 1);
                self.tcb.receiver.flags.insert(ReceiverFlags::ACKNOWLEDGE);
            }
            return;
        }
        let answers = self.tcb.common.state == TcpState::SynReceived
            && !self.tcb.common.flags.contains(ConnectionFlags::ACTIVE_OPEN);
        if !flags.intersects(Flags::ACK | Flags::RST | Flags::SYN)
            && self.tcb.common.config.policy.segments_need_ack_flag
            && !answers
        {
            self.outcome.dropped = Some(Drop::OutOfWindow);
            return;
        }
        if !self.is_acceptable(arrival) {
            return;
        }
        if flags.rst() {
            return self.take_reset(arrival);
        }
        if flags.syn() {
            // RFC 5961 §4.2: a peer that restarted answers the challenge by a reset.
            return self.tcb.receiver.challenge(&mut self.tcb.common, self.env, self.outcome);
        }
        if !flags.ack() {
            self.outcome.dropped = Some(Drop::OutOfWindow);
            return;
        }
        if !self.take_acknowledgment(arrival) {
            return;
        }
        // An acknowledgment out of range must not update even the timestamp.
        self.tcb.sender.peer_answers();
        self.tcb.receiver.note_segment(
            &self.tcb.common,
            arrival.first,
            arrival.header.options.timestamps,
            self.env.now,
        );
        self.tcb.receiver.take_window_reduced(&self.tcb.common, arrival);
        self.tcb.receiver.take_urgent(&self.tcb.common, arrival, self.outcome);
        self.take_data(arrival);
        self.tcb.sender.release_held_writes(&self.tcb.common);
        self.schedule_what_came(arrival);
    }
    /// When what waits to be acknowledged is, now that this segment is taken.
    fn schedule_what_came(&mut self, arrival: &Arrival<'_>) {
        let now = self.env.now;
        if !self.tcb.receiver.flags.contains(ReceiverFlags::SCHEDULED)
            || self.tcb.common.state == TcpState::Closed
        {
            return;
        }
        if self.tcb.common.acks_adapt() {
            if arrival.header.flags.cwr()
                && self.tcb.common.flags.contains(ConnectionFlags::ECN)
                && arrival.bears_stream()
            {
                // Its window may be very small.
                self.tcb.receiver.flags.insert(ReceiverFlags::ACKNOWLEDGE);
            }
            // An acknowledgment alone is a matter of the sender's.
            if arrival.bears_stream() {
                self.tcb.receiver.schedule_adaptive(&self.tcb.common, now);
            }
        } else if arrival.bears_stream() && !self.tcb.receiver.flags.contains(ReceiverFlags::ACKNOWLEDGE) {
            self.tcb.receiver.schedule_acknowledgment(&self.tcb.common, now);
        }
    }
}
