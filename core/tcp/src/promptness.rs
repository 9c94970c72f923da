//! How soon data is acknowledged (RFC 9293 §3.8.6.3, RFC 5681 §4.2): after a fixed wait, or as Linux finds it out.
//!
//! With [`crate::Config::quick_acknowledgments`] the first segments of a connection, and those after a silence, are
//! acknowledged at once, because the peer is in slow start and counts acknowledgments. After that an acknowledgment
//! waits about as long as the pause between segments, so that it meets the next. Where the application answers within
//! that time, the exchange is a conversation, and acknowledgments wait for the answers.

use crate::Connection;
use crate::marks::Marks;
use inhost_base::{Duration, Instant};
use inhost_event::TcpPhase;

/// The wait that a connection begins with, and the least in a stream, in milliseconds.
const LEAST_DELAY_MS: u16 = 40;
/// The shortest that one waits, as Linux leaves even that to a timer.
const TICK: Duration = Duration::from_millis(1);
/// The longest that an acknowledgment waits in a conversation, or for the end of a write to be read.
const MOST_DELAY_MS: u16 = 200;
/// The longest that any waits (RFC 9293 §3.8.6.3).
const MOST_STREAM_DELAY_MS: u16 = 500;
/// Acknowledgments at once after something out of the ordinary.
pub(crate) const QUICK_AFTER_TROUBLE: u8 = 16;

/// What is known of the pace of arriving data.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Promptness {
    /// Acknowledgments that still go at once.
    quick: u8,
    /// Ends of writes among what is not acknowledged: a short segment, or one with PSH. Two count as many. The bit
    /// [`CONVERSATION`] says that the exchange is a conversation.
    habits: u8,
    /// How long an acknowledgment waits, in milliseconds; 0 before any data.
    delay_ms: u16,
    /// When data came last, in milliseconds of the host's time.
    data_at_ms: u32,
}

/// See [`Promptness::habits`].
const CONVERSATION: u8 = 0x80;

fn millis(now: Instant) -> u32 {
    now.as_millis() as u32
}

