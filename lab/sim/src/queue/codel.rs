//! CoDel: a queue that is kept short by how long its packets have waited (RFC 8289).

use std::collections::VecDeque;

use inhost_base::{Duration, Instant};
use inhost_buf::Packet;

use super::{Around, Waiting};

/// Intervals for which the last rate of dropping is still remembered (RFC 8289 §5.6).
const REMEMBERED_INTERVALS: u64 = 16;

/// CoDel's setpoint. Begin with [`CodelConfig::default`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CodelConfig {
    /// The delay that may stand. Default: 5 ms (RFC 8289 §4.4).
    pub target: Duration,
    /// How long the delay must be above the target, a long round trip. Default: 100 ms (RFC 8289 §4.3).
    pub interval: Duration,
    /// Bytes that may always wait: the largest frame. Default: 1,514.
    pub largest_frame_bytes: usize,
    /// Mark packets whose transport understands it, in place of dropping them. Default: no.
    pub marks: bool,
}

impl Default for CodelConfig {
    fn default() -> Self {
        CodelConfig {
            target: Duration::from_millis(5),
            interval: Duration::from_millis(100),
            largest_frame_bytes: 1514,
            marks: false,
        }
    }
}

/// A queue in order under CoDel.
#[derive(Debug)]
pub(super) struct Codel {
    config: CodelConfig,
    frames: VecDeque<Waiting>,
    bytes: usize,
    /// When the delay has been above the target for an interval.
    first_above: Option<Instant>,
    is_dropping: bool,
    drop_next: Instant,
    /// Drops since dropping began.
    count: u64,
    /// Its value when dropping began.
    last_count: u64,
}

