//! One direction of a link, with the frames on it.

use std::collections::{BTreeMap, VecDeque};

use inhost_base::{Duration, Instant, Random};
use inhost_buf::{Offers, Packet, prefetch};
use inhost_wire::ethernet;

use super::spoil::spoil;
use super::{LinkConfig, LinkStatistics, LossCause, Losses};
use crate::buffers::Buffers;
use crate::loss::{LossState, happens};
use crate::network::Tamper;
use crate::queue::{Around, Discipline, Queue, WhenFull};

/// A frame that is held back arrives later by up to so many times the delay.
const HELD_BACK_DELAYS: u32 = 10;

/// A host that a medium refused looks again after so long, besides when the medium says that it has room.
const LOOK_AT_MEDIUM: Duration = Duration::from_secs(1);

/// A frame that has left and not arrived.
#[derive(Debug)]
pub(crate) struct Flying {
    pub(crate) at: Instant,
    pub(crate) frame: Packet,
    /// Whether that is how it was sent.
    pub(crate) is_intact: bool,
}

/// What one host has on a shared medium.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MediumQueue {
    /// Frames that it may have there and on the way there.
    pub(crate) limit: usize,
    /// Frames that it has there.
    pub(crate) held: usize,
}

/// One direction of a link. Frames leave the queue when somebody looks: nothing that happens in between depends on
/// when that is.
#[derive(Debug)]
pub(crate) struct Direction {
    pub(crate) statistics: LinkStatistics,
    pub(crate) is_cut: bool,
    pub(crate) losses: Losses,
    /// The shared medium behind it, if there is one.
    pub(crate) medium: Option<MediumQueue>,
    config: LinkConfig,
    is_ethernet: bool,
    random: Random,
    loss: LossState,
    queue: Queue,
    salt: u64,
    /// When the last frame has been sent.
    free_at: Instant,
    in_order: VecDeque<Flying>,
    last_arrival: Instant,
    /// Frames held back, by arrival and then by order of sending.
    late: BTreeMap<(Instant, u64), Flying>,
    late_count: u64,
}

