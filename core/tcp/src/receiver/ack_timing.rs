//! How soon data is acknowledged (RFC 9293 §3.8.6.3, RFC 5681 §4.2): after a fixed delay, or one that adapts.
//!
//! With [`DelayedAck::Adaptive`](crate::DelayedAck::Adaptive) the first segments of a connection, and those after a silence, are
//! acknowledged at once, because the peer is in slow start and counts acknowledgments. After that an acknowledgment
//! waits about as long as the pause between segments, so that it meets the next. Where the application answers within
//! that time, the exchange is a conversation, and acknowledgments wait for the answers.

use super::Receiver;
use crate::arrival::Coming;
use crate::common::Common;
use crate::flags::{ConnectionFlags, ReceiverFlags};
use crate::sender::next::Next;
use crate::sender::rtt::RoundTrip;
use inhost_base::{Duration, Instant};
use inhost_event::TcpState;

/// The wait that a connection begins with, and the least in a stream, in milliseconds.
const MIN_DELAY_MS: u16 = 40;

/// The shortest that one waits, because even that is left to a timer.
const TICK: Duration = Duration::from_millis(1);

/// The longest that an acknowledgment waits in a conversation, or for the end of a write to be read.
const MAX_DELAY_MS: u16 = 200;

/// The longest that an acknowledgment may wait (RFC 9293 §3.8.6.3).
// spec: RFC9293 MUST-40; RFC5681 4.2-2
const MAX_ACKNOWLEDGMENT_DELAY: Duration = Duration::from_millis(500);

/// The longest that any waits (RFC 9293 §3.8.6.3).
const MAX_STREAM_DELAY_MS: u16 = 500;

/// Least payload with which the window grows.
const GROWING_BYTES: u32 = 128;

/// Longer than any exchange waits for an answer.
const LONG_AGO_MS: u32 = 1 << 30;

/// What is known of the pace of arriving data.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AckTiming {
    /// Acknowledgments without data that the peer is owed for segments ahead of a hole.
    pub duplicates_due: u8,
    /// Acknowledgments that still go at once.
    quick: u8,
    /// Ends of writes among what is not acknowledged: a short segment, or one with PSH. Two count as many. The bit
    /// [`INTERACTIVE`] says that the exchange is a conversation, [`WAITS_FOR_HOLE`] that the acknowledgment waits for
    /// others of the same hole.
    bits: u8,
    /// Acknowledgments of the hole that is there now.
    hole_acks: u8,
    /// How long an acknowledgment waits, in milliseconds; 0 before any data.
    delay_ms: u16,
    /// Payload of the latest segment, where it was short and may have been a full one.
    short_bytes: u16,
    /// When data came last, in milliseconds of the host's time.
    data_at_ms: u32,
    /// How much of [`crate::Config::window_growth_bytes`] is used up.
    grown_bytes: u32,
}

/// See [`AckTiming::habits`].
const INTERACTIVE: u8 = 0x80;

const WAITS_FOR_HOLE: u8 = 0x40;

const ECN_SEEN: u8 = 0x20;

/// What of it lasts when an acknowledgment leaves.
const KEPT_AFTER_ACK: u8 = INTERACTIVE | ECN_SEEN;

fn millis(now: Instant) -> u32 {
    now.as_millis() as u32
}

