//! Faults made on purpose, on any link: loss, delay, corruption, duplication and reordering, from one seed.

use crate::{AddressOffer, Discard, Driver, FrameFormat, Handover, NotBack, Statistics};
use core::fmt;
use inhost_base::{Duration, Instant, Random};
use inhost_buf::{Batch, Checksum, Device, Frame, Full, Offload, Packet, Pool, Slices};
use inhost_wire::offload::{self, Segmenter};
use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;

/// How often each fault happens, as shares of the frames from 0 to 1, in each direction.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct Rates {
    /// Frames lost.
    pub loss: f64,
    /// Delay of every frame.
    pub delay: Duration,
    /// Frames of which one byte is changed.
    pub corrupt: f64,
    /// Frames that come twice.
    pub duplicate: f64,
    /// Frames that are overtaken by those behind them.
    pub reorder: f64,
    /// Seed of the random choices; the same seed makes the same choices.
    pub seed: u64,
}

impl Rates {
    /// Whether any fault is asked for.
    pub fn any(&self) -> bool {
        let Rates { loss, delay, corrupt, duplicate, reorder, seed: _ } = *self;
        loss > 0.0 || delay > Duration::ZERO || corrupt > 0.0 || duplicate > 0.0 || reorder > 0.0
    }
    /// With another rate called `key`; the error describes the allowed values.
    pub(crate) fn with(mut self, key: &str, value: &str) -> Result<Rates, &'static str> {
        match key {
            "loss" => self.loss = share(value)?,
            "corrupt" => self.corrupt = share(value)?,
            "duplicate" => self.duplicate = share(value)?,
            "reorder" => self.reorder = share(value)?,
            "delay" => self.delay = delay(value)?,
            _ => self.seed = value.parse().map_err(|_| "a whole number")?,
        }
        Ok(self)
    }
}

impl fmt::Display for Rates {
    /// The rates that are not zero, each with a comma before it, as in a SPEC.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let share = |f: &mut fmt::Formatter<'_>, key, value: f64| match value > 0.0 {
            true => write!(f, ",{key}={}", Percent(value)),
            false => Ok(()),
        };
        share(f, "loss", self.loss)?;
        if self.delay > Duration::ZERO {
            write!(f, ",delay={}ms", self.delay.as_nanos() as f64 / 1e6)?;
        }
        share(f, "corrupt", self.corrupt)?;
        share(f, "duplicate", self.duplicate)?;
        share(f, "reorder", self.reorder)?;
        if self.seed != 0 { write!(f, ",seed={}", self.seed) } else { Ok(()) }
    }
}

/// A share as a SPEC writes it; a thousandth of a per cent is as fine as anyone wants it.
pub(crate) struct Percent(pub(crate) f64);

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", (self.0 * 1e5).round() / 1e3)
    }
}

pub(crate) fn share(text: &str) -> Result<f64, &'static str> {
    let value = match text.strip_suffix('%') {
        Some(percent) => percent.parse::<f64>().ok().map(|percent| percent / 100.0),
        None => text.parse::<f64>().ok(),
    };
    value.filter(|value| (0.0..=1.0).contains(value)).ok_or("a share such as 5% or 0.05")
}

fn delay(text: &str) -> Result<Duration, &'static str> {
    const ALLOWED: &str = "a time up to 10s, such as 20ms or 1.5s";
    let (number, unit_ns) = match (text.strip_suffix("ms"), text.strip_suffix("us"), text.strip_suffix('s')) {
        (Some(number), _, _) => (number, 1e6),
        (_, Some(number), _) => (number, 1e3),
        (_, _, Some(number)) => (number, 1e9),
        _ => return Err(ALLOWED),
    };
    let nanos = number.parse::<f64>().map_err(|_| ALLOWED)? * unit_ns;
    if (0.0..=1e10).contains(&nanos) { Ok(Duration::from_nanos(nanos.round() as u64)) } else { Err(ALLOWED) }
}

/// Most delayed frames in each direction. More are dropped, as in a router.
const HELD_FRAMES: usize = 1024;
/// Additional delay of a reordered frame.
const OVERTAKEN_BY: Duration = Duration::from_millis(5);

