//! Segments of the handshake: in SYN-SENT, and the acknowledgment of our SYN (RFC 9293 §3.10.7.3, §3.10.7.4).

use super::Input;
use crate::arrival::Arrival;
use crate::flags::ConnectionFlags;
use crate::offset::Offset;
use crate::outcome::{Changes, ResetReply};
use crate::sender::recovery::Recovery;
use crate::{ConnectionError, FastOpenState};
use inhost_event::{Drop, TcpState};

/// The least that a peer is thought to send in a full segment: IPv4's minimum MTU of 68 less 20 bytes of header.
const LEAST_ASSUMED_BYTES: u16 = 48;

impl Input<'_, '_> {
    /// A segment in SYN-SENT (RFC 9293 §3.10.7.3).
    // spec: RFC5961 3.2-4
    pub(super) fn arrive_in_syn_sent(&mut self, arrival: &mut Arrival<'_>) {
        let header = arrival.header;
        let flags = header.flags;
        let acknowledges = flags.ack()
            && self.tcb.sender.space.unacknowledged() < arrival.acknowledgment
            && arrival.acknowledgment <= self.tcb.sender.space.next();
        if flags.ack() && !acknowledges {
            self.outcome.dropped = Some(Drop::OutOfWindow);
            if !flags.rst() {
                self.outcome.reset =
                    Some(ResetReply { sequence: header.acknowledgment, ..ResetReply::default() });
            }
            if let Some(retry) = self.tcb.common.config.policy.bad_syn_ack_retry
                && self.tcb.common.round_trip.backoff == 0
            {
                self.tcb.sender.timer.at = self.env.now + retry;
            }
            return;
        }
        if flags.rst() {
            if acknowledges {
                self.tcb.finish(Some(ConnectionError::Refused), self.env, self.outcome);
            } else {
                self.outcome.dropped = Some(Drop::OutOfWindow);
            }
            return;
        }
        if !flags.syn() {
            self.outcome.dropped = Some(Drop::OutOfWindow);
            return;
        }
        if acknowledges && self.tcb.sender.echo_is_foreign(&self.tcb.common, header, self.env.now) {
            self.outcome.dropped = Some(Drop::OldTimestamp);
            self.outcome.reset = ResetReply::to(header, 0);
            return;
        }
        self.tcb.learn_from_syn(header, self.env.now);
        (arrival.first, arrival.start) = (Offset::SYN, Offset::SYN + 1);
        if !acknowledges {
            // Both called at once.
            // spec: RFC9293 MUST-10 (simultaneous open)
            // spec: RFC9293 MUST-11 (that we called is remembered)
            // What of our data the peer takes with our SYN it acknowledges with that. Data that is not sent yet waits for the
            // handshake.
            if let Some(buffers) = &mut self.tcb.sender.buffers
                && buffers.fast_open.as_ref().is_some_and(|open| open.sent == 0)
            {
                buffers.fast_open = None;
            }
            self.tcb.common.enter(TcpState::SynReceived, self.env);
            self.tcb.common.flags.insert(ConnectionFlags::SYN_DUE);
            return;
        }
        self.tcb.sender.syn_answered(&mut self.tcb.common, arrival, self.env.pool);
        self.tcb.sender.space.acknowledge(arrival.acknowledgment);
        self.tcb.sender.space.window_acknowledgment = arrival.acknowledgment;
        self.tcb.sender.measure_syn(&mut self.tcb.common, arrival, self.env.now);
        self.establish();
        // RFC 9293 §3.10.7.3: controls and text in the same segment are for the steps that follow.
        self.tcb.receiver.space.offer(self.tcb.receiver.window_space(&self.tcb.common));
        self.tcb.receiver.acknowledge_handshake(&self.tcb.common, self.env.now);
        self.tcb.receiver.take_urgent(&self.tcb.common, arrival, self.outcome);
        let is_fast_open =
            matches!(self.tcb.common.fast_open, FastOpenState::Requested | FastOpenState::DataAcknowledged);
        if !self.tcb.common.config.policy.syn_ack_data_is_dropped || is_fast_open {
            self.take_data(arrival);
        }
    }
    /// The acknowledgment of our SYN, in SYN-RECEIVED.
    pub(super) fn open_by(&mut self, arrival: &Arrival<'_>) {
        self.tcb.sender.measure_syn(&mut self.tcb.common, arrival, self.env.now);
        let window = u32::from(arrival.header.window) << self.tcb.sender.scale;
        self.tcb.sender.space.set_first_window(arrival.first, arrival.acknowledgment, window);
        if self.tcb.common.flags.contains(ConnectionFlags::EARLY_DATA) {
            return self.open_early(arrival);
        }
        if self.tcb.common.flags.contains(ConnectionFlags::ACTIVE_OPEN) {
            self.tcb.sender.syn_answered(&mut self.tcb.common, arrival, self.env.pool);
        }
        let syn_end = Offset::SYN + 1;
        let has_ended = self.tcb.sender.ended_before_open(&self.tcb.common);
        self.tcb.sender.space.acknowledge(if has_ended { syn_end } else { arrival.acknowledgment });
        self.establish();
        if has_ended {
            self.tcb.sender.timer.arm(&self.tcb.common, self.env.now);
            if syn_end < arrival.acknowledgment {
                self.advance(arrival, false);
            }
        }
    }
    /// Both SYNs are acknowledged: ESTABLISHED, or past it when the application has closed already.
    // spec: RFC5681 3.1-3, 3.1-4; RFC6928 2-2
    pub(super) fn establish(&mut self) {
        self.tcb.common.enter(TcpState::Established, self.env);
        self.tcb.receiver.ack_timing.opened(self.env.now);
        self.tcb.common.flags.remove(ConnectionFlags::SYN_DUE);
        if !self.tcb.common.flags.contains(ConnectionFlags::ACTIVE_OPEN)
            && let Some(buffers) = &mut self.tcb.sender.buffers
        {
            buffers.fast_open = None;
        }
        self.tcb.sender.recovery = Recovery::new(self.tcb.sender.space.unacknowledged());
        // spec: RFC6928 2-3
        // RFC 6928 §2: one retransmission of the SYN may be spurious; more of them reduce the initial window.
        let repeated = self.tcb.sender.history.as_ref().map_or(0, |history| history.retransmitted_segments);
        let segments = if repeated > 1 { 1 } else { self.tcb.common.config.initial_window_segments };
        self.tcb.sender.congestion.open(segments, self.tcb.sender.effective_mss(&self.tcb.common));
        if self.tcb.common.flags.contains(ConnectionFlags::SYN_REPEATED) {
            self.tcb.common.round_trip.after_lost_syn();
        }
        self.tcb.sender.begin_search(&self.tcb.common);
        self.tcb.sender.timer.stop();
        self.tcb.sender.timer.progress_at = self.env.now;
        self.tcb.receiver.space.segment_bytes =
            self.tcb.receiver.space.segment_bytes.min(self.tcb.common.path_mss);
        if self.tcb.common.acks_adapt() {
            // A peer that takes little is thought to send little.
            let own =
                self.tcb.sender.segment_bytes().min(u32::from(self.tcb.receiver.space.segment_bytes)) as u16;
            self.tcb.receiver.space.segment_bytes = own.max(LEAST_ASSUMED_BYTES);
        }
        self.outcome.changes |= Changes::CONNECTED | Changes::WRITABLE | Changes::REACHED;
        if self.tcb.common.flags.contains(ConnectionFlags::CLOSE_AFTER_OPEN) {
            self.tcb.common.flags.remove(ConnectionFlags::CLOSE_AFTER_OPEN);
            self.tcb.common.enter(TcpState::FinWait1, self.env);
            if self.tcb.common.flags.contains(ConnectionFlags::RECEIVE_CLOSED) {
                self.tcb.sender.orphaned(&mut self.tcb.common, self.env.now);
            }
        }
    }

