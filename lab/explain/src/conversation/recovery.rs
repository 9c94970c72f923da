//! Retransmissions: their kind, whether they were needed, and what it cost.

use std::collections::VecDeque;

use super::context::Context;
use super::direction::Direction;
use super::evidence::Evidence;
use super::outstanding::Before;
use crate::capture::Segment;
use crate::cause::{Cause, Sign};

/// Retransmissions that are remembered until something shows whether they were needed.
const MAX_RECENT: usize = 64;
/// A pause that may be the retransmission timer's.
const LEAST_QUIET_NS: u64 = 150_000_000;
/// Lost segments of one recovery that are called a burst, if half of them are near to each other.
const BURST_SEGMENTS: u32 = 3;
/// Duplicate acknowledgments that tell of a loss (RFC 5681 §3.2).
const DUPLICATE_ACKS: u32 = 3;
/// Segments this small pass everywhere.
const SMALL_BYTES: u32 = 500;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RecoveryKind {
    Fast,
    Timeout,
    Tail,
}

impl RecoveryKind {
    pub(crate) fn cause(self) -> Cause {
        match self {
            RecoveryKind::Fast => Cause::FastRecovery,
            RecoveryKind::Timeout => Cause::Timeout,
            RecoveryKind::Tail => Cause::TailLoss,
        }
    }
    fn sign(self) -> Sign {
        match self {
            RecoveryKind::Fast => Sign::FastRetransmission,
            RecoveryKind::Timeout => Sign::TimeoutRetransmission,
            RecoveryKind::Tail => Sign::TailProbe,
        }
    }
}

/// A recovery under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recovery {
    pub(crate) kind: RecoveryKind,
    /// It ends when this is acknowledged.
    until: i64,
}

#[derive(Clone, Copy, Debug)]
struct Retransmission {
    start: i64,
    end: i64,
    frame: u64,
    kind: RecoveryKind,
    /// Time that its timer took.
    seized_ns: u64,
    is_spurious: bool,
}

/// The last retransmissions, and counts of all.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recent {
    ring: VecDeque<Retransmission>,
    /// Of the recovery under way.
    lost: u32,
    /// Of these, those near to the one before.
    adjacent: u32,
    last_end: i64,
    has_queue: bool,
    first_frame: u64,
    /// In all.
    pub(crate) count: u64,
    pub(crate) needless: u64,
    pub(crate) spurious: u64,
    /// A segment that was lost twice was cut when it was sent again.
    is_cut: bool,
    /// When the timer last made the sender send again.
    timeout_ns: u64,
    /// Spurious after a timeout or by reordering: another fault than the recovery's.
    excused: u64,
}

impl Recent {
    /// A recovery is over: were the losses single or a burst?
    pub(crate) fn end_episode(&mut self, evidence: &mut Evidence) {
        if self.lost > 0 {
            let is_burst = self.lost >= BURST_SEGMENTS && 2 * self.adjacent >= self.lost || self.has_queue;
            evidence.mark(if is_burst { Sign::BurstLoss } else { Sign::RandomLoss }, self.first_frame);
        }
        (self.lost, self.adjacent, self.has_queue) = (0, 0, false);
    }
}

