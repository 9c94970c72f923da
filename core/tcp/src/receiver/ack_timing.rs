//! Delayed acknowledgments (RFC 9293 §3.8.6.3, RFC 5681 §4.2), with a fixed delay or an adaptive one.
//!
//! With [`Policy::adaptive_delayed_acks`](crate::Policy::adaptive_delayed_acks) the first segments of a connection, and those
//! after an idle period, are acknowledged at once (quick-ACK mode), because the peer is in slow start and counts
//! acknowledgments. After that an acknowledgment waits about as long as the time between segments, so that it covers the
//! next one, too. If the application answers within that time, the connection is interactive, and acknowledgments travel with
//! the answers.

use super::Receiver;
use crate::arrival::{Arrival, Coming};
use crate::common::Common;
use crate::flags::{ConnectionFlags, ReceiverFlags};
use crate::sender::next::Next;
use inhost_base::{Duration, Instant};
use inhost_buf::Batch;
use inhost_event::TcpState;

/// The initial delay, and the minimum for bulk data, in milliseconds.
const MIN_DELAY_MS: u16 = 40;

/// The minimum delay: a shorter one is rounded up to a tick of the timer.
const TICK: Duration = Duration::from_millis(1);

/// The maximum delay on an interactive connection, or until the end of a write is read.
const MAX_DELAY_MS: u16 = 200;

/// The maximum of the configured delay (RFC 9293 §3.8.6.3).
// spec: RFC9293 MUST-40; RFC5681 4.2-2
const MAX_ACKNOWLEDGMENT_DELAY: Duration = Duration::from_millis(500);

/// The maximum of the adaptive delay for bulk data (RFC 9293 §3.8.6.3).
const MAX_STREAM_DELAY_MS: u16 = 500;

/// Duplicate acknowledgments owed at a time: one for each segment of a batch.
const MOST_DUPLICATES_DUE: u8 = Batch::LIMIT as u8;

/// Minimum payload that lets the window grow.
const GROWING_BYTES: u32 = 128;

/// State of delayed acknowledgments: quick-ACK mode, interactive mode, and the arrival rate of data.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct AckTiming {
    /// Duplicate acknowledgments that are due, one for each out-of-order segment.
    duplicates_due: u8,
    /// Acknowledgments left to send at once: above zero in quick-ACK mode.
    quick: u8,
    /// Unacknowledged segments that end a write (short, or with PSH), up to two.
    pushes: u8,
    /// Current delay in milliseconds; 0 before any data.
    delay_ms: u16,
    /// Payload of the latest segment, if it was short and may be a full segment of the peer's.
    short_bytes: u16,
    /// When data last arrived, in milliseconds of the host's time.
    data_at_ms: u32,
    /// Bytes of [`crate::Config::window_growth_bytes`] that are used up.
    grown_bytes: u32,
}

fn millis(now: Instant) -> u32 {
    now.as_millis() as u32
}
/// In milliseconds, a minute at most.
fn in_ms(duration: Duration) -> u16 {
    duration.as_millis().min(60_000) as u16
}

impl AckTiming {
    pub fn new(now: Instant) -> Self {
        AckTiming { data_at_ms: millis(now), ..AckTiming::default() }
    }
    /// Whether the next acknowledgment is sent at once (quick-ACK mode).
    pub fn is_quick(&self) -> bool {
        self.quick > 0
    }
    /// Time since data last arrived.
    pub fn since_data(&self, now: Instant) -> Duration {
        Duration::from_millis(u64::from(millis(now).wrapping_sub(self.data_at_ms)))
    }
    /// Enters quick-ACK mode for as many acknowledgments as half the window holds segments (2 if none), `most` at most.
    fn raise_quick_acks(&mut self, most: u8, window_bytes: u32, segment_bytes: u16) {
        let segments = window_bytes / (2 * u32::from(segment_bytes.max(1)));
        let wanted = if segments == 0 { 2 } else { segments.min(255) as u8 };
        self.quick = self.quick.max(wanted.min(most));
    }
    /// A segment came out of order: one more duplicate is due.
    pub fn owe_duplicate(&mut self) {
        self.duplicates_due = self.duplicates_due.saturating_add(1).min(MOST_DUPLICATES_DUE);
    }
    /// Data in order came: no duplicate is due.
    pub fn forgive_duplicates(&mut self) {
        self.duplicates_due = 0;
    }
}

/// Acknowledgments to send at once after an event such as loss or reordering.
pub(crate) const QUICK_AFTER_TROUBLE: u8 = 16;
/// Minimum payload of a segment that may be a full one of a peer with a small MSS.
const LEAST_FULL_BYTES: u32 = 88;
/// From this payload on a segment may be a full one regardless of its flags.
const USUAL_FULL_BYTES: u32 = 536;
/// With this much room for window growth, memory does not limit the window.
const AMPLE_BYTES: u32 = 64 << 10;

