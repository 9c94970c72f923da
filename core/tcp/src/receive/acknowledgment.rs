//! The acknowledgment, the window, and what both say about loss (RFC 9293 §3.10.7.4, fifth step; RFC 5681, RFC 6582).

use super::Arrival;
use crate::marks::Marks;
use crate::outcome::{Changes, Outcome, ResetReply};
use crate::recovery::{DUPLICATES_FOR_LOSS, Repair};
use crate::{Connection, Environment, Header};
use inhost_base::{Duration, Instant};
use inhost_congestion::Acknowledged;
use inhost_event::{Drop, Event, Mask, TcpPhase, WindowChanged};

impl Connection {
    /// The fifth step. False when the segment goes no further.
    pub(super) fn take_acknowledgment(
        &mut self,
        arrival: &Arrival<'_>,
        env: &mut Environment<'_>,
        outcome: &mut Outcome,
    ) -> bool {
        let header = arrival.header;
        let acknowledgment = header.acknowledgment;
        let (unacknowledged, next) = (self.send.unacknowledged, self.send.next);
        let is_new = unacknowledged.precedes(acknowledgment) && acknowledgment.at_or_before(next);
        if self.phase == TcpPhase::SynReceived {
            let early = self.marks.has(Marks::EARLY) && acknowledgment == unacknowledged;
            if !is_new && !early {
                outcome.dropped = Some(Drop::OutOfWindow);
                outcome.reset = Some(ResetReply { sequence: acknowledgment, acknowledgment: None });
                return false;
            }
            self.open_by(header, env, outcome);
        } else if is_new {
            self.advance(header, env, outcome);
        } else if !acknowledgment
            .within(unacknowledged.back(self.send.largest_window), self.send.largest_window.saturating_add(1))
        {
            // RFC 5961 §5.2: neither new nor from the last window's worth.
            self.challenge(env, outcome);
            return false;
        } else if acknowledgment == unacknowledged {
            self.count_duplicate(arrival, env);
        }
        if self.phase == TcpPhase::Closed {
            return false;
        }
        self.take_window(header, env.now);
        true
    }
    /// The acknowledgment of our SYN, in SYN-RECEIVED.
    fn open_by(&mut self, header: &Header, env: &mut Environment<'_>, outcome: &mut Outcome) {
        let echoed = self.echoed_round_trip(header, env.now);
        if !self.marks.has(Marks::SYN_REPEATED) {
            self.round_trip.acknowledged(header.acknowledgment, echoed, env.now);
        }
        self.send.window = u32::from(header.window) << self.send.scale;
        self.send.largest_window = self.send.largest_window.max(self.send.window);
        self.send.window_sequence = header.sequence;
        self.send.window_acknowledgment = header.acknowledgment;
        if self.marks.has(Marks::EARLY) {
            return self.open_early(header, env, outcome);
        }
        self.send.unacknowledged = header.acknowledgment;
        self.establish(env, outcome);
    }
    /// The round trip by the echoed timestamp, to a millisecond. After a time-out an echo of what left before it is no
    /// measure: a peer whose acknowledgment was lost drops the copy as old, and so keeps and echoes the timestamp of
    /// the first (RFC 7323 §5.3, R2 before R3), however long ago that left. That is Karn's ambiguity over again.
    // spec: RFC9293 MUST-18
    pub(crate) fn echoed_round_trip(&self, header: &Header, now: Instant) -> Option<Duration> {
        let (_, echo) = header.options.timestamps.filter(|_| self.marks.has(Marks::TIMESTAMPS))?;
        let stamp = self.timestamp(now);
        let elapsed_ms = stamp.wrapping_sub(echo);
        let counts = elapsed_ms <= stamp.wrapping_sub(self.timestamps.least_echo);
        counts.then(|| Duration::from_millis(u64::from(elapsed_ms.max(1))))
    }

