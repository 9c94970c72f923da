//! One direction of a connection: what its sender did, and what it knew when it did it.
//!
//! The capture may have been taken anywhere, so each frame from the peer is held back by the round trip between the
//! place of the capture and the sender: it counts when the sender's answer to it passes the place of the capture.

use std::collections::VecDeque;

use super::context::Context;
use super::evidence::Evidence;
use super::outstanding::{Hole, Outstanding, Sent};
use super::receive::Incoming;
use super::recovery::{Recent, Recovery};
use super::sequence::Unwrapper;
use super::steady::{Steady, WINDOW, WindowTimes};
use crate::account::{Account, Meaning, Row};
use crate::capture::Segment;
use crate::cause::{Cause, Sign};

/// Segment size while nothing tells it.
const USUAL_MSS_BYTES: u32 = 1448;
/// A smaller payload is not taken for that of a full segment while nothing tells the size.
const LEAST_MSS_BYTES: u32 = 536;
/// Initial window in segments (RFC 6928).
const INITIAL_WINDOW_SEGMENTS: i64 = 10;
/// Idle time after which a window is reduced: the least retransmission timeout of Linux.
const LEAST_RTO_NS: u64 = 200_000_000;
/// Data that leaves so soon after an acknowledgment was released by it.
const LEAST_RELEASE_NS: u64 = 200_000;
const MOST_RELEASE_NS: u64 = 2_000_000;
/// The most where the capture is beside the sender.
const BESIDE_RELEASE_NS: u64 = 500_000;
/// Steps of less than a segment by which a window is called silly.
const SILLY_STEPS: u32 = 2;
/// A window of less than this part of the largest is filled with unread data.
const FILLING_PART: u64 = 2;
/// A smaller window makes the receiver delay its acknowledgments, which looks like a queue.
const LEAST_QUEUE_SEGMENTS: i64 = 8;
/// Segments that a receiver acknowledges at once.
const MERGED_SEGMENTS: u64 = 3;
/// What a pacer sends at once takes this time at its rate at most.
const LONGEST_QUANTUM_NS: u64 = 30_000_000;

