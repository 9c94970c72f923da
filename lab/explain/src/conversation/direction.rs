//! One direction of a connection: what its sender did, and what it knew when it did it.
//!
//! The capture may have been taken anywhere, so each frame from the peer is held back by the round trip between the
//! place of the capture and the sender: it counts when the sender's answer to it passes the place of the capture.

use std::collections::VecDeque;

use super::evidence::Evidence;
use super::leg::Leg;
use super::outstanding::{Budget, Hole, Outstanding, Sent};
use super::recovery::{Recent, Recovery};
use super::sequence::Unwrapper;
use crate::account::{Account, Meaning, Row};
use crate::capture::Segment;
use crate::cause::{Cause, Sign};

/// Frames of the peer that are held back at once.
const MAX_INCOMING: usize = 4096;
/// Segment size while nothing tells it.
const USUAL_MSS_BYTES: u32 = 1448;
/// Initial window in segments (RFC 6928).
const INITIAL_WINDOW_SEGMENTS: i64 = 10;
/// Idle time after which a window is reduced: the least retransmission timeout of Linux.
const LEAST_RTO_NS: u64 = 200_000_000;
/// Data that leaves so soon after an acknowledgment was released by it.
const LEAST_RELEASE_NS: u64 = 200_000;
const MOST_RELEASE_NS: u64 = 2_000_000;
/// An acknowledgment that takes so much longer than the least was delayed on purpose.
const DELAYED_ACK_NS: u64 = 15_000_000;
/// A queue that stands on the path, when a round trip is longer than the least one by this, and by a quarter.
const STANDING_QUEUE_NS: u64 = 1_000_000;
/// Bytes from which an acknowledgment is called stretched, in segments.
const STRETCH_SEGMENTS: i64 = 4;
/// Steps of less than a segment by which a window is called silly.
const SILLY_STEPS: u32 = 2;
/// A window of less than this part of the largest is filled with unread data.
const FILLING_PART: u64 = 2;

/// A frame of the peer, as the sender gets it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Incoming {
    /// When it counts.
    at_ns: u64,
    /// When it passed.
    seen_ns: u64,
    segment: Segment,
    /// The acknowledgment, relative.
    acknowledgment: Option<i64>,
    window_bytes: u64,
}

/// What each direction is told with a frame.
pub(crate) struct Context<'a> {
    pub(crate) budget: &'a mut Budget,
    /// From the capture to this direction's sender and back.
    pub(crate) near: &'a Leg,
    /// From the capture to its receiver and back.
    pub(crate) far: &'a Leg,
}

impl Context<'_> {
    fn least_rtt_ns(&self) -> u64 {
        self.near.least_ns().unwrap_or(0) + self.far.least_ns().unwrap_or(0)
    }
    fn rtt_ns(&self) -> u64 {
        self.near.current_ns() + self.far.current_ns()
    }
    /// A queue between the sender and the capture, which hides what is in flight there.
    fn has_queue_at_sender(&self) -> bool {
        let more = self.near.current_ns().saturating_sub(self.near.least_ns().unwrap_or(0));
        more > (self.least_rtt_ns() / 4).max(STANDING_QUEUE_NS)
    }
    fn has_standing_queue(&self, is_at_peak: bool) -> bool {
        let more = self.rtt_ns().saturating_sub(self.least_rtt_ns());
        // A smaller queue counts while data arrives as fast as it ever did.
        let part = if is_at_peak { 20 } else { 4 };
        self.far.samples() >= 4 && more > (self.least_rtt_ns() / part).max(STANDING_QUEUE_NS)
    }
}

