//! Pacing of shell output by the client's acknowledgments (timing marks).
//!
//! What lies between a shell and its user's eyes is what an interrupt key cannot stop: the queues of TCP, of a gateway,
//! and of the client's own system and program, several megabytes together. A Synch clears them only where urgent data
//! gets through and the client obeys it. So the output is kept to what the client takes in a quarter of a second. How
//! much that is, TIMING-MARKs tell (RFC 860): every client answers one, if only to refuse it, and only when it has dealt
//! with all that came before.

use inhost_base::{Duration, Instant};

/// Limit of output ahead of its reader.
const AHEAD_TIME: Duration = Duration::from_millis(250);
/// Octets that may be ahead at first, and of the fastest reader.
const FIRST_BYTES: u64 = 2048;
const MOST_BYTES: u64 = 1 << 20;
/// Octets that may be ahead of the slowest reader: a serial line of 9600 baud takes half of it in the time.
const LEAST_BYTES: u64 = 512;
/// Marks go no faster than this: a client has a limit on what it answers.
const MARKS_APART: Duration = Duration::from_millis(25);
/// Timeout of the first timing mark; beyond it the client is assumed not to support them. A line of 1200 baud takes as long for
/// what comes before the mark.
const FIRST_ANSWER_TIME: Duration = Duration::from_secs(5);

/// The output of one shell.
#[derive(Debug)]
pub(super) struct Pace {
    /// Octets said so far.
    said: u64,
    /// Of these, those that the client is known to have dealt with.
    read: u64,
    /// Octets that may be said beyond.
    window_bytes: u64,
    /// The unanswered mark: how much was said before it, and when it was sent.
    mark: Option<(u64, Instant)>,
    /// When the next mark may be sent.
    next_mark: Instant,
    answers: bool,
}

impl Pace {
    pub(super) fn new(now: Instant) -> Pace {
        Pace { said: 0, read: 0, window_bytes: FIRST_BYTES, mark: None, next_mark: now, answers: false }
    }
    /// Whether more may be said.
    pub(super) fn has_room(&self, now: Instant) -> bool {
        self.said - self.read < self.window_bytes || self.is_silent(now)
    }
    /// When a client that has answered nothing is given up.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let (_, sent) = self.mark.filter(|_| !self.answers)?;
        Some(sent + FIRST_ANSWER_TIME)
    }
    /// This much was said. True when a mark is to follow.
    pub(super) fn said(&mut self, bytes: usize, now: Instant) -> bool {
        self.said += bytes as u64;
        self.wants_mark(now)
    }
    /// Whether a mark is due: without one, a reader who has caught up would never be known to have.
    pub(super) fn wants_mark(&self, now: Instant) -> bool {
        let ahead = self.said - self.read;
        // The first goes early, for a slow reader must not be taken for one that knows none.
        let share = if self.answers { 2 } else { 4 };
        let is_due = now >= self.next_mark || ahead >= self.window_bytes;
        self.mark.is_none() && ahead >= self.window_bytes / share && is_due
    }
    /// The mark is sent.
    pub(super) fn marked(&mut self, now: Instant) {
        self.mark = Some((self.said, now));
        self.next_mark = now + MARKS_APART;
    }
    /// The client has answered the mark: what was said before it took so long.
    pub(super) fn answered(&mut self, now: Instant) {
        let Some((said, sent)) = self.mark.take() else { return };
        let took = now.since(sent);
        let dealt_with = said - self.read;
        let was_full = self.said - self.read >= self.window_bytes;
        (self.read, self.answers) = (said, true);
        if took > AHEAD_TIME {
            let in_time = dealt_with.saturating_mul(AHEAD_TIME.as_nanos()) / took.as_nanos();
            self.window_bytes = in_time.clamp(LEAST_BYTES, self.window_bytes);
        } else if was_full && took < AHEAD_TIME.divided_by(2) {
            self.window_bytes = (2 * self.window_bytes).min(MOST_BYTES);
        }
    }
    fn is_silent(&self, now: Instant) -> bool {
        self.deadline().is_some_and(|deadline| now >= deadline)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reader of so many octets a second, `round_trip_ms` away, for ten seconds. Gives how many it read, and the most
    /// that it was ever behind once it had read for two seconds.
    fn read_at(bytes_per_second: u64, round_trip_ms: u64) -> (u64, Duration) {
        let mut pace = Pace::new(Instant::ZERO);
        let (mut queue, mut read, mut most) = (0u64, 0u64, 0u64);
        let mut marks = std::collections::VecDeque::new();
        let mut answers = std::collections::VecDeque::new();
        for ms in 0..10_000 {
            let now = Instant::from_millis(ms);
            while answers.front().is_some_and(|&at| at <= ms) {
                answers.pop_front();
                pace.answered(now);
            }
            while pace.has_room(now) {
                assert!(!pace.is_silent(now), "{bytes_per_second} octets/s: given up");
                queue += 512;
                if pace.said(512, now) {
                    pace.marked(now);
                    marks.push_back(read + queue);
                }
            }
            if pace.wants_mark(now) {
                pace.marked(now);
                marks.push_back(read + queue);
            }
            if ms > 2_000 {
                most = most.max(queue);
            }
            let taken =
                queue.min((bytes_per_second * (ms + 1) / 1000).saturating_sub(bytes_per_second * ms / 1000));
            (queue, read) = (queue - taken, read + taken);
            while marks.front().is_some_and(|&at| at <= read) {
                marks.pop_front();
                answers.push_back(ms + round_trip_ms);
            }
        }
        (read, Duration::from_millis(most * 1000 / bytes_per_second))
    }

    #[test]
    fn output_is_at_most_as_far_ahead_as_it_should_be_and_a_fast_reader_is_not_slowed() {
        for (bytes_per_second, round_trip_ms, share) in
            [(2_000, 1, 80), (50_000, 1, 80), (50_000, 60, 60), (1_000_000, 1, 80), (4_000_000, 20, 80)]
        {
            let (read, behind) = read_at(bytes_per_second, round_trip_ms);
            assert!(behind <= AHEAD_TIME.times(2), "{bytes_per_second} octets/s: {behind:?} behind");
            let percent = read * 10 / bytes_per_second;
            assert!(percent >= share, "{bytes_per_second} octets/s at {round_trip_ms} ms: {percent} %");
        }
    }

    #[test]
    fn a_client_that_answers_nothing_is_not_waited_for_and_one_that_pauses_is() {
        let mut pace = Pace::new(Instant::ZERO);
        assert!(pace.said(5000, Instant::ZERO));
        pace.marked(Instant::ZERO);
        assert!(!pace.has_room(Instant::from_millis(4999)) && pace.has_room(Instant::from_millis(5000)));
        pace.answered(Instant::from_millis(6000));
        assert!(pace.said(5000, Instant::from_millis(6000)));
        pace.marked(Instant::from_millis(6000));
        assert!(!pace.has_room(Instant::from_millis(1_000_000)));
    }

    #[test]
    fn a_line_of_9600_baud_is_not_taken_for_a_client_that_answers_nothing() {
        let (read, _) = read_at(960, 20);
        assert!(read >= 7 * 960, "{read} octets in ten seconds");
    }
}