#[derive(Clone, Debug)]
pub(crate) struct Direction {
    pub(crate) account: Account,
    pub(crate) evidence: Evidence,
    pub(crate) numbers: Unwrapper,
    pub(super) outstanding: Outstanding,
    pub(super) incoming: VecDeque<Incoming>,
    pub(super) recent: Recent,
    pub(super) recovery: Option<Recovery>,
    /// Next number to be sent, the oldest unacknowledged one as the sender knows it, and as it passed.
    pub(crate) next: i64,
    pub(super) acknowledged: i64,
    pub(super) passed_acknowledged: i64,
    /// The last acknowledgment that passed told of a hole, or was a duplicate.
    pub(super) passed_hole: bool,
    /// The highest number that was acknowledged selectively.
    pub(super) passed_sacked: i64,
    /// Right edge of the window, as the sender knows it, and the furthest so far.
    pub(super) edge: i64,
    pub(super) furthest_edge: i64,
    /// How often in a row the window opened by less than a segment.
    pub(super) small_steps: u32,
    pub(super) window_bytes: u64,
    /// Windows are multiples of it.
    pub(super) window_grain: i64,
    pub(crate) largest_window_bytes: u64,
    /// Time that the window limited, and its sizes times their time.
    limited_ns: u64,
    limited_window: u128,
    /// Its scale is known.
    pub(crate) is_window_known: bool,
    /// The peer advertised one.
    pub(super) has_window: bool,
    pub(crate) mss_bytes: u32,
    /// The handshake told it.
    pub(super) is_mss_known: bool,
    pub(super) is_established: bool,
    pub(super) is_answerer: bool,
    pub(crate) has_fin: bool,
    pub(super) fin_end: i64,
    pub(super) is_reset: bool,
    pub(crate) syns: u32,
    /// Data of the peer came later than our own last data.
    pub(super) is_answering: bool,
    pub(super) last_sent_ns: u64,
    pub(super) last_frame: u64,
    pub(super) last_is_partial: bool,
    /// The last acknowledgment of new data: when, whether without data, how long after its data, its frame.
    pub(super) progress_ns: u64,
    pub(super) progress_is_pure: bool,
    pub(super) progress_is_delayed: bool,
    /// How long the receiver kept the acknowledgment of all that was sent, beyond the path's round trip.
    pub(super) kept_ns: u64,
    pub(super) has_sacked: bool,
    pub(super) highest_sacked: i64,
    pub(super) duplicate_acks: u32,
    pub(super) last_evidence_ns: u64,
    /// Something was sent again since the hole appeared.
    pub(super) is_repaired: bool,
    pub(super) round_end: i64,
    pub(super) round_peak: i64,
    /// Largest window of this round, and of the last.
    pub(super) round_window: u64,
    pub(super) previous_window: u64,
    /// Newest timestamp that was sent.
    pub(super) latest_stamp: Option<u32>,
    pub(super) previous_peak: i64,
    pub(super) flat_rounds: u8,
    pub(super) steady: Steady,
    /// What it was before the idle time that may have reduced the window.
    steady_before: Steady,
    pub(super) is_slow_start: bool,
    /// A queue stands on the path.
    pub(super) has_queue: bool,
    /// One stood already in this slow start.
    had_queue: bool,
    pub(super) is_restart: bool,
    pub(crate) peak_flight: i64,
    pub(super) largest_acknowledged_payload: u32,
    pub(super) largest_payload: u32,
    pub(crate) bytes: u64,
    pub(crate) segments: u64,
    pub(crate) peak_rate: super::rate::PeakRate,
    /// Bytes of the last acknowledgments: what is acknowledged at once waited for each other.
    pub(super) merged: super::latest::Latest,
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
            passed_sacked: 0,
            edge: 0,
            furthest_edge: 0,
            small_steps: 0,
            window_bytes: 0,
            window_grain: 1,
            largest_window_bytes: 0,
            limited_ns: 0,
            limited_window: 0,
            is_window_known: false,
            has_window: false,
            mss_bytes: USUAL_MSS_BYTES,
            is_mss_known: false,
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
            kept_ns: 0,
            has_sacked: false,
            highest_sacked: 0,
            duplicate_acks: 0,
            last_evidence_ns: 0,
            is_repaired: false,
            round_end: 0,
            round_peak: 0,
            round_window: 0,
            previous_window: 0,
            latest_stamp: None,
            previous_peak: 0,
            flat_rounds: 0,
            steady: Steady::default(),
            steady_before: Steady::default(),
            is_slow_start: true,
            has_queue: false,
            had_queue: false,
            is_restart: false,
            peak_flight: 0,
            largest_acknowledged_payload: 0,
            largest_payload: 0,
            bytes: 0,
            segments: 0,
            peak_rate: Default::default(),
            merged: Default::default(),
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
    /// The mean window while it limited, in bytes.
    pub(crate) fn limiting_window_bytes(&self) -> u64 {
        (self.limited_window / u128::from(self.limited_ns.max(1))) as u64
    }
    pub(super) fn mss(&self) -> i64 {
        i64::from(self.mss_bytes.max(1))
    }
    /// Whether a segment is not full, or a run of segments not all full. Without the handshake one is full that is as large as
    /// the largest so far, or as segments usually are.
    fn is_partial(&self, payload_bytes: u32) -> bool {
        match self.is_mss_known {
            true => !payload_bytes.is_multiple_of(self.mss_bytes.max(1)),
            false => payload_bytes < self.largest_payload.clamp(LEAST_MSS_BYTES, self.mss_bytes),
        }
    }
    /// Whether a segment is what a small write leaves: less than a full one, and than those of most paths.
    fn is_short(&self, payload_bytes: u32) -> bool {
        payload_bytes < self.mss_bytes.min(USUAL_MSS_BYTES) && self.is_partial(payload_bytes)
    }
    /// Segments that data of this direction takes, or that were captured if these are more: a frame may hold several.
    pub(crate) fn whole_segments(&self) -> u64 {
        self.segments.max(self.bytes / u64::from(self.mss_bytes.max(1)))
    }
    /// The peer's window has less room than a sender uses: a segment or half of the largest window, whichever is smaller
    /// (RFC 9293 §3.8.6.2.1), or an eighth of the window.
    pub(super) fn is_full(&self) -> bool {
        let least = self.mss().min(self.largest_window_bytes as i64 / 2);
        self.edge - self.next < least.max(self.window_bytes as i64 / 8)
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
        if self.is_shut() && self.next + self.mss() > self.furthest_edge {
            return Row::Known(Cause::ZeroWindow);
        }
        if flight == 0 && usable >= self.mss().min(self.largest_window_bytes as i64) {
            return Row::Idle;
        }
        if self.has_sacked || self.duplicate_acks > 0 {
            return Row::Hole;
        }
        if self.is_window_known && self.is_full() {
            let is_tiny = (self.window_bytes as i64) < self.mss();
            let is_small = is_tiny && self.largest_window_bytes as i64 >= 2 * self.mss();
            let is_filling = self.window_bytes < self.round_window.max(self.previous_window) / FILLING_PART;
            return Row::Known(match (is_small, is_filling) {
                _ if is_tiny && self.small_steps >= SILLY_STEPS => Cause::SillyWindow,
                // Unread data takes most of the window.
                (true, _) | (_, true) => Cause::ZeroWindow,
                // A larger window would only make the queue longer.
                (false, false) if self.has_queue => Cause::BottleneckRate,
                (false, false) => Cause::ReceiverWindow,
            });
        }
        if flight == 0 { Row::Idle } else { Row::Flight }
    }
    pub(super) fn advance(&mut self, now_ns: u64) {
        let row = self.row();
        let passed_ns = self.account.advance(now_ns, row);
        if row == Row::Known(Cause::ReceiverWindow) && self.has_window {
            self.limited_ns += passed_ns;
            self.limited_window += u128::from(self.window_bytes) * u128::from(passed_ns);
        }
    }
    /// What a full congestion window means now.
    pub(super) fn limit(&self, context: &Context<'_>) -> Cause {
        if self.sees_queue(context) {
            Cause::BottleneckRate
        } else if !self.is_slow_start && self.steady.is_paced() && !context.is_beside_sender() {
            Cause::Pacing
        } else if !self.is_slow_start {
            Cause::CongestionWindow
        } else if self.is_restart {
            Cause::SlowStartRestart
        } else {
            Cause::SlowStart
        }
    }
    /// Whether the window is not what limits, because what it allows stands in a queue.
    fn looks_for_queue(&mut self, context: &Context<'_>) {
        let has_room = self.window_bytes as i64 >= LEAST_QUEUE_SEGMENTS * self.mss();
        self.has_queue = has_room && self.sees_queue(context);
        if self.has_queue && self.is_slow_start && !self.had_queue {
            // The queue has stood for the round trip in which it was measured.
            self.account.reassign(Cause::SlowStart, Cause::BottleneckRate, context.least_rtt_ns());
            self.had_queue = true;
        }
    }
    /// A queue stands on the path: round trips are longer than the least by a part of it, and by more than a receiver
    /// delays acknowledgments to merge them. A smaller part counts while data arrives as fast as it ever did.
    fn sees_queue(&self, context: &Context<'_>) -> bool {
        let part = if self.peak_rate.is_at_peak() { 20 } else { 4 };
        let merged = (MERGED_SEGMENTS * u64::from(self.mss_bytes)).max(self.merged.largest());
        let merged_ns = self.peak_rate.time_ns(merged);
        context.is_longer_by((context.least_rtt_ns() / part).max(merged_ns), self.steady.gap_ns())
    }
    /// Time of the causes of [`steady::WINDOW`](super::steady::WINDOW).
    pub(super) fn window_ns(&self) -> WindowTimes {
        WINDOW.map(|cause| self.account.of(cause))
    }
    pub(super) fn leaves_slow_start(&mut self) {
        (self.is_slow_start, self.is_restart) = (false, false);
    }