impl Direction {
    pub(crate) fn new(config: LinkConfig, is_ethernet: bool, mut random: Random) -> Direction {
        let salt = random.public_u64();
        Direction {
            statistics: LinkStatistics::default(),
            is_cut: false,
            losses: Losses::default(),
            medium: None,
            is_ethernet,
            loss: LossState::new(Random::from_number(random.public_u64())),
            random,
            queue: Queue::new(&config.queue, salt),
            salt,
            free_at: Instant::ZERO,
            in_order: VecDeque::new(),
            last_arrival: Instant::ZERO,
            late: BTreeMap::new(),
            late_count: 0,
            config,
        }
    }
    pub(crate) fn config(&self) -> &LinkConfig {
        &self.config
    }
    /// Carries frames in another way from now on. What waits stays, unless the queue becomes one of another kind.
    pub(crate) fn set_config(&mut self, config: LinkConfig, now: Instant, buffers: &mut Buffers) {
        self.advance(now, buffers);
        let before = std::mem::replace(&mut self.config, config);
        if before.queue.discipline != self.config.queue.discipline {
            let (statistics, losses) = (&mut self.statistics, &mut self.losses);
            let mut around = Around { buffers, statistics, losses, is_ethernet: self.is_ethernet };
            self.queue.restart(&self.config.queue, self.salt, &mut around);
        }
        if self.config.rate_bits_per_second.is_none() {
            self.free_at = self.free_at.min(now);
        }
        self.advance(now, buffers);
    }
    /// When it has to be looked at next: at the latest when its receiver gets the next frame.
    pub(crate) fn next_look(&self) -> Instant {
        let late = self.late.first_key_value().map_or(Instant::FAR_FUTURE, |(&(at, _), _)| at);
        let in_order = match self.in_order.front() {
            Some(flying) => flying.at,
            None if self.queue.is_empty() => Instant::FAR_FUTURE,
            None => self.free_at,
        };
        let next = late.min(in_order);
        if next == Instant::FAR_FUTURE { next } else { next + self.config.coalescing }
    }
    /// Whether the sender's device refuses a frame of so many bytes; then when it may try again.
    pub(crate) fn refuses(&mut self, bytes: usize, now: Instant, buffers: &mut Buffers) -> Option<Instant> {
        if self.medium.is_some_and(|medium| medium.held + self.under_way() >= medium.limit) {
            return Some(now + LOOK_AT_MEDIUM);
        }
        if !self.may_refuse() {
            return None;
        }
        self.advance(now, buffers);
        (!self.queue.has_room(&self.config.queue, bytes)).then_some(self.free_at)
    }
    fn may_refuse(&self) -> bool {
        let queue = &self.config.queue;
        queue.when_full == WhenFull::Refuse && queue.discipline == Discipline::TailDrop
    }
    /// What the sender's device finishes.
    pub(crate) fn offers(&self) -> Offers {
        match self.config.offloads && !self.may_refuse() {
            true => Offers { udp: false, ..Offers::ALL },
            false => Offers::NONE,
        }
    }
    /// Takes a frame to send, whatever becomes of it.
    pub(crate) fn send(&mut self, frame: Packet, now: Instant, buffers: &mut Buffers) {
        self.statistics.sent += 1;
        if self.is_cut || self.is_too_long(frame.len()) {
            let why = if self.is_cut { LossCause::Cut } else { LossCause::TooLong };
            match self.is_cut {
                true => self.statistics.cut += 1,
                false => self.statistics.too_long += 1,
            }
            return self.losses.add(frame, why, buffers);
        }
        self.advance(now, buffers);
        let is_idle = self.queue.is_empty() && self.free_at <= now;
        if is_idle {
            self.free_at = now;
            if self.config.queue.discipline == Discipline::TailDrop {
                return self.launch(frame, now, buffers);
            }
        }
        let (statistics, losses) = (&mut self.statistics, &mut self.losses);
        let mut around = Around { buffers, statistics, losses, is_ethernet: self.is_ethernet };
        self.queue.push(frame, now, &self.config.queue, &mut around);
        self.advance(now, buffers);
    }
    /// A frame that has arrived by `now`.
    pub(crate) fn arrived(&mut self, now: Instant, buffers: &mut Buffers) -> Option<Flying> {
        self.advance(now, buffers);
        let in_order = self.in_order.front().map(|flying| flying.at);
        let late = self.late.first_key_value().map(|(&(at, _), _)| at);
        let first = match (in_order, late) {
            (Some(at), Some(late)) if late < at => Some(late),
            (None, late) => late,
            (at, _) => at,
        };
        if first? > now {
            return None;
        }
        self.statistics.delivered += 1;
        if first != in_order {
            return Some(self.late.pop_first()?.1);
        }
        let flying = self.in_order.pop_front();
        // Thousands of others have been touched since it was sent, and its receiver will read all of it.
        if let Some(next) = self.in_order.front() {
            prefetch(next.frame.bytes());
        }
        flying
    }
    /// A receiver that was away had room for `most` frames, or for none without power: what else has arrived by `now` is lost.
    pub(crate) fn overflow(&mut self, most: usize, now: Instant, buffers: &mut Buffers) {
        self.advance(now, buffers);
        let arrived = self.in_order.partition_point(|flying| flying.at <= now);
        for flying in self.in_order.drain(most.min(arrived)..arrived) {
            self.statistics.overflowed += 1;
            let why = if most == 0 { LossCause::HostDown } else { LossCause::QueueFull };
            self.losses.add(flying.frame, why, buffers);
        }
    }
    /// Frames that have left and not arrived, in the order in which they arrive.
    pub(crate) fn flying(&self) -> impl Iterator<Item = &Flying> {
        let (mut in_order, mut late) = (self.in_order.iter().peekable(), self.late.values().peekable());
        std::iter::from_fn(move || match (in_order.peek(), late.peek()) {
            (Some(next), Some(held)) if held.at < next.at => late.next(),
            (None, _) => late.next(),
            _ => in_order.next(),
        })
    }
    /// Whether no frame waits, is on its way, or is on the medium behind.
    pub(crate) fn is_empty(&self) -> bool {
        self.under_way() == 0 && self.medium.is_none_or(|medium| medium.held == 0)
    }
    fn under_way(&self) -> usize {
        self.queue.len() + self.in_order.len() + self.late.len()
    }
    /// Frames that wait for the line.
    pub(crate) fn waiting(&self) -> usize {
        self.queue.len()
    }
    /// Does something to the frame that arrives as number `index`, from 0; false when there is none, or none follows it
    /// where that is needed.
    pub(crate) fn tamper(&mut self, index: usize, how: Tamper, buffers: &mut Buffers) -> bool {
        let behind = self.flying().nth(index + 1).map(|flying| flying.at);
        if matches!(how, Tamper::Reorder) && behind.is_none() {
            return false;
        }
        let Some(mut flying) = self.take_flying(index) else { return false };
        match how {
            Tamper::Drop => {
                self.statistics.lost += 1;
                self.losses.add(flying.frame, LossCause::Line, buffers);
                return true;
            }
            Tamper::Duplicate => {
                self.statistics.duplicated += 1;
                let (at, is_intact) = (flying.at, flying.is_intact);
                self.hold_back(Flying { at, frame: buffers.copy(flying.frame.bytes()), is_intact });
            }
            Tamper::Delay(by) => flying.at += by,
            Tamper::Reorder => {
                self.statistics.reordered += 1;
                flying.at = behind.unwrap_or(flying.at);
            }
            Tamper::Corrupt => {
                self.statistics.corrupted += 1;
                flying.is_intact = false;
                if !spoil(flying.frame.bytes_mut(), self.is_ethernet, &mut self.random) {
                    buffers.give(flying.frame);
                    return true;
                }
            }
        }
        self.hold_back(flying);
        true
    }
    fn take_flying(&mut self, index: usize) -> Option<Flying> {
        let at = self.flying().nth(index)?.at;
        // Among those of one instant, the ones in order come first.
        let before = self.flying().take(index).filter(|flying| flying.at == at).count();
        let first = self.in_order.partition_point(|flying| flying.at < at);
        let behind = self.in_order.partition_point(|flying| flying.at <= at);
        if before < behind - first {
            return self.in_order.remove(first + before);
        }
        let key = *self.late.range((at, 0)..).nth(before - (behind - first))?.0;
        self.late.remove(&key)
    }
    fn hold_back(&mut self, flying: Flying) {
        self.late_count += 1;
        self.late.insert((flying.at, self.late_count), flying);
    }
    /// Lets what the line was free for by `now` leave the queue.
    fn advance(&mut self, now: Instant, buffers: &mut Buffers) {
        while !self.queue.is_empty() && self.free_at <= now {
            let at = self.free_at;
            let (statistics, losses) = (&mut self.statistics, &mut self.losses);
            let mut around = Around { buffers, statistics, losses, is_ethernet: self.is_ethernet };
            let Some(frame) = self.queue.pop(at, &mut around) else { return };
            self.launch(frame, at, buffers);
        }
    }
    /// Sends a frame from `at` on.
    fn launch(&mut self, frame: Packet, at: Instant, buffers: &mut Buffers) {
        if let Some(rate) = self.config.rate_bits_per_second {
            self.free_at = at + Duration::from_nanos(frame.len() as u64 * 8_000_000_000 / rate.max(1));
        }
        if self.loss.loses(&self.config.loss) {
            self.statistics.lost += 1;
            return self.losses.add(frame, LossCause::Line, buffers);
        }
        if happens(&mut self.random, self.config.duplicated_per_million) {
            self.statistics.duplicated += 1;
            let again = buffers.copy(frame.bytes());
            self.fly(again, buffers);
        }
        self.fly(frame, buffers);
    }
    fn fly(&mut self, mut frame: Packet, buffers: &mut Buffers) {
        let is_intact = !happens(&mut self.random, self.config.corrupted_per_million);
        if !is_intact {
            self.statistics.corrupted += 1;
            if !spoil(frame.bytes_mut(), self.is_ethernet, &mut self.random) {
                return buffers.give(frame);
            }
        }
        let mut at = self.free_at + self.config.delay;
        if self.config.jitter > Duration::ZERO {
            let most_ns = self.config.jitter.as_nanos().min(u64::from(u32::MAX)) as u32;
            at += Duration::from_nanos(u64::from(self.random.public_below(most_ns)));
        }
        if happens(&mut self.random, self.config.reordered_per_million) {
            self.statistics.reordered += 1;
            at += self.config.delay.times(u64::from(self.random.public_below(HELD_BACK_DELAYS)));
            return self.hold_back(Flying { at, frame, is_intact });
        }
        at = at.max(self.last_arrival);
        self.last_arrival = at;
        self.in_order.push_back(Flying { at, frame, is_intact });
    }
    fn is_too_long(&self, bytes: usize) -> bool {
        let header_bytes = if self.is_ethernet { ethernet::LENGTH } else { 0 };
        self.config.mtu_bytes.is_some_and(|mtu| bytes > header_bytes + mtu as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::Loss;
    use crate::queue::QueueConfig;

    struct Line {
        direction: Direction,
        buffers: Buffers,
    }
    impl Line {
        fn new(config: LinkConfig) -> Line {
            Line {
                direction: Direction::new(config, false, Random::from_number(1)),
                buffers: Buffers::default(),
            }
        }
        fn send(&mut self, number: u8, bytes: usize, ms: u64) {
            let frame = self.buffers.copy(&vec![number; bytes]);
            self.direction.send(frame, Instant::from_millis(ms), &mut self.buffers);
        }
        /// Numbers of frames and the microsecond in which each arrives.
        fn arrivals(&mut self) -> Vec<(u8, u64)> {
            let mut all = Vec::new();
            loop {
                let now = self.direction.next_look();
                if now == Instant::FAR_FUTURE {
                    return all;
                }
                while let Some(flying) = self.direction.arrived(now, &mut self.buffers) {
                    assert!(flying.at <= now);
                    all.push((flying.frame.bytes()[0], now.as_micros()));
                }
            }
        }
    }
    fn slow() -> LinkConfig {
        // A kilobyte takes a millisecond.
        LinkConfig { rate_bits_per_second: Some(8_000_000), ..LinkConfig::default() }
    }

    #[test]
    fn frames_take_their_time_on_the_line_and_then_the_delay() {
        let mut line = Line::new(slow());
        line.send(1, 1000, 0);
        line.send(2, 500, 0);
        line.send(3, 1000, 10);
        assert_eq!(line.arrivals(), [(1, 2000), (2, 2500), (3, 12_000)]);
    }

    #[test]
    fn a_full_device_refuses_until_the_line_is_free() {
        let queue = QueueConfig { limit: crate::QueueLimit::Packets(1), ..QueueConfig::default() };
        let mut line = Line::new(LinkConfig { queue, ..slow() });
        let now = Instant::ZERO;
        for number in 1..=2 {
            assert_eq!(line.direction.refuses(1000, now, &mut line.buffers), None);
            line.send(number, 1000, 0);
        }
        let again = line.direction.refuses(1000, now, &mut line.buffers);
        assert_eq!(again, Some(Instant::from_millis(1)));
        assert_eq!(line.direction.refuses(1000, Instant::from_millis(1), &mut line.buffers), None);
    }

    #[test]
    fn a_card_that_coalesces_tells_of_several_frames_at_once() {
        let mut line = Line::new(LinkConfig { coalescing: Duration::from_millis(5), ..slow() });
        (1..=8).for_each(|number| line.send(number, 1000, 0));
        assert_eq!(
            line.arrivals().iter().map(|&(_, at)| at).collect::<Vec<_>>(),
            [7000, 7000, 7000, 7000, 7000, 7000, 13_000, 13_000]
        );
    }

    #[test]
    fn jitter_delays_and_keeps_the_order() {
        let jitter = Duration::from_millis(50);
        let mut line = Line::new(LinkConfig { jitter, ..LinkConfig::default() });
        (0..100).for_each(|number| line.send(number, 100, u64::from(number)));
        let arrivals = line.arrivals();
        assert!(arrivals.is_sorted() && arrivals.len() == 100);
        assert!(arrivals.iter().all(|&(number, at)| at >= u64::from(number) * 1000 + 1000));
        assert!(arrivals.iter().any(|&(number, at)| at >= u64::from(number) * 1000 + 30_000));
    }

    #[test]
    fn a_black_hole_a_cut_and_a_script_take_what_they_should() {
        let mut line = Line::new(LinkConfig {
            mtu_bytes: Some(600),
            loss: Loss::Scripted(vec![2]),
            ..LinkConfig::default()
        });
        line.send(1, 600, 0);
        line.send(2, 601, 0);
        line.send(3, 100, 0);
        line.direction.is_cut = true;
        line.send(4, 100, 0);
        line.direction.is_cut = false;
        line.send(5, 100, 0);
        assert_eq!(line.arrivals(), [(1, 1000), (5, 1000)]);
        let LinkStatistics { sent, delivered, lost, too_long, cut, .. } = line.direction.statistics;
        assert_eq!((sent, delivered, lost, too_long, cut), (5, 2, 1, 1, 1));
    }

    #[test]
    fn repeats_and_late_frames_arrive_and_noise_is_noticed() {
        let config = LinkConfig {
            duplicated_per_million: 500_000,
            reordered_per_million: 200_000,
            corrupted_per_million: 100_000,
            ..LinkConfig::default()
        };
        let mut line = Line::new(config);
        (0..200).for_each(|number| line.send(number, 100, u64::from(number)));
        let arrivals = line.arrivals();
        let statistics = line.direction.statistics;
        assert!(statistics.duplicated > 70 && statistics.reordered > 30 && statistics.corrupted > 10);
        assert_eq!(arrivals.len() as u64, 200 + statistics.duplicated);
        assert!(!arrivals.is_sorted_by_key(|&(number, _)| number));
    }
}
