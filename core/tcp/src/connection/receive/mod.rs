//! What a segment that arrives does (RFC 9293 §3.10.7), in the order of its steps, and a fast path for the common case.

mod handshake;
mod predicted;

use crate::arrival::Arrival;
use crate::flags::{ConnectionFlags, SenderFlags};
use crate::{Changes, Connection, ConnectionError, Ecn, Environment, Header, Outcome, ResetReply};
use core::slice::from_mut;
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
            self.receive_predicted(&plain, from_mut(payload), false, env);
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
            if self.common.policy().acknowledges_crossing_answer {
                self.receiver.acknowledge_again(&self.common);
                self.receiver.note_repeated(&self.common, arrival.first, arrival.first + 1);
            }
            return;
        }
        let answers =
            self.common.state() == TcpState::SynReceived && !self.common.has(ConnectionFlags::ACTIVE_OPEN);
        if !flags.intersects(Flags::ACK | Flags::RST | Flags::SYN)
            && self.common.policy().segments_need_ack_flag
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
    /// The fifth step of RFC 9293 §3.10.7.4. False if the processing of the segment ends here.
    // spec: RFC5961 5.2-1, 5.2-2
    pub(super) fn take_acknowledgment(&mut self, arrival: &Arrival<'_>, env: &mut Environment<'_>) -> bool {
        let (header, acknowledgment) = (arrival.header, arrival.acknowledgment);
        let (unacknowledged, next) = (self.sender.space().unacknowledged(), self.sender.space().next());
        let is_new = unacknowledged < acknowledgment && acknowledgment <= next;
        if self.common.state() == TcpState::SynReceived {
            let early = self.common.has(ConnectionFlags::EARLY_DATA) && acknowledgment == unacknowledged;
            if !is_new && self.sender.ended_before_open(&self.common) {
                // The FIN was sent in SYN-RECEIVED: except for the retransmission of the SYN, the state behaves as
                // FIN-WAIT-1.
                if acknowledgment == unacknowledged {
                    env.discarded(Drop::OutOfWindow);
                    if self.common.has(ConnectionFlags::RECEIVE_CLOSED) && !arrival.payload.is_empty() {
                        self.refuse_data(arrival, env);
                    }
                } else {
                    self.receiver.challenge(&mut self.common, env);
                }
                return false;
            }
            if !is_new && !early {
                env.discarded(Drop::OutOfWindow);
                env.reply(ResetReply::to(header, 0));
                return false;
            }
            self.open_by(arrival, env);
        } else if is_new {
            self.sender.take_acknowledgment(&mut self.common, arrival, false, env);
        } else if acknowledgment != unacknowledged && !self.sender.is_recent(&self.common, acknowledgment) {
            // RFC 5961 §5.2: neither new nor from the last window's worth.
            self.receiver.challenge(&mut self.common, env);
            return false;
        } else if acknowledgment == unacknowledged || !header.options.sack.is_empty() {
            let duplicate =
                acknowledgment == unacknowledged && self.sender.is_duplicate(&self.common, arrival);
            if duplicate || !header.options.sack.is_empty() || header.flags.ece() {
                self.sender.take_acknowledgment(&mut self.common, arrival, duplicate, env);
            }
        }
        if self.sender.has(SenderFlags::FIN_ACKNOWLEDGED) {
            if self.common.has_fin_outstanding() && self.sender.buffers().is_none() {
                // A FIN without a record.
                self.accounts.delivered(1);
            }
            match self.common.state() {
                TcpState::FinWait1 => self.common.enter_fin_wait_2(env),
                TcpState::Closing => self.enter_time_wait(env),
                TcpState::LastAck => self.finish(None, env),
                _ => {}
            }
        }
        if self.common.state() == TcpState::Closed {
            return false;
        }
        // After the acknowledgment: how far the window reaches is counted from there.
        self.sender.take_window(&mut self.common, (arrival.first, acknowledgment, header.window), env.now());
        true
    }
    pub(super) fn take_data(&mut self, arrival: &mut Arrival<'_>, env: &mut Environment<'_>) {
        if arrival.is_repeated {
            // Nothing of it is new: its sender missed our acknowledgment.
            self.receiver.acknowledge_again(&self.common);
        }
        if arrival.payload.is_empty() && !arrival.fin {
            return;
        }
        if !self.common.expects_data() {
            // After the peer's FIN there is nothing more to take.
            return;
        }
        if self.common.has(ConnectionFlags::ECN) {
            self.receiver.take_congestion_mark(&self.common, arrival.ecn);
        }
        if self.common.has(ConnectionFlags::RECEIVE_CLOSED) && !arrival.payload.is_empty() {
            return self.refuse_data(arrival, env);
        }
        if !arrival.keeps_data && !arrival.payload.is_empty() {
            self.receiver.acknowledge_now();
            env.discarded(Drop::NoMemory);
            return;
        }
        if arrival.start != self.receiver.space().next() {
            return self.receiver.keep_for_later(&self.common, arrival, env);
        }
        if !arrival.payload.is_empty() {
            env.changed(Changes::READABLE);
        }
        let coming = arrival.coming();
        let fills_hole =
            self.receiver.take_in_order(&self.common, from_mut(&mut arrival.payload), coming, env);
        let reaches_fin = fills_hole && self.receiver.reaches_fin();
        if arrival.fin || reaches_fin {
            self.take_fin(reaches_fin, env);
        }
    }
    /// Data that no application can read ends the connection, so that the peer learns that it is lost (RFC 9293 §3.6.1, RFC 1122
    /// §4.2.2.13).
    #[cold]
    pub(super) fn refuse_data(&mut self, arrival: &Arrival<'_>, env: &mut Environment<'_>) {
        env.reply(match self.common.policy().unread_data_has_no_connection {
            true => ResetReply::to(arrival.header, arrival.payload.len()),
            false => Some(self.active_reset(env.now())),
        });
        self.finish(Some(ConnectionError::Aborted), env);
    }
    /// The peer's stream is complete. `at_once`: it is acknowledged without delay in any case.
    pub(super) fn take_fin(&mut self, at_once: bool, env: &mut Environment<'_>) {
        self.receiver.take_fin(&self.common, at_once, env.pool());
        env.changed(Changes::PEER_CLOSED | Changes::READABLE);
        match self.common.state() {
            TcpState::Established => self.common.enter(TcpState::CloseWait, env),
            TcpState::FinWait1 => self.common.enter(TcpState::Closing, env),
            TcpState::FinWait2 => self.enter_time_wait(env),
            _ => {}
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
