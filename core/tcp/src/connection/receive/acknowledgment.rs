//! The acknowledgment, the window, and what both say about loss (RFC 9293 §3.10.7.4, fifth step; RFC 5681, RFC 6582).

use crate::arrival::Arrival;
use crate::flags::{ConnectionFlags, SenderFlags};
use crate::numbers::LARGEST_WINDOW_BYTES;
use crate::outcome::{Changes, Outcome, ResetReply};
use crate::sender::acknowledgment::AckInfo;
use crate::sender::recovery::AckSample;
use crate::{Connection, Environment, Header, PlainHeader, RecoveryState};
use inhost_base::{Instant, Sequence};
use inhost_event::{Drop, TcpState};

impl Connection {
    /// The fifth step. False when the segment goes no further.
    // spec: RFC5961 5.2-1, 5.2-2
    pub(super) fn take_acknowledgment(
        &mut self,
        arrival: &Arrival<'_>,
        env: &mut Environment<'_>,
        outcome: &mut Outcome,
    ) -> bool {
        let header = arrival.header;
        let acknowledgment = header.acknowledgment;
        let (unacknowledged, next) = (self.sender.space.unacknowledged, self.sender.space.next);
        let is_new = unacknowledged.precedes(acknowledgment) && acknowledgment.at_or_before(next);
        if self.common.state == TcpState::SynReceived {
            let early = self.common.flags.has(ConnectionFlags::EARLY) && acknowledgment == unacknowledged;
            if !is_new && self.sender.ended_before_open(&self.common) {
                // In all but the SYN that goes again it is FIN-WAIT-1.
                if acknowledgment == unacknowledged {
                    outcome.dropped = Some(Drop::OutOfWindow);
                    if self.common.flags.has(ConnectionFlags::RECEIVE_CLOSED) && !arrival.payload.is_empty() {
                        self.refuse_data(arrival, env, outcome);
                    }
                } else {
                    self.challenge(env, outcome);
                }
                return false;
            }
            if !is_new && !early {
                outcome.dropped = Some(Drop::OutOfWindow);
                outcome.reset = Some(ResetReply { sequence: acknowledgment, ..ResetReply::default() });
                return false;
            }
            self.open_by(header, env, outcome);
        } else if is_new {
            self.advance(&self.sender.report_of(&self.common, header), false, env, outcome);
        } else if acknowledgment != unacknowledged && !self.sender.is_recent(&self.common, acknowledgment) {
            // RFC 5961 §5.2: neither new nor from the last window's worth.
            self.challenge(env, outcome);
            return false;
        } else if acknowledgment == unacknowledged || !header.options.sack.is_empty() {
            if acknowledgment == unacknowledged && self.common.config.policy.icmp_may_quote_snd_nxt {
                self.soft_error = None;
            }
            let duplicate =
                acknowledgment == unacknowledged && self.sender.is_duplicate(&self.common, arrival);
            if duplicate || !header.options.sack.is_empty() || header.flags.ece() {
                self.advance(&self.sender.report_of(&self.common, header), duplicate, env, outcome);
            }
        }
        if self.common.state == TcpState::Closed {
            return false;
        }
        self.take_window(header.sequence, header.acknowledgment, header.window, env.now);
        true
    }
    /// The acknowledgment of our SYN, in SYN-RECEIVED.
    fn open_by(&mut self, header: &Header, env: &mut Environment<'_>, outcome: &mut Outcome) {
        self.sender.measure_syn(&self.common, header, env.now);
        self.sender.space.window = u32::from(header.window) << self.sender.scale;
        self.sender.space.largest_window = self.sender.space.largest_window.max(self.sender.space.window);
        self.sender.space.window_sequence = header.sequence;
        self.sender.space.window_acknowledgment = header.acknowledgment;
        if self.common.flags.has(ConnectionFlags::EARLY) {
            return self.open_early(header, env, outcome);
        }
        if self.common.flags.has(ConnectionFlags::ACTIVE) {
            self.syn_answered(header, env);
        }
        let syn_end = self.sender.syn_sequence(&self.common) + 1;
        let has_ended = self.sender.ended_before_open(&self.common);
        self.sender.space.unacknowledged = if has_ended { syn_end } else { header.acknowledgment };
        self.establish(env, outcome);
        if has_ended {
            self.sender.arm_retransmission(&self.common, env.now);
            if syn_end.precedes(header.acknowledgment) {
                self.advance(&self.sender.report_of(&self.common, header), false, env, outcome);
            }
        }
    }
    /// Takes what a segment says about what is out.
    pub(crate) fn advance(
        &mut self,
        report: &AckInfo<'_>,
        duplicate: bool,
        env: &mut Environment<'_>,
        outcome: &mut Outcome,
    ) {
        self.advance_by(report, duplicate, env, outcome);
    }
    /// The same for a plain header with an acknowledgment of something new.
    #[inline(never)]
    pub(super) fn advance_plainly(
        &mut self,
        header: &PlainHeader,
        env: &mut Environment<'_>,
        outcome: &mut Outcome,
    ) {
        let (acknowledgment, echo) = (header.acknowledgment, self.common.echo_of(header.timestamps));
        let window_bytes = u32::from(header.window) << self.sender.scale;
        let report = AckInfo { acknowledgment, window_bytes, echo, sack: None, congestion: false };
        self.advance_by(&report, false, env, outcome);
    }
    /// It is compiled once for each road, so that the straight one is spared the questions whose answers are known.
    // spec: RFC7323 4.1-2
    #[inline(always)]
    fn advance_by(
        &mut self,
        report: &AckInfo<'_>,
        duplicate: bool,
        env: &mut Environment<'_>,
        outcome: &mut Outcome,
    ) {
        let now = env.now;
        let before = self.sender.space.unacknowledged;
        // An old acknowledgment says nothing but what its blocks say.
        let acknowledgment = before.later(report.acknowledgment);
        let mut heard = AckSample {
            advanced_bytes: acknowledgment.since(before),
            duplicate,
            counted_bytes: 0,
            in_flight_before_bytes: self.sender.in_flight_bytes(),
            sacked_before_bytes: self.sender.sacked_bytes(),
            outstanding_before_bytes: self.sender.space.next.since(before),
            round_trip: None,
            rate: None,
            congestion: report.congestion,
            edge: acknowledgment + report.window_bytes,
        };
        let mut delivery = self.sender.deliver(&self.common, report, acknowledgment, now);
        let advanced = heard.advanced_bytes > 0;
        let mut fin_acknowledged = false;
        if advanced {
            let echo = report.echo.filter(|_| !delivery.within_segment);
            let echoed = echo.and_then(|echo| self.sender.echoed_round_trip(&self.common, echo, now));
            let (next, measured) = (self.sender.space.next, delivery.oldest_round_trip);
            self.sender.round_trip.acknowledged(acknowledgment, next, measured, echoed, &self.common.config);
            if delivery.newest_round_trip.is_none()
                && echoed.is_some()
                && let Some(buffers) = &mut self.sender.buffers
            {
                buffers.tail_probe.measured();
            }
            fin_acknowledged = self.sender.discard_acknowledged(acknowledgment, heard.advanced_bytes, env);
        } else if delivery.oldest_round_trip.is_none() && delivery.sacked_bytes > 0 && !delivery.again {
            delivery.oldest_round_trip = delivery.newest_round_trip;
        }
        heard.round_trip = delivery.newest_round_trip;
        heard.rate = self.sender.sample_rate(delivery.builder, now);
        self.sender.count_duplicates(&self.common, &mut heard);
        let calm = self.sender.recovery.state == RecoveryState::Open
            && !duplicate
            && !heard.congestion
            && delivery.duplicate.is_none()
            && delivery.overtaken.is_none()
            && self.sender.sacked_bytes() == 0;
        if calm {
            self.sender.grow(delivery.bytes, &heard, now);
        } else {
            self.sender.recover_by(&self.common, &delivery, heard, report.echo, env);
        }
        self.sender.release_small(&self.common);
        let pure = !advanced && delivery.sacked_bytes == 0 && duplicate;
        if self.sender.judge_tail_probe(pure) {
            self.sender.probe_repaired_a_loss(&self.common, heard.in_flight_before_bytes, env);
        }
        if self.sender.flags.has(SenderFlags::SEARCHES) {
            self.sender.judge_search(&self.common, now);
        }
        self.sender.set_pace(&self.common);
        let restarts = advanced && !delivery.within_segment;
        self.sender.restart_timers(&self.common, restarts, restarts || delivery.sacked_bytes > 0, now);
        if advanced {
            outcome.changes |= Changes::REACHED;
            self.soft_error = None;
            self.tell_writer(outcome);
        }
        if fin_acknowledged {
            self.fin_acknowledged(env, outcome);
        }
    }
    /// Takes the peer's window from a segment that is not older than the one it was last taken from. RFC 9293 asks
    /// the sequence number first; but acknowledgments only grow, so where they differ they tell the order better:
    /// a segment sent again bears an old number and a new window.
    // spec: RFC9293 MUST-34 (the edge may move back; what lies beyond it waits)
    // spec: RFC7323 2.3-3
    #[inline(always)]
    pub(super) fn take_window(
        &mut self,
        sequence: Sequence,
        acknowledgment: Sequence,
        field: u16,
        now: Instant,
    ) {
        let send = &mut self.sender.space;
        let newer = send.window_acknowledgment.precedes(acknowledgment)
            || (send.window_acknowledgment == acknowledgment && send.window_sequence.at_or_before(sequence));
        let was_closed = send.window == 0;
        if was_closed {
            // The peer answers probes: it may keep its window closed as long as it likes.
            self.sender.progress_at = now;
        }
        if self.common.config.policy.window_probes_are_empty && !self.sender.has_outstanding() {
            self.sender.restart_persist_timer(&self.common, now);
        }
        let send = &mut self.sender.space;
        if !newer {
            // A peer whose acknowledgments go back is not followed; its numbers stay comparable all the same.
            send.window_sequence =
                send.window_sequence.later(self.receiver.space.next.back(LARGEST_WINDOW_BYTES));
            return;
        }
        let window = u32::from(field) << self.sender.scale;
        if self.common.config.policy.same_sequence_only_widens_window
            && send.narrows_again(sequence, acknowledgment, window)
        {
            return;
        }
        send.window = window;
        send.window_sequence = sequence;
        send.window_acknowledgment = acknowledgment;
        if send.largest_window < window {
            send.largest_window = window;
            if self.common.config.policy.mss_at_most_half_window {
                self.sender.resize_to_window(&self.common);
            }
        }
        if was_closed && window > 0 {
            self.sender.window_opened(&self.common, now);
        }
    }
    /// A writer that found the buffer full is told once a third of it is free.
    #[inline]
    pub(crate) fn tell_writer(&mut self, outcome: &mut Outcome) {
        if !self.sender.flags.has(SenderFlags::WRITER_WAITS) {
            return;
        }
        let limit = self.sender.send_buffer_bytes(&self.common);
        let low_water = self.common.config.not_sent_low_water_bytes;
        let fresh = low_water == usize::MAX || (self.not_sent_bytes() as usize) < low_water.div_ceil(2);
        if fresh && self.sender.queued_bytes() as usize <= limit - limit / 3 {
            self.sender.flags.clear(SenderFlags::WRITER_WAITS);
            outcome.changes |= Changes::WRITABLE;
        }
    }
    pub(super) fn fin_acknowledged(&mut self, env: &mut Environment<'_>, outcome: &mut Outcome) {
        match self.common.state {
            TcpState::FinWait1 => {
                self.enter(TcpState::FinWait2, env);
                if self.common.flags.has(ConnectionFlags::RECEIVE_CLOSED) {
                    self.linger_at = env.now + self.common.config.fin_wait_2;
                }
            }
            TcpState::Closing => self.enter_time_wait(env),
            TcpState::LastAck => self.finish(None, env, outcome),
            _ => {}
        }
    }
}
