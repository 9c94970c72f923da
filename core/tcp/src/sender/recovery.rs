//! Where loss recovery stands, and what moves it (RFC 5681 §3, RFC 6582, RFC 6675 §5, RFC 8985, RFC 5682).

use super::Sender;
use crate::common::Common;
use crate::flags::{ConnectionFlags, SenderFlags};
use crate::numbers::Visit;
use crate::sender::flight::DeliveryInfo;
use crate::sender::repair::{RateReduction, UndoState};
use crate::{Environment, RecoveryState};
use inhost_base::{Duration, Instant, Sequence};
use inhost_congestion::{Acknowledged, RateSample};
use inhost_event::{Event, Mask, WindowChanged};

/// The little that outlives what is in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recovery {
    pub state: RecoveryState,
    /// Duplicate acknowledgments, where there is no SACK: each a segment that has left the network.
    pub duplicates: u8,
    /// Whether the time-out was spurious is being found out (RFC 5682).
    pub forward: bool,
    /// Something was acknowledged since the last time-out.
    pub progressed: bool,
    /// What had been sent when the state was entered; acknowledging it ends it. Afterwards it stays behind `SND.UNA`
    /// and is brought along ([`crate::numbers`]).
    pub recover: Sequence,
}

/// What an acknowledgment was, beside what it delivered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckSample {
    /// It acknowledges something new.
    pub advanced_bytes: u32,
    /// It counts as a duplicate (RFC 5681 §2).
    pub duplicate: bool,
    /// Bytes of it that duplicates had stood for.
    pub counted_bytes: u32,
    pub in_flight_before_bytes: u32,
    pub sacked_before_bytes: u32,
    pub outstanding_before_bytes: u32,
    /// The round trip that it measured.
    pub round_trip: Option<Duration>,
    /// The rate of delivery that it showed.
    pub rate: Option<RateSample>,
    /// The peer saw a congestion mark.
    pub congestion: bool,
    /// How far the peer's window reaches.
    pub edge: Sequence,
}

