//! Loss recovery: what acknowledgments, timers, the path and the link change about it (RFC 5681 §3, RFC 6582, RFC 6675 §5,
//! RFC 8985, RFC 5682).

use super::{Recovery, SendBuffers, Sender};
use crate::common::Common;
use crate::flags::{ConnectionFlags, SenderFlags};
use crate::sender::flight::{AckSample, Sums};
use crate::sender::reduction::{RateReduction, UndoState};
use crate::{Environment, RecoveryState};
use inhost_base::{Deadline, Duration, Instant, Offset};
use inhost_congestion::Acknowledged;
use inhost_event::{Event, Mask, WindowChanged};

/// Maximum reordering that is assumed of a path, in segments.
const MOST_REORDERING: u32 = 300;

impl Recovery {
    pub fn new(initial: Offset) -> Self {
        Recovery { recover: initial.back(1), ..Recovery::default() }
    }
    /// Nothing is amiss any more.
    pub fn end(&mut self) {
        (self.state, self.duplicates, self.forward) = (RecoveryState::Open, 0, false);
    }
    /// Whether the window is kept by recovery, not by congestion control.
    pub fn reduces(&self) -> bool {
        matches!(self.state, RecoveryState::Recovery | RecoveryState::WindowReduction)
    }
}

impl Sender {
    /// Too much for the host itself is congestion, once for each window.
    pub fn reduce_by_refusal(&mut self, common: &Common, now: Instant) {
        if !self.recovery.state.has_end() {
            let sample = self.sample_without_ack();
            self.begin_window_reduction(common, &sample, now);
        }
    }
    /// Nothing was acknowledged: the connection as it stands.
    pub fn sample_without_ack(&self) -> AckSample {
        AckSample {
            in_flight_before_bytes: self.in_flight_bytes(),
            sacked_before_bytes: self.sums().sacked_bytes,
            outstanding_before_bytes: self.space.outstanding_bytes(),
            edge: self.space.edge(),
            ..AckSample::default()
        }
    }
    /// Processes an acknowledgment for loss recovery: marks losses, undoes spurious reductions, and updates the
    /// congestion window.
    // spec: RFC5681 4.3-5; RFC6675 5.1-3
    pub fn recover_by(&mut self, common: &Common, sample: &AckSample, env: &mut Environment<'_>) {
        let now = env.now();
        let state = self.recovery.state;
        self.learn_reordering(sample);
        self.note_duplicate(sample);
        let mut newly_lost = self.find_losses(common, sample, now);
        if newly_lost && self.flags.contains(SenderFlags::PMTU_SEARCH) && self.search_probe_lost(now) {
            newly_lost = false;
        }
        self.recovery.progressed |= sample.advanced_bytes > 0;
        match state {
            RecoveryState::Loss => self.continue_loss(common, sample, now),
            RecoveryState::Recovery => self.continue_recovery(common, sample, now),
            RecoveryState::Open | RecoveryState::Disorder | RecoveryState::WindowReduction => {
                // If all retransmissions since the last reduction were duplicates, it was spurious.
                let mistaken = self.buffers.as_ref().is_some_and(|b| b.undo.all_were_duplicates());
                if mistaken && common.config().undo {
                    self.undo(now);
                }
            }
        }
        let may_enter = !self.is_repairing();
        if may_enter && newly_lost {
            self.enter_recovery(common, sample, now);
        } else if may_enter && sample.congestion {
            self.reduce_by_mark(common, sample, now);
        }
        if self.recovery.state == RecoveryState::WindowReduction
            && self.recovery.recover <= self.space.unacknowledged()
        {
            self.congestion.recovered(now);
            self.recovery.state = RecoveryState::Open;
        }
        if !self.recovery.state.has_end() {
            let disorder = self.recovery.duplicates > 0 || self.sums().sacked_bytes > 0;
            self.recovery.state = if disorder { RecoveryState::Disorder } else { RecoveryState::Open };
        }
        self.move_window(common, sample, newly_lost, state, now);
        if state != self.recovery.state || newly_lost {
            self.tell_window(common, env);
        }
    }