/// A driver that adds faults to another driver, in both directions.
///
/// ```
/// use inhost_buf::{Batch, Device, Frame, Offload, Pool, Slices};
/// use inhost_link::{Driver, Faults, Rates, memory};
///
/// let (near, mut far) = memory::pair(&memory::Config::default())?;
/// let mut rates = Rates::default();
/// rates.loss = 1.0;
/// let mut lossy = Faults::new(Box::new(near), rates);
/// lossy.transmit(&Frame { header: b"frame", payload: Slices::EMPTY, offload: Offload::None }).unwrap();
/// assert_eq!(far.receive(&mut Pool::new(1 << 20), &mut Batch::new())?, 0);
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Faults {
    inner: Box<dyn Driver>,
    rates: Rates,
    inward: Lane,
    outward: Lane,
    now: Instant,
    /// The time within a round, where the host tells it: a round may take as long as a delay.
    clock: Option<Box<dyn Fn() -> Instant + Send>>,
    /// Transmissions refused because the queue was full.
    full: u64,
    lost: u64,
}

/// One direction: the choices, and the frames held back, ordered by when they are due.
struct Lane {
    random: Random,
    held: VecDeque<(Instant, Vec<u8>)>,
}

/// The faults of one frame.
struct Fate {
    lost: bool,
    copies: usize,
    corrupt_at: Option<u32>,
    due: Instant,
}

impl Lane {
    fn new(seed: u64) -> Self {
        Lane { random: Random::from_number(seed), held: VecDeque::new() }
    }
    fn fate(&mut self, rates: &Rates, now: Instant) -> Fate {
        let random = &mut self.random;
        let lost = random.public_chance(rates.loss);
        let copies = if random.public_chance(rates.duplicate) { 2 } else { 1 };
        let corrupt_at = random.public_chance(rates.corrupt).then(|| (random.public_u64() >> 32) as u32);
        let overtaken = if random.public_chance(rates.reorder) { OVERTAKEN_BY } else { Duration::ZERO };
        Fate { lost, copies, corrupt_at, due: now + rates.delay + overtaken }
    }
    /// Holds a frame back until it is due; false when there are too many.
    fn hold(&mut self, due: Instant, frame: Vec<u8>) -> bool {
        if self.held.len() >= HELD_FRAMES {
            return false;
        }
        let place = self.held.partition_point(|(at, _)| *at <= due);
        self.held.insert(place, (due, frame));
        true
    }
    fn is_due(&self, now: Instant) -> bool {
        self.held.front().is_some_and(|(due, _)| *due <= now)
    }
}

/// Changes one byte to something else.
fn corrupt(frame: &mut [u8], draw: u32) {
    let place = (draw as usize).checked_rem(frame.len());
    if let Some(byte) = place.and_then(|place| frame.get_mut(place)) {
        *byte ^= ((draw >> 24) as u8) | 1;
    }
}

impl Faults {
    /// `driver` with faults at these rates, or as it is where there are none.
    pub fn around(driver: Box<dyn Driver>, rates: Rates) -> Box<dyn Driver> {
        if rates.any() { Box::new(Faults::new(driver, rates)) } else { driver }
    }
    /// `inner` with faults at `rates`.
    pub fn new(inner: Box<dyn Driver>, rates: Rates) -> Self {
        Faults {
            inner,
            rates,
            inward: Lane::new(rates.seed.wrapping_mul(2)),
            outward: Lane::new(rates.seed.wrapping_mul(2).wrapping_add(1)),
            now: Instant::ZERO,
            clock: None,
            full: 0,
            lost: 0,
        }
    }
    /// When a frame that is here now came.
    fn came_at(&self) -> Instant {
        self.clock.as_ref().map_or(self.now, |clock| self.now.max(clock()))
    }
    /// Sends delayed frames that are due, as far as the link accepts them.
    fn flush(&mut self) {
        while self.outward.is_due(self.now) {
            let Some((due, frame)) = self.outward.held.pop_front() else { return };
            let lent = Frame { header: &frame, payload: Slices::EMPTY, offload: Offload::None };
            if self.inner.transmit(&lent) == Err(Full) {
                self.outward.held.push_front((due, frame));
                return;
            }
        }
    }
    /// Splits a GRO packet into the segments on the wire, because faults happen to those.
    fn receive_packet(&mut self, packet: &mut Packet) {
        let network_offset = self.inner.frame_format().header_bytes();
        if packet.segment_bytes() > 0
            && let Some(frame) = offload::received(packet.bytes(), network_offset, packet.segment_bytes())
            && let Some(mut segmenter) = Segmenter::new(&frame, network_offset)
        {
            let mut flat = vec![0; frame.len()];
            for index in 0..segmenter.count() {
                let length = segmenter.frame(index, None).write_to(&mut flat);
                self.receive_one(flat.get(..length.unwrap_or(0)).unwrap_or(&[]));
            }
            return;
        }
        if packet.checksum() == Checksum::Partial {
            offload::finish_checksum(packet.bytes_mut(), network_offset);
        }
        self.receive_one(packet.bytes());
    }
    fn receive_one(&mut self, frame: &[u8]) {
        let fate = self.inward.fate(&self.rates, self.came_at());
        if fate.lost {
            self.lost += 1;
            return;
        }
        for _ in 0..fate.copies {
            let mut frame = frame.to_vec();
            if let Some(draw) = fate.corrupt_at {
                corrupt(&mut frame, draw);
            }
            if !self.inward.hold(fate.due, frame) {
                self.lost += 1;
            }
        }
    }
}

