//! Segments of the handshake: in SYN-SENT, and the acknowledgment of our SYN (RFC 9293 §3.10.7.3, §3.10.7.4).

use crate::arrival::Arrival;
use crate::flags::ConnectionFlags;
use crate::{Changes, Connection, ConnectionError, Environment, FastOpenState, ResetReply};
use inhost_base::Offset;
use inhost_event::{Drop, TcpState};

impl Connection {
    /// A segment in SYN-SENT (RFC 9293 §3.10.7.3).
    // spec: RFC5961 3.2-4
    pub(super) fn arrive_in_syn_sent(&mut self, arrival: &mut Arrival<'_>, env: &mut Environment<'_>) {
        let header = arrival.header;
        let flags = header.flags;
        let acknowledges = flags.ack()
            && self.sender.space().unacknowledged() < arrival.acknowledgment
            && arrival.acknowledgment <= self.sender.space().next();
        if flags.ack() && !acknowledges {
            env.discarded(Drop::OutOfWindow);
            env.reply(ResetReply::to(header, 0));
            if let Some(retry) = self.common.policy().bad_syn_ack_retry
                && self.common.round_trip().backoff() == 0
            {
                self.sender.retry_syn_at(env.now() + retry);
            }
            return;
        }
        if flags.rst() {
            if acknowledges {
                self.finish(Some(ConnectionError::Refused), env);
            } else {
                env.discarded(Drop::OutOfWindow);
            }
            return;
        }
        if !flags.syn() {
            env.discarded(Drop::OutOfWindow);
            return;
        }
        if acknowledges && self.sender.echo_is_foreign(&self.common, header, env.now()) {
            env.discarded(Drop::OldTimestamp);
            env.reply(ResetReply::to(header, 0));
            return;
        }
        self.learn_from_syn(header, env.now());
        (arrival.first, arrival.start) = (Offset::SYN, Offset::SYN + 1);
        if !acknowledges {
            // Both called at once.
            // spec: RFC9293 MUST-10 (simultaneous open)
            // spec: RFC9293 MUST-11 (that we called is remembered)
            self.sender.called_at_once();
            self.common.enter(TcpState::SynReceived, env);
            self.common.set(ConnectionFlags::SYN_DUE, true);
            return;
        }
        self.sender.syn_answered(&mut self.common, arrival, env.pool());
        self.sender.syn_acknowledged(arrival.acknowledgment, true);
        self.sender.measure_syn(&mut self.common, arrival, env.now());
        self.establish(env);
        // RFC 9293 §3.10.7.3: controls and text in the same segment are for the steps that follow.
        self.receiver.acknowledge_handshake(&self.common, env.now());
        self.receiver.take_urgent(&self.common, arrival, env);
        let is_fast_open =
            matches!(self.common.fast_open(), FastOpenState::Requested | FastOpenState::DataAcknowledged);
        if !self.common.policy().syn_ack_data_is_dropped || is_fast_open {
            self.take_data(arrival, env);
        }
    }
    /// The acknowledgment of our SYN, in SYN-RECEIVED. Data may have been sent behind it, or a FIN.
    pub(super) fn open_by(&mut self, arrival: &Arrival<'_>, env: &mut Environment<'_>) {
        self.sender.measure_syn(&mut self.common, arrival, env.now());
        self.sender.take_first_window(arrival);
        if self.common.has(ConnectionFlags::ACTIVE_OPEN) {
            self.sender.syn_answered(&mut self.common, arrival, env.pool());
        }
        let has_ended = self.sender.ended_before_open(&self.common);
        let has_sent = has_ended || self.common.has(ConnectionFlags::EARLY_DATA);
        if !self.common.has(ConnectionFlags::EARLY_DATA) {
            let to = if has_ended { Offset::SYN + 1 } else { arrival.acknowledgment };
            self.sender.syn_acknowledged(to, false);
        }
        self.establish(env);
        if has_sent && self.sender.space().unacknowledged() < arrival.acknowledgment {
            self.sender.take_acknowledgment(&mut self.common, arrival, false, env);
        } else if has_sent {
            self.sender.restart_timer(&self.common, env.now());
        }
    }
    /// Both SYNs are acknowledged: ESTABLISHED, or past it when the application has closed already.
    // spec: RFC5681 3.1-3, 3.1-4; RFC6928 2-2
    fn establish(&mut self, env: &mut Environment<'_>) {
        self.common.enter(TcpState::Established, env);
        self.receiver.opened(env.now());
        self.common.set(ConnectionFlags::SYN_DUE, false);
        if !self.common.has(ConnectionFlags::EARLY_DATA) {
            self.sender.open(&mut self.common);
            self.receiver.assume_segments(&self.common, self.sender.segment_bytes());
        }
        self.sender.established(&mut self.common, env);
        env.changed(Changes::CONNECTED | Changes::WRITABLE | Changes::REACHED);
    }
}