impl AckTiming {
    pub fn new(now: Instant) -> Self {
        AckTiming { data_at_ms: millis(now), ..AckTiming::default() }
    }
    fn is_interactive(&self) -> bool {
        self.bits & INTERACTIVE != 0
    }
    fn set_interactive(&mut self, on: bool) {
        self.bits = self.bits & !INTERACTIVE | if on { INTERACTIVE } else { 0 };
    }
    fn pushes(&self) -> u8 {
        self.bits & !(KEPT_AFTER_ACK | WAITS_FOR_HOLE)
    }
    fn set_pushes(&mut self, count: u8) {
        self.bits = (self.bits & (KEPT_AFTER_ACK | WAITS_FOR_HOLE)) | count;
    }
    /// The handshake is done, which counts as data, save that of calls that crossed.
    pub fn opened(&mut self, crossed: bool, now: Instant) {
        self.data_at_ms = millis(now).wrapping_sub(if crossed { LONG_AGO_MS } else { 0 });
    }
    /// Whether segments have come that were capable of congestion notification.
    pub fn has_seen_ecn(&self) -> bool {
        self.bits & ECN_SEEN != 0
    }
    /// One has come.
    pub fn saw_ecn(&mut self) {
        self.bits |= ECN_SEEN;
    }
    /// Whether the next acknowledgment goes at once.
    pub fn is_quick(&self) -> bool {
        self.quick > 0
    }
    /// How long ago data came.
    pub fn since_data(&self, now: Instant) -> Duration {
        Duration::from_millis(u64::from(millis(now).wrapping_sub(self.data_at_ms)))
    }
    /// The next acknowledgments go at once: as many as half the window has room for segments.
    fn raise_quick_acks(&mut self, most: u8, window_bytes: u32, segment_bytes: u16) {
        let segments = window_bytes / (2 * u32::from(segment_bytes.max(1)));
        let wanted = if segments == 0 { 2 } else { segments.min(255) as u8 };
        self.quick = self.quick.max(wanted.min(most));
    }
    /// An acknowledgment left, alone or with data.
    pub fn acknowledged(&mut self, one_was_due: bool) {
        if one_was_due {
            if self.quick == 1 {
                self.delay_ms = MIN_DELAY_MS;
            }
            self.quick = self.quick.saturating_sub(1);
        }
        self.bits &= KEPT_AFTER_ACK;
    }
}

/// Acknowledgments at once after something out of the ordinary.
pub(crate) const QUICK_AFTER_TROUBLE: u8 = 16;
/// Least payload of a short segment that may be a full one of a peer that sends smaller ones.
const LEAST_FULL_BYTES: u32 = 88;
/// From this payload on it may be one whatever flags it bears.
const USUAL_FULL_BYTES: u32 = 536;
/// From so much room for the window on, memory is no matter.
const AMPLE_BYTES: u32 = 64 << 10;
/// Acknowledgments of one hole that go at once.
const HOLE_ACKNOWLEDGMENTS: u8 = 3;
/// How long those that follow wait for each other.
const HOLE_DELAY: Duration = Duration::from_millis(1);

