//! Loss recovery: what acknowledgments, timers, the path and the link change about it (RFC 5681 §3, RFC 6582, RFC 6675 §5,
//! RFC 8985, RFC 5682).

use super::Sender;
use crate::common::Common;
use crate::flags::{ConnectionFlags, SenderFlags};
use crate::offset::Offset;
use crate::sender::flight::DeliveryInfo;
use crate::sender::recovery::AckSample;
use crate::sender::reduction::{RateReduction, UndoState};
use crate::sender::search::Search;
use crate::{Environment, RecoveryState};
use inhost_base::{Duration, Instant};
use inhost_event::{Event, Mask, WindowChanged};

/// Maximum reordering that is assumed of a path, in segments.
const MOST_REORDERING: u32 = 300;

/// Loss recovery at one event: it changes the sender's recovery state, flight and congestion window.
pub(crate) struct LossRecovery<'a, 'e> {
    pub sender: &'a mut Sender,
    pub common: &'a Common,
    pub env: &'a mut Environment<'e>,
}

impl LossRecovery<'_, '_> {
    /// Too much for the host itself is congestion, once for each window.
    pub fn reduce_by_refusal(&mut self) {
        if matches!(self.sender.recovery.state, RecoveryState::Open | RecoveryState::Disorder) {
            let sample = self.sample_without_ack();
            self.begin_window_reduction(&sample);
        }
    }
    /// Nothing was sample: the connection as it stands.
    pub fn sample_without_ack(&self) -> AckSample {
        AckSample {
            advanced_bytes: 0,
            duplicate: false,
            counted_bytes: 0,
            in_flight_before_bytes: self.sender.in_flight_bytes(),
            sacked_before_bytes: self.sender.sacked_bytes(),
            outstanding_before_bytes: self.sender.space.outstanding_bytes(),
            round_trip: None,
            rate: None,
            congestion: false,
            edge: self.sender.space.edge(),
        }
    }
    /// Processes an acknowledgment for loss recovery: marks losses, undoes spurious reductions, and updates the
    /// congestion window. `echo` is the timestamp that it echoes.
    // spec: RFC5681 4.3-5; RFC6675 5.1-3
    pub fn recover_by(&mut self, delivery: &DeliveryInfo, sample: AckSample, echo: Option<u32>) {
        let state = self.sender.recovery.state;
        self.learn_reordering(delivery);
        self.note_duplicate(delivery);
        let mut newly_lost = self.find_losses(delivery, &sample);
        if newly_lost && self.sender.flags.contains(SenderFlags::PMTU_SEARCH) && self.search_probe_lost() {
            newly_lost = false;
        }
        self.sender.recovery.progressed |= sample.advanced_bytes > 0;
        match state {
            RecoveryState::Loss => self.continue_loss(delivery, &sample, echo),
            RecoveryState::Recovery => self.continue_recovery(delivery, &sample, echo),
            RecoveryState::Open | RecoveryState::Disorder | RecoveryState::WindowReduction => {
                self.undo_by_duplicates();
            }
        }
        let may_enter = matches!(
            self.sender.recovery.state,
            RecoveryState::Open | RecoveryState::Disorder | RecoveryState::WindowReduction
        );
        if may_enter && newly_lost {
            self.enter_recovery(&sample);
        } else if may_enter && sample.congestion {
            self.reduce_by_mark(&sample);
        }
        if self.sender.recovery.state == RecoveryState::WindowReduction
            && self.sender.recovery.recover <= self.sender.space.unacknowledged()
        {
            self.sender.congestion.recovered(self.env.now);
            self.sender.recovery.state = RecoveryState::Open;
        }
        if matches!(self.sender.recovery.state, RecoveryState::Open | RecoveryState::Disorder) {
            let disorder = self.sender.recovery.duplicates > 0 || self.sender.sacked_bytes() > 0;
            self.sender.recovery.state = if disorder { RecoveryState::Disorder } else { RecoveryState::Open };
        }
        self.move_window(delivery, &sample, newly_lost, state);
        if state != self.sender.recovery.state || newly_lost {
            self.tell_window();
        }
    }