impl Recovery {
    pub fn new(initial: Sequence) -> Self {
        Recovery {
            state: RecoveryState::Open,
            duplicates: 0,
            forward: false,
            progressed: false,
            recover: initial.back(1),
        }
    }
    /// See [`crate::numbers`].
    pub fn numbers(&mut self, visit: Visit<'_>) {
        let Recovery { state: _, duplicates: _, forward: _, progressed: _, recover } = self;
        visit("the recovery point", recover);
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

/// As much reordering is believed of a path, in segments.
const MOST_REORDERING: u32 = 300;

impl Sender {
    /// Too much for the host itself is congestion, once for each window.
    pub fn reduce_by_refusal(&mut self, common: &Common, now: Instant) {
        if matches!(self.recovery.state, RecoveryState::Open | RecoveryState::Disorder) {
            let sample = self.nothing_heard();
            self.begin_window_reduction(common, &sample, now);
        }
    }
    /// Nothing was sample: the connection as it stands.
    pub fn nothing_heard(&self) -> AckSample {
        AckSample {
            advanced_bytes: 0,
            duplicate: false,
            counted_bytes: 0,
            in_flight_before_bytes: self.in_flight_bytes(),
            sacked_before_bytes: self.sacked_bytes(),
            outstanding_before_bytes: self.space.next.since(self.space.unacknowledged),
            round_trip: None,
            rate: None,
            congestion: false,
            edge: self.send_edge(),
        }
    }
    /// What an acknowledgment means for what is out: what is lost, what was a mistake, and how large the window is. `echo`
    /// is the timestamp that came back with it.
    // spec: RFC5681 4.3-5; RFC6675 5.1-3
    pub fn recover_by(
        &mut self,
        common: &Common,
        delivery: &DeliveryInfo,
        sample: AckSample,
        echo: Option<u32>,
        env: &mut Environment<'_>,
    ) {
        let state = self.recovery.state;
        self.learn_reordering(delivery);
        self.note_duplicate(delivery, env);
        let mut newly_lost = self.find_losses(common, delivery, &sample, env.now);
        if newly_lost && self.flags.has(SenderFlags::SEARCHES) && self.search_probe_lost(env.now) {
            newly_lost = false;
        }
        self.recovery.progressed |= sample.advanced_bytes > 0;
        match state {
            RecoveryState::Loss => self.continue_loss(common, delivery, &sample, echo, env.now),
            RecoveryState::Recovery => self.continue_recovery(common, delivery, &sample, echo, env.now),
            RecoveryState::Open | RecoveryState::Disorder | RecoveryState::WindowReduction => {
                self.undo_by_duplicates(common, env.now);
            }
        }
        let may_enter = matches!(
            self.recovery.state,
            RecoveryState::Open | RecoveryState::Disorder | RecoveryState::WindowReduction
        );
        if may_enter && newly_lost {
            self.enter_recovery(common, &sample, env.now);
        } else if may_enter && sample.congestion {
            self.reduce_by_mark(common, &sample, env.now);
        }
        if self.recovery.state == RecoveryState::WindowReduction
            && self.recovery.recover.at_or_before(self.space.unacknowledged)
        {
            self.congestion.recovered(env.now);
            self.recovery.state = RecoveryState::Open;
        }
        if matches!(self.recovery.state, RecoveryState::Open | RecoveryState::Disorder) {
            let disorder = self.recovery.duplicates > 0 || self.sacked_bytes() > 0;
            self.recovery.state = if disorder { RecoveryState::Disorder } else { RecoveryState::Open };
        }
        self.move_window(common, delivery, &sample, newly_lost, state, env.now);
        if state != self.recovery.state || newly_lost {
            self.tell_window(env);
        }
    }

    /// Something was overtaken and arrived after all: more must overtake it next time before it counts as lost.
    fn learn_reordering(&mut self, delivery: &DeliveryInfo) {
        let Some(start) = delivery.overtaken else { return };
        let segment = self.segment_bytes();
        let Some(buffers) = &mut self.buffers else { return };
        buffers.flight.rack.reordering_seen = true;
        self.history.get_or_insert_default().reorderings += 1;
        let degree = buffers.flight.overtaken_by(start, segment).min(MOST_REORDERING) as u16;
        buffers.reordering = buffers.reordering.max(degree);
    }
    /// The peer got something twice.
    fn note_duplicate(&mut self, delivery: &DeliveryInfo, env: &mut Environment<'_>) {
        let Some((start, end)) = delivery.duplicate else { return };
        self.history_mut().duplicate_sacks += 1;
        let (unacknowledged, next) = (self.space.unacknowledged, self.space.next);
        let segments = end.since(start).div_ceil(self.segment_bytes().max(1));
        let _ = env;
        let Some(buffers) = &mut self.buffers else { return };
        if buffers.tail_probe.explains(start, end) {
            // RFC 8985 §7.4.2: the probe, not a mistake in recovery, made this duplicate.
            buffers.tail_probe.was_duplicate = true;
            return;
        }
        buffers.flight.rack.reordering_seen = true;
        buffers.flight.rack.widen(unacknowledged, next);
        buffers.undo.duplicate(end, segments);
    }
    /// Looks for losses; true when something is newly thought lost.
    // spec: RFC5681 3.2-3; RFC8985 1-1, 9.2-1; RFC4821 4-3, 6.1-1
    fn find_losses(
        &mut self,
        common: &Common,
        delivery: &DeliveryInfo,
        sample: &AckSample,
        now: Instant,
    ) -> bool {
        let segment = self.segment_bytes();
        let sack = common.flags.has(ConnectionFlags::SACK);
        let rack = common.config.rack && sack;
        let smoothed = self.round_trip.smoothed().unwrap_or(Duration::ZERO);
        let state = self.recovery.state;
        let duplicates = self.recovery.duplicates;
        let beyond = self.recovery.recover.precedes(self.space.unacknowledged);
        let threshold = self.reordering_segments(common);
        let slack = common.config.recovery_timer_slack;
        let Some(buffers) = &mut self.buffers else { return false };
        let before = buffers.flight.lost_segments;
        if rack {
            if delivery.bytes > 0 || sample.advanced_bytes > 0 {
                let enough = buffers.flight.sacked_bytes() >= threshold * segment;
                let repairing = matches!(state, RecoveryState::Recovery | RecoveryState::Loss);
                let window = buffers.flight.rack.reordering_window(enough || repairing, smoothed);
                let at = buffers.flight.lose_by_time(window, now);
                buffers.reorder_at = at.map_or(Instant::FAR_FUTURE, |at| at + slack);
            }
        } else if sack {
            buffers.flight.lose_by_count(threshold, segment);
        } else if state == RecoveryState::Recovery {
            // A partial acknowledgment: the next hole begins here (RFC 6582 §3.2, step 3).
            if sample.advanced_bytes > 0 && !self.recovery.recover.at_or_before(self.space.unacknowledged) {
                buffers.flight.lose_first();
                buffers.force = true;
            }
        } else if state != RecoveryState::Loss && u32::from(duplicates) >= threshold && beyond {
            buffers.flight.lose_first();
        }
        buffers.flight.lost_segments != before
    }
    /// The time for what was overtaken is over (RFC 8985 §6.2).
    // spec: RFC8985 6.2-4
    pub fn fire_reordering(&mut self, common: &Common, env: &mut Environment<'_>) {
        let sample = self.nothing_heard();
        let smoothed = self.round_trip.smoothed().unwrap_or(Duration::ZERO);
        let repairing = matches!(self.recovery.state, RecoveryState::Recovery | RecoveryState::Loss);
        let enough = self.sacked_bytes() >= self.reordering_segments(common) * self.segment_bytes();
        let slack = common.config.recovery_timer_slack;
        let Some(buffers) = &mut self.buffers else { return };
        let before = buffers.flight.lost_segments;
        let window = buffers.flight.rack.reordering_window(enough || repairing, smoothed);
        let at = buffers.flight.lose_by_time(window, env.now);
        buffers.reorder_at = at.filter(|&at| at > env.now).map_or(Instant::FAR_FUTURE, |at| at + slack);
        if buffers.flight.lost_segments == before {
            return;
        }
        if !repairing {
            self.enter_recovery(common, &sample, env.now);
        }
        if !repairing || !common.config.policy.congestion_window_counts_segments {
            self.move_window(common, &DeliveryInfo::default(), &sample, true, self.recovery.state, env.now);
        }
        self.tell_window(env);
    }

    // spec: RFC5681 3.2-8, 4.3-1, 4.3-4; RFC6675 5-3; RFC2018 5.1-1; RFC9438 4.6-1
    fn enter_recovery(&mut self, common: &Common, sample: &AckSample, now: Instant) {
        let reduced_already = self.recovery.state == RecoveryState::WindowReduction;
        self.recovery.state = RecoveryState::Recovery;
        self.recovery.recover = self.space.next;
        let unacknowledged = self.space.unacknowledged;
        if let Some(buffers) = &mut self.buffers {
            buffers.undo = UndoState::begin(unacknowledged, false);
            buffers.force = true;
        }
        if !reduced_already {
            self.tell_of_reduction(common);
            self.begin_reduction(sample);
            self.congestion.lost(self.flight_size(sample.outstanding_before_bytes), now);
        }
        if !common.config.proportional_rate_reduction {
            self.congestion.window.window_bytes = self.congestion.window.threshold_bytes;
        }
    }
    /// What a reduction is reckoned from: what is outstanding, without what limited transmit added (RFC 5681 §3.2).
    // spec: RFC5681 3.2-7
    fn flight_size(&self, outstanding_bytes: u32) -> u32 {
        outstanding_bytes.min(self.congestion.window.window_bytes)
    }
    fn begin_reduction(&mut self, sample: &AckSample) {
        if let Some(buffers) = &mut self.buffers {
            buffers.reduction =
                RateReduction::new(sample.outstanding_before_bytes, sample.sacked_before_bytes);
        }
    }
    /// The peer saw a congestion mark: as after a loss, once a window, with nothing to send again (RFC 3168 §6.1.2).
    fn reduce_by_mark(&mut self, common: &Common, sample: &AckSample, now: Instant) {
        if self.recovery.state == RecoveryState::WindowReduction {
            return;
        }
        self.history_mut().congestion_marks += 1;
        let at_its_least = self.congestion.window.window_bytes <= self.segment_bytes();
        if at_its_least {
            // spec: RFC9438 4.6-5
            // RFC 3168 §6.1.2: with one segment to give, time is what is given.
            self.arm_retransmission(common, now);
            self.flags.set(SenderFlags::PACED);
        }
        let resume_at = self.retransmit_at;
        if let Some(buffers) = &mut self.buffers
            && at_its_least
        {
            buffers.pace_at = resume_at;
        }
        self.begin_window_reduction(common, sample, now);
    }
    /// Begins a reduction of the window for which nothing need have been lost.
    pub fn begin_window_reduction(&mut self, common: &Common, sample: &AckSample, now: Instant) {
        self.begin_reduction(sample);
        if let Some(buffers) = &mut self.buffers {
            // What shows an earlier reduction to be wrong says nothing of this one.
            buffers.undo.end();
        }
        self.congestion.marked(self.flight_size(sample.outstanding_before_bytes), now);
        if !common.config.proportional_rate_reduction {
            self.congestion.window.window_bytes = self.congestion.window.threshold_bytes;
        }
        self.recovery.state = RecoveryState::WindowReduction;
        self.recovery.recover = self.space.next;
        self.tell_of_reduction(common);
    }
    /// The peer is to be told with the next new data that the window is smaller, whatever for (RFC 3168 §6.1.2).
    pub fn tell_of_reduction(&mut self, common: &Common) {
        self.flags.put(SenderFlags::WINDOW_REDUCED, common.flags.has(ConnectionFlags::ECN));
    }
    // spec: RFC6675 5-4
    fn continue_recovery(
        &mut self,
        common: &Common,
        delivery: &DeliveryInfo,
        sample: &AckSample,
        echo: Option<u32>,
        now: Instant,
    ) {
        let done = self.recovery.recover.at_or_before(self.space.unacknowledged);
        let mistaken = self
            .buffers
            .as_ref()
            .is_some_and(|b| b.undo.all_were_duplicates() || b.undo.original_arrived(echo));
        if done {
            if mistaken && common.config.undo {
                self.undo(now);
            } else {
                self.congestion.recovered(now);
            }
            self.end_recovery();
        } else if sample.advanced_bytes > 0 && mistaken && common.config.undo && !delivery.again {
            // RFC 3522: the first thing to arrive was an original that had been sent again.
            self.undo(now);
            if let Some(buffers) = &mut self.buffers {
                buffers.flight.find_all();
            }
            self.end_recovery();
        }
    }
    // spec: RFC6675 5-5
    fn end_recovery(&mut self) {
        self.recovery.end();
        if let Some(buffers) = &mut self.buffers {
            buffers.flight.rack.recovered();
            buffers.force = false;
        }
    }
    /// After a time-out (RFC 5682 §3 in its SACK form, RFC 5681 §3.1).
    fn continue_loss(
        &mut self,
        common: &Common,
        delivery: &DeliveryInfo,
        sample: &AckSample,
        echo: Option<u32>,
        now: Instant,
    ) {
        let done = self.recovery.recover.at_or_before(self.space.unacknowledged);
        // Without SACK nobody can tell which copy let the rest be acknowledged.
        let tells = common.flags.has(ConnectionFlags::SACK) || !delivery.again;
        let original = tells && delivery.original_end.is_some_and(|end| !self.recovery.recover.precedes(end));
        let undo = self.buffers.as_ref().map(|buffers| buffers.undo).unwrap_or_default();
        let mistaken = undo.all_were_duplicates() || undo.original_arrived(echo);
        // Something arrives that left before the time-out and was not sent again: it was not lost.
        if (self.recovery.forward && original && sample.advanced_bytes > 0)
            || (common.config.undo && mistaken && sample.advanced_bytes > 0)
        {
            return self.undo_loss(now);
        }
        if done {
            self.end_recovery();
            return;
        }
        if !self.recovery.forward {
            return;
        }
        if self.send_has_passed_recover() {
            if sample.duplicate || delivery.sacked_bytes > 0 {
                // RFC 5682 §2.1, step 3a: the loss was real.
                self.recovery.forward = false;
            }
        } else if sample.advanced_bytes > 0 {
            // Step 2b: new data goes out, whose acknowledgment will tell. Where there is none, no more can be told.
            if self.may_send_new(sample.edge) {
                self.recovery.recover = self.space.next;
            } else {
                self.recovery.forward = false;
            }
        }
    }
    pub fn send_has_passed_recover(&self) -> bool {
        self.recovery.recover.precedes(self.space.next)
    }
    /// Whether there is new data, and a window for it that reaches up to `edge`.
    fn may_send_new(&self, edge: Sequence) -> bool {
        let next = self.space.next;
        next.precedes(self.stream_end()) && next.precedes(edge)
    }
    fn undo_loss(&mut self, now: Instant) {
        self.undo(now);
        if let Some(buffers) = &mut self.buffers {
            buffers.flight.find_all();
        }
        self.end_recovery();
    }
    /// All that was sent again since the last reduction had arrived: the reduction was a mistake.
    fn undo_by_duplicates(&mut self, common: &Common, now: Instant) {
        let mistaken = self.buffers.as_ref().is_some_and(|buffers| buffers.undo.all_were_duplicates());
        if mistaken && common.config.undo {
            self.undo(now);
        }
    }
    pub fn undo(&mut self, now: Instant) {
        self.congestion.undo(now);
        self.flags.clear(SenderFlags::WINDOW_REDUCED);
        if let Some(buffers) = &mut self.buffers {
            buffers.undo.end();
        }
    }
    /// The window after an acknowledgment, which found recovery in `state`.
    fn move_window(
        &mut self,
        common: &Common,
        delivery: &DeliveryInfo,
        sample: &AckSample,
        newly_lost: bool,
        state: RecoveryState,
        now: Instant,
    ) {
        let segment = self.segment_bytes();
        let in_flight = self.counted_in_flight_bytes(common);
        let delivered = if common.flags.has(ConnectionFlags::SACK) {
            delivery.bytes
        } else {
            // Each duplicate stands for a segment; what they stood for is not delivered again.
            delivery.bytes.saturating_sub(sample.counted_bytes) + if sample.duplicate { segment } else { 0 }
        };
        if self.recovery.reduces() && common.config.proportional_rate_reduction {
            let threshold = self.congestion.window.threshold_bytes;
            let good = sample.advanced_bytes > 0 && !newly_lost;
            if (delivered > 0 || newly_lost)
                && let Some(buffers) = &mut self.buffers
            {
                self.congestion.window.window_bytes =
                    buffers.reduction.window(delivered, in_flight, threshold, segment, good);
            }
        }
        let reduced = matches!(state, RecoveryState::Recovery | RecoveryState::WindowReduction);
        let in_order = sample.advanced_bytes > 0 || self.congestion_window_grows_on_sack(common, delivered);
        if !in_order || (reduced && !self.recovery.reduces()) {
            // What ends a reduction leaves the window at the threshold.
            return;
        }
        let bytes = match self.recovery.state {
            // RFC 3465 §2.3: what one acknowledgment covers may have arrived long ago, so it counts for little.
            RecoveryState::Loss if !common.flags.has(ConnectionFlags::SACK) => delivered.min(2 * segment),
            _ => delivered,
        };
        self.grow(bytes, sample, now);
    }
    /// Whether what was delivered out of order counts as in order, for that is how the path is.
    pub fn congestion_window_grows_on_sack(&self, common: &Common, delivered: u32) -> bool {
        common.config.policy.congestion_window_grows_on_sack
            && delivered > 0
            && self.reordering_segments(common) > u32::from(common.config.reordering_segments)
    }
    /// Tells congestion control of an acknowledgment.
    #[inline]
    pub fn grow(&mut self, bytes: u32, sample: &AckSample, now: Instant) {
        let outstanding = self.space.next.since(self.space.unacknowledged);
        let least = self.buffers.as_ref().and_then(|buffers| buffers.flight.rack.least_round_trip());
        self.congestion.acknowledged(&Acknowledged {
            bytes,
            acknowledged_bytes: self.acknowledged_bytes,
            sent_bytes: self.acknowledged_bytes + u64::from(outstanding),
            latest_round_trip: sample.round_trip,
            smoothed_round_trip: self.round_trip.smoothed().unwrap_or(Duration::ZERO),
            least_round_trip: least.unwrap_or(Duration::ZERO),
            in_flight_before_bytes: sample.in_flight_before_bytes,
            recovering: self.recovery.reduces(),
            rate: sample.rate,
            now,
        });
    }
    /// The retransmission timer expired: the oldest goes again, and from there by slow start (RFC 6298 §5, RFC 8985
    /// §6.3, RFC 5682 §2).
    // spec: RFC6675 5.1-2, 5.1-1
    pub fn recover_by_timer(&mut self, common: &Common, now: Instant) {
        self.history_mut().timeouts += 1;
        let in_flight = self.flight_size(self.space.next.since(self.space.unacknowledged));
        let state = self.recovery.state;
        // One reduction for each window of data.
        let again = match state {
            RecoveryState::Loss => !self.recovery.progressed,
            // spec: RFC5681 4.3-4a
            // What a recovery sent again is lost once more: that counts again (RFC 5681 §4.3), but not with Linux.
            RecoveryState::Recovery => {
                matches!(common.config.congestion, inhost_congestion::CongestionChoice::CubicInSegments)
            }
            _ => false,
        };
        let first_time = state != RecoveryState::Loss;
        self.congestion.timed_out(in_flight, again, now);
        self.tell_of_reduction(common);
        self.search_failed(now);
        self.suspect_black_hole(common);
        let smoothed = self.round_trip.smoothed().unwrap_or(Duration::ZERO);
        let by_time = common.config.rack && common.flags.has(ConnectionFlags::SACK);
        let unacknowledged = self.space.unacknowledged;
        let mut reneged = false;
        if let Some(buffers) = &mut self.buffers {
            reneged = buffers.flight.is_reneged();
            if reneged {
                buffers.flight.renege();
            }
            let window = buffers.flight.rack.reordering_window(true, smoothed);
            buffers.flight.lose_by_timer(by_time && !reneged, window, now);
            buffers.flight.refused = false;
            buffers.reorder_at = Instant::FAR_FUTURE;
            buffers.tail_probe.end();
            buffers.force = true;
            if first_time || self.recovery.progressed {
                let out_again = state == RecoveryState::Recovery;
                buffers.undo = UndoState::begin(unacknowledged, out_again);
            }
        }
        self.congestion.window.window_bytes += self.counted_in_flight_bytes(common);
        self.flags.clear(SenderFlags::TAIL_PROBE);
        self.recovery.duplicates = 0;
        // RFC 5682 §3.2: not where more of what is out was sent again already.
        self.recovery.forward = common.config.forward_rto
            && !reneged
            && (first_time || self.recovery.progressed)
            && state != RecoveryState::Recovery;
        self.recovery.progressed = false;
        self.recovery.state = RecoveryState::Loss;
        self.recovery.recover = self.space.next;
    }
    /// What does not fit through the path any more goes again as after a time-out, though nobody was congested; false
    /// where all of it fits.
    pub fn recover_by_path(&mut self) -> bool {
        let unacknowledged = self.space.unacknowledged;
        let Some(buffers) = &mut self.buffers else { return false };
        if buffers.flight.lost_bytes() == 0 {
            return false;
        }
        if self.recovery.state == RecoveryState::Loss {
            return true;
        }
        buffers.undo = UndoState::begin(unacknowledged, true);
        buffers.tail_probe.end();
        self.recovery = Recovery {
            state: RecoveryState::Loss,
            duplicates: 0,
            forward: false,
            progressed: false,
            recover: self.space.next,
        };
        true
    }
    /// What is out goes again from the start, or the part of it that `which` picks by length; nobody was congested.
    pub fn send_refused_again(&mut self, common: &Common, longer_than: u32) {
        if let Some(buffers) = &mut self.buffers {
            if common.config.policy.smaller_mtu_is_loss {
                buffers.flight.lose_bursts_over(longer_than);
            } else {
                buffers.flight.lose_all(|record| record.bytes() > longer_than);
            }
            buffers.flight.refused = true;
        }
    }
    pub fn sacked_bytes(&self) -> u32 {
        self.buffers.as_ref().map_or(0, |buffers| buffers.flight.sacked_bytes())
    }
    /// Segments that may overtake another before that counts as lost.
    pub fn reordering_segments(&self, common: &Common) -> u32 {
        let learned = self.buffers.as_ref().map_or(0, |buffers| buffers.reordering);
        u32::from(learned.max(u16::from(common.config.reordering_segments))).max(1)
    }
    pub fn tell_window(&self, env: &mut Environment<'_>) {
        let socket = env.socket;
        env.emit(Mask::RECOVERY, || {
            Event::WindowChanged(WindowChanged {
                socket,
                congestion_window_bytes: self.congestion.window.window_bytes,
                slow_start_threshold_bytes: self.congestion.window.threshold_bytes,
                send_window_bytes: self.space.window,
                smoothed_round_trip: self.round_trip.smoothed().unwrap_or(Duration::ZERO),
            })
        });
    }
}