    /// The acknowledgment of our SYN after data was sent behind it, or could have been.
    pub(super) fn open_early(&mut self, arrival: &Arrival<'_>) {
        self.tcb.common.flags.remove(ConnectionFlags::EARLY_DATA);
        self.tcb.common.flags.remove(ConnectionFlags::SYN_DUE);
        if let Some(buffers) = &mut self.tcb.sender.buffers {
            buffers.fast_open = None;
        }
        self.tcb.common.enter(TcpState::Established, self.env);
        self.tcb.receiver.ack_timing.opened(self.env.now);
        self.tcb.sender.timer.progress_at = self.env.now;
        self.outcome.changes |= Changes::CONNECTED | Changes::WRITABLE | Changes::REACHED;
        if self.tcb.sender.space.unacknowledged() < arrival.acknowledgment {
            self.advance(arrival, false);
        } else if self.tcb.sender.space.has_outstanding() {
            self.tcb.sender.timer.arm(&self.tcb.common, self.env.now);
        } else {
            self.tcb.sender.timer.stop();
        }
        if self.tcb.common.flags.contains(ConnectionFlags::CLOSE_AFTER_OPEN) {
            self.tcb.common.flags.remove(ConnectionFlags::CLOSE_AFTER_OPEN);
            self.tcb.common.enter(TcpState::FinWait1, self.env);
            if self.tcb.common.flags.contains(ConnectionFlags::RECEIVE_CLOSED) {
                self.tcb.sender.orphaned(&mut self.tcb.common, self.env.now);
            }
        }
    }
}