impl Codel {
    pub(super) fn new(config: CodelConfig) -> Codel {
        Codel {
            config,
            frames: VecDeque::new(),
            bytes: 0,
            first_above: None,
            is_dropping: false,
            drop_next: Instant::ZERO,
            count: 0,
            last_count: 0,
        }
    }
    /// Packets and bytes that wait.
    pub(super) fn length(&self) -> (usize, usize) {
        (self.frames.len(), self.bytes)
    }
    pub(super) fn push(&mut self, waiting: Waiting) {
        self.bytes += waiting.frame.len();
        self.frames.push_back(waiting);
    }
    /// Takes the oldest frame, whatever CoDel thinks.
    pub(super) fn pop_front(&mut self) -> Option<Waiting> {
        let waiting = self.frames.pop_front()?;
        self.bytes -= waiting.frame.len();
        Some(waiting)
    }
    /// The next frame, after those that are dropped now (RFC 8289 §5.5).
    pub(super) fn pop(&mut self, now: Instant, around: &mut Around<'_>) -> Option<Packet> {
        let (mut frame, mut may_drop) = self.take(now);
        if self.is_dropping {
            if !may_drop {
                self.is_dropping = false;
            }
            while self.is_dropping && now >= self.drop_next {
                self.count += 1;
                let Some(first) = frame.take() else { break };
                match self.mark_or_drop(first, around) {
                    Some(marked) => {
                        self.drop_next = self.control_law(self.drop_next);
                        return Some(marked);
                    }
                    None => (frame, may_drop) = self.take(now),
                }
                match may_drop {
                    true => self.drop_next = self.control_law(self.drop_next),
                    false => self.is_dropping = false,
                }
            }
        } else if may_drop {
            let first = frame.take()?;
            frame = match self.mark_or_drop(first, around) {
                Some(marked) => Some(marked),
                None => self.take(now).0,
            };
            self.begin_dropping(now);
        }
        frame
    }
    /// Where the queue was short only for a while, dropping goes on nearly as fast as it ended.
    fn begin_dropping(&mut self, now: Instant) {
        let since_last = self.count.saturating_sub(self.last_count);
        let is_recent = now.since(self.drop_next) < self.config.interval.times(REMEMBERED_INTERVALS);
        self.is_dropping = true;
        self.count = if since_last > 1 && is_recent { since_last } else { 1 };
        self.drop_next = self.control_law(now);
        self.last_count = self.count;
    }
    /// The oldest frame, and whether the delay has been too long for long enough.
    fn take(&mut self, now: Instant) -> (Option<Packet>, bool) {
        let Some(waiting) = self.pop_front() else {
            self.first_above = None;
            return (None, false);
        };
        let is_short = now.since(waiting.since) < self.config.target;
        let mut may_drop = false;
        if is_short || self.bytes <= self.config.largest_frame_bytes {
            self.first_above = None;
        } else {
            match self.first_above {
                None => self.first_above = Some(now + self.config.interval),
                Some(at) => may_drop = now >= at,
            }
        }
        (Some(waiting.frame), may_drop)
    }
    fn mark_or_drop(&self, mut frame: Packet, around: &mut Around<'_>) -> Option<Packet> {
        if self.config.marks && around.marks(&mut frame) {
            return Some(frame);
        }
        around.drops_early(frame);
        None
    }
    /// The next drop after one at `at`: sooner with each, by the square root, so that a sender's rate falls linearly
    /// (RFC 8289 §5.3).
    fn control_law(&self, at: Instant) -> Instant {
        let interval_ns = self.config.interval.as_nanos() as f64;
        at + Duration::from_nanos((interval_ns / (self.count.max(1) as f64).sqrt()) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffers::Buffers;
    use crate::link::{LinkStatistics, Losses};
    use crate::queue::{Discipline, Queue, QueueConfig, QueueLimit};

    const FRAME_BYTES: usize = 1500;

    /// A line that sends a frame each millisecond, while `arrivals(ms)` frames come in each; the drops, in
    /// milliseconds, and the marks.
    fn drops(
        marks: bool,
        first_bytes: [u8; 2],
        arrivals: impl Fn(u64) -> u64,
        millis: u64,
    ) -> (Vec<u64>, u64) {
        let config = QueueConfig {
            limit: QueueLimit::Packets(100_000),
            discipline: Discipline::Codel(CodelConfig { marks, ..CodelConfig::default() }),
            ..QueueConfig::tail_drop(0)
        };
        let (mut buffers, mut statistics) = (Buffers::default(), LinkStatistics::default());
        let mut losses = Losses::default();
        let mut queue = Queue::new(&config, 0);
        let (mut dropped, mut seen) = (Vec::new(), 0);
        for ms in 0..millis {
            let (buffers, statistics, losses) = (&mut buffers, &mut statistics, &mut losses);
            let mut around = Around { buffers, statistics, losses, is_ethernet: false };
            for _ in 0..arrivals(ms) {
                let mut frame = around.buffers.copy(&[0; FRAME_BYTES]);
                frame.bytes_mut()[..2].copy_from_slice(&first_bytes);
                queue.push(frame, Instant::from_millis(ms), &config, &mut around);
            }
            if let Some(frame) = queue.pop(Instant::from_millis(ms), &mut around) {
                around.buffers.give(frame);
            }
            let statistics = *around.statistics;
            dropped.extend((seen..statistics.dropped_early).map(|_| ms));
            seen = statistics.dropped_early;
        }
        (dropped, statistics.marked)
    }

    #[test]
    fn a_burst_that_goes_away_within_an_interval_loses_nothing() {
        // Fifty frames at once: the delay reaches 50 ms, and is gone after 50 ms.
        assert!(drops(false, [0x45, 0], |ms| if ms % 200 == 0 { 50 } else { 0 }, 1000).0.is_empty());
    }

    #[test]
    fn a_standing_queue_is_dropped_from_at_the_pace_of_the_control_law() {
        // Twenty frames stand, and one comes for each that goes.
        let (dropped, _) = drops(false, [0x45, 0], |ms| if ms == 0 { 100 } else { 1 }, 800);
        // The delay is above 5 ms from the sixth millisecond on; an interval later the first goes, the next after
        // 100 ms / sqrt(1), then / sqrt(2), ...
        assert_eq!(dropped[0], 105, "{dropped:?}");
        let gaps: Vec<u64> = dropped.windows(2).map(|pair| pair[1] - pair[0]).take(5).collect();
        let expected = [100.0, 70.7, 57.7, 50.0, 44.7];
        for (gap, expected) in gaps.iter().zip(expected) {
            assert!((*gap as f64 - expected).abs() <= 1.5, "{gaps:?}");
        }
    }

    #[test]
    fn dropping_stops_below_the_target_and_goes_on_fast_when_the_queue_comes_back() {
        // A hundred too many until 1 s, then nothing for 200 ms, then too many again.
        let arrivals = |ms| match ms {
            0 | 1300 => 100,
            1..1000 => 1,
            1000..1300 => 0,
            _ => 1,
        };
        let (dropped, _) = drops(false, [0x45, 0], arrivals, 1700);
        assert!(!dropped.iter().any(|ms| (1110..1400).contains(ms)), "{dropped:?}");
        let again: Vec<u64> = dropped.iter().copied().filter(|&ms| ms >= 1400).collect();
        // Not 100 ms apart, as at the very first.
        assert!(again[1] - again[0] < 60, "{again:?}");
    }

    #[test]
    fn capable_packets_are_marked_and_not_dropped() {
        let (dropped, marked) = drops(true, [0x45, 2], |ms| if ms == 0 { 100 } else { 1 }, 800);
        assert_eq!((dropped.len(), marked > 5), (0, true));
        let (dropped, marked) = drops(true, [0x45, 0], |ms| if ms == 0 { 100 } else { 1 }, 800);
        assert_eq!((dropped.len() > 5, marked), (true, 0));
    }
}
