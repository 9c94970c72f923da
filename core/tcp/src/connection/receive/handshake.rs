//! Segments of the handshake: in SYN-SENT, and the acknowledgment of our SYN (RFC 9293 §3.10.7.3, §3.10.7.4).

use crate::arrival::Arrival;
use crate::flags::ConnectionFlags;
use crate::offset::Offset;
use crate::outcome::{Changes, Outcome, ResetReply};
use crate::{Connection, ConnectionError, Environment, FastOpenState};
use inhost_event::{Drop, TcpState};

impl Connection {
    /// A segment in SYN-SENT (RFC 9293 §3.10.7.3).
    // spec: RFC5961 3.2-4
    pub(super) fn arrive_in_syn_sent(
        &mut self,
        arrival: &mut Arrival<'_>,
        env: &mut Environment<'_>,
        outcome: &mut Outcome,
    ) {
        let header = arrival.header;
        let flags = header.flags;
        let acknowledges = flags.ack()
            && self.sender.space().unacknowledged() < arrival.acknowledgment
            && arrival.acknowledgment <= self.sender.space().next();
        if flags.ack() && !acknowledges {
            outcome.dropped = Some(Drop::OutOfWindow);
            if !flags.rst() {
                outcome.reset = Some(ResetReply { sequence: header.acknowledgment, ..ResetReply::default() });
            }
            if let Some(retry) = self.common.config.policy.bad_syn_ack_retry
                && self.common.round_trip.backoff == 0
            {
                self.sender.retry_syn_at(env.now + retry);
            }
            return;
        }
        if flags.rst() {
            if acknowledges {
                self.finish(Some(ConnectionError::Refused), env, outcome);
            } else {
                outcome.dropped = Some(Drop::OutOfWindow);
            }
            return;
        }
        if !flags.syn() {
            outcome.dropped = Some(Drop::OutOfWindow);
            return;
        }
        if acknowledges && self.sender.echo_is_foreign(&self.common, header, env.now) {
            outcome.dropped = Some(Drop::OldTimestamp);
            outcome.reset = ResetReply::to(header, 0);
            return;
        }
        self.learn_from_syn(header, env.now);
        (arrival.first, arrival.start) = (Offset::SYN, Offset::SYN + 1);
        if !acknowledges {
            // Both called at once.
            // spec: RFC9293 MUST-10 (simultaneous open)
            // spec: RFC9293 MUST-11 (that we called is remembered)
            self.sender.called_at_once();
            self.common.enter(TcpState::SynReceived, env);
            self.common.flags.insert(ConnectionFlags::SYN_DUE);
            return;
        }
        self.sender.syn_answered(&mut self.common, arrival, env.pool);
        self.sender.syn_acknowledged(arrival.acknowledgment, true);
        self.sender.measure_syn(&mut self.common, arrival, env.now);
        self.establish(env, outcome);
        // RFC 9293 §3.10.7.3: controls and text in the same segment are for the steps that follow.
        self.receiver.acknowledge_handshake(&self.common, env.now);
        self.receiver.take_urgent(&self.common, arrival, outcome);
        let is_fast_open =
            matches!(self.common.fast_open, FastOpenState::Requested | FastOpenState::DataAcknowledged);
        if !self.common.config.policy.syn_ack_data_is_dropped || is_fast_open {
            self.take_data(arrival, env, outcome);
        }
    }
    /// The acknowledgment of our SYN, in SYN-RECEIVED.
    pub(super) fn open_by(
        &mut self,
        arrival: &Arrival<'_>,
        env: &mut Environment<'_>,
        outcome: &mut Outcome,
    ) {
        self.sender.measure_syn(&mut self.common, arrival, env.now);
        self.sender.take_first_window(arrival);
        if self.common.flags.contains(ConnectionFlags::EARLY_DATA) {
            return self.open_early(arrival, env, outcome);
        }
        if self.common.flags.contains(ConnectionFlags::ACTIVE_OPEN) {
            self.sender.syn_answered(&mut self.common, arrival, env.pool);
        }
        let syn_end = Offset::SYN + 1;
        let has_ended = self.sender.ended_before_open(&self.common);
        self.sender.syn_acknowledged(if has_ended { syn_end } else { arrival.acknowledgment }, false);
        self.establish(env, outcome);
        if has_ended {
            self.sender.restart_timer(&self.common, env.now);
            if syn_end < arrival.acknowledgment {
                self.advance(arrival, false, env, outcome);
            }
        }
    }
    /// Both SYNs are acknowledged: ESTABLISHED, or past it when the application has closed already.
    // spec: RFC5681 3.1-3, 3.1-4; RFC6928 2-2
    pub(super) fn establish(&mut self, env: &mut Environment<'_>, outcome: &mut Outcome) {
        self.common.enter(TcpState::Established, env);
        self.receiver.opened(env.now);
        self.common.flags.remove(ConnectionFlags::SYN_DUE);
        self.sender.established(&mut self.common, env.now);
        self.receiver.assume_segments(&self.common, self.sender.segment_bytes());
        outcome.changes |= Changes::CONNECTED | Changes::WRITABLE | Changes::REACHED;
        self.close_after_open(env);
    }

    /// The handshake is done: what the application has closed before closes now.
    fn close_after_open(&mut self, env: &mut Environment<'_>) {
        if self.common.flags.contains(ConnectionFlags::CLOSE_AFTER_OPEN) {
            self.common.flags.remove(ConnectionFlags::CLOSE_AFTER_OPEN);
            self.common.enter(TcpState::FinWait1, env);
            if self.common.flags.contains(ConnectionFlags::RECEIVE_CLOSED) {
                self.sender.orphaned(&mut self.common, env.now);
            }
        }
    }
    /// The acknowledgment of our SYN after data was sent behind it, or could have been.
    pub(super) fn open_early(
        &mut self,
        arrival: &Arrival<'_>,
        env: &mut Environment<'_>,
        outcome: &mut Outcome,
    ) {
        self.common.flags.remove(ConnectionFlags::EARLY_DATA);
        self.common.flags.remove(ConnectionFlags::SYN_DUE);
        self.sender.take_fast_open();
        self.common.enter(TcpState::Established, env);
        self.receiver.opened(env.now);
        self.sender.waits_from(env.now);
        outcome.changes |= Changes::CONNECTED | Changes::WRITABLE | Changes::REACHED;
        if self.sender.space().unacknowledged() < arrival.acknowledgment {
            self.advance(arrival, false, env, outcome);
        } else {
            self.sender.restart_timer(&self.common, env.now);
        }
        self.close_after_open(env);
    }
}
