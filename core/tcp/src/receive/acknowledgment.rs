//! The acknowledgment, the window, and what both say about loss (RFC 9293 §3.10.7.4, fifth step; RFC 5681, RFC 6582).

use super::Arrival;
use crate::flight::{Bounds, Delivery};
use crate::marks::{Marks, SendMarks};
use crate::numbers::{LARGEST_WINDOW_BYTES, STEP_SHIFT};
use crate::outcome::{Changes, Outcome, ResetReply};
use crate::phase::Allows;
use crate::recovery::Heard;
use crate::sender::SendSpace;
use crate::{Connection, Environment, Header, PlainHeader, RecoveryState};
use inhost_base::{Duration, Instant, Sequence};
use inhost_event::{Drop, TcpPhase};
use inhost_wire::tcp::SackBlocks;

/// Segments out, at most, for which the timer counts from the oldest (RFC 7765 §4, rrthresh).
const RESTART_SEGMENTS: usize = 4;
/// Time that a peer has at least to show that it still has what it said it had.
const LEAST_PATIENCE: Duration = Duration::from_millis(10);

/// What a segment says about what is out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Report<'a> {
    /// Everything before this has arrived.
    pub acknowledgment: Sequence,
    /// The window that comes with it.
    pub window_bytes: u32,
    /// The timestamp of ours that came back.
    pub echo: Option<u32>,
    /// What arrived beyond a hole.
    pub sack: Option<&'a SackBlocks>,
    /// The peer saw a congestion mark.
    pub congestion: bool,
}