    /// A frame of this direction's sender passes.
    pub(crate) fn sent(&mut self, segment: &Segment, now_ns: u64, context: &mut Context<'_>) {
        self.catch_up(now_ns, context.early_ns(), context);
        if let Some((_, echo)) = segment.options.timestamps {
            self.echoes(echo, now_ns, context);
        }
        self.advance(now_ns);
        self.looks_for_queue(context);
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
        } else if start < self.next && self.next > 0 && self.is_late(segment) {
            // An original that others overtook.
            self.evidence.mark(Sign::Reordering, segment.frame);
            self.outstanding.fill(start, start + length);
            self.is_spurious(start, start + length);
        } else if start < self.next && self.next > 0 {
            self.sent_again(segment, start, start + length, now_ns, context);
            self.next = self.next.max(start + length);
        } else {
            self.sent_new(segment, start, start + length, now_ns, context);
        }
        if let Some((stamp, _)) = segment.options.timestamps
            && !self.is_late(segment)
        {
            self.latest_stamp = Some(stamp);
        }
        self.last_frame = segment.frame;
    }
    /// Whether the timestamp is older than one that was sent before.
    fn is_late(&self, segment: &Segment) -> bool {
        let stamp = segment.options.timestamps.map(|(stamp, _)| stamp);
        matches!((stamp, self.latest_stamp), (Some(stamp), Some(latest)) if (stamp.wrapping_sub(latest) as i32) < 0)
    }
    fn sent_syn(&mut self, segment: &Segment, end: i64, now_ns: u64) {
        self.syns += 1;
        self.is_answerer = segment.flags.ack();
        if let Some(cause) = self.syn_wait() {
            let sign =
                if cause == Cause::AcceptQueue { Sign::AcceptQueueFull } else { Sign::SynRetransmission };
            self.evidence.mark(sign, segment.frame);
            self.account.seize(cause, (self.last_frame, segment.frame));
        }
        (self.next, self.last_sent_ns) = (self.next.max(end), now_ns);
    }
    /// What the last SYN's retransmission says that was waited for.
    pub(super) fn syn_wait(&self) -> Option<Cause> {
        let is_ignored = self.is_answerer && (self.is_established || self.acknowledged > 0);
        let cause = if is_ignored { Cause::AcceptQueue } else { Cause::SynLoss };
        (self.syns > 1).then_some(cause)
    }
    /// The peer sent its SYN again: until now this direction waited for the same.
    pub(super) fn peer_sent_syn(&mut self, peer: Option<Cause>, frame: u64, now_ns: u64) {
        self.advance(now_ns);
        if let Some(cause) = peer.filter(|_| !self.is_established) {
            self.account.seize(cause, (self.last_frame, frame));
        }
    }
    /// No new data: an acknowledgment, or a probe of an idle connection or of a closed window.
    fn sent_probe(&mut self, segment: &Segment, start: i64) {
        if start < self.next && self.flight() == 0 && start + 1 == self.next && !segment.flags.fin() {
            self.evidence
                .mark(if self.is_shut() { Sign::WindowProbe } else { Sign::KeepAlive }, segment.frame);
        }
    }
    /// Whether the peer's window is 0, which needs no scale.
    pub(super) fn is_shut(&self) -> bool {
        self.has_window && self.window_bytes == 0
    }
    /// Whether the window is closed before `end`, so that sending it is a probe.
    pub(super) fn is_shut_beyond(&self, end: i64) -> bool {
        self.is_shut() && end > self.edge
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
        self.steady.sends(now_ns.saturating_sub(self.last_sent_ns), context.rtt_ns(), self.flight() > 0);
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
            self.last_is_partial = self.is_partial(segment.payload_bytes);
            (self.is_answering, self.kept_ns) = (false, 0);
        }
        self.last_sent_ns = now_ns;
        let flight = self.flight();
        (self.peak_flight, self.round_peak) = (self.peak_flight.max(flight), self.round_peak.max(flight));
    }
    /// New data ends a wait; why there was one follows from what came before it.
    fn name_the_wait(&mut self, segment: &Segment, now_ns: u64, context: &Context<'_>) {
        let near_ns = context.near.least_ns().unwrap_or(0);
        let release_ns = (context.rtt_ns() / 16).clamp(LEAST_RELEASE_NS, MOST_RELEASE_NS);
        let release_ns = if context.is_beside_sender() {
            release_ns.min(BESIDE_RELEASE_NS) + near_ns
        } else {
            // What the path between capture and sender varies by.
            let varies_ns = near_ns / 8 + context.queue_at_sender_ns(self.steady.gap_ns());
            release_ns + varies_ns.min(2 * MOST_RELEASE_NS)
        };
        let since_progress = now_ns.saturating_sub(self.progress_ns);
        let is_released = self.progress_ns >= self.last_sent_ns && since_progress <= release_ns;
        let is_all_acknowledged = self.flight() == 0;
        let gap_ns = now_ns.saturating_sub(self.last_sent_ns.max(self.progress_ns));
        // The end of the stream is held back by nothing.
        let is_end = segment.payload_bytes == 0;
        let is_alone = self.progress_is_pure && !self.is_answering && !is_end;
        // A full segment that is followed soon, and by no acknowledgment's release: more was there to send.
        let since_sent = now_ns.saturating_sub(self.last_sent_ns);
        let is_paced = !self.last_is_partial
            && !is_released
            && !self.is_answering
            && !self.is_slow_start
            && since_sent <= context.rtt_ns() + LONGEST_QUANTUM_NS;
        let flight = if is_all_acknowledged && self.last_is_partial && is_released && is_alone {
            match (self.is_short(segment.payload_bytes), self.progress_is_delayed) {
                (true, true) => Cause::NagleDelayedAck,
                (true, false) => Cause::Nagle,
                // Nagle's algorithm holds no full segment back: the last one took all that the send buffer had.
                (false, _) => self.limit(context),
            }
        } else if is_all_acknowledged && is_paced {
            Cause::Pacing
        } else if is_all_acknowledged && (!is_released || !self.progress_is_pure || self.last_is_partial) {
            Cause::AwaitingAcknowledgment
        } else if self.last_is_partial {
            // A partial segment left, so that nothing more was there to send.
            Cause::ApplicationIdle
        } else if is_released || self.is_slow_start || self.recent.count > 0 {
            // A pacer that spreads a window which losses set is no limit of its own.
            self.limit(context)
        } else if self.sees_queue(context) {
            Cause::BottleneckRate
        } else if gap_ns <= context.rtt_ns().max(LEAST_RELEASE_NS) {
            Cause::Pacing
        } else {
            Cause::ApplicationIdle
        };
        let idle = if self.is_answering && !is_end {
            Cause::ThinkTime
        } else if !self.last_is_partial
            && gap_ns <= context.rtt_ns()
            && context.has_queue_at_sender(self.steady.gap_ns())
        {
            // The rest waits before the place of the capture.
            Cause::BottleneckRate
        } else if is_paced {
            Cause::Pacing
        } else {
            Cause::ApplicationIdle
        };
        let hole = self.limit(context);
        let answer_ns = self.answer_ns(flight);
        self.account.settle(Meaning { flight, answer_ns, idle, hole }, (self.last_frame, segment.frame));
    }
    /// The part of the wait for an acknowledgment that the peer's application took: its answer came next, and a receiver
    /// that has data to send soon sends the acknowledgment with it (RFC 1122 §4.2.3.2).
    fn answer_ns(&self, flight: Cause) -> u64 {
        match flight {
            Cause::AwaitingAcknowledgment if self.is_answering => self.kept_ns,
            _ => 0,
        }
    }
    /// Whether new data begins a slow start after an idle time.
    fn restarts(&mut self, now_ns: u64, context: &Context<'_>) {
        let idle_ns = now_ns.saturating_sub(self.last_sent_ns);
        let initial = INITIAL_WINDOW_SEGMENTS * self.mss();
        if self.flight() == 0
            && self.last_sent_ns > 0
            && idle_ns > LEAST_RTO_NS + context.rtt_ns()
            && self.peak_flight > 2 * initial
            && self.recent.count == 0
        {
            (self.is_slow_start, self.is_restart) = (true, true);
            (self.previous_peak, self.round_peak, self.flat_rounds) = (0, 0, 0);
            self.steady_before = self.steady;
            self.steady.begins_anew(self.window_ns());
            self.had_queue = false;
            self.round_end = self.next;
        } else if self.is_restart
            && self.previous_peak == 0
            && self.flight() > (initial * 3 / 2).max(self.peak_flight / 2)
        {
            // The window was kept, and the flight is compared with that before.
            self.steady = self.steady_before;
            self.leaves_slow_start();
        }
    }

    /// The capture, or the connection, ends.
    pub(crate) fn finish(&mut self, now_ns: u64, context: &mut Context<'_>) {
        self.catch_up(now_ns, 0, context);
        while let Some(last) = self.incoming.pop_front() {
            context.budget.waiting -= 1;
            self.receive(&last, now_ns, context);
        }
        self.advance(now_ns);
        let idle = if self.bytes == 0 { Cause::AwaitingPeer } else { Cause::ApplicationIdle };
        let flight = Cause::AwaitingAcknowledgment;
        let answer_ns = self.answer_ns(flight);
        let meaning = Meaning { flight, answer_ns, idle, hole: Cause::FastRecovery };
        self.account.settle(meaning, (self.last_frame, self.last_frame));
        self.recent.end_episode(&mut self.evidence);
        self.judge_recovery();
        self.outstanding.clear(context.budget);
        self.incoming = VecDeque::new();
    }
}
