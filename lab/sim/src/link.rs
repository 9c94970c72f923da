//! A link between two hosts, on virtual time: how fast it is, how long, and what it does to frames.

use std::collections::{BTreeMap, VecDeque};

use inhost_base::{Duration, Instant, Random};
use inhost_buf::{Frame, Full};

/// A frame that is held back arrives later by up to so many times the delay.
const HELD_BACK_DELAYS: u32 = 10;
/// Bytes of an Ethernet header, which its own check sequence protects.
const ETHERNET_BYTES: usize = 14;

/// One direction of a link: its speed and its faults. Begin with [`LinkConfig::default`], a perfect wire of 1 ms.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkConfig {
    /// From the end of sending to arrival.
    pub delay: Duration,
    /// Bits sent in a second; `None` for any number.
    pub rate_bits_per_second: Option<u64>,
    /// Frames that may wait to be sent, the one that is being sent included. Without a rate none ever waits.
    pub queue_frames: usize,
    /// What happens to a frame for which the queue has no place.
    pub when_full: WhenFull,
    /// Frames in a thousand that are lost.
    pub lost_per_mille: u32,
    /// Frames in a thousand that arrive twice.
    pub duplicated_per_mille: u32,
    /// Frames in a thousand that are held back for up to ten times the delay, while others pass.
    pub reordered_per_mille: u32,
    /// Frames in a thousand in which up to sixteen bits in a row are changed, which every checksum notices.
    pub corrupted_per_mille: u32,
}

impl Default for LinkConfig {
    fn default() -> Self {
        LinkConfig {
            delay: Duration::from_millis(1),
            rate_bits_per_second: None,
            queue_frames: 1024,
            when_full: WhenFull::Refuse,
            lost_per_mille: 0,
            duplicated_per_mille: 0,
            reordered_per_mille: 0,
            corrupted_per_mille: 0,
        }
    }
}

/// What a full queue does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WhenFull {
    /// The device says so, and the host keeps the frame: the queue is the host's own.
    Refuse,
    /// The frame is lost: the queue is a router's somewhere on the way.
    Lose,
}

/// What happened to the frames of one direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs)] // The names say it.
pub struct LinkStatistics {
    pub sent: u64,
    pub delivered: u64,
    pub lost: u64,
    pub duplicated: u64,
    pub reordered: u64,
    pub corrupted: u64,
    pub overflowed: u64,
}

/// A frame on its way.
#[derive(Clone, Debug)]
pub struct Carried {
    /// As it arrives.
    pub bytes: Vec<u8>,
    /// Whether that is how it was sent.
    pub is_intact: bool,
}

/// One direction of a link, with the frames on it.
#[derive(Debug)]
pub(crate) struct Direction {
    pub(crate) config: LinkConfig,
    pub(crate) statistics: LinkStatistics,
    is_ethernet: bool,
    random: Random,
    /// When each waiting frame has been sent.
    departures: VecDeque<Instant>,
    /// By arrival, and then by order of sending.
    carried: BTreeMap<(Instant, u64), Carried>,
    count: u64,
}

impl Direction {
    pub(crate) fn new(config: LinkConfig, is_ethernet: bool, random: Random) -> Direction {
        Direction {
            config,
            statistics: LinkStatistics::default(),
            is_ethernet,
            random,
            departures: VecDeque::new(),
            carried: BTreeMap::new(),
            count: 0,
        }
    }
    /// When the next frame arrives.
    pub(crate) fn next_arrival(&self) -> Option<Instant> {
        self.carried.first_key_value().map(|(&(at, _), _)| at)
    }
    /// When a full queue has a place again; `None` when it has one.
    pub(crate) fn room_at(&self) -> Option<Instant> {
        let first = self.departures.front().copied();
        first.filter(|_| self.departures.len() >= self.config.queue_frames)
    }
    /// A frame that has arrived by `now`.
    pub(crate) fn arrived(&mut self, now: Instant) -> Option<Carried> {
        let first = self.carried.first_entry()?;
        if first.key().0 > now {
            return None;
        }
        self.statistics.delivered += 1;
        Some(first.remove())
    }
    /// Lets a frame arrive at `at`, whatever the link would do to it.
    pub(crate) fn put(&mut self, at: Instant, bytes: Vec<u8>, is_intact: bool) {
        self.count += 1;
        self.carried.insert((at, self.count), Carried { bytes, is_intact });
    }
    /// Forgets the frames whose sending has ended by `now`.
    pub(crate) fn advance(&mut self, now: Instant) {
        while self.departures.front().is_some_and(|&at| at <= now) {
            self.departures.pop_front();
        }
    }
    /// Sends a frame; its bytes when it was taken, whatever becomes of it.
    pub(crate) fn send(&mut self, frame: &Frame<'_>, now: Instant) -> Result<Vec<u8>, Full> {
        let is_full = self.departures.len() >= self.config.queue_frames;
        if is_full && self.config.when_full == WhenFull::Refuse {
            return Err(Full);
        }
        let mut bytes = vec![0; frame.len()];
        frame.write_to(&mut bytes);
        self.statistics.sent += 1;
        if is_full {
            self.statistics.overflowed += 1;
            return Ok(bytes);
        }
        let departure = self.departure(bytes.len(), now);
        if self.happens(self.config.lost_per_mille) {
            self.statistics.lost += 1;
            return Ok(bytes);
        }
        if self.happens(self.config.duplicated_per_mille) {
            self.statistics.duplicated += 1;
            self.deliver(departure, bytes.clone());
        }
        self.deliver(departure, bytes.clone());
        Ok(bytes)
    }
    fn departure(&mut self, length: usize, now: Instant) -> Instant {
        let Some(rate) = self.config.rate_bits_per_second else { return now };
        let begins = self.departures.back().map_or(now, |&busy_until| busy_until.max(now));
        let ends = begins + Duration::from_nanos(length as u64 * 8 * 1_000_000_000 / rate.max(1));
        self.departures.push_back(ends);
        ends
    }
    fn deliver(&mut self, departure: Instant, mut bytes: Vec<u8>) {
        let mut at = departure + self.config.delay;
        if self.happens(self.config.reordered_per_mille) {
            self.statistics.reordered += 1;
            at += self.config.delay.times(u64::from(self.random.public_below(HELD_BACK_DELAYS)));
        }
        let is_intact = !self.happens(self.config.corrupted_per_mille);
        if !is_intact {
            self.statistics.corrupted += 1;
            if !self.corrupt(&mut bytes) {
                return;
            }
        }
        self.put(at, bytes, is_intact);
    }
    /// Changes some bits. On an Ethernet, what only its check sequence protects is lost instead: the link header,
    /// and ARP. False when the frame is lost.
    fn corrupt(&mut self, bytes: &mut [u8]) -> bool {
        let from = if self.is_ethernet { ETHERNET_BYTES } else { 0 };
        if self.is_ethernet && bytes.get(12..14) == Some(&[8, 6]) || bytes.len() <= from {
            return false;
        }
        let bits = (bytes.len() - from) as u32 * 8;
        let first = self.random.public_below(bits);
        let run = 1 + self.random.public_below(16);
        for bit in first..(first + run).min(bits) {
            // The first bit for certain, the others by chance.
            if bit == first || self.random.public_below(2) == 0 {
                bytes[from + bit as usize / 8] ^= 0x80 >> (bit % 8);
            }
        }
        true
    }
    fn happens(&mut self, per_mille: u32) -> bool {
        per_mille > 0 && self.random.public_below(1000) < per_mille
    }
}