#[derive(Debug)]
pub(crate) struct Direction {
    pub(crate) account: Account,
    pub(crate) evidence: Evidence,
    pub(crate) numbers: Unwrapper,
    pub(super) outstanding: Outstanding,
    incoming: VecDeque<Incoming>,
    pub(super) recent: Recent,
    pub(super) recovery: Option<Recovery>,
    /// Next number to be sent, the oldest unacknowledged one as the sender knows it, and as it passed.
    pub(crate) next: i64,
    pub(super) acknowledged: i64,
    passed_acknowledged: i64,
    /// The last acknowledgment that passed told of a hole, or was a duplicate.
    passed_hole: bool,
    /// Right edge of the window, as the sender knows it, and the furthest so far.
    edge: i64,
    furthest_edge: i64,
    /// How often in a row the window opened by less than a segment.
    small_steps: u32,
    window_bytes: u64,
    pub(crate) largest_window_bytes: u64,
    pub(crate) is_window_known: bool,
    pub(crate) mss_bytes: u32,
    is_established: bool,
    is_answerer: bool,
    pub(crate) has_fin: bool,
    fin_end: i64,
    is_reset: bool,
    pub(crate) syns: u32,
    /// Data of the peer came later than our own last data.
    is_answering: bool,
    pub(super) last_sent_ns: u64,
    last_frame: u64,
    last_is_partial: bool,
    /// The last acknowledgment of new data: when, whether without data, how long after its data, its frame.
    pub(super) progress_ns: u64,
    progress_is_pure: bool,
    progress_is_delayed: bool,
    pub(super) has_sacked: bool,
    highest_sacked: i64,
    pub(super) duplicate_acks: u32,
    pub(super) last_evidence_ns: u64,
    /// Something was sent again since the hole appeared.
    pub(super) is_repaired: bool,
    round_end: i64,
    round_peak: i64,
    previous_peak: i64,
    flat_rounds: u8,
    is_slow_start: bool,
    is_restart: bool,
    pub(crate) peak_flight: i64,
    pub(super) largest_acknowledged_payload: u32,
    pub(super) largest_payload: u32,
    pub(crate) bytes: u64,
    pub(crate) segments: u64,
    pub(crate) first_data_ns: Option<u64>,
    pub(crate) last_data_ns: u64,
    pub(crate) peak_rate: super::rate::PeakRate,
}