impl Receiver {
    /// Data arrived in order: updates the arrival rate and the peer's segment size.
    #[inline]
    pub fn note_data(&mut self, common: &Common, coming: Coming, now: Instant) {
        if common.acks_adapt() {
            return self.adapt_to(common, coming, now);
        }
        self.ack_timing.data_at_ms = millis(now);
        let most = u32::from(common.path_mss());
        let largest = self.space.segment_bytes().max(coming.bytes.min(most) as u16);
        self.space.assume_segments_of(largest);
    }
    fn adapt_to(&mut self, common: &Common, coming: Coming, now: Instant) {
        let gap = self.ack_timing.since_data(now);
        self.ack_timing.data_at_ms = millis(now);
        self.measure_segments(common, coming);
        let timeout = common.base_timeout();
        let gap_ms = gap.as_millis().min(u64::from(u16::MAX)) as u16;
        let most = common.config().quick_acknowledgments;
        let window = self.space.window();
        let mss = self.space.segment_bytes();
        let timing = &mut self.ack_timing;
        match timing.delay_ms {
            0 => {
                timing.raise_quick_acks(most, window, mss);
                timing.delay_ms = MIN_DELAY_MS;
            }
            delay if gap_ms <= MIN_DELAY_MS / 2 => timing.delay_ms = delay / 2 + MIN_DELAY_MS / 2,
            delay if gap_ms < delay => {
                timing.delay_ms = (delay / 2 + gap_ms).min(in_ms(timeout));
            }
            // After an idle period longer than its RTO the peer is in slow start again.
            _ if gap > timeout => timing.raise_quick_acks(most, window, mss),
            _ => {}
        }
        if coming.bytes >= GROWING_BYTES {
            self.tell_of_growth(common, coming.bytes);
        }
    }
    /// Data arrived: its acknowledgment is due now, or is delayed so that it covers more (MIT §3.3, RFC 9293 §3.8.6.3).
    // spec: RFC9293 MUST-58 (acknowledgments are aggregated: this only takes note; `transmit` sends one)
    // spec: RFC9293 MUST-59 (after all segments of the round are processed), SHLD-18, SHLD-19; RFC5681 4.2-1, 4.2-3
    #[inline]
    pub fn schedule_acknowledgment(&mut self, common: &Common, now: Instant) {
        self.flags.insert(ReceiverFlags::SCHEDULED);
        if common.acks_adapt() {
            return self.schedule_adaptive(common, now);
        }
        let waiting = self.space.unacknowledged_bytes();
        let delay = common.config().acknowledgment_delay.min(MAX_ACKNOWLEDGMENT_DELAY);
        if waiting >= 2 * u32::from(self.space.segment_bytes())
            || delay == Duration::ZERO
            || self.ack_timing.is_quick()
        {
            self.flags.insert(ReceiverFlags::ACKNOWLEDGE);
        } else if !self.acknowledge_at.is_set() {
            self.acknowledge_at.set(now + delay);
        }
    }
    /// When what waits to be acknowledged is, now that this segment is taken. An acknowledgment alone is a matter of the
    /// sender's.
    pub fn schedule_what_came(&mut self, common: &Common, arrival: &Arrival<'_>, now: Instant) {
        if !self.flags.contains(ReceiverFlags::SCHEDULED) || !arrival.bears_stream() {
            return;
        }
        if !common.acks_adapt() {
            if !self.flags.contains(ReceiverFlags::ACKNOWLEDGE) {
                self.schedule_acknowledgment(common, now);
            }
            return;
        }
        if arrival.header.flags.cwr() && common.has(ConnectionFlags::ECN) {
            // Its window may be very small.
            self.flags.insert(ReceiverFlags::ACKNOWLEDGE);
        }
        self.schedule_adaptive(common, now);
    }
    /// Schedules the acknowledgment of data or FIN, now or after the adaptive delay.
    pub fn schedule_adaptive(&mut self, common: &Common, now: Instant) {
        let waiting = self.space.unacknowledged_bytes();
        let timing = &self.ack_timing;
        let is_quick = timing.quick > 0 && !self.flags.contains(ReceiverFlags::INTERACTIVE);
        if self.flags.contains(ReceiverFlags::ACKNOWLEDGE)
            || waiting > u32::from(self.space.segment_bytes())
            || is_quick
        {
            self.flags.insert(ReceiverFlags::ACKNOWLEDGE);
            return;
        }
        let delay = self.adaptive_delay(common);
        if self.acknowledge_at.has_come(now + delay.divided_by(4)) {
            // Its timer is about to expire in any case.
            self.flags.insert(ReceiverFlags::ACKNOWLEDGE);
        } else {
            self.acknowledge_at.bring_forward(now + delay.max(TICK));
        }
    }
    /// The delay of the acknowledgment for the segment that just arrived.
    fn adaptive_delay(&self, common: &Common) -> Duration {
        let timing = &self.ack_timing;
        let mut delay = timing.delay_ms;
        if delay > MIN_DELAY_MS {
            let awaits_reply = self.flags.contains(ReceiverFlags::INTERACTIVE) || timing.pushes > 0;
            let mut most = if awaits_reply { MAX_DELAY_MS } else { MAX_STREAM_DELAY_MS };
            if let Some(smoothed) = common.round_trip().smoothed() {
                most = most.min(in_ms(smoothed).max(MIN_DELAY_MS));
            }
            delay = delay.min(most);
        }
        Duration::from_millis(u64::from(delay.min(MAX_DELAY_MS)))
    }
    /// Estimates the peer's segment size: the longest payload, or that of two segments of equal length in a row.
    pub fn measure_segments(&mut self, common: &Common, coming: Coming) {
        let Coming { bytes, push, is_marked, .. } = coming;
        let options = common.options_bytes();
        let before = core::mem::take(&mut self.ack_timing.short_bytes);
        if bytes >= u32::from(self.space.segment_bytes()) {
            let most = common.offered_mss() - options;
            self.space.assume_segments_of(bytes.min(u32::from(most)) as u16);
            if push {
                self.ack_timing.pushes = self.ack_timing.pushes.max(1);
            }
            return;
        }
        let length = bytes + u32::from(options);
        if length >= USUAL_FULL_BYTES || (length >= LEAST_FULL_BYTES && !push && !is_marked) {
            self.ack_timing.short_bytes = bytes as u16;
            // With little memory Linux also checks whether the window would shrink, and waits.
            if before == bytes as u16 && common.config().window_growth_bytes >= AMPLE_BYTES {
                self.space.assume_segments_of(before);
                return;
            }
        }
        self.ack_timing.pushes = (self.ack_timing.pushes + 1).min(2);
    }
    /// A segment arrived that lets the window grow: acknowledge at once, so that the peer learns of the larger window.
    pub fn tell_of_growth(&mut self, common: &Common, bytes: u32) {
        let timing = &mut self.ack_timing;
        if timing.grown_bytes < common.config().window_growth_bytes {
            let more = 2 * bytes.max(u32::from(self.space.segment_bytes()));
            timing.grown_bytes = timing.grown_bytes.saturating_add(more);
            timing.quick |= 1;
        }
    }
    /// Enters quick-ACK mode for up to `most` acknowledgments, after a segment that was not the next in order. Ends interactive
    /// mode.
    pub fn enter_quick_ack_mode(&mut self, common: &Common, most: u8) {
        if !common.acks_adapt() {
            return;
        }
        let window = self.space.window();
        self.ack_timing.raise_quick_acks(most, window, self.space.segment_bytes());
        self.flags.remove(ReceiverFlags::INTERACTIVE);
        self.ack_timing.delay_ms = MIN_DELAY_MS;
    }
    /// Data is sent: if it answers data that arrived within the delay, the connection is interactive.
    #[inline]
    pub fn note_answer(&mut self, common: &Common, now: Instant) {
        let answers_handshake =
            common.has(ConnectionFlags::ACTIVE_OPEN) && self.flags.contains(ReceiverFlags::ACKNOWLEDGE);
        if common.acks_adapt() && self.ack_timing.delay_ms == 0 && answers_handshake {
            // Data is sent together with the last step of the handshake.
            self.enter_quick_ack_mode(common, QUICK_AFTER_TROUBLE);
        }
        let delay = Duration::from_millis(u64::from(self.ack_timing.delay_ms));
        if self.ack_timing.since_data(now) < delay {
            self.flags.insert(ReceiverFlags::INTERACTIVE);
        }
    }
    /// A SYN-ACK arrived: the last step of the handshake is sent now, or with the application's first data if it asked for
    /// that. It offers the whole window.
    pub fn acknowledge_handshake(&mut self, common: &Common, now: Instant) {
        self.space.offer(self.window_space(common));
        if common.acks_adapt() && self.flags.contains(ReceiverFlags::INTERACTIVE) {
            self.enter_quick_ack_mode(common, QUICK_AFTER_TROUBLE);
            self.flags.insert(ReceiverFlags::SCHEDULED);
            self.space.acknowledge();
            self.acknowledge_at.set(now + Duration::from_millis(u64::from(MAX_DELAY_MS)));
        } else {
            self.flags.insert(ReceiverFlags::ACKNOWLEDGE);
        }
    }
    /// Something came that is acknowledged now.
    pub fn acknowledge_now(&mut self) {
        self.flags.insert(ReceiverFlags::SCHEDULED | ReceiverFlags::ACKNOWLEDGE);
    }
    /// The peer repeats what was acknowledged: it missed that.
    pub fn acknowledge_again(&mut self, common: &Common) {
        self.enter_quick_ack_mode(common, QUICK_AFTER_TROUBLE);
        self.acknowledge_now();
    }
    /// The delayed acknowledgment is sent now, if its time has come. Where acknowledgments adapt, the next delay is longer for bulk
    /// data, and interactive mode ends.
    pub fn fire(&mut self, common: &Common, now: Instant) {
        if !self.acknowledge_at.has_come(now) {
            return;
        }
        self.acknowledge_at.stop();
        self.flags.insert(ReceiverFlags::ACKNOWLEDGE);
        if common.acks_adapt() && self.flags.contains(ReceiverFlags::INTERACTIVE) {
            self.flags.remove(ReceiverFlags::INTERACTIVE);
            self.ack_timing.delay_ms = MIN_DELAY_MS;
        } else if common.acks_adapt() {
            let longer = self.ack_timing.delay_ms.saturating_mul(2);
            self.ack_timing.delay_ms = longer.min(in_ms(common.base_timeout()));
        }
    }
    /// The handshake is done, which counts as an arrival of data.
    pub fn opened(&mut self, now: Instant) {
        self.ack_timing.data_at_ms = millis(now);
    }
    /// The application has read. If it has read the end of a write, no more data is expected, and the acknowledgment is due.
    #[inline]
    pub fn acknowledge_what_was_read(&mut self, common: &Common) {
        if !common.acks_adapt() || !self.flags.contains(ReceiverFlags::SCHEDULED) {
            return;
        }
        let waiting = self.space.unacknowledged_bytes();
        let timing = &self.ack_timing;
        let end_was_read =
            timing.pushes > 1 || (timing.pushes > 0 && !self.flags.contains(ReceiverFlags::INTERACTIVE));
        let is_fin_unread = self.flags.contains(ReceiverFlags::FIN_UNREAD);
        let holds_data = self.buffers.as_ref().is_some_and(|buffers| !buffers.are_empty());
        if waiting > u32::from(self.space.segment_bytes()) || (end_was_read && !is_fin_unread && !holds_data)
        {
            self.flags.insert(ReceiverFlags::ACKNOWLEDGE);
        }
    }
    /// Sets TCP_QUICKACK: acknowledgments at once, or with the application's answers.
    pub fn set_ack_timing(&mut self, common: &Common, quick: bool) {
        self.flags.set(ReceiverFlags::INTERACTIVE, !quick);
        if common.acks_adapt() {
            let counts = matches!(common.state(), TcpState::Established | TcpState::CloseWait);
            if quick && counts {
                self.ack_timing.pushes = self.ack_timing.pushes.max(1);
                self.acknowledge_what_was_read(common);
            }
            return;
        }
        self.ack_timing.quick = if quick { QUICK_AFTER_TROUBLE } else { 0 };
        if quick && self.acknowledge_at.is_set() {
            self.flags.insert(ReceiverFlags::ACKNOWLEDGE);
        }
    }
    /// The segment `next` was sent with an acknowledgment and the window `window_field`.
    #[inline]
    pub fn acknowledgment_sent(&mut self, next: Next, window_field: u16) {
        let timing = &mut self.ack_timing;
        if self.flags.contains(ReceiverFlags::SCHEDULED) {
            if timing.quick == 1 {
                timing.delay_ms = MIN_DELAY_MS;
            }
            timing.quick = timing.quick.saturating_sub(1);
        }
        timing.pushes = 0;
        self.flags.remove(ReceiverFlags::SCHEDULED);
        // One that acknowledges delayed data, too, tells as much: it has the SACK blocks.
        timing.duplicates_due = timing.duplicates_due.saturating_sub(u8::from(next == Next::Acknowledge));
        self.flags.set(ReceiverFlags::ACKNOWLEDGE, timing.duplicates_due > 0);
        self.acknowledge_at.stop();
        self.space.acknowledge();
        let offered = match next {
            Next::Synchronise => u32::from(window_field),
            _ => u32::from(window_field) << self.space.scale(),
        };
        self.space.offer(offered);
    }
}