    /// Something was overtaken and arrived after all: more must overtake it next time before it counts as lost.
    fn learn_reordering(&mut self, delivery: &DeliveryInfo) {
        let Some(start) = delivery.overtaken else { return };
        let segment = self.sender.segment_bytes();
        let Some(buffers) = &mut self.sender.buffers else { return };
        buffers.flight.rack.reordering_seen = true;
        self.sender.history.get_or_insert_default().reorderings += 1;
        let degree = buffers.flight.overtaken_by(start, segment).min(MOST_REORDERING) as u16;
        buffers.reordering = buffers.reordering.max(degree);
    }
    /// The peer got something twice.
    fn note_duplicate(&mut self, delivery: &DeliveryInfo) {
        let Some((start, end)) = delivery.duplicate else { return };
        self.sender.history_mut().duplicate_sacks += 1;
        let (unacknowledged, next) = (self.sender.space.unacknowledged(), self.sender.space.next());
        let segments = end.since(start).div_ceil(self.sender.segment_bytes().max(1));
        let _ = self.env;
        let Some(buffers) = &mut self.sender.buffers else { return };
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
    fn find_losses(&mut self, delivery: &DeliveryInfo, sample: &AckSample) -> bool {
        let segment = self.sender.segment_bytes();
        let sack = self.common.flags.contains(ConnectionFlags::SACK);
        if self.common.config.rack && sack {
            let came = delivery.bytes > 0 || sample.advanced_bytes > 0;
            return came && self.mark_lost_by_time();
        }
        let state = self.sender.recovery.state;
        let duplicates = self.sender.recovery.duplicates;
        let beyond = self.sender.recovery.recover < self.sender.space.unacknowledged();
        let threshold = self.sender.reordering_segments(self.common);
        let Some(buffers) = &mut self.sender.buffers else { return false };
        let before = buffers.flight.lost_segments;
        if sack {
            buffers.flight.mark_lost_by_count(threshold, segment);
        } else if state == RecoveryState::Recovery {
            // A partial acknowledgment: the next hole begins here (RFC 6582 §3.2, step 3).
            if sample.advanced_bytes > 0 && self.sender.recovery.recover > self.sender.space.unacknowledged()
            {
                buffers.flight.mark_first_lost();
                buffers.force = true;
            }
        } else if state != RecoveryState::Loss && u32::from(duplicates) >= threshold && beyond {
            buffers.flight.mark_first_lost();
        }
        buffers.flight.lost_segments != before
    }
    /// By time: what was sent a reordering window before something that has arrived is lost (RFC 8985 §6.2, step 5). True
    /// when something newly is.
    fn mark_lost_by_time(&mut self) -> bool {
        let smoothed = self.common.round_trip.smoothed().unwrap_or(Duration::ZERO);
        let enough = self.sender.sacked_bytes()
            >= self.sender.reordering_segments(self.common) * self.sender.segment_bytes();
        let at_once = enough || self.is_repairing();
        let Some(buffers) = &mut self.sender.buffers else { return false };
        let before = buffers.flight.lost_segments;
        let window = buffers.flight.rack.reordering_window(at_once, smoothed);
        let at = buffers.flight.mark_lost_by_time(window, self.env.now);
        let slack = self.common.config.recovery_timer_slack;
        buffers.reorder_at = at.map_or(Instant::FAR_FUTURE, |at| at + slack);
        buffers.flight.lost_segments != before
    }
    fn is_repairing(&self) -> bool {
        matches!(self.sender.recovery.state, RecoveryState::Recovery | RecoveryState::Loss)
    }
    /// The reordering timer expired (RFC 8985 §6.2).
    // spec: RFC8985 6.2-4
    pub fn fire_reordering(&mut self) {
        let sample = self.sample_without_ack();
        let recovering = self.is_repairing();
        if !self.mark_lost_by_time() {
            return;
        }
        if !recovering {
            self.enter_recovery(&sample);
        }
        self.move_window(&DeliveryInfo::default(), &sample, true, self.sender.recovery.state);
        self.tell_window();
    }

    // spec: RFC5681 3.2-8, 4.3-1, 4.3-4; RFC6675 5-3; RFC2018 5.1-1; RFC9438 4.6-1
    fn enter_recovery(&mut self, sample: &AckSample) {
        let reduced_already = self.sender.recovery.state == RecoveryState::WindowReduction;
        self.sender.recovery.state = RecoveryState::Recovery;
        self.sender.recovery.recover = self.sender.space.next();
        let unacknowledged = self.sender.space.unacknowledged();
        if let Some(buffers) = &mut self.sender.buffers {
            buffers.undo = UndoState::begin(unacknowledged, false);
            buffers.force = true;
        }
        if !reduced_already {
            self.sender.tell_of_reduction(self.common);
            self.begin_reduction(sample);
            self.sender.congestion.lost(self.flight_size(sample.outstanding_before_bytes), self.env.now);
        }
        if !self.common.config.proportional_rate_reduction {
            self.sender.congestion.window.window_bytes = self.sender.congestion.window.threshold_bytes;
        }
    }
    /// FlightSize, from which a reduction is computed: outstanding data without limited transmit's (RFC 5681 §3.2).
    // spec: RFC5681 3.2-7
    fn flight_size(&self, outstanding_bytes: u32) -> u32 {
        outstanding_bytes.min(self.sender.congestion.window.window_bytes)
    }
    fn begin_reduction(&mut self, sample: &AckSample) {
        if let Some(buffers) = &mut self.sender.buffers {
            buffers.reduction =
                RateReduction::new(sample.outstanding_before_bytes, sample.sacked_before_bytes);
        }
    }
    /// The peer received a congestion mark: reduces the window as after a loss, once a window, without a retransmission
    /// (RFC 3168 §6.1.2).
    fn reduce_by_mark(&mut self, sample: &AckSample) {
        if self.sender.recovery.state == RecoveryState::WindowReduction {
            return;
        }
        self.sender.history_mut().congestion_marks += 1;
        let at_its_least = self.sender.congestion.window.window_bytes <= self.sender.segment_bytes();
        // A connection whose queues were freed has been idle for longer than it would wait.
        if at_its_least && self.sender.buffers.is_some() {
            // spec: RFC9438 4.6-5
            // RFC 3168 §6.1.2: with a window of one segment, the sender waits for the timer.
            self.sender.timer.arm(self.common, self.env.now);
            self.sender.flags.insert(SenderFlags::PACED);
            let resume_at = self.sender.timer.at;
            if let Some(buffers) = &mut self.sender.buffers {
                buffers.pace_at = resume_at;
            }
        }
        self.begin_window_reduction(sample);
    }
    /// Begins a reduction of the window for which nothing need have been lost.
    pub fn begin_window_reduction(&mut self, sample: &AckSample) {
        self.begin_reduction(sample);
        if let Some(buffers) = &mut self.sender.buffers {
            // What shows an earlier reduction to be wrong says nothing of this one.
            buffers.undo.end();
        }
        self.sender.congestion.marked(self.flight_size(sample.outstanding_before_bytes), self.env.now);
        if !self.common.config.proportional_rate_reduction {
            self.sender.congestion.window.window_bytes = self.sender.congestion.window.threshold_bytes;
        }
        self.sender.recovery.state = RecoveryState::WindowReduction;
        self.sender.recovery.recover = self.sender.space.next();
        self.sender.tell_of_reduction(self.common);
    }
    // spec: RFC6675 5-4
    fn continue_recovery(&mut self, delivery: &DeliveryInfo, sample: &AckSample, echo: Option<u32>) {
        let done = self.sender.recovery.recover <= self.sender.space.unacknowledged();
        let mistaken = self
            .sender
            .buffers
            .as_ref()
            .is_some_and(|b| b.undo.all_were_duplicates() || b.undo.original_arrived(echo));
        if done {
            if mistaken && self.common.config.undo {
                self.undo();
            } else {
                self.sender.congestion.recovered(self.env.now);
            }
            self.end_recovery();
        } else if sample.advanced_bytes > 0 && mistaken && self.common.config.undo && !delivery.retransmitted
        {
            // RFC 3522: the first segment to arrive was the original of a retransmitted one.
            self.undo();
            if let Some(buffers) = &mut self.sender.buffers {
                buffers.flight.clear_lost();
            }
            self.end_recovery();
        }
    }
    // spec: RFC6675 5-5
    fn end_recovery(&mut self) {
        self.sender.recovery.end();
        if let Some(buffers) = &mut self.sender.buffers {
            buffers.flight.rack.recovered();
            buffers.force = false;
        }
    }
    /// After a time-out (RFC 5682 §3 in its SACK form, RFC 5681 §3.1).
    fn continue_loss(&mut self, delivery: &DeliveryInfo, sample: &AckSample, echo: Option<u32>) {
        let done = self.sender.recovery.recover <= self.sender.space.unacknowledged();
        // Without SACK the acknowledgment does not show which copy arrived.
        let tells = self.common.flags.contains(ConnectionFlags::SACK) || !delivery.retransmitted;
        let original = tells && delivery.original_end.is_some_and(|end| self.sender.recovery.recover >= end);
        let undo = self.sender.buffers.as_ref().map(|buffers| buffers.undo).unwrap_or_default();
        let mistaken = undo.all_were_duplicates() || undo.original_arrived(echo);
        // A segment sent before the timeout and not retransmitted arrived: it was not lost.
        if (self.sender.recovery.forward && original && sample.advanced_bytes > 0)
            || (self.common.config.undo && mistaken && sample.advanced_bytes > 0)
        {
            return self.undo_loss();
        }
        if done {
            self.end_recovery();
            return;
        }
        if !self.sender.recovery.forward {
            return;
        }
        if self.sender.recovery.recover < self.sender.space.next() {
            if sample.duplicate || delivery.sacked_bytes > 0 {
                // RFC 5682 §2.1, step 3a: the loss was real.
                self.sender.recovery.forward = false;
            }
        } else if sample.advanced_bytes > 0 {
            // Step 2b: new data is sent, and its acknowledgment decides. Without new data the timeout stays
            // unclassified.
            if self.may_send_new(sample.edge) {
                self.sender.recovery.recover = self.sender.space.next();
            } else {
                self.sender.recovery.forward = false;
            }
        }
    }
    /// Whether there is new data, and a window for it that reaches up to `edge`.
    fn may_send_new(&self, edge: Offset) -> bool {
        let next = self.sender.space.next();
        next < self.sender.stream_end() && next < edge
    }
    fn undo_loss(&mut self) {
        self.undo();
        if let Some(buffers) = &mut self.sender.buffers {
            buffers.flight.clear_lost();
        }
        self.end_recovery();
    }
    /// All retransmissions since the last reduction were duplicates: the reduction was spurious.
    fn undo_by_duplicates(&mut self) {
        let mistaken = self.sender.buffers.as_ref().is_some_and(|buffers| buffers.undo.all_were_duplicates());
        if mistaken && self.common.config.undo {
            self.undo();
        }
    }
    pub fn undo(&mut self) {
        self.sender.congestion.undo(self.env.now);
        self.sender.flags.remove(SenderFlags::WINDOW_REDUCED);
        if let Some(buffers) = &mut self.sender.buffers {
            buffers.undo.end();
        }
    }
    /// The window after an acknowledgment, which found recovery in `state`.
    fn move_window(
        &mut self,
        delivery: &DeliveryInfo,
        sample: &AckSample,
        newly_lost: bool,
        state: RecoveryState,
    ) {
        let segment = self.sender.segment_bytes();
        let in_flight = self.sender.in_flight_bytes();
        let delivered = if self.common.flags.contains(ConnectionFlags::SACK) {
            delivery.bytes
        } else {
            // Each duplicate acknowledgment counted a segment as delivered; those are not counted again.
            delivery.bytes.saturating_sub(sample.counted_bytes) + if sample.duplicate { segment } else { 0 }
        };
        if self.sender.recovery.reduces() && self.common.config.proportional_rate_reduction {
            let threshold = self.sender.congestion.window.threshold_bytes;
            let good = sample.advanced_bytes > 0 && !newly_lost;
            if (delivered > 0 || newly_lost)
                && let Some(buffers) = &mut self.sender.buffers
            {
                self.sender.congestion.window.window_bytes =
                    buffers.reduction.window(delivered, in_flight, threshold, segment, good);
            }
        }
        let reduced = matches!(state, RecoveryState::Recovery | RecoveryState::WindowReduction);
        let in_order = sample.advanced_bytes > 0 || self.congestion_window_grows_on_sack(delivered);
        if !in_order || (reduced && !self.sender.recovery.reduces()) {
            // The end of a reduction sets the window to ssthresh.
            return;
        }
        let bytes = match self.sender.recovery.state {
            // RFC 3465 §2.3: what one acknowledgment covers may have arrived long ago, so it counts for little.
            RecoveryState::Loss if !self.common.flags.contains(ConnectionFlags::SACK) => {
                delivered.min(2 * segment)
            }
            _ => delivered,
        };
        self.sender.grow(self.common, bytes, sample, self.env.now);
    }
    /// Whether selectively acknowledged data counts like data in order, because the path reorders.
    pub fn congestion_window_grows_on_sack(&self, delivered: u32) -> bool {
        self.common.config.policy.congestion_window_grows_on_sack
            && delivered > 0
            && self.sender.reordering_segments(self.common)
                > u32::from(self.common.config.reordering_segments)
    }
    /// The retransmission timer expired: retransmits the oldest segment, then continues in slow start (RFC 6298 §5, RFC
    /// 8985 §6.3, RFC 5682 §2).
    // spec: RFC6675 5.1-2, 5.1-1
    pub fn recover_by_timer(&mut self) {
        self.sender.history_mut().timeouts += 1;
        let in_flight = self.flight_size(self.sender.space.outstanding_bytes());
        let state = self.sender.recovery.state;
        // One reduction for each window of data.
        let repeated = match state {
            RecoveryState::Loss => !self.sender.recovery.progressed,
            // spec: RFC5681 4.3-4a
            // A retransmission of the recovery was lost: that is a second loss event (RFC 5681 §4.3).
            _ => false,
        };
        let first_time = state != RecoveryState::Loss;
        self.sender.congestion.timed_out(in_flight, repeated, self.env.now);
        self.sender.tell_of_reduction(self.common);
        if let Some(search) = self.sender.search_mut() {
            search.failed(self.env.now);
        }
        self.sender.suspect_black_hole(self.common);
        let smoothed = self.common.round_trip.smoothed().unwrap_or(Duration::ZERO);
        let by_time = self.common.config.rack && self.common.flags.contains(ConnectionFlags::SACK);
        let unacknowledged = self.sender.space.unacknowledged();
        let mut reneged = false;
        if let Some(buffers) = &mut self.sender.buffers {
            reneged = buffers.flight.is_reneged();
            if reneged {
                buffers.flight.renege();
            }
            let window = buffers.flight.rack.reordering_window(true, smoothed);
            buffers.flight.mark_lost_by_timer(by_time && !reneged, window, self.env.now);
            buffers.flight.refused = false;
            buffers.reorder_at = Instant::FAR_FUTURE;
            buffers.tail_probe.end();
            buffers.force = true;
            if first_time || self.sender.recovery.progressed {
                let has_retransmissions = state == RecoveryState::Recovery;
                buffers.undo = UndoState::begin(unacknowledged, has_retransmissions);
            }
        }
        self.sender.congestion.window.window_bytes += self.sender.in_flight_bytes();
        self.sender.flags.remove(SenderFlags::TAIL_PROBE);
        self.sender.recovery.duplicates = 0;
        // RFC 5682 §3.2: not if more of the data in flight was retransmitted before.
        self.sender.recovery.forward = self.common.config.forward_rto
            && !reneged
            && (first_time || self.sender.recovery.progressed)
            && state != RecoveryState::Recovery;
        self.sender.recovery.progressed = false;
        self.sender.recovery.state = RecoveryState::Loss;
        self.sender.recovery.recover = self.sender.space.next();
    }
    /// A probe of the tail was what arrived: the tail was lost, and the window pays for it (RFC 8985 §7.4.2).
    // spec: RFC8985 7.4.2-2
    pub fn probe_repaired_a_loss(&mut self, in_flight: u32) {
        if self.sender.recovery.state != RecoveryState::Open
            && self.sender.recovery.state != RecoveryState::Disorder
        {
            return;
        }
        self.sender.congestion.lost(in_flight, self.env.now);
        self.sender.congestion.recovered(self.env.now);
        self.sender.tell_of_reduction(self.common);
        self.tell_window();
    }
    /// Whether only the MTU probe is lost: then its size was the cause, not congestion (RFC 4821 §7.6.2). It is
    /// retransmitted in smaller segments.
    // spec: RFC4821 4-4, 7.6.2-1
    pub fn search_probe_lost(&mut self) -> bool {
        let Some((start, end)) = self.sender.search().and_then(Search::probe_range) else { return false };
        let Some(buffers) = &mut self.sender.buffers else { return false };
        let only = buffers.flight.lost_run(u32::MAX / 2, false) == Some((start, end))
            && buffers.flight.lost_bytes() == end.since(start);
        if only {
            buffers.flight.refused = true;
            // Further duplicate acknowledgments report the same loss.
            self.sender.recovery.duplicates = 0;
            self.sender.recovery.recover = self.sender.space.next();
        }
        if let Some(search) = self.sender.search_mut() {
            search.failed(self.env.now);
        }
        only
    }
    fn tell_window(&mut self) {
        let smoothed = self.common.round_trip.smoothed().unwrap_or(Duration::ZERO);
        let (socket, sender) = (self.env.socket, &*self.sender);
        self.env.emit(Mask::RECOVERY, || {
            Event::WindowChanged(WindowChanged {
                socket,
                congestion_window_bytes: sender.congestion.window.window_bytes,
                slow_start_threshold_bytes: sender.congestion.window.threshold_bytes,
                send_window_bytes: sender.space.window,
                smoothed_round_trip: smoothed,
            })
        });
    }
}