impl Receiver {
    /// Data came in order: what its coming tells about the pace.
    #[inline]
    pub fn note_data(&mut self, common: &Common, round_trip: &RoundTrip, coming: Coming, now: Instant) {
        if common.acks_adapt() {
            return self.adapt_to(common, round_trip, coming, now);
        }
        self.ack_timing.data_at_ms = millis(now);
        let most = u32::from(common.path_mss);
        self.receive_mss = self.receive_mss.max(coming.bytes.min(most) as u16);
    }
    fn adapt_to(&mut self, common: &Common, round_trip: &RoundTrip, coming: Coming, now: Instant) {
        let gap = self.ack_timing.since_data(now);
        self.ack_timing.data_at_ms = millis(now);
        self.ack_timing.hole_acks = 0;
        self.measure_segments(common, coming);
        let timeout = round_trip.base_timeout(&common.config);
        let gap_ms = gap.as_millis().min(u64::from(u16::MAX)) as u16;
        let most = common.config.quick_acknowledgments;
        let window = self.space.edge.since(self.space.next);
        let mss = self.receive_mss;
        let timing = &mut self.ack_timing;
        match timing.delay_ms {
            0 => {
                timing.raise_quick_acks(most, window, mss);
                timing.delay_ms = MIN_DELAY_MS;
            }
            delay if gap_ms <= MIN_DELAY_MS / 2 => timing.delay_ms = delay / 2 + MIN_DELAY_MS / 2,
            delay if gap_ms < delay => {
                timing.delay_ms = (delay / 2 + gap_ms).min(timeout.as_millis().min(60_000) as u16);
            }
            // The peer was silent for long, and is in slow start again.
            _ if gap > timeout => timing.raise_quick_acks(most, window, mss),
            _ => {}
        }
        if coming.bytes >= GROWING_BYTES {
            self.grow_window(common, coming.bytes);
        }
    }
    /// Data came: its acknowledgment is due now, or waits a little for company (MIT §3.3, RFC 9293 §3.8.6.3).
    // spec: RFC9293 MUST-58 (acknowledgments are aggregated: this only takes note; `transmit` sends one)
    // spec: RFC9293 MUST-59 (after all segments of the round are processed), SHLD-18, SHLD-19; RFC5681 4.2-1, 4.2-3
    #[inline]
    pub fn schedule_acknowledgment(&mut self, common: &Common, round_trip: &RoundTrip, now: Instant) {
        self.flags.set(ReceiverFlags::SCHEDULED);
        if common.acks_adapt() {
            return self.schedule_adaptive(common, round_trip, now);
        }
        let waiting = self.space.next.since(self.space.acknowledged);
        let delay = common.config.acknowledgment_delay.min(MAX_ACKNOWLEDGMENT_DELAY);
        if waiting >= 2 * u32::from(self.receive_mss) || delay == Duration::ZERO || self.ack_timing.is_quick()
        {
            self.flags.set(ReceiverFlags::ACKNOWLEDGE);
        } else if self.acknowledge_at == Instant::FAR_FUTURE {
            self.acknowledge_at = now + delay;
        }
    }
    /// Data or FIN waits to be acknowledged: now, or after a while.
    pub fn schedule_adaptive(&mut self, common: &Common, round_trip: &RoundTrip, now: Instant) {
        let waiting = self.space.next.since(self.space.acknowledged);
        let timing = &self.ack_timing;
        let is_quick = timing.quick > 0 && !timing.is_interactive();
        if self.flags.has(ReceiverFlags::ACKNOWLEDGE) || waiting > u32::from(self.receive_mss) || is_quick {
            self.flags.set(ReceiverFlags::ACKNOWLEDGE);
        } else if self.buffers.as_ref().is_some_and(|buffers| !buffers.reassembly.is_empty()) {
            self.acknowledge_hole(common, now);
        } else {
            self.delay_acknowledgment(round_trip, now);
        }
    }
    fn delay_acknowledgment(&mut self, round_trip: &RoundTrip, now: Instant) {
        let delay = self.adaptive_delay(round_trip);
        if self.acknowledge_at <= now + delay.divided_by(4) {
            // It is about to go in any case.
            self.flags.set(ReceiverFlags::ACKNOWLEDGE);
        } else {
            self.acknowledge_at = self.acknowledge_at.min(now + delay.max(TICK));
        }
    }
    /// How long the acknowledgment of what just came waits.
    fn adaptive_delay(&self, round_trip: &RoundTrip) -> Duration {
        let timing = &self.ack_timing;
        let mut delay = timing.delay_ms;
        if delay > MIN_DELAY_MS {
            let awaits_reply = timing.is_interactive() || timing.pushes() > 0;
            let mut most = if awaits_reply { MAX_DELAY_MS } else { MAX_STREAM_DELAY_MS };
            if let Some(smoothed) = round_trip.smoothed() {
                most = most.min((smoothed.as_millis().min(60_000) as u16).max(MIN_DELAY_MS));
            }
            delay = delay.min(most);
        }
        Duration::from_millis(u64::from(delay.min(MAX_DELAY_MS)))
    }
    /// The wait was for nothing: the next one is longer in a stream, and the conversation is over.
    pub fn delayed_ack_expired(&mut self, common: &Common, round_trip: &RoundTrip) {
        if !common.acks_adapt() {
            return;
        }
        let timeout = round_trip.base_timeout(&common.config).as_millis().min(60_000) as u16;
        let timing = &mut self.ack_timing;
        if timing.bits & WAITS_FOR_HOLE != 0 {
            // It came as soon as it was to.
        } else if timing.is_interactive() {
            timing.set_interactive(false);
            timing.delay_ms = MIN_DELAY_MS;
        } else {
            timing.delay_ms = timing.delay_ms.saturating_mul(2).min(timeout);
        }
    }
    /// What a full segment of the peer's is: the longest, or two of the same length in a row.
    pub fn measure_segments(&mut self, common: &Common, coming: Coming) {
        let Coming { bytes, push, is_marked, new_bytes: _ } = coming;
        let options = common.options_bytes();
        let before = core::mem::take(&mut self.ack_timing.short_bytes);
        if bytes >= u32::from(self.receive_mss) {
            let most = common.offered_mss.min(common.config.mss_limit_bytes) - options;
            self.receive_mss = bytes.min(u32::from(most)) as u16;
            if push {
                let count = self.ack_timing.pushes().max(1);
                self.ack_timing.set_pushes(count);
            }
            return;
        }
        let length = bytes + u32::from(options);
        if length >= USUAL_FULL_BYTES || (length >= LEAST_FULL_BYTES && !push && !is_marked) {
            self.ack_timing.short_bytes = bytes as u16;
            // With little memory Linux asks besides whether the window would shrink, and waits.
            if before == bytes as u16 && common.config.window_growth_bytes >= AMPLE_BYTES {
                self.receive_mss = before;
                return;
            }
        }
        let count = (self.ack_timing.pushes() + 1).min(2);
        self.ack_timing.set_pushes(count);
    }
    /// A segment came with which the window grows, as long as there is memory: the peer is told at once.
    pub fn grow_window(&mut self, common: &Common, bytes: u32) {
        let timing = &mut self.ack_timing;
        if timing.grown_bytes < common.config.window_growth_bytes {
            let more = 2 * bytes.max(u32::from(self.receive_mss));
            timing.grown_bytes = timing.grown_bytes.saturating_add(more);
            timing.quick |= 1;
        }
    }
    /// Something came that is no ordinary next segment: the peer wants to hear of each, up to so many.
    pub fn enter_quick_ack_mode(&mut self, common: &Common, most: u8) {
        if !common.acks_adapt() {
            return;
        }
        let window = self.space.edge.since(self.space.next);
        self.ack_timing.raise_quick_acks(most, window, self.receive_mss);
        self.ack_timing.set_interactive(false);
        self.ack_timing.delay_ms = MIN_DELAY_MS;
    }
    /// Data leaves: if it answers what came just now, the two have a conversation.
    #[inline]
    pub fn note_answer(&mut self, common: &Common, now: Instant) {
        let answers_handshake =
            common.flags.has(ConnectionFlags::ACTIVE) && self.flags.has(ReceiverFlags::ACKNOWLEDGE);
        if common.acks_adapt() && self.ack_timing.delay_ms == 0 && answers_handshake {
            // Data leaves together with the last step of the handshake.
            self.enter_quick_ack_mode(common, QUICK_AFTER_TROUBLE);
        }
        let delay = Duration::from_millis(u64::from(self.ack_timing.delay_ms));
        if self.ack_timing.since_data(now) < delay {
            self.ack_timing.set_interactive(true);
        }
    }
    /// The other's SYN answered ours: the last step of the handshake goes now, or with what the application says first
    /// where it has asked for that.
    pub fn acknowledge_handshake(&mut self, common: &Common, now: Instant) {
        if common.acks_adapt() && self.ack_timing.is_interactive() {
            self.enter_quick_ack_mode(common, QUICK_AFTER_TROUBLE);
            self.flags.set(ReceiverFlags::SCHEDULED);
            self.space.acknowledged = self.space.next;
            self.acknowledge_at = now + Duration::from_millis(u64::from(MAX_DELAY_MS));
        } else {
            self.flags.set(ReceiverFlags::ACKNOWLEDGE);
        }
    }
    /// The first acknowledgments of a hole go at once, the others a few at a time.
    fn acknowledge_hole(&mut self, common: &Common, now: Instant) {
        let timing = &mut self.ack_timing;
        if timing.hole_acks < HOLE_ACKNOWLEDGMENTS || !common.flags.has(ConnectionFlags::SACK) {
            timing.hole_acks = timing.hole_acks.saturating_add(1);
            self.flags.set(ReceiverFlags::ACKNOWLEDGE);
        } else {
            timing.bits |= WAITS_FOR_HOLE;
            self.acknowledge_at = self.acknowledge_at.min(now + HOLE_DELAY);
        }
    }
    /// The peer's FIN came: an answer may follow, our FIN at least, and the exchange is a conversation.
    pub fn schedule_for_fin(&mut self) {
        self.ack_timing.set_interactive(true);
        self.flags.set(ReceiverFlags::SCHEDULED);
        let is_alone = self.buffers.as_ref().is_none_or(|buffers| buffers.receive.is_empty());
        self.flags.put(ReceiverFlags::FIN_UNREAD, is_alone);
    }
    /// The application has read: where it has read the end of a write, nothing more will come to wait for.
    #[inline]
    pub fn acknowledge_what_was_read(&mut self, common: &Common) {
        if !common.acks_adapt() || !self.flags.has(ReceiverFlags::SCHEDULED) {
            return;
        }
        let waiting = self.space.next.since(self.space.acknowledged);
        let timing = &self.ack_timing;
        let end_was_read = timing.pushes() > 1 || (timing.pushes() > 0 && !timing.is_interactive());
        let is_fin_unread = self.flags.has(ReceiverFlags::FIN_UNREAD);
        if waiting > u32::from(self.receive_mss) || (end_was_read && !is_fin_unread && !self.holds_received())
        {
            self.flags.set(ReceiverFlags::ACKNOWLEDGE);
        }
    }
    /// Whether data of the peer's is held, in order or not.
    fn holds_received(&self) -> bool {
        self.buffers
            .as_ref()
            .is_some_and(|buffers| !buffers.receive.is_empty() || !buffers.reassembly.is_empty())
    }
    /// The application wants acknowledgments at once, or with its answers.
    pub fn set_ack_timing(&mut self, common: &Common, quick: bool) {
        self.ack_timing.set_interactive(!quick);
        if common.acks_adapt() {
            let counts = matches!(common.state, TcpState::Established | TcpState::CloseWait);
            if quick && counts {
                let count = self.ack_timing.pushes().max(1);
                self.ack_timing.set_pushes(count);
                self.acknowledge_what_was_read(common);
            }
            return;
        }
        self.ack_timing.quick = if quick { QUICK_AFTER_TROUBLE } else { 0 };
        if quick && self.acknowledge_at != Instant::FAR_FUTURE {
            self.flags.set(ReceiverFlags::ACKNOWLEDGE);
        }
    }
    /// With `next` an acknowledgment left, and a window.
    #[inline]
    pub fn acknowledgment_left(&mut self, common: &Common, next: Next, window_field: u16) {
        self.ack_timing.acknowledged(self.flags.has(ReceiverFlags::SCHEDULED));
        self.flags.clear(ReceiverFlags::SCHEDULED);
        let is_duplicate = next == Next::Acknowledge && self.space.acknowledged == self.space.next;
        self.ack_timing.duplicates_due =
            self.ack_timing.duplicates_due.saturating_sub(u8::from(is_duplicate));
        self.flags.put(ReceiverFlags::ACKNOWLEDGE, self.ack_timing.duplicates_due > 0);
        self.acknowledge_at = Instant::FAR_FUTURE;
        self.space.acknowledged = self.space.next;
        let offered = match next {
            Next::Synchronise if common.config.policy.syn_advertises_whole_window => {
                self.window_space(common)
            }
            Next::Synchronise => u32::from(window_field),
            _ => u32::from(window_field) << self.scale,
        };
        self.space.edge = self.space.edge.later(self.space.next + offered);
    }
}