impl Device for Faults {
    fn transmit(&mut self, frame: &Frame<'_>) -> Result<(), Full> {
        if !self.can_transmit() {
            self.full += 1;
            return Err(Full);
        }
        let fate = self.outward.fate(&self.rates, self.came_at());
        if fate.lost {
            self.lost += 1;
            return Ok(());
        }
        let mut bytes = vec![0; frame.len()];
        if crate::offload::complete(frame, &mut bytes).is_none() {
            return Ok(());
        }
        if let Some(draw) = fate.corrupt_at {
            corrupt(&mut bytes, draw);
        }
        for _ in 1..fate.copies {
            self.outward.hold(fate.due, bytes.clone());
        }
        self.outward.hold(fate.due, bytes);
        self.flush();
        Ok(())
    }
}

impl Driver for Faults {
    fn receive(&mut self, pool: &mut Pool, batch: &mut Batch) -> io::Result<usize> {
        let mut fresh = Batch::new();
        self.inner.receive(pool, &mut fresh)?;
        while let Some(mut packet) = fresh.pop_whole(pool) {
            self.receive_packet(&mut packet);
            pool.give(packet);
        }
        let mut received = 0;
        while self.inward.is_due(self.now) && !batch.is_full() {
            let Some((_, frame)) = self.inward.held.pop_front() else { break };
            let Some(mut packet) = pool.take(frame.len()) else {
                self.lost += 1;
                continue;
            };
            packet.append(&frame);
            match batch.push(packet) {
                Ok(()) => received += 1,
                Err(packet) => pool.give(packet),
            }
        }
        Ok(received)
    }
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.inner.descriptor()
    }
    fn wants_write(&self) -> bool {
        self.inner.wants_write()
    }
    fn has_received(&self) -> bool {
        self.inner.has_received() || self.inward.is_due(self.now)
    }
    /// A due frame that is still queued was refused by the link: its back-pressure reaches the host.
    fn can_transmit(&self) -> bool {
        let taken = !self.outward.is_due(self.now) || self.inner.can_transmit();
        taken && self.outward.held.len() < HELD_FRAMES
    }
    fn deadline(&self, now: Instant) -> Option<Instant> {
        let blocked = self.outward.is_due(self.now) && !self.inner.can_transmit();
        let outward = self.outward.held.front().map(|(due, _)| *due).filter(|_| !blocked);
        let inward = self.inward.held.front().map(|(due, _)| *due);
        [self.inner.deadline(now), outward, inward].into_iter().flatten().min()
    }
    fn advance(&mut self, now: Instant) {
        self.now = now;
        self.inner.advance(now);
        self.flush();
    }
    fn set_clock(&mut self, clock: Box<dyn Fn() -> Instant + Send>) {
        self.clock = Some(clock);
    }
    fn frame_format(&self) -> FrameFormat {
        self.inner.frame_format()
    }
    fn mtu_bytes(&self) -> usize {
        self.inner.mtu_bytes()
    }
    fn describe(&self) -> String {
        format!("{} with faults{}", self.inner.describe(), self.rates)
    }
    fn take_offer(&mut self) -> Option<AddressOffer> {
        self.inner.take_offer()
    }
    fn hand_over(&mut self) -> io::Result<Handover> {
        self.inner.hand_over()
    }
    fn reopen(&mut self) -> Result<(), NotBack> {
        self.inner.reopen()
    }
    fn statistics(&self) -> Statistics {
        let mut statistics = self.inner.statistics();
        statistics.full += self.full;
        if let Some(lost) = statistics.discarded.get_mut(Discard::Lost as usize) {
            *lost += self.lost;
        }
        statistics
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory;

    fn sent_and_received(rates: Rates, frames: u32) -> Vec<Vec<u8>> {
        let (near, mut far) = memory::pair(&memory::Config::default()).unwrap();
        let mut near = Faults::new(Box::new(near), rates);
        let (mut pool, mut batch) = (Pool::new(1 << 22), Batch::new());
        let mut got = Vec::new();
        for n in 0..frames + 50 {
            near.advance(Instant::from_millis(u64::from(n)));
            if n < frames {
                let header = n.to_be_bytes();
                let frame = Frame { header: &header, payload: Slices::EMPTY, offload: Offload::None };
                near.transmit(&frame).unwrap();
            }
            far.receive(&mut pool, &mut batch).unwrap();
            while let Some(packet) = batch.pop() {
                got.push(packet.bytes().to_vec());
                pool.give(packet);
            }
        }
        got
    }

    #[test]
    fn each_fault_happens_at_its_rate_and_the_seed_decides() {
        let rates = Rates { loss: 0.2, seed: 3, ..Rates::default() };
        let got = sent_and_received(rates, 2000);
        assert!((1500..1700).contains(&got.len()), "{}", got.len());
        assert_eq!(got, sent_and_received(rates, 2000));
        assert_ne!(got, sent_and_received(Rates { seed: 4, ..rates }, 2000));

        let twice = sent_and_received(Rates { duplicate: 1.0, ..Rates::default() }, 100);
        assert_eq!(twice.len(), 200);
        let changed = sent_and_received(Rates { corrupt: 1.0, ..Rates::default() }, 100);
        assert!(changed.iter().enumerate().all(|(n, f)| *f != (n as u32).to_be_bytes()));
        let mixed = sent_and_received(Rates { reorder: 0.3, delay: Duration::from_millis(10), ..rates }, 500);
        assert!(!mixed.is_sorted());
    }

    /// Nothing arrives before its delay is over, however long a round has lasted.
    #[test]
    fn a_delay_begins_when_a_frame_is_sent() {
        use std::sync::Arc;
        use std::sync::atomic::{AtomicU64, Ordering};
        let (near, mut far) = memory::pair(&memory::Config::default()).unwrap();
        let delay = Duration::from_millis(10);
        let mut near = Faults::new(Box::new(near), Rates { delay, ..Rates::default() });
        let clock_ms = Arc::new(AtomicU64::new(0));
        let shown = clock_ms.clone();
        near.set_clock(Box::new(move || Instant::from_millis(shown.load(Ordering::Relaxed))));
        let (mut pool, mut batch) = (Pool::new(1 << 22), Batch::new());
        near.advance(Instant::from_millis(1));
        clock_ms.store(8, Ordering::Relaxed);
        let frame = Frame { header: b"frame", payload: Slices::EMPTY, offload: Offload::None };
        near.transmit(&frame).unwrap();
        near.advance(Instant::from_millis(17));
        assert_eq!(far.receive(&mut pool, &mut batch).unwrap(), 0);
        near.advance(Instant::from_millis(18));
        assert_eq!(far.receive(&mut pool, &mut batch).unwrap(), 1);
    }
    #[test]
    fn a_full_link_behind_faults_pushes_back() {
        let config = memory::Config { queue_frames: 2, ..memory::Config::default() };
        let (near, mut far) = memory::pair(&config).unwrap();
        let mut near = Faults::new(Box::new(near), Rates { loss: 1e-9, ..Rates::default() });
        let (mut pool, mut batch) = (Pool::new(1 << 22), Batch::new());
        let frame = Frame { header: b"frame", payload: Slices::EMPTY, offload: Offload::None };
        // Two in the link's queue and one held here.
        let taken = (0..10).take_while(|_| near.transmit(&frame).is_ok()).count();
        assert_eq!((taken, near.can_transmit()), (3, false));
        assert_eq!(far.receive(&mut pool, &mut batch).unwrap(), 2);
        assert!(near.can_transmit());
        near.advance(Instant::from_millis(1));
        assert_eq!(far.receive(&mut pool, &mut batch).unwrap(), 1);
    }
}