impl Direction {
    pub(crate) fn new(now_ns: u64) -> Direction {
        Direction {
            account: Account::new(now_ns),
            evidence: Evidence::default(),
            numbers: Unwrapper::default(),
            outstanding: Outstanding::default(),
            incoming: VecDeque::new(),
            recent: Recent::default(),
            recovery: None,
            next: 0,
            acknowledged: 0,
            passed_acknowledged: 0,
            passed_hole: false,
            edge: 0,
            furthest_edge: 0,
            small_steps: 0,
            window_bytes: 0,
            largest_window_bytes: 0,
            is_window_known: false,
            mss_bytes: USUAL_MSS_BYTES,
            is_established: false,
            is_answerer: false,
            has_fin: false,
            fin_end: 0,
            is_reset: false,
            syns: 0,
            is_answering: false,
            last_sent_ns: 0,
            last_frame: 0,
            last_is_partial: false,
            progress_ns: 0,
            progress_is_pure: true,
            progress_is_delayed: false,
            has_sacked: false,
            highest_sacked: 0,
            duplicate_acks: 0,
            last_evidence_ns: 0,
            is_repaired: false,
            round_end: 0,
            round_peak: 0,
            previous_peak: 0,
            flat_rounds: 0,
            is_slow_start: true,
            is_restart: false,
            peak_flight: 0,
            largest_acknowledged_payload: 0,
            largest_payload: 0,
            bytes: 0,
            segments: 0,
            first_data_ns: None,
            last_data_ns: 0,
            peak_rate: Default::default(),
        }
    }
    /// The connection was open before the capture began.
    pub(crate) fn begins_open(&mut self) {
        self.is_established = true;
        self.is_slow_start = false;
    }
    pub(crate) fn flight(&self) -> i64 {
        (self.next - self.acknowledged).max(0)
    }
    pub(super) fn mss(&self) -> i64 {
        i64::from(self.mss_bytes.max(1))
    }
    /// Why nothing is sent now, as far as it is known now.
    fn row(&self) -> Row {
        if self.is_reset {
            return Row::Known(Cause::Closed);
        }
        if !self.is_established {
            return Row::Known(Cause::Opening);
        }
        if let Some(recovery) = &self.recovery {
            return Row::Known(recovery.kind.cause());
        }
        let (flight, usable) = (self.flight(), self.edge - self.next);
        if self.has_fin && flight == 0 {
            return Row::Known(Cause::Closed);
        }
        if self.has_fin && self.acknowledged + 1 >= self.fin_end {
            return Row::Known(Cause::Closing);
        }
        let is_shut = self.is_window_known && self.window_bytes == 0;
        if is_shut && self.next + self.mss() > self.furthest_edge {
            return Row::Known(Cause::ZeroWindow);
        }
        if flight == 0 && usable >= self.mss().min(self.largest_window_bytes as i64) {
            return Row::Idle;
        }
        if self.has_sacked || self.duplicate_acks > 0 {
            return Row::Hole;
        }
        if self.is_window_known && usable < self.mss().max(self.window_bytes as i64 / 8) {
            let is_small =
                (self.window_bytes as i64) < self.mss() && self.largest_window_bytes as i64 >= 2 * self.mss();
            let is_filling = self.window_bytes < self.largest_window_bytes / FILLING_PART;
            return Row::Known(match (is_small, is_filling) {
                (true, _) if self.small_steps >= SILLY_STEPS => Cause::SillyWindow,
                // Unread data takes most of the window.
                (true, _) | (_, true) => Cause::ZeroWindow,
                (false, false) => Cause::ReceiverWindow,
            });
        }
        if flight == 0 { Row::Idle } else { Row::Flight }
    }
    pub(super) fn advance(&mut self, now_ns: u64) {
        let row = self.row();
        self.account.advance(now_ns, row);
    }
    /// What a full congestion window means now.
    pub(super) fn limit(&self, context: &Context<'_>) -> Cause {
        if context.has_standing_queue(self.peak_rate.is_at_peak()) {
            Cause::BottleneckRate
        } else if !self.is_slow_start {
            Cause::CongestionWindow
        } else if self.is_restart {
            Cause::SlowStartRestart
        } else {
            Cause::SlowStart
        }
    }
    pub(super) fn leaves_slow_start(&mut self) {
        (self.is_slow_start, self.is_restart) = (false, false);
    }