    /// Something was overtaken and arrived after all: more must overtake it next time before it counts as lost.
    fn learn_reordering(&mut self, sample: &AckSample) {
        let Some(start) = sample.overtaken else { return };
        let segment = self.segment_bytes();
        let Some(buffers) = &mut self.buffers else { return };
        buffers.flight.rack_mut().saw_reordering();
        self.history.get_or_insert_default().reorderings += 1;
        let degree = buffers.flight.overtaken_by(start, segment).min(MOST_REORDERING) as u16;
        buffers.reordering = buffers.reordering.max(degree);
    }
    /// The peer got something twice.
    fn note_duplicate(&mut self, sample: &AckSample) {
        let Some((start, end)) = sample.repeated else { return };
        self.history_mut().duplicate_sacks += 1;
        let (unacknowledged, next) = (self.space.unacknowledged(), self.space.next());
        let segments = end.since(start).div_ceil(self.segment_bytes().max(1));
        let Some(buffers) = &mut self.buffers else { return };
        if buffers.tail_probe.explains(start, end) {
            // RFC 8985 §7.4.2: the probe, not a mistake in recovery, made this duplicate.
            return;
        }
        buffers.flight.rack_mut().widen(unacknowledged, next);
        buffers.undo.duplicate(end, segments);
    }
    /// Looks for losses; true when something is newly thought lost.
    // spec: RFC5681 3.2-3; RFC8985 1-1, 9.2-1; RFC4821 4-3, 6.1-1
    fn find_losses(&mut self, common: &Common, sample: &AckSample, now: Instant) -> bool {
        let segment = self.segment_bytes();
        let sack = common.has(ConnectionFlags::SACK);
        if common.config().rack && sack {
            let came = sample.bytes > 0 || sample.advanced_bytes > 0;
            return came && self.mark_lost_by_time(common, now);
        }
        let state = self.recovery.state;
        let duplicates = self.recovery.duplicates;
        let beyond = self.recovery.recover < self.space.unacknowledged();
        let threshold = self.reordering_segments(common);
        let Some(buffers) = &mut self.buffers else { return false };
        let before = buffers.flight.sums().lost_bytes;
        if sack {
            buffers.flight.mark_lost_by_count(threshold, segment);
        } else if state == RecoveryState::Recovery {
            // A partial acknowledgment: the next hole begins here (RFC 6582 §3.2, step 3).
            if sample.advanced_bytes > 0 && self.recovery.recover > self.space.unacknowledged() {
                buffers.flight.mark_first_lost();
                buffers.force = true;
            }
        } else if state != RecoveryState::Loss && u32::from(duplicates) >= threshold && beyond {
            buffers.flight.mark_first_lost();
        }
        buffers.flight.sums().lost_bytes != before
    }
    /// By time: what was sent a reordering window before something that has arrived is lost (RFC 8985 §6.2, step 5). True
    /// when something newly is.
    fn mark_lost_by_time(&mut self, common: &Common, now: Instant) -> bool {
        let smoothed = common.round_trip().smoothed().unwrap_or(Duration::ZERO);
        let enough = self.sums().sacked_bytes >= self.reordering_segments(common) * self.segment_bytes();
        let at_once = enough || self.is_repairing();
        let Some(buffers) = &mut self.buffers else { return false };
        let before = buffers.flight.sums().lost_bytes;
        let window = buffers.flight.rack().reordering_window(at_once, smoothed);
        let at = buffers.flight.mark_lost_by_time(window, now);
        let slack = common.config().recovery_timer_slack;
        buffers.reorder_at = at.map_or(Deadline::NEVER, |at| Deadline::at(at + slack));
        buffers.flight.sums().lost_bytes != before
    }
    fn is_repairing(&self) -> bool {
        matches!(self.recovery.state, RecoveryState::Recovery | RecoveryState::Loss)
    }
    /// The reordering timer expired (RFC 8985 §6.2).
    // spec: RFC8985 6.2-4
    pub fn fire_reordering(&mut self, common: &Common, env: &mut Environment<'_>) {
        let now = env.now();
        let sample = self.sample_without_ack();
        let recovering = self.is_repairing();
        if !self.mark_lost_by_time(common, now) {
            return;
        }
        if !recovering {
            self.enter_recovery(common, &sample, now);
        }
        self.move_window(common, &sample, true, self.recovery.state, now);
        self.tell_window(common, env);
    }