impl Promptness {
    pub fn new(now: Instant) -> Self {
        Promptness { data_at_ms: millis(now), ..Promptness::default() }
    }
    fn is_conversation(&self) -> bool {
        self.habits & CONVERSATION != 0
    }
    fn converse(&mut self, on: bool) {
        self.habits = self.pushes() | if on { CONVERSATION } else { 0 };
    }
    fn pushes(&self) -> u8 {
        self.habits & !CONVERSATION
    }
    fn set_pushes(&mut self, count: u8) {
        self.habits = (self.habits & CONVERSATION) | count;
    }
    /// The handshake is done, which counts as data.
    pub fn opened(&mut self, now: Instant) {
        self.data_at_ms = millis(now);
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
    fn hurry(&mut self, most: u8, window_bytes: u32, segment_bytes: u16) {
        let segments = window_bytes / (2 * u32::from(segment_bytes.max(1)));
        let wanted = if segments == 0 { 2 } else { segments.min(255) as u8 };
        self.quick = self.quick.max(wanted.min(most));
    }
    /// An acknowledgment left, alone or with data.
    pub fn acknowledged(&mut self, one_was_due: bool) {
        if one_was_due {
            if self.quick <= 1 {
                self.delay_ms = self.delay_ms.min(if self.quick == 1 { LEAST_DELAY_MS } else { u16::MAX });
            }
            self.quick = self.quick.saturating_sub(1);
        }
        self.set_pushes(0);
    }
}

impl Connection {
    pub(crate) fn is_adaptive(&self) -> bool {
        self.config.quick_acknowledgments > 0
    }
    /// Data came in order: what its coming tells about the pace.
    #[inline]
    pub(crate) fn note_data(&mut self, length: u32, pushed: bool, now: Instant) {
        let gap = self.promptness.since_data(now);
        self.promptness.data_at_ms = millis(now);
        if !self.is_adaptive() {
            return;
        }
        let full = length >= u32::from(self.receive_mss);
        if !full || (pushed && length == u32::from(self.receive_mss)) {
            let count = self.promptness.pushes() + u8::from(!full);
            self.promptness.set_pushes(count.clamp(1, 2));
        }
        let timeout = self.round_trip.base_timeout(&self.config);
        let gap_ms = gap.as_millis().min(u64::from(u16::MAX)) as u16;
        let most = self.config.quick_acknowledgments;
        let window = self.receive.edge.since(self.receive.next);
        let mss = self.receive_mss;
        let prompt = &mut self.promptness;
        match prompt.delay_ms {
            0 => {
                prompt.hurry(most, window, mss);
                prompt.delay_ms = LEAST_DELAY_MS;
            }
            delay if gap_ms <= LEAST_DELAY_MS / 2 => prompt.delay_ms = delay / 2 + LEAST_DELAY_MS / 2,
            delay if gap_ms < delay => {
                prompt.delay_ms = (delay / 2 + gap_ms).min(timeout.as_millis().min(60_000) as u16);
            }
            // The peer was silent for long, and is in slow start again.
            _ if gap > timeout => prompt.hurry(most, window, mss),
            _ => {}
        }
    }
    /// Something came that is no ordinary next segment: the peer wants to hear of each.
    pub(crate) fn hurry_acknowledgments(&mut self) {
        if !self.is_adaptive() {
            return;
        }
        let window = self.receive.edge.since(self.receive.next);
        self.promptness.hurry(QUICK_AFTER_TROUBLE, window, self.receive_mss);
        self.promptness.converse(false);
        self.promptness.delay_ms = LEAST_DELAY_MS;
    }
    /// Data leaves: if it answers what came just now, the two have a conversation.
    #[inline]
    pub(crate) fn note_answer(&mut self, now: Instant) {
        let answers_handshake = self.marks.has(Marks::ACTIVE) && self.marks.has(Marks::ACKNOWLEDGE);
        if self.is_adaptive() && self.promptness.delay_ms == 0 && answers_handshake {
            // Data leaves together with the last step of the handshake.
            self.hurry_acknowledgments();
        }
        let delay = Duration::from_millis(u64::from(self.promptness.delay_ms));
        if self.promptness.since_data(now) < delay {
            self.promptness.converse(true);
        }
    }
    /// The other's SYN answered ours: the last step of the handshake goes now, or with what the application says first
    /// where it has asked for that.
    pub(crate) fn acknowledge_handshake(&mut self, now: Instant) {
        if self.is_adaptive() && self.promptness.is_conversation() {
            self.hurry_acknowledgments();
            self.acknowledge_at = now + Duration::from_millis(u64::from(MOST_DELAY_MS));
        } else {
            self.marks.set(Marks::ACKNOWLEDGE);
        }
    }
    /// Whatever arrives while acknowledgments go at once lets the one go that waits.
    #[inline]
    pub(crate) fn acknowledge_quickly(&mut self) {
        if self.acknowledge_at != Instant::FAR_FUTURE
            && self.is_adaptive()
            && self.promptness.is_quick()
            && !self.promptness.is_conversation()
        {
            self.marks.set(Marks::ACKNOWLEDGE);
        }
    }
    /// Data or FIN waits to be acknowledged: now, or after a while.
    pub(crate) fn schedule_adaptive(&mut self, now: Instant) {
        let waiting = self.receive.next.since(self.receive.acknowledged);
        let prompt = &self.promptness;
        if waiting > u32::from(self.receive_mss) || (prompt.quick > 0 && !prompt.is_conversation()) {
            self.marks.set(Marks::ACKNOWLEDGE);
            return;
        }
        let at = now + self.adaptive_delay().max(TICK);
        self.acknowledge_at = self.acknowledge_at.min(at);
    }
    /// Whether the peer's FIN is acknowledged as data is: as on Linux, where the state that it brings is CLOSE-WAIT.
    pub(crate) fn may_delay_fin(&self) -> bool {
        self.is_adaptive() && self.phase == TcpPhase::Established
    }
    /// The data that just came is the last, and an answer may follow, our FIN at least: the exchange is a conversation.
    pub(crate) fn note_last_data(&mut self) {
        if self.may_delay_fin() {
            self.promptness.converse(true);
        }
    }
    /// The peer's FIN waits to be acknowledged. Before any data the wait is none.
    pub(crate) fn schedule_for_fin(&mut self, now: Instant) {
        self.note_last_data();
        if self.acknowledge_at == Instant::FAR_FUTURE && !self.marks.has(Marks::ACKNOWLEDGE) {
            self.schedule_adaptive(now);
        }
    }
    /// How long the acknowledgment of what just came waits.
    fn adaptive_delay(&self) -> Duration {
        let prompt = &self.promptness;
        let mut delay = prompt.delay_ms;
        if delay > LEAST_DELAY_MS {
            let patient = prompt.is_conversation() || prompt.pushes() > 0;
            let mut most = if patient { MOST_DELAY_MS } else { MOST_STREAM_DELAY_MS };
            if let Some(smoothed) = self.round_trip.smoothed() {
                most = most.min((smoothed.as_millis().min(60_000) as u16).max(LEAST_DELAY_MS));
            }
            delay = delay.min(most);
        }
        Duration::from_millis(u64::from(delay.min(MOST_DELAY_MS)))
    }
    /// The wait was for nothing: the next one is longer in a stream, and the conversation is over.
    pub(crate) fn waited_in_vain(&mut self) {
        if !self.is_adaptive() {
            return;
        }
        let timeout = self.round_trip.base_timeout(&self.config).as_millis().min(60_000) as u16;
        let prompt = &mut self.promptness;
        if prompt.is_conversation() {
            prompt.converse(false);
            prompt.delay_ms = LEAST_DELAY_MS;
        } else {
            prompt.delay_ms = prompt.delay_ms.saturating_mul(2).min(timeout);
        }
    }
    /// The application has read: where it has read the end of a write, nothing more will come to wait for.
    #[inline]
    pub(crate) fn acknowledge_what_was_read(&mut self) {
        if !self.is_adaptive() || self.acknowledge_at == Instant::FAR_FUTURE {
            return;
        }
        let waiting = self.receive.next.since(self.receive.acknowledged);
        let prompt = &self.promptness;
        let end_was_read = prompt.pushes() > 1 || (prompt.pushes() > 0 && !prompt.is_conversation());
        if waiting > u32::from(self.receive_mss) || (end_was_read && self.readable_bytes() == 0) {
            self.marks.set(Marks::ACKNOWLEDGE);
        }
    }
    /// The application wants acknowledgments at once, or with its answers.
    pub(crate) fn set_promptness(&mut self, quick: bool) {
        self.promptness.converse(!quick);
        if !quick {
            self.promptness.quick = 0;
        } else if !self.is_adaptive() {
            self.promptness.quick = QUICK_AFTER_TROUBLE;
        }
        if quick && self.acknowledge_at != Instant::FAR_FUTURE {
            self.marks.set(Marks::ACKNOWLEDGE);
        }
    }
}
