//! What a sender receives: acknowledgments, windows and the peer's data, held back until they reach it.

use super::context::Context;
use super::direction::Direction;
use super::outstanding::shrink;
use super::steady::WINDOW;
use crate::capture::Segment;
use crate::cause::{Cause, Sign};

/// Frames of the peer that are held back at once, in one direction and in all; so many may be whatever the others do.
const MAX_INCOMING: usize = 4096;
const MAX_INCOMING_IN_ALL: usize = 200_000;
const LEAST_INCOMING: usize = 4;
/// An acknowledgment that takes so much longer than the least was delayed on purpose.
pub(crate) const DELAYED_ACK_NS: u64 = 15_000_000;
/// Bytes from which an acknowledgment is called stretched, in segments.
const STRETCH_SEGMENTS: i64 = 4;
/// Rounds without growth after which slow start is over.
const FLAT_ROUNDS: u8 = 3;

/// A frame of the peer, as the sender gets it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Incoming {
    /// When it counts.
    pub(super) at_ns: u64,
    /// When it passed.
    pub(super) seen_ns: u64,
    pub(super) segment: Segment,
    /// The acknowledgment, relative.
    pub(super) acknowledgment: Option<i64>,
    pub(super) window_bytes: u64,
}

impl Direction {
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
        self.window_grain = 1 << shift;
        let delay_ns = context.near.least_ns().unwrap_or(0);
        let at_ns = self.incoming.back().map_or(0, |last| last.at_ns).max(now_ns + delay_ns);
        self.catch_up(now_ns, 0, context);
        let is_full = context.budget.waiting >= MAX_INCOMING_IN_ALL && self.incoming.len() >= LEAST_INCOMING;
        if (is_full || self.incoming.len() >= MAX_INCOMING)
            && let Some(first) = self.incoming.pop_front()
        {
            context.budget.waiting -= 1;
            self.receive(&first, first.at_ns.min(now_ns), context);
        }
        context.budget.waiting += 1;
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
        for &(_, end) in segment.options.sack.iter() {
            self.passed_sacked = self.passed_sacked.max(self.numbers.near(end.0));
        }
        let was_hole = self.passed_hole || acknowledgment <= self.passed_sacked;
        self.passed_hole = !segment.options.sack.is_empty() || !is_progress && segment.payload_bytes == 0;
        let acknowledged = Some(acknowledgment).filter(|_| is_progress)?;
        let bytes = acknowledged - self.passed_acknowledged;
        self.passed_acknowledged = acknowledged;
        if was_hole {
            self.peak_rate.begins_anew();
        } else {
            self.merged.add(bytes as u64);
        }
        self.peak_rate.acknowledged(bytes as u64, now_ns, context.least_rtt_ns());
        let (sent_ns, is_first) = self.outstanding.sent_at(acknowledged)?;
        // A receiver whose application does not read delays its acknowledgments, too, and then one is for all that came.
        let is_reading = 2 * window_bytes >= self.round_window.max(self.previous_window);
        let is_some = bytes <= STRETCH_SEGMENTS * self.mss() || 2 * bytes <= self.flight();
        // What is acknowledged when a hole closes had arrived before.
        (is_first && !was_hole)
            .then(|| (now_ns.saturating_sub(sent_ns), is_reading && is_some && bytes >= 2 * self.mss()))
    }
    /// Takes what the sender has by now, or `early_ns` before it is expected to.
    pub(crate) fn catch_up(&mut self, now_ns: u64, early_ns: u64, context: &mut Context<'_>) {
        while let Some(first) = self.incoming.front()
            && first.at_ns <= now_ns + early_ns
        {
            let first = *first;
            self.incoming.pop_front();
            context.budget.waiting -= 1;
            self.receive(&first, first.at_ns.min(now_ns), context);
        }
        shrink(&mut self.incoming);
    }
    /// A segment that echoes a timestamp shows that its sender has what came with it.
    pub(super) fn echoes(&mut self, echo: u32, now_ns: u64, context: &mut Context<'_>) {
        while let Some(first) = self.incoming.front()
            && first
                .segment
                .options
                .timestamps
                .is_some_and(|(stamp, _)| (echo.wrapping_sub(stamp) as i32) >= 0)
        {
            let first = *first;
            self.incoming.pop_front();
            context.budget.waiting -= 1;
            self.receive(&first, now_ns, context);
        }
    }
    pub(super) fn receive(&mut self, incoming: &Incoming, now_ns: u64, context: &mut Context<'_>) {
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
            (self.window_bytes, self.has_window) = (incoming.window_bytes, true);
            self.largest_window_bytes = self.largest_window_bytes.max(self.window_bytes);
            self.round_window = self.round_window.max(self.window_bytes);
            let edge = number + self.window_bytes as i64;
            match edge - std::mem::replace(&mut self.edge, edge) {
                step if step >= self.mss() => self.small_steps = 0,
                // A reader that has stopped lets a large window shrink by steps, too, and what the scale cuts off is not a step.
                step if step >= self.window_grain && (self.window_bytes as i64) < self.mss() => {
                    self.small_steps = self.small_steps.saturating_add(1);
                }
                _ => {}
            }
            self.furthest_edge = self.furthest_edge.max(self.edge);
            if self.is_shut() && !self.has_fin {
                self.evidence.mark(Sign::ZeroWindow, segment.frame);
            }
        }
    }
    fn receive_sack(&mut self, segment: &Segment, number: i64, now_ns: u64) {
        let blocks = &segment.options.sack;
        for (index, &(start, end)) in blocks.iter().enumerate() {
            let (start, end) = (self.numbers.near(start.0), self.numbers.near(end.0));
            let outer = blocks.get(1).map(|&(a, b)| (self.numbers.near(a.0), self.numbers.near(b.0)));
            let is_inside = outer.is_some_and(|(from, to)| from <= start && end <= to && index == 0);
            if index == 0 && (end <= number || is_inside) {
                // RFC 2883: the first block tells of data that came twice.
                self.is_spurious(start, end);
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
            self.had_arrived(start, end);
        }
        let missing = self.outstanding.drop_holes(number);
        (0..missing.min(1)).for_each(|_| self.evidence.mark(Sign::CaptureGap, segment.frame));
        self.account.progress(frames);
        let taken_ns = sent_ns.map_or(0, |at| incoming.seen_ns.saturating_sub(at));
        self.progress_is_delayed = taken_ns > context.far.least_ns().unwrap_or(0) + DELAYED_ACK_NS;
        let path_ns = sent_ns.and_then(|at| context.far.expected_ns(at));
        self.kept_ns = path_ns.filter(|_| number >= self.next).map_or(0, |ns| taken_ns.saturating_sub(ns));
        (self.progress_ns, self.progress_is_pure) = (now_ns, segment.payload_bytes == 0);
        self.acknowledged = number;
        self.recovers(number, context);
        let was_hole = self.has_sacked || self.duplicate_acks > 0;
        self.duplicate_acks = 0;
        self.has_sacked &= self.highest_sacked > number;
        if was_hole && !self.has_sacked && self.recovery.is_none() {
            // The hole closed. Nothing was sent again, or the recovery has named its time.
            let is_window_full = self.is_window_known && self.is_full() && !self.has_queue;
            let cause = if is_window_full { Cause::ReceiverWindow } else { self.limit(context) };
            if !self.is_repaired {
                self.evidence.mark(Sign::Reordering, segment.frame);
            }
            self.is_repaired = false;
            self.account.settle_hole(cause, frames);
        }
        self.ends_round(number, context);
    }
    /// The window grows by half and more in each round of slow start.
    fn ends_round(&mut self, number: i64, context: &Context<'_>) {
        if number < self.round_end || self.next <= self.round_end {
            return;
        }
        self.round_end = self.next;
        (self.previous_window, self.round_window) = (self.round_window, self.window_bytes);
        let has_grown = self.round_peak > self.previous_peak + self.previous_peak / 5;
        let window_ns = self.window_ns();
        if let Some(times_ns) = self.steady.round(self.round_peak, self.mss(), window_ns) {
            // The window never limited, from the first round on.
            for (cause, ns) in WINDOW.into_iter().zip(times_ns) {
                if cause != Cause::CongestionWindow || !context.is_beside_sender() {
                    self.account.reassign(cause, Cause::Pacing, ns);
                }
            }
        }
        self.flat_rounds = if has_grown { 0 } else { self.flat_rounds.saturating_add(1) };
        if self.flat_rounds >= FLAT_ROUNDS && self.is_slow_start {
            self.leaves_slow_start();
        }
        self.previous_peak = self.previous_peak.max(self.round_peak);
        self.round_peak = self.flight();
    }
}