    // spec: RFC5681 3.2-8, 4.3-1, 4.3-4; RFC6675 5-3; RFC2018 5.1-1; RFC9438 4.6-1
    fn enter_recovery(&mut self, common: &Common, sample: &AckSample, now: Instant) {
        if self.recovery.state != RecoveryState::WindowReduction {
            self.congestion.lost(self.flight_size(sample.outstanding_before_bytes), now);
            self.begin_reduction(common, sample);
        }
        self.enter(common, RecoveryState::Recovery);
        let unacknowledged = self.space.unacknowledged();
        if let Some(buffers) = &mut self.buffers {
            buffers.undo = UndoState::begin(unacknowledged, false);
            buffers.force = true;
        }
    }
    /// A reduction is under way, until all that is out now is acknowledged.
    fn enter(&mut self, common: &Common, state: RecoveryState) {
        (self.recovery.state, self.recovery.recover) = (state, self.space.next());
        if !common.config().proportional_rate_reduction {
            self.congestion.set_window_bytes(self.congestion.window().threshold_bytes);
        }
    }
    /// FlightSize, from which a reduction is computed: outstanding data without limited transmit's (RFC 5681 §3.2).
    // spec: RFC5681 3.2-7
    fn flight_size(&self, outstanding_bytes: u32) -> u32 {
        outstanding_bytes.min(self.congestion.window().window_bytes)
    }
    fn begin_reduction(&mut self, common: &Common, sample: &AckSample) {
        self.tell_of_reduction(common);
        if let Some(buffers) = &mut self.buffers {
            buffers.reduction =
                RateReduction::new(sample.outstanding_before_bytes, sample.sacked_before_bytes);
        }
    }
    /// The peer received a congestion mark: reduces the window as after a loss, once a window, without a retransmission
    /// (RFC 3168 §6.1.2).
    fn reduce_by_mark(&mut self, common: &Common, sample: &AckSample, now: Instant) {
        if self.recovery.state == RecoveryState::WindowReduction {
            return;
        }
        self.history_mut().congestion_marks += 1;
        let at_its_least = self.congestion.window().window_bytes <= self.segment_bytes();
        // A connection whose queues were freed has been idle for longer than it would wait.
        if at_its_least && self.buffers.is_some() {
            // spec: RFC9438 4.6-5
            // RFC 3168 §6.1.2: with a window of one segment, the sender waits for the timer.
            self.arm_timer(common, now);
            self.flags.insert(SenderFlags::PACED);
            if let Some(buffers) = &mut self.buffers {
                buffers.pace_at = self.timer;
            }
        }
        self.begin_window_reduction(common, sample, now);
    }
    /// Begins a reduction of the window for which nothing need have been lost.
    pub fn begin_window_reduction(&mut self, common: &Common, sample: &AckSample, now: Instant) {
        self.congestion.marked(self.flight_size(sample.outstanding_before_bytes), now);
        self.begin_reduction(common, sample);
        self.enter(common, RecoveryState::WindowReduction);
        if let Some(buffers) = &mut self.buffers {
            // What shows an earlier reduction to be wrong says nothing of this one.
            buffers.undo.end();
        }
    }
    // spec: RFC6675 5-4
    fn continue_recovery(&mut self, common: &Common, sample: &AckSample, now: Instant) {
        let done = self.recovery.recover <= self.space.unacknowledged();
        let mistaken = self.was_mistaken(common, sample);
        if done {
            if mistaken {
                self.undo(now);
            } else {
                self.congestion.recovered(now);
            }
            self.end_recovery();
        } else if sample.advanced_bytes > 0 && mistaken && !sample.retransmitted {
            // RFC 3522: the first segment to arrive was the original of a retransmitted one.
            self.undo_loss(now);
        }
    }
    // spec: RFC6675 5-5
    fn end_recovery(&mut self) {
        self.recovery.end();
        if let Some(buffers) = &mut self.buffers {
            buffers.flight.rack_mut().recovered();
            buffers.force = false;
        }
    }
    /// After a time-out (RFC 5682 §3 in its SACK form, RFC 5681 §3.1).
    fn continue_loss(&mut self, common: &Common, sample: &AckSample, now: Instant) {
        let done = self.recovery.recover <= self.space.unacknowledged();
        // Without SACK the acknowledgment does not show which copy arrived.
        let tells = common.has(ConnectionFlags::SACK) || !sample.retransmitted;
        let original = tells && sample.original_end.is_some_and(|end| self.recovery.recover >= end);
        // A segment sent before the timeout and not retransmitted arrived: it was not lost.
        let mistaken = (self.recovery.forward && original) || self.was_mistaken(common, sample);
        if mistaken && sample.advanced_bytes > 0 {
            self.undo_loss(now);
        } else if done {
            self.end_recovery();
        } else if !self.recovery.forward {
            // RFC 5682 §2.1: conventional recovery goes on.
        } else if self.recovery.recover < self.space.next() {
            if sample.is_duplicate || sample.sacked_bytes > 0 {
                // RFC 5682 §2.1, step 3a: the loss was real.
                self.recovery.forward = false;
            }
        } else if sample.advanced_bytes > 0 {
            // Step 2b: new data is sent, and its acknowledgment decides. Without new data the timeout stays
            // unclassified.
            let next = self.space.next();
            if next < self.stream_end() && next < sample.edge {
                self.recovery.recover = next;
            } else {
                self.recovery.forward = false;
            }
        }
    }
    /// Whether an acknowledgment shows that the reduction was spurious, and that counts (RFC 3708, RFC 3522).
    fn was_mistaken(&self, common: &Common, sample: &AckSample) -> bool {
        let Some(SendBuffers { undo, .. }) = self.buffers.as_deref() else { return false };
        common.config().undo && (undo.all_were_duplicates() || undo.original_arrived(sample.echo))
    }
    /// Nothing was lost after all.
    fn undo_loss(&mut self, now: Instant) {
        self.undo(now);
        if let Some(buffers) = &mut self.buffers {
            buffers.flight.clear_lost();
        }
        self.end_recovery();
    }
    /// Takes a reduction of the window back.
    fn undo(&mut self, now: Instant) {
        self.congestion.undo(now);
        self.flags.remove(SenderFlags::WINDOW_REDUCED);
        if let Some(buffers) = &mut self.buffers {
            buffers.undo.end();
        }
    }
    /// The window after an acknowledgment, which found recovery in `state`.
    fn move_window(
        &mut self,
        common: &Common,
        sample: &AckSample,
        newly_lost: bool,
        state: RecoveryState,
        now: Instant,
    ) {
        let segment = self.segment_bytes();
        let in_flight = self.in_flight_bytes();
        let delivered = if common.has(ConnectionFlags::SACK) {
            sample.bytes
        } else {
            // Each duplicate acknowledgment counted a segment as delivered; those are not counted again.
            sample.bytes.saturating_sub(sample.counted_bytes) + if sample.is_duplicate { segment } else { 0 }
        };
        if self.recovery.reduces() && common.config().proportional_rate_reduction {
            let threshold = self.congestion.window().threshold_bytes;
            let good = sample.advanced_bytes > 0 && !newly_lost;
            if (delivered > 0 || newly_lost)
                && let Some(buffers) = &mut self.buffers
            {
                let bytes = buffers.reduction.window(delivered, in_flight, threshold, segment, good);
                self.congestion.set_window_bytes(bytes);
            }
        }
        let reduced = matches!(state, RecoveryState::Recovery | RecoveryState::WindowReduction);
        let in_order = sample.advanced_bytes > 0 || self.congestion_window_grows_on_sack(common, delivered);
        if !in_order || (reduced && !self.recovery.reduces()) {
            // The end of a reduction sets the window to ssthresh.
            return;
        }
        let bytes = match self.recovery.state {
            // RFC 3465 §2.3: what one acknowledgment covers may have arrived long ago, so it counts for little.
            RecoveryState::Loss if !common.has(ConnectionFlags::SACK) => delivered.min(2 * segment),
            _ => delivered,
        };
        self.grow(common, bytes, sample, now);
    }
    /// Whether selectively acknowledged data counts like data in order, because the path reorders.
    pub fn congestion_window_grows_on_sack(&self, common: &Common, delivered: u32) -> bool {
        common.policy().congestion_window_grows_on_sack
            && delivered > 0
            && self.reordering_segments(common) > u32::from(common.config().reordering_segments)
    }
    /// The retransmission timer expired: retransmits the oldest segment, then continues in slow start (RFC 6298 §5, RFC
    /// 8985 §6.3, RFC 5682 §2).
    // spec: RFC6675 5.1-2, 5.1-1
    pub fn recover_by_timer(&mut self, common: &Common, now: Instant) {
        self.history_mut().timeouts += 1;
        let in_flight = self.flight_size(self.space.outstanding_bytes());
        let state = self.recovery.state;
        // One reduction for each window of data.
        // spec: RFC5681 4.3-4a
        // In a recovery a retransmission was lost: that is a second loss event (RFC 5681 §4.3).
        let repeated = state == RecoveryState::Loss && !self.recovery.progressed;
        self.congestion.timed_out(in_flight, repeated, now);
        self.tell_of_reduction(common);
        if let Some(search) = self.search_mut() {
            search.failed(now);
        }
        self.suspect_black_hole(common);
        let smoothed = common.round_trip().smoothed().unwrap_or(Duration::ZERO);
        let by_time = common.config().rack && common.has(ConnectionFlags::SACK);
        let unacknowledged = self.space.unacknowledged();
        let mut reneged = false;
        if let Some(buffers) = &mut self.buffers {
            reneged = buffers.flight.is_reneged();
            if reneged {
                buffers.flight.renege();
            }
            let window = buffers.flight.rack().reordering_window(true, smoothed);
            buffers.flight.mark_lost_by_timer(by_time && !reneged, window, now);
            buffers.reorder_at.stop();
            buffers.tail_probe.end();
            buffers.force = true;
            if !repeated {
                let has_retransmissions = state == RecoveryState::Recovery;
                buffers.undo = UndoState::begin(unacknowledged, has_retransmissions);
            }
        }
        let window_bytes = self.congestion.window().window_bytes + self.in_flight_bytes();
        self.congestion.set_window_bytes(window_bytes);
        self.flags.remove(SenderFlags::TAIL_PROBE);
        self.recovery.duplicates = 0;
        // RFC 5682 §3.2: not if more of the data in flight was retransmitted before.
        self.recovery.forward =
            common.config().forward_rto && !reneged && !repeated && state != RecoveryState::Recovery;
        self.recovery.progressed = false;
        self.recovery.state = RecoveryState::Loss;
        self.recovery.recover = self.space.next();
    }
    /// A probe of the tail was what arrived: the tail was lost, and the window pays for it (RFC 8985 §7.4.2).
    // spec: RFC8985 7.4.2-2
    pub fn probe_repaired_a_loss(&mut self, common: &Common, in_flight: u32, env: &mut Environment<'_>) {
        if self.recovery.state.has_end() {
            return;
        }
        self.congestion.lost(in_flight, env.now());
        self.congestion.recovered(env.now());
        self.tell_of_reduction(common);
        self.tell_window(common, env);
    }
    fn tell_window(&mut self, common: &Common, env: &mut Environment<'_>) {
        let smoothed = common.round_trip().smoothed().unwrap_or(Duration::ZERO);
        let (socket, sender) = (env.socket(), &*self);
        env.emit(Mask::RECOVERY, || {
            Event::WindowChanged(WindowChanged {
                socket,
                congestion_window_bytes: sender.congestion.window().window_bytes,
                slow_start_threshold_bytes: sender.congestion.window().threshold_bytes,
                send_window_bytes: sender.space.window(),
                smoothed_round_trip: smoothed,
            })
        });
    }
    /// The next new data carries CWR, for any reduction of the window (RFC 3168 §6.1.2).
    pub fn tell_of_reduction(&mut self, common: &Common) {
        self.flags.set(SenderFlags::WINDOW_REDUCED, common.has(ConnectionFlags::ECN));
    }
    /// Reports an acknowledgment to congestion control.
    #[inline]
    pub fn grow(&mut self, common: &Common, bytes: u32, sample: &AckSample, now: Instant) {
        let outstanding = self.space.outstanding_bytes();
        let least = self.buffers.as_ref().and_then(|buffers| buffers.flight.rack().least_round_trip());
        self.congestion.acknowledged(&Acknowledged {
            bytes,
            acknowledged_bytes: self.acknowledged_bytes(),
            sent_bytes: self.acknowledged_bytes() + u64::from(outstanding),
            latest_round_trip: sample.newest_round_trip,
            smoothed_round_trip: common.round_trip().smoothed().unwrap_or(Duration::ZERO),
            least_round_trip: least.unwrap_or(Duration::ZERO),
            in_flight_before_bytes: sample.in_flight_before_bytes,
            recovering: self.recovery.reduces(),
            rate: sample.rate,
            now,
        });
    }
    /// Retransmits what is in flight in segments of more than `bytes`, without a congestion response: the path, or with 0
    /// the peer's window, has refused it.
    pub fn retransmit_longer_than(&mut self, bytes: u32) {
        if let Some(buffers) = &mut self.buffers {
            buffers.flight.mark_lost_where(|record| record.bytes() > bytes);
            buffers.flight.refuse();
        }
    }
    /// What is in flight, summed up.
    #[inline]
    pub fn sums(&self) -> Sums {
        self.buffers.as_ref().map_or_else(Sums::default, |buffers| buffers.flight.sums())
    }
    /// Segments that may overtake another before that counts as lost.
    pub fn reordering_segments(&self, common: &Common) -> u32 {
        let learned = self.buffers.as_ref().map_or(0, |buffers| buffers.reordering);
        u32::from(learned.max(u16::from(common.config().reordering_segments))).max(1)
    }
}