    /// A frame of this direction's sender passes.
    pub(crate) fn sent(&mut self, segment: &Segment, now_ns: u64, context: &mut Context<'_>) {
        self.catch_up(now_ns, context);
        self.advance(now_ns);
        let flags = segment.flags;
        let length = i64::from(segment.payload_bytes) + i64::from(flags.syn()) + i64::from(flags.fin());
        let start = self.numbers.relative(segment.sequence, flags.syn());
        self.segments += 1;
        if !flags.syn() && self.acknowledged > 0 && !self.is_established {
            // The third segment of the handshake.
            self.is_established = true;
            self.account.progress((self.last_frame, segment.frame));
        }
        if flags.rst() {
            self.is_reset = true;
            self.evidence.mark(Sign::Reset, segment.frame);
        } else if flags.syn() {
            self.sent_syn(segment, start + length, now_ns);
        } else if length == 0 || length == 1 && start + length <= self.acknowledged {
            self.sent_probe(segment, start);
        } else if start < self.next && self.next > 0 {
            self.sent_again(segment, start, start + length, now_ns, context);
            self.next = self.next.max(start + length);
        } else {
            self.sent_new(segment, start, start + length, now_ns, context);
        }
        self.last_frame = segment.frame;
    }
    fn sent_syn(&mut self, segment: &Segment, end: i64, now_ns: u64) {
        self.syns += 1;
        self.is_answerer = segment.flags.ack();
        if self.syns > 1 {
            let is_ignored = self.is_established || self.acknowledged > 0;
            let (sign, cause) = match is_ignored {
                true => (Sign::AcceptQueueFull, Cause::AcceptQueue),
                false => (Sign::SynRetransmission, Cause::SynLoss),
            };
            self.evidence.mark(sign, segment.frame);
            self.account.seize(cause, (self.last_frame, segment.frame));
        }
        (self.next, self.last_sent_ns) = (self.next.max(end), now_ns);
    }
    /// No new data: an acknowledgment, or a probe of an idle connection or of a closed window.
    fn sent_probe(&mut self, segment: &Segment, start: i64) {
        if start < self.next && self.flight() == 0 && start + 1 == self.next && !segment.flags.fin() {
            let is_shut = self.is_window_known && self.window_bytes == 0;
            self.evidence.mark(if is_shut { Sign::WindowProbe } else { Sign::KeepAlive }, segment.frame);
        }
    }
    /// Whether the window is closed before `end`, so that sending it is a probe.
    pub(super) fn is_shut_beyond(&self, end: i64) -> bool {
        self.is_window_known && self.window_bytes == 0 && end > self.edge
    }
    fn sent_new(&mut self, segment: &Segment, start: i64, end: i64, now_ns: u64, context: &mut Context<'_>) {
        if start > self.next && self.next > 0 {
            self.outstanding.hole(Hole { start: self.next, end: start, since_ns: now_ns });
        }
        if self.is_shut_beyond(end) && segment.payload_bytes == 1 {
            // A probe with the next byte (RFC 9293 §3.8.6.1), which counts when it is sent with others.
            self.evidence.mark(Sign::WindowProbe, segment.frame);
            return;
        }
        self.name_the_wait(segment, now_ns, context);
        self.restarts(now_ns, context);
        self.outstanding.push(
            Sent {
                start,
                end,
                last_ns: now_ns,
                frame: segment.frame,
                stamp: segment.options.timestamps.map_or(0, |(value, _)| value),
                copies: 1,
                is_sacked: false,
            },
            context.budget,
        );
        self.next = end;
        if self.acknowledged == 0 && self.syns == 0 {
            // The capture began in the middle: what came before is acknowledged.
            (self.acknowledged, self.passed_acknowledged) = (start, start);
        }
        if segment.flags.fin() {
            (self.has_fin, self.fin_end) = (true, end);
        }
        if segment.payload_bytes > 0 {
            self.bytes += u64::from(segment.payload_bytes);
            self.largest_payload = self.largest_payload.max(segment.payload_bytes);
            self.last_is_partial = !segment.payload_bytes.is_multiple_of(self.mss_bytes.max(1));
            self.first_data_ns.get_or_insert(now_ns);
            self.last_data_ns = now_ns;
            self.is_answering = false;
        }
        self.last_sent_ns = now_ns;
        let flight = self.flight();
        (self.peak_flight, self.round_peak) = (self.peak_flight.max(flight), self.round_peak.max(flight));
    }
    /// New data ends a wait; why there was one follows from what came before it.
    fn name_the_wait(&mut self, segment: &Segment, now_ns: u64, context: &Context<'_>) {
        // What the path between capture and sender varies by.
        let near_ns = context.near.least_ns().unwrap_or(0);
        let varies_ns = near_ns / 8 + context.near.current_ns().saturating_sub(near_ns);
        let release_ns = (context.rtt_ns() / 16).clamp(LEAST_RELEASE_NS, MOST_RELEASE_NS)
            + varies_ns.min(2 * MOST_RELEASE_NS);
        let since_progress = now_ns.saturating_sub(self.progress_ns);
        let is_released = self.progress_ns >= self.last_sent_ns && since_progress <= release_ns;
        let is_all_acknowledged = self.flight() == 0;
        let gap_ns = now_ns.saturating_sub(self.last_sent_ns.max(self.progress_ns));
        let flight = if is_all_acknowledged && self.last_is_partial && is_released && self.progress_is_pure {
            if self.progress_is_delayed { Cause::NagleDelayedAck } else { Cause::Nagle }
        } else if is_all_acknowledged && (!is_released || !self.progress_is_pure || self.last_is_partial) {
            Cause::AwaitingAcknowledgment
        } else if self.last_is_partial {
            // A partial segment left, so that nothing more was there to send.
            Cause::ApplicationIdle
        } else if is_released || self.is_slow_start {
            self.limit(context)
        } else if context.has_standing_queue(self.peak_rate.is_at_peak()) {
            Cause::BottleneckRate
        } else if gap_ns <= context.rtt_ns().max(LEAST_RELEASE_NS) {
            Cause::Pacing
        } else {
            Cause::ApplicationIdle
        };
        let is_end = segment.payload_bytes == 0;
        let idle = if self.is_answering && !is_end {
            Cause::ThinkTime
        } else if !self.last_is_partial && gap_ns <= context.rtt_ns() && context.has_queue_at_sender() {
            // The rest waits before the place of the capture.
            Cause::BottleneckRate
        } else {
            Cause::ApplicationIdle
        };
        let hole = self.limit(context);
        self.account.settle(Meaning { flight, idle, hole }, (self.last_frame, segment.frame));
    }
    /// Whether new data begins a slow start after an idle time.
    fn restarts(&mut self, now_ns: u64, context: &Context<'_>) {
        let idle_ns = now_ns.saturating_sub(self.last_sent_ns);
        let initial = INITIAL_WINDOW_SEGMENTS * self.mss();
        if self.flight() == 0
            && self.last_sent_ns > 0
            && idle_ns > LEAST_RTO_NS + context.rtt_ns()
            && self.peak_flight > 2 * initial
        {
            (self.is_slow_start, self.is_restart) = (true, true);
            (self.previous_peak, self.round_peak, self.flat_rounds) = (0, 0, 0);
            self.round_end = self.next;
        } else if self.is_restart && self.previous_peak == 0 && self.flight() > initial * 3 / 2 {
            self.leaves_slow_start();
        }
    }