impl Direction {
    /// Data below the next number passes: a retransmission, or a late original.
    pub(super) fn sent_again(
        &mut self,
        segment: &Segment,
        start: i64,
        end: i64,
        now_ns: u64,
        context: &mut Context<'_>,
    ) {
        let frame = segment.frame;
        if self.is_shut_beyond(end) {
            self.evidence.mark(Sign::WindowProbe, frame);
            return;
        }
        let stamp = segment.options.timestamps.map_or(0, |(value, _)| value);
        let unseen_since = self.outstanding.fill(start, end);
        let before = self.outstanding.again(start, end, now_ns, stamp);
        if let Some(since_ns) = unseen_since
            && before.is_none()
            && now_ns.saturating_sub(since_ns) < (context.near.current_ns() + context.far.current_ns()) / 2
        {
            self.evidence.mark(Sign::Reordering, frame);
            return;
        }
        self.recent.count += 1;
        self.is_repaired = true;
        if end <= self.acknowledged || before.is_some_and(|before| before.is_sacked) {
            self.resent_in_vain(end <= self.acknowledged, now_ns, frame, context);
            return;
        }
        let kind = self.kind_of(start, end, now_ns, before.map_or(1, |before| before.copies));
        self.evidence.mark(kind.sign(), frame);
        if kind == RecoveryKind::Timeout {
            self.recent.timeout_ns = now_ns;
        }
        let frames = (before.map_or(frame, |before| before.frame), frame);
        let seized_ns = self.enters_recovery(kind, frames, now_ns, context);
        if before.is_none_or(|before| before.copies == 1) {
            // A queue that is full drops every other segment of slow start.
            let is_near = (0..=2 * self.mss()).contains(&(start - self.recent.last_end));
            self.recent.lost += 1;
            self.recent.adjacent += u32::from(is_near && self.recent.lost > 1);
            self.recent.last_end = end;
        }
        self.looks_for_black_hole(segment, before, kind);
        if self.recent.ring.len() == MAX_RECENT {
            self.recent.ring.pop_front();
        }
        self.recent.ring.push_back(Retransmission { start, end, frame, kind, seized_ns, is_spurious: false });
        self.last_sent_ns = now_ns;
    }
    /// Data is sent again that was received. The sender could know, unless a timer made it send: then the acknowledgment was
    /// lost behind the capture, or on its way.
    fn resent_in_vain(&mut self, is_acknowledged: bool, now_ns: u64, frame: u64, context: &Context<'_>) {
        let since_timeout = now_ns.saturating_sub(self.recent.timeout_ns);
        let is_timeout = self.recent.timeout_ns > 0 && since_timeout <= 2 * context.rtt_ns();
        if is_acknowledged && (is_timeout || self.is_quiet(now_ns)) {
            self.recent.spurious += 1;
            self.recent.excused += 1;
            self.evidence.mark(Sign::SpuriousRetransmission, frame);
        } else {
            self.recent.needless += 1;
            self.evidence.mark(Sign::NeedlessRetransmission, frame);
        }
    }
    /// The time until now was waited for this retransmission; how much a timer took of it.
    fn enters_recovery(
        &mut self,
        kind: RecoveryKind,
        frames: (u64, u64),
        now_ns: u64,
        context: &Context<'_>,
    ) -> u64 {
        let mut seized_ns = 0;
        let is_new_timeout = self.recovery.is_none_or(|recovery| recovery.kind != kind);
        match kind {
            RecoveryKind::Fast => {
                let limit = self.limit(context);
                if self.recovery.is_none() {
                    self.recent.has_queue = limit == Cause::BottleneckRate;
                }
                self.account.settle_hole(Cause::FastRecovery, frames);
            }
            // Within such a recovery what was lost is sent without waiting for a timer.
            _ if is_new_timeout || self.is_quiet(now_ns) => {
                self.recent.has_queue |= self.limit(context) == Cause::BottleneckRate;
                seized_ns = self.account.seize(kind.cause(), frames);
            }
            _ => {}
        }
        if self.recovery.is_none() {
            self.recent.first_frame = frames.1;
            self.leaves_slow_start();
            self.steady.loses(self.window_ns());
        }
        if self.recovery.is_none_or(|recovery| recovery.kind != kind) {
            self.recovery = Some(Recovery { kind, until: self.next });
        }
        seized_ns
    }
    fn is_quiet(&self, now_ns: u64) -> bool {
        let last = self.last_sent_ns.max(self.progress_ns).max(self.last_evidence_ns);
        now_ns.saturating_sub(last) >= LEAST_QUIET_NS
    }
    fn kind_of(&self, start: i64, end: i64, now_ns: u64, copies: u16) -> RecoveryKind {
        let is_first = start <= self.acknowledged;
        let is_resent = copies > 1 && is_first && self.is_quiet(now_ns);
        let in_recovery = self.recovery.map(|recovery| recovery.kind);
        let has_evidence = self.has_sacked || self.duplicate_acks >= DUPLICATE_ACKS;
        match in_recovery {
            Some(RecoveryKind::Timeout) => RecoveryKind::Timeout,
            _ if is_resent => RecoveryKind::Timeout,
            Some(RecoveryKind::Fast) => RecoveryKind::Fast,
            _ if has_evidence => RecoveryKind::Fast,
            _ if end >= self.next => RecoveryKind::Tail,
            _ => RecoveryKind::Timeout,
        }
    }
    /// A large segment is lost again and again while small ones pass. A sender that finds that out itself cuts it.
    fn looks_for_black_hole(&mut self, segment: &Segment, before: Option<Before>, kind: RecoveryKind) {
        let Some(before) = before.filter(|before| before.copies >= 2 && kind != RecoveryKind::Fast) else {
            return;
        };
        let largest = i64::from(self.largest_acknowledged_payload.max(SMALL_BYTES));
        if before.bytes > largest {
            self.evidence.mark(Sign::MtuBlackHole, segment.frame);
            self.recent.is_cut |= i64::from(segment.payload_bytes) < before.bytes;
        }
    }
    /// The peer has all of what was sent before the recovery began.
    pub(super) fn recovers(&mut self, acknowledged: i64, _context: &Context<'_>) {
        if self.recovery.is_some_and(|recovery| acknowledged >= recovery.until) {
            self.recovery = None;
            self.recent.end_episode(&mut self.evidence);
        }
    }
    /// An original had arrived: all its retransmissions were in vain.
    pub(super) fn had_arrived(&mut self, start: i64, end: i64) {
        while self.is_spurious(start, end) {}
    }
    /// Something shows that data which was sent again had arrived before; whether a retransmission of it was remembered.
    pub(super) fn is_spurious(&mut self, start: i64, end: i64) -> bool {
        let found =
            self.recent.ring.iter_mut().rev().find(|of| of.start < end && start < of.end && !of.is_spurious);
        let Some(found) = found else { return false };
        found.is_spurious = true;
        let Retransmission { frame, kind, seized_ns, .. } = *found;
        self.recent.spurious += 1;
        self.recent.lost = self.recent.lost.saturating_sub(1);
        self.evidence.mark(Sign::SpuriousRetransmission, frame);
        match kind {
            RecoveryKind::Timeout => {
                self.recent.excused += 1;
                self.account.reassign(Cause::Timeout, Cause::SpuriousTimeout, seized_ns);
            }
            RecoveryKind::Fast => self.evidence.mark(Sign::ReorderingMistaken, frame),
            // A probe is meant to be sent early; the wait was for the acknowledgment.
            RecoveryKind::Tail => {
                self.account.reassign(Cause::TailLoss, Cause::AwaitingAcknowledgment, seized_ns);
            }
        }
        true
    }
    /// What the whole connection shows of its recovery.
    pub(super) fn judge_recovery(&mut self) {
        if self.has_broken_recovery() {
            for from in [Cause::FastRecovery, Cause::Timeout] {
                self.account.reassign(from, Cause::BrokenRecovery, u64::MAX);
            }
        }
        if self.has_black_hole() {
            for from in [Cause::Timeout, Cause::TailLoss, Cause::FastRecovery] {
                self.account.reassign(from, Cause::MtuBlackHole, u64::MAX);
            }
        }
    }
    /// Most of what is sent again was received, and the sender could know it.
    pub(crate) fn has_broken_recovery(&self) -> bool {
        let useless = self.recent.needless + self.recent.spurious.saturating_sub(self.recent.excused);
        self.recent.count >= 3 && 2 * useless > self.recent.count && 2 * self.recent.needless >= useless
    }
    pub(crate) fn has_black_hole(&self) -> bool {
        // Small data passed, so that the path is not down.
        let least = if self.recent.is_cut { 1 } else { 2 };
        self.evidence.count(Sign::MtuBlackHole) >= least && self.largest_acknowledged_payload > 1
    }
    /// The largest payload that was acknowledged, in bytes.
    pub(crate) fn largest_acknowledged(&self) -> u32 {
        self.largest_acknowledged_payload
    }
    pub(crate) fn retransmissions(&self) -> (u64, u64, u64) {
        (self.recent.count, self.recent.needless, self.recent.spurious)
    }
}