    /// `header` acknowledges something new.
    pub(crate) fn advance(&mut self, header: &Header, env: &mut Environment<'_>, outcome: &mut Outcome) {
        let now = env.now;
        let acknowledgment = header.acknowledgment;
        let acknowledged = acknowledgment.since(self.send.unacknowledged);
        let in_flight = self.in_flight_bytes();
        let queued = self.queued_bytes();
        let fin_acknowledged = acknowledged > queued;
        let bytes = acknowledged.min(queued);
        let echoed = self.echoed_round_trip(header, now);
        self.round_trip.acknowledged(acknowledgment, echoed, now);
        if let Some(buffers) = &mut self.buffers {
            buffers.send.discard(bytes as usize, env.pool);
        }
        self.acknowledged_bytes += u64::from(bytes);
        self.send.unacknowledged = acknowledgment;
        self.send.urgent = self.send.urgent.later(acknowledgment);
        self.send.push = self.send.push.later(acknowledgment);
        self.recovery.cursor = self.recovery.cursor.later(acknowledgment);
        self.progress_at = now;
        self.marks.clear(Marks::PROBE);
        let keep_timer = self.repair_or_grow(acknowledged, in_flight, env);
        if !self.has_outstanding() {
            self.retransmit_at = Instant::FAR_FUTURE;
        } else if !keep_timer {
            self.arm_retransmission(now);
        }
        outcome.changes |= Changes::REACHED;
        self.soft_error = None;
        self.tell_writer(outcome);
        if fin_acknowledged {
            self.fin_acknowledged(env, outcome);
        }
    }
    /// Moves the congestion window or the repair. True when the retransmission timer runs on as it is.
    fn repair_or_grow(&mut self, acknowledged: u32, in_flight: u32, env: &mut Environment<'_>) -> bool {
        let now = env.now;
        let done = self.recovery.recover.at_or_before(self.send.unacknowledged);
        let segment = self.segment_bytes();
        let mut keep_timer = false;
        match self.recovery.repair {
            Repair::None => {
                self.recovery.duplicates = 0;
                self.congestion.acknowledged(&self.congestion_view(acknowledged, in_flight, now));
                return false;
            }
            Repair::Fast if done => {
                // RFC 6582 §3.2, step 3, option 1: no burst.
                let left = self.send.next.since(self.send.unacknowledged).max(segment) + segment;
                let window = &mut self.congestion.window;
                window.window_bytes = window.threshold_bytes.min(left);
                self.recovery.end();
            }
            Repair::Fast => {
                // A partial acknowledgment: the next hole begins here, and `cursor` stands at it.
                let window = &mut self.congestion.window;
                window.window_bytes = window.window_bytes.saturating_sub(acknowledged);
                if acknowledged >= segment {
                    window.window_bytes += segment;
                }
                window.window_bytes = window.window_bytes.max(segment);
                // Only the first restarts the timer (RFC 6582 §4): with many losses a time-out is the faster way.
                keep_timer = self.recovery.partials > 0;
                self.recovery.partials = self.recovery.partials.saturating_add(1);
            }
            Repair::Timeout => {
                // RFC 3465 §2.3: what one acknowledgment covers may be old arrivals, so it counts for little.
                let counted = acknowledged.min(2 * segment);
                self.congestion.acknowledged(&self.congestion_view(counted, in_flight, now));
                if done {
                    self.recovery.end();
                    self.recovery.recover = self.send.next;
                }
            }
            Repair::Resend if done => self.recovery.end(),
            Repair::Resend => {}
        }
        self.tell_window(env);
        keep_timer
    }
    /// An acknowledgment as congestion control sees it.
    fn congestion_view(&self, bytes: u32, in_flight_before_bytes: u32, now: Instant) -> Acknowledged {
        Acknowledged {
            bytes,
            acknowledged_bytes: self.acknowledged_bytes,
            sent_bytes: self.sent_bytes(),
            latest_round_trip: None,
            smoothed_round_trip: self.round_trip.smoothed().unwrap_or(Duration::ZERO),
            in_flight_before_bytes,
            recovering: false,
            rate: None,
            now,
        }
    }
    /// RFC 5681 §2: nothing new, nothing else, and something outstanding.
    fn count_duplicate(&mut self, arrival: &Arrival<'_>, env: &mut Environment<'_>) {
        let header = arrival.header;
        let same_window = u32::from(header.window) << self.send.scale == self.send.window;
        let empty = arrival.payload.is_empty() && !header.flags.fin();
        if !(self.has_outstanding() && same_window && empty && self.send.window > 0) {
            return;
        }
        let segment = self.segment_bytes();
        self.recovery.duplicates = self.recovery.duplicates.saturating_add(1);
        match self.recovery.repair {
            Repair::Fast => {
                // A segment has left the network (RFC 6582 §3.2, step 3).
                let window = &mut self.congestion.window.window_bytes;
                *window = window.saturating_add(segment).min(1 << 30);
            }
            Repair::None
                if self.recovery.duplicates == DUPLICATES_FOR_LOSS
                    && self.recovery.recover.at_or_before(self.send.unacknowledged) =>
            {
                self.congestion.lost(self.in_flight_bytes(), env.now);
                let window = &mut self.congestion.window;
                window.window_bytes = window.threshold_bytes + u32::from(DUPLICATES_FOR_LOSS) * segment;
                self.recovery.begin(Repair::Fast, self.send.unacknowledged, self.send.next);
                self.arm_retransmission(env.now);
                self.tell_window(env);
            }
            _ => {}
        }
    }
    /// Takes the peer's window from a segment that is not older than the one it was last taken from. RFC 9293 asks
    /// the sequence number first; but acknowledgments only grow, so where they differ they tell the order better:
    /// a segment sent again bears an old number and a new window.
    // spec: RFC9293 MUST-34 (the edge may move back; what lies beyond it waits)
    pub(super) fn take_window(&mut self, header: &Header, now: Instant) {
        let send = &mut self.send;
        let newer = send.window_acknowledgment.precedes(header.acknowledgment)
            || (send.window_acknowledgment == header.acknowledgment
                && send.window_sequence.at_or_before(header.sequence));
        let was_closed = send.window == 0;
        if was_closed {
            // The peer answers probes: it may keep its window closed as long as it likes.
            self.progress_at = now;
        }
        if !newer {
            return;
        }
        send.window = u32::from(header.window) << send.scale;
        send.window_sequence = header.sequence;
        send.window_acknowledgment = header.acknowledgment;
        send.largest_window = send.largest_window.max(send.window);
        if was_closed && send.window > 0 {
            self.window_opened(now);
        }
    }
    /// What the closed window refused goes again at once, and the persist timer's back-off is forgotten.
    fn window_opened(&mut self, now: Instant) {
        self.marks.clear(Marks::PROBE);
        self.round_trip.backoff = 0;
        self.retransmit_at = Instant::FAR_FUTURE;
        if self.has_outstanding() {
            if !self.recovery.is_active() {
                self.recovery.begin(Repair::Resend, self.send.unacknowledged, self.send.next);
            }
            self.arm_retransmission(now);
        }
    }
    /// A writer that found the buffer full is told once a third of it is free.
    pub(crate) fn tell_writer(&mut self, outcome: &mut Outcome) {
        let limit = self.config.send_buffer_limit_bytes;
        if self.marks.has(Marks::WRITER_WAITS) && self.queued_bytes() as usize <= limit - limit / 3 {
            self.marks.clear(Marks::WRITER_WAITS);
            outcome.changes |= Changes::WRITABLE;
        }
    }
    fn fin_acknowledged(&mut self, env: &mut Environment<'_>, outcome: &mut Outcome) {
        match self.phase {
            TcpPhase::FinWait1 => {
                self.enter(TcpPhase::FinWait2, env);
                if self.marks.has(Marks::RECEIVE_CLOSED) {
                    self.linger_at = env.now + self.config.fin_wait_2;
                }
            }
            TcpPhase::Closing => self.enter_time_wait(env),
            TcpPhase::LastAck => self.finish(None, env, outcome),
            _ => {}
        }
    }
    fn tell_window(&self, env: &mut Environment<'_>) {
        let socket = env.socket;
        env.emit(Mask::RECOVERY, || {
            Event::WindowChanged(WindowChanged {
                socket,
                congestion_window_bytes: self.congestion.window.window_bytes,
                slow_start_threshold_bytes: self.congestion.window.threshold_bytes,
                send_window_bytes: self.send.window,
                smoothed_round_trip: self.round_trip.smoothed().unwrap_or(Duration::ZERO),
            })
        });
    }
}