impl SendSpace {
    /// Whether a window that comes with the numbers of the last one is smaller, and not closed.
    #[cold]
    fn narrows_again(&self, sequence: Sequence, acknowledgment: Sequence, window: u32) -> bool {
        let same = self.window_acknowledgment == acknowledgment && self.window_sequence == sequence;
        same && 0 < window && window < self.window
    }
}

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
        if self.common.phase == TcpPhase::SynReceived {
            let early = self.common.marks.has(Marks::EARLY) && acknowledgment == unacknowledged;
            if !is_new && self.ended_before_open() {
                // In all but the SYN that goes again it is FIN-WAIT-1.
                if acknowledgment == unacknowledged {
                    outcome.dropped = Some(Drop::OutOfWindow);
                    if self.common.marks.has(Marks::RECEIVE_CLOSED) && !arrival.payload.is_empty() {
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
            self.advance(&self.report_of(header), false, env, outcome);
        } else if acknowledgment != unacknowledged && !self.is_recent(acknowledgment) {
            // RFC 5961 §5.2: neither new nor from the last window's worth.
            self.challenge(env, outcome);
            return false;
        } else if acknowledgment == unacknowledged || !header.options.sack.is_empty() {
            if acknowledgment == unacknowledged && self.common.config.policy.icmp_may_quote_snd_nxt {
                self.soft_error = None;
            }
            let duplicate = acknowledgment == unacknowledged && self.is_duplicate(arrival);
            if duplicate || !header.options.sack.is_empty() || header.flags.ece() {
                self.advance(&self.report_of(header), duplicate, env, outcome);
            }
        }
        if self.common.phase == TcpPhase::Closed {
            return false;
        }
        self.take_window(header.sequence, header.acknowledgment, header.window, env.now);
        true
    }
    /// Whether an old acknowledgment is not too old: by the largest window (RFC 5961 §5.2), and never by more than was
    /// acknowledged at all.
    fn is_recent(&self, acknowledgment: Sequence) -> bool {
        let others = u64::from(self.common.marks.has(Marks::ACTIVE))
            + u64::from(self.common.phase.has_fin_acknowledged());
        let acknowledged = self.sender.acknowledged_bytes + others;
        let old_bytes = u64::from(self.sender.space.largest_window).min(acknowledged) as u32;
        acknowledgment.within(self.sender.space.unacknowledged.back(old_bytes), old_bytes + 1)
    }
    /// The acknowledgment of our SYN, in SYN-RECEIVED.
    fn open_by(&mut self, header: &Header, env: &mut Environment<'_>, outcome: &mut Outcome) {
        self.measure_syn(header, env.now);
        self.sender.space.window = u32::from(header.window) << self.sender.scale;
        self.sender.space.largest_window = self.sender.space.largest_window.max(self.sender.space.window);
        self.sender.space.window_sequence = header.sequence;
        self.sender.space.window_acknowledgment = header.acknowledgment;
        if self.common.marks.has(Marks::EARLY) {
            return self.open_early(header, env, outcome);
        }
        if self.common.marks.has(Marks::ACTIVE) {
            self.syn_answered(header, env);
        }
        let syn_end = self.syn_sequence() + 1;
        let has_ended = self.ended_before_open();
        self.sender.space.unacknowledged = if has_ended { syn_end } else { header.acknowledgment };
        self.establish(env, outcome);
        if has_ended {
            self.arm_retransmission(env.now);
            if syn_end.precedes(header.acknowledgment) {
                self.advance(&self.report_of(header), false, env, outcome);
            }
        }
    }
    /// The round trip of the handshake, unless the SYN was repeated.
    // spec: RFC7323 3.2-3
    pub(crate) fn measure_syn(&mut self, header: &Header, now: Instant) {
        // What a timestamp measures is told apart from what a repeated SYN left in doubt.
        if self.common.marks.has(Marks::SYN_REPEATED) && !self.common.config.policy.rtt_sample_for_each_ack {
            return;
        }
        let measured = self.common.marks.has(Marks::SYN_TIMED).then(|| now.since(self.sender.sent_at));
        let echoed =
            self.echo_of(header.options.timestamps).and_then(|echo| self.echoed_round_trip(echo, now));
        let acknowledgment = header.acknowledgment;
        self.sender.round_trip.acknowledged(
            acknowledgment,
            acknowledgment,
            measured,
            echoed,
            &self.common.config,
        );
    }
    /// The round trip by the echoed timestamp, to a millisecond. After a time-out an echo of what left before it is no
    /// measure: a peer whose acknowledgment was lost drops the copy as old, and so keeps and echoes the timestamp of
    /// the first (RFC 7323 §5.3, R2 before R3), however long ago that left. That is Karn's ambiguity over again.
    // spec: RFC9293 MUST-18
    pub(crate) fn echoed_round_trip(&self, echo: u32, now: Instant) -> Option<Duration> {
        let stamp = self.common.timestamp(now);
        let elapsed_ms = stamp.wrapping_sub(echo);
        let counts = elapsed_ms <= stamp.wrapping_sub(self.sender.least_echo);
        counts.then(|| Duration::from_millis(u64::from(elapsed_ms.max(1))))
    }

    /// The timestamp that came back, where they were agreed on.
    #[inline]
    fn echo_of(&self, timestamps: Option<(u32, u32)>) -> Option<u32> {
        timestamps.filter(|_| self.common.marks.has(Marks::TIMESTAMPS)).map(|(_, echo)| echo)
    }
    /// What a segment says about what is out.
    pub(crate) fn report_of<'a>(&self, header: &'a Header) -> Report<'a> {
        let sack = &header.options.sack;
        Report {
            acknowledgment: header.acknowledgment,
            window_bytes: u32::from(header.window) << self.sender.scale,
            echo: self.echo_of(header.options.timestamps),
            sack: (self.common.marks.has(Marks::SACK) && !sack.is_empty()).then_some(sack),
            congestion: self.common.marks.has(Marks::ECN)
                && header.flags.ece()
                && (self.has_outstanding() || !self.common.config.policy.ece_needs_data_in_flight),
        }
    }
    /// Takes what a segment says about what is out.
    pub(crate) fn advance(
        &mut self,
        report: &Report<'_>,
        duplicate: bool,
        env: &mut Environment<'_>,
        outcome: &mut Outcome,
    ) {
        if self.is_last_acknowledgment(report) {
            return self.take_last_acknowledgment(report, env, outcome);
        }
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
        let (acknowledgment, echo) = (header.acknowledgment, self.echo_of(header.timestamps));
        let window_bytes = u32::from(header.window) << self.sender.scale;
        let report = Report { acknowledgment, window_bytes, echo, sack: None, congestion: false };
        self.advance_by(&report, false, env, outcome);
    }
    /// It is compiled once for each road, so that the straight one is spared the questions whose answers are known.
    // spec: RFC7323 4.1-2
    #[inline(always)]
    fn advance_by(
        &mut self,
        report: &Report<'_>,
        duplicate: bool,
        env: &mut Environment<'_>,
        outcome: &mut Outcome,
    ) {
        let now = env.now;
        let before = self.sender.space.unacknowledged;
        // An old acknowledgment says nothing but what its blocks say.
        let acknowledgment = before.later(report.acknowledgment);
        let mut heard = Heard {
            advanced_bytes: acknowledgment.since(before),
            duplicate,
            counted_bytes: 0,
            in_flight_before_bytes: self.in_flight_bytes(),
            sacked_before_bytes: self.sacked_bytes(),
            outstanding_before_bytes: self.sender.space.next.since(before),
            round_trip: None,
            rate: None,
            congestion: report.congestion,
            edge: acknowledgment + report.window_bytes,
        };
        let mut delivery = self.deliver(report, acknowledgment, now);
        let advanced = heard.advanced_bytes > 0;
        let mut fin_acknowledged = false;
        if advanced {
            let echo = report.echo.filter(|_| !delivery.within_segment);
            let echoed = echo.and_then(|echo| self.echoed_round_trip(echo, now));
            let (next, measured) = (self.sender.space.next, delivery.oldest_round_trip);
            self.sender.round_trip.acknowledged(acknowledgment, next, measured, echoed, &self.common.config);
            if delivery.newest_round_trip.is_none()
                && echoed.is_some()
                && let Some(buffers) = &mut self.sender.buffers
            {
                buffers.tail_probe.measured();
            }
            fin_acknowledged = self.discard_acknowledged(acknowledgment, heard.advanced_bytes, env);
        } else if delivery.oldest_round_trip.is_none() && delivery.sacked_bytes > 0 && !delivery.again {
            delivery.oldest_round_trip = delivery.newest_round_trip;
        }
        heard.round_trip = delivery.newest_round_trip;
        heard.rate = self.sample_rate(delivery.builder, now);
        self.count_duplicates(&mut heard);
        let calm = self.sender.recovery.state == RecoveryState::Open
            && !duplicate
            && !heard.congestion
            && delivery.duplicate.is_none()
            && delivery.overtaken.is_none()
            && self.sacked_bytes() == 0;
        if calm {
            self.grow(delivery.bytes, &heard, now);
        } else {
            self.recover_by(&delivery, heard, report.echo, env);
        }
        self.release_small();
        let pure = !advanced && delivery.sacked_bytes == 0 && duplicate;
        if self.judge_tail_probe(pure) {
            self.probe_repaired_a_loss(heard.in_flight_before_bytes, env);
        }
        if self.sender.marks.has(SendMarks::SEARCHES) {
            self.judge_search(now);
        }
        self.set_pace();
        let restarts = advanced && !delivery.within_segment;
        self.restart_timers(restarts, restarts || delivery.sacked_bytes > 0, now);
        if advanced {
            outcome.changes |= Changes::REACHED;
            self.soft_error = None;
            self.tell_writer(outcome);
        }
        if fin_acknowledged {
            self.fin_acknowledged(env, outcome);
        }
    }
    #[inline(always)]
    pub(super) fn deliver(
        &mut self,
        report: &Report<'_>,
        acknowledgment: Sequence,
        now: Instant,
    ) -> Delivery {
        let mut delivery = Delivery::default();
        if report.sack.is_some() || self.sender.recovery.state != RecoveryState::Open {
            delivery.echo_at_most = report.echo.and_then(|echo| self.echo_left_by(echo, now));
        }
        let bounds = Bounds {
            acknowledgment: report.acknowledgment,
            unacknowledged: self.sender.space.unacknowledged,
            next: self.sender.space.next,
            segment_bytes: self.segment_bytes().max(1),
            largest_window: self.sender.space.largest_window,
        };
        let Some(buffers) = &mut self.sender.buffers else { return delivery };
        delivery.sacked_before = buffers.flight.highest_sacked();
        if let Some(sack) = report.sack {
            buffers.flight.take_sack(sack, bounds, now, &mut delivery);
        }
        let before = buffers.flight.len();
        buffers.flight.acknowledge(acknowledgment, now, &mut delivery);
        if self.common.config.policy.partial_acks_recut_segments {
            buffers.flight.count_whole(before, bounds.segment_bytes, &mut delivery);
        }
        if let Some(sample) = delivery.newest_round_trip {
            buffers.flight.rack.measured(sample, &self.sender.round_trip, now);
            buffers.tail_probe.measured();
        }
        delivery
    }
    /// The latest instant at which the segment can have left whose timestamp came back.
    fn echo_left_by(&self, echo: u32, now: Instant) -> Option<Instant> {
        let elapsed_ms = self.common.timestamp(now).wrapping_sub(echo);
        let at_ms = now.as_millis().checked_sub(u64::from(elapsed_ms))?;
        // Anything within that millisecond.
        Some(Instant::from_nanos((at_ms + 1) * 1_000_000 - 1))
    }
    /// Forgets what is acknowledged; true when our FIN is.
    // spec: RFC6675 4-2; RFC2018 8-3
    #[inline(always)]
    pub(super) fn discard_acknowledged(
        &mut self,
        acknowledgment: Sequence,
        advanced_bytes: u32,
        env: &mut Environment<'_>,
    ) -> bool {
        let queued = self.queued_bytes();
        let bytes = advanced_bytes.min(queued);
        if let Some(buffers) = &mut self.sender.buffers {
            buffers.send.discard(bytes as usize, env.pool);
        }
        let before = self.sender.acknowledged_bytes;
        self.sender.acknowledged_bytes = before + u64::from(bytes);
        self.sender.space.unacknowledged = acknowledgment;
        if (before ^ self.sender.acknowledged_bytes) >> STEP_SHIFT != 0 {
            self.pull_numbers_along();
        }
        self.sender.space.urgent = self.sender.space.urgent.later(acknowledgment);
        self.sender.space.push = self.sender.space.push.later(acknowledgment);
        self.sender.progress_at = env.now;
        self.sender.marks.clear(SendMarks::PROBE);
        advanced_bytes > queued
    }
    /// Duplicates stand for segments that have left the network, where there is no SACK to tell which (RFC 6582).
    // spec: RFC5681 3.2-4, 3.2-5
    #[inline]
    fn count_duplicates(&mut self, heard: &mut Heard) {
        if self.common.marks.has(Marks::SACK) {
            return;
        }
        let segment = self.segment_bytes().max(1);
        if heard.advanced_bytes > 0 {
            if self.sender.recovery.state == RecoveryState::Recovery {
                // One of the segments acknowledged filled the hole; the others the duplicates had told of.
                let others = (heard.advanced_bytes.div_ceil(segment) - 1)
                    .min(u32::from(self.sender.recovery.duplicates));
                self.sender.recovery.duplicates -= others as u8;
                heard.counted_bytes = others * segment;
            } else {
                heard.counted_bytes = u32::from(self.sender.recovery.duplicates) * segment;
                self.sender.recovery.duplicates = 0;
            }
        }
        if heard.duplicate {
            // Never more than are out beside the one that is missing: an acknowledgment is easily made.
            let most = self
                .sender
                .space
                .next
                .since(self.sender.space.unacknowledged)
                .div_ceil(segment)
                .saturating_sub(1);
            let more = u32::from(self.sender.recovery.duplicates) < most;
            self.sender.recovery.duplicates = self.sender.recovery.duplicates.saturating_add(u8::from(more));
            heard.duplicate = more;
        }
    }
    /// A probe of the tail was what arrived: the tail was lost, and the window pays for it (RFC 8985 §7.4.2).
    // spec: RFC8985 7.4.2-2
    fn probe_repaired_a_loss(&mut self, in_flight: u32, env: &mut Environment<'_>) {
        if self.sender.recovery.state != RecoveryState::Open
            && self.sender.recovery.state != RecoveryState::Disorder
        {
            return;
        }
        self.sender.congestion.lost(in_flight, env.now);
        self.sender.congestion.recovered(env.now);
        self.tell_of_reduction();
        self.tell_window(env);
    }
    /// The timers of what is still out, after an acknowledgment.
    // spec: RFC6298 5-2; RFC6928 9-1
    #[inline]
    pub(super) fn restart_timers(&mut self, advanced: bool, delivered: bool, now: Instant) {
        if !self.has_outstanding() {
            self.sender.retransmit_at = Instant::FAR_FUTURE;
            if self.common.config.policy.cork_lasts_rto && self.queued_bytes() > 0 {
                self.aggregate(now);
            }
            if let Some(buffers) = &mut self.sender.buffers {
                // Whether a probe that is out repaired a loss, what is sent next will tell (RFC 8985 §7.4.2).
                buffers.tail_probe.at = Instant::FAR_FUTURE;
                buffers.reorder_at = Instant::FAR_FUTURE;
            }
            return;
        }
        if advanced {
            self.arm_retransmission(now);
            self.restart_early(now);
            if self.sender.buffers.as_ref().is_some_and(|buffers| buffers.flight.is_reneged()) {
                // RFC 2018 §8: what the peer had it may have thrown away; it has half a round trip to show otherwise.
                let half = self.sender.round_trip.smoothed().unwrap_or(Duration::ZERO).divided_by(2);
                self.sender.retransmit_at = self.sender.retransmit_at.min(now + half.max(LEAST_PATIENCE));
            }
        }
        if delivered {
            self.arm_tail_probe(true, now);
        }
    }
    /// RFC 7765 §4: with few segments out and nothing to send, the timer counts from when the oldest left, for too few
    /// acknowledgments will come to find a loss without it.
    fn restart_early(&mut self, now: Instant) {
        // A repair has its own time: what it sent again began anew.
        let calm = matches!(self.sender.recovery.state, RecoveryState::Open | RecoveryState::Disorder);
        if !self.common.config.rto_restart
            || !calm
            || self.sender.space.next.precedes(self.stream_end())
            || self.sender.space.window == 0
        {
            return;
        }
        let timeout = self.sender.round_trip.timeout(&self.common.config);
        let Some(buffers) = &self.sender.buffers else { return };
        if buffers.flight.len() < RESTART_SEGMENTS
            && let Some(oldest) = buffers.flight.first()
        {
            let at = oldest.sent_at + timeout;
            if at > now {
                self.sender.retransmit_at = self.sender.retransmit_at.min(at);
            }
        }
    }
    /// RFC 5681 §2: nothing new, nothing else, and something outstanding.
    fn is_duplicate(&self, arrival: &Arrival<'_>) -> bool {
        let header = arrival.header;
        let window = u32::from(header.window) << self.sender.scale;
        // One that is not believed changes nothing.
        let same_window = window == self.sender.space.window
            || (self.common.config.policy.same_sequence_only_widens_window
                && self.sender.space.narrows_again(header.sequence, header.acknowledgment, window));
        let empty = arrival.payload.is_empty() && !header.flags.fin();
        self.has_outstanding() && same_window && empty && self.sender.space.window > 0
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
        if self.common.config.policy.window_probes_are_empty && !self.has_outstanding() {
            self.restart_persist_timer(now);
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
                self.resize_to_window();
            }
        }
        if was_closed && window > 0 {
            self.window_opened(now);
        }
    }
    /// The persist timer begins anew with each acknowledgment while nothing is out.
    #[inline(never)]
    fn restart_persist_timer(&mut self, now: Instant) {
        if self.sender.retransmit_at != Instant::FAR_FUTURE {
            self.arm_retransmission(now);
        }
        if let Some(buffers) = &mut self.sender.buffers
            && buffers.aggregate_until != Instant::FAR_FUTURE
        {
            buffers.aggregate_until = Instant::FAR_FUTURE;
            self.aggregate(now);
        }
    }
    /// What the closed window refused goes again at once, and the persist timer's back-off is forgotten.
    fn window_opened(&mut self, now: Instant) {
        self.sender.marks.clear(SendMarks::PROBE);
        if self.common.config.policy.window_probes_are_empty && self.has_outstanding() {
            // What is out was sent again, and is watched over, with the window closed, too.
            return;
        }
        self.sender.round_trip.backoff = 0;
        self.sender.retransmit_at = Instant::FAR_FUTURE;
        if self.has_outstanding() {
            if matches!(self.sender.recovery.state, RecoveryState::Open | RecoveryState::Disorder) {
                self.send_refused_again(0);
            }
            self.arm_retransmission(now);
        }
    }
    /// A writer that found the buffer full is told once a third of it is free.
    #[inline]
    pub(crate) fn tell_writer(&mut self, outcome: &mut Outcome) {
        if !self.sender.marks.has(SendMarks::WRITER_WAITS) {
            return;
        }
        let limit = self.send_buffer_bytes();
        let low_water = self.common.config.not_sent_low_water_bytes;
        let fresh = low_water == usize::MAX || (self.not_sent_bytes() as usize) < low_water.div_ceil(2);
        if fresh && self.queued_bytes() as usize <= limit - limit / 3 {
            self.sender.marks.clear(SendMarks::WRITER_WAITS);
            outcome.changes |= Changes::WRITABLE;
        }
    }
    pub(super) fn fin_acknowledged(&mut self, env: &mut Environment<'_>, outcome: &mut Outcome) {
        match self.common.phase {
            TcpPhase::FinWait1 => {
                self.enter(TcpPhase::FinWait2, env);
                if self.common.marks.has(Marks::RECEIVE_CLOSED) {
                    self.linger_at = env.now + self.common.config.fin_wait_2;
                }
            }
            TcpPhase::Closing => self.enter_time_wait(env),
            TcpPhase::LastAck => self.finish(None, env, outcome),
            _ => {}
        }
    }
}