    /// A frame of the peer passes: it counts when the sender has it.
    pub(crate) fn passes(
        &mut self,
        segment: &Segment,
        scale: Option<u8>,
        now_ns: u64,
        context: &mut Context<'_>,
    ) -> Option<(u64, bool)> {
        let acknowledgment =
            segment.flags.ack().then(|| self.numbers.relative(segment.acknowledgment, false));
        let shift = if segment.flags.syn() { 0 } else { scale.unwrap_or(0) };
        let window_bytes = u64::from(segment.window) << shift;
        let delay_ns = context.near.least_ns().unwrap_or(0);
        let at_ns = self.incoming.back().map_or(0, |last| last.at_ns).max(now_ns + delay_ns);
        self.catch_up(now_ns, context);
        if self.incoming.len() == MAX_INCOMING
            && let Some(first) = self.incoming.pop_front()
        {
            self.receive(&first, first.at_ns.min(now_ns), context);
        }
        self.incoming.push_back(Incoming {
            at_ns,
            seen_ns: now_ns,
            segment: *segment,
            acknowledgment,
            window_bytes,
        });
        // A sample of the round trip to the receiver.
        let acknowledgment = acknowledgment?;
        let is_progress = acknowledgment > self.passed_acknowledged;
        let was_hole = self.passed_hole;
        self.passed_hole = !segment.options.sack.is_empty() || !is_progress && segment.payload_bytes == 0;
        let acknowledged = Some(acknowledgment).filter(|_| is_progress)?;
        let bytes = acknowledged - self.passed_acknowledged;
        self.passed_acknowledged = acknowledged;
        if was_hole {
            self.peak_rate.begins_anew();
        }
        self.peak_rate.acknowledged(bytes as u64, now_ns, context.least_rtt_ns());
        let (sent_ns, is_first) = self.outstanding.sent_at(acknowledged)?;
        // A receiver whose application does not read delays its acknowledgments, too.
        let is_reading = 2 * window_bytes >= self.largest_window_bytes;
        // What is acknowledged when a hole closes had arrived before.
        (is_first && !was_hole)
            .then(|| (now_ns.saturating_sub(sent_ns), is_reading && bytes >= 2 * self.mss()))
    }
    /// Takes what the sender has by now.
    pub(crate) fn catch_up(&mut self, now_ns: u64, context: &mut Context<'_>) {
        while let Some(first) = self.incoming.front()
            && first.at_ns <= now_ns
        {
            let first = *first;
            self.incoming.pop_front();
            self.receive(&first, first.at_ns, context);
        }
    }
    fn receive(&mut self, incoming: &Incoming, now_ns: u64, context: &mut Context<'_>) {
        self.advance(now_ns);
        let segment = &incoming.segment;
        let frames = (self.last_frame, segment.frame);
        if segment.flags.rst() {
            self.is_reset = true;
            self.account.progress(frames);
            return;
        }
        if let Some(acknowledgment) = incoming.acknowledgment {
            self.receive_acknowledgment(incoming, acknowledgment, now_ns, context);
        }
        if segment.payload_bytes > 0 {
            // The peer's application spoke: until now it was its turn.
            self.account.settle_idle(Cause::AwaitingPeer, frames);
            self.is_answering = true;
        }
    }
    fn receive_acknowledgment(
        &mut self,
        incoming: &Incoming,
        number: i64,
        now_ns: u64,
        context: &mut Context<'_>,
    ) {
        let segment = &incoming.segment;
        if number > self.next {
            // A window probe's byte may be acknowledged before it counts.
            if self.next > 0 && number > self.next + 1 {
                self.evidence.mark(Sign::CaptureGap, segment.frame);
            }
            self.next = number;
        }
        if !self.is_established && number > 0 && self.is_answerer {
            self.account.progress((self.last_frame, segment.frame));
            self.is_established = true;
        }
        self.receive_sack(segment, number, now_ns);
        if number > self.acknowledged {
            self.progresses(incoming, number, now_ns, context);
        } else if number == self.acknowledged && self.flight() > 0 {
            let is_duplicate = segment.payload_bytes == 0
                && incoming.window_bytes == self.window_bytes
                && !segment.flags.syn()
                && !segment.flags.fin();
            if is_duplicate && self.acknowledged > 0 {
                self.duplicate_acks += 1;
                self.last_evidence_ns = now_ns;
                let most = 100 + 2 * (self.flight() / self.mss());
                if i64::from(self.duplicate_acks) > most {
                    self.evidence.mark(Sign::DuplicateAckStorm, segment.frame);
                }
            }
        }
        if number >= self.acknowledged {
            self.window_bytes = incoming.window_bytes;
            self.largest_window_bytes = self.largest_window_bytes.max(self.window_bytes);
            let edge = number + self.window_bytes as i64;
            match edge - std::mem::replace(&mut self.edge, edge) {
                step if step >= self.mss() => self.small_steps = 0,
                1.. => self.small_steps = self.small_steps.saturating_add(1),
                _ => {}
            }
            self.furthest_edge = self.furthest_edge.max(self.edge);
            if self.window_bytes == 0 && self.is_window_known && !self.has_fin {
                self.evidence.mark(Sign::ZeroWindow, segment.frame);
            }
        }
    }
    fn receive_sack(&mut self, segment: &Segment, number: i64, now_ns: u64) {
        let blocks = &segment.options.sack;
        for (index, &(start, end)) in blocks.iter().enumerate() {
            let (start, end) = (self.numbers.near(start.0), self.numbers.near(end.0));
            let outer = blocks.iter().nth(1).map(|&(a, b)| (self.numbers.near(a.0), self.numbers.near(b.0)));
            let is_inside = outer.is_some_and(|(from, to)| from <= start && end <= to && index == 0);
            if index == 0 && (end <= number || is_inside) {
                // RFC 2883: the first block tells of data that came twice.
                self.is_spurious(start, end, segment.frame);
            } else if start > number && end <= self.next && start < end {
                if self.outstanding.sacked(start, end) {
                    self.last_evidence_ns = now_ns;
                }
                self.has_sacked = true;
                self.highest_sacked = self.highest_sacked.max(end);
            }
        }
    }
    fn progresses(&mut self, incoming: &Incoming, number: i64, now_ns: u64, context: &mut Context<'_>) {
        let segment = &incoming.segment;
        let frames = (self.last_frame, segment.frame);
        let bytes = number - self.acknowledged;
        if bytes >= STRETCH_SEGMENTS * self.mss() && self.acknowledged > 1 {
            self.evidence.mark(Sign::StretchAcks, segment.frame);
        }
        let echo = segment.options.timestamps.map(|(_, echo)| echo);
        let (mut is_original, mut sent_ns, mut largest) = (None, None, 0);
        self.outstanding.acknowledged(number, context.budget, |sent| {
            sent_ns = Some(sent.last_ns);
            if sent.copies == 1 {
                largest = largest.max((sent.end - sent.start) as u32);
            }
            // RFC 3522: the echo is older than the retransmission, so the original had arrived.
            if sent.copies > 1
                && let Some(echo) = echo
                && (echo.wrapping_sub(sent.stamp) as i32) < 0
            {
                is_original = Some((sent.start, sent.end));
            }
        });
        self.largest_acknowledged_payload = self.largest_acknowledged_payload.max(largest);
        if let Some((start, end)) = is_original {
            self.is_spurious(start, end, segment.frame);
        }
        let missing = self.outstanding.drop_holes(number);
        (0..missing.min(1)).for_each(|_| self.evidence.mark(Sign::CaptureGap, segment.frame));
        self.account.progress(frames);
        let taken_ns = sent_ns.map_or(0, |at| incoming.seen_ns.saturating_sub(at));
        self.progress_is_delayed = taken_ns > context.far.least_ns().unwrap_or(0) + DELAYED_ACK_NS;
        (self.progress_ns, self.progress_is_pure) = (now_ns, segment.payload_bytes == 0);
        self.acknowledged = number;
        self.recovers(number, context);
        let was_hole = self.has_sacked || self.duplicate_acks > 0;
        self.duplicate_acks = 0;
        self.has_sacked &= self.highest_sacked > number;
        if was_hole && !self.has_sacked && self.recovery.is_none() {
            // The hole closed. Nothing was sent again, or the recovery has named its time.
            let cause = self.limit(context);
            if !self.is_repaired {
                self.evidence.mark(Sign::Reordering, segment.frame);
            }
            self.is_repaired = false;
            self.account.settle_hole(cause, frames);
        }
        self.ends_round(number);
    }
    /// The window grows by half and more in each round of slow start.
    fn ends_round(&mut self, number: i64) {
        if number < self.round_end || self.next <= self.round_end {
            return;
        }
        self.round_end = self.next;
        let has_grown = self.round_peak > self.previous_peak + self.previous_peak / 5;
        self.flat_rounds = if has_grown { 0 } else { self.flat_rounds.saturating_add(1) };
        if self.flat_rounds >= 2 {
            self.leaves_slow_start();
        }
        self.previous_peak = self.previous_peak.max(self.round_peak);
        self.round_peak = self.flight();
    }
    /// The capture, or the connection, ends.
    pub(crate) fn finish(&mut self, now_ns: u64, context: &mut Context<'_>) {
        self.catch_up(now_ns, context);
        while let Some(last) = self.incoming.pop_front() {
            self.receive(&last, now_ns, context);
        }
        self.advance(now_ns);
        let idle = if self.bytes == 0 { Cause::AwaitingPeer } else { Cause::ApplicationIdle };
        let meaning = Meaning { flight: Cause::AwaitingAcknowledgment, idle, hole: Cause::FastRecovery };
        self.account.settle(meaning, (self.last_frame, self.last_frame));
        self.recent.end_episode(&mut self.evidence);
        self.judge_recovery();
        self.outstanding.clear(context.budget);
        self.incoming = VecDeque::new();
    }
}
