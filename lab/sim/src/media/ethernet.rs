//! Ethernet on a cable: CSMA/CD at 10 Mbit/s (IEEE 802.3).

use std::collections::VecDeque;

use inhost_base::{Duration, HardwareAddress, Instant, Random};

use super::stations::Stations;
use super::{Happened, SharedMedium};

const BIT_TIME_NS: u64 = 100;
/// Preamble and starting delimiter.
const PREAMBLE_BYTES: u64 = 8;
/// The shortest frame, and the check sequence that it includes.
const LEAST_FRAME_BYTES: u64 = 64;
const CHECK_SEQUENCE_BYTES: u64 = 4;
const GAP: Duration = Duration::from_nanos(96 * BIT_TIME_NS);
const JAM: Duration = Duration::from_nanos(32 * BIT_TIME_NS);
const SLOT: Duration = Duration::from_nanos(512 * BIT_TIME_NS);
/// Attempts before a frame is given up.
const ATTEMPT_LIMIT: u32 = 16;
/// The back-off does not grow beyond two to this.
const BACK_OFF_LIMIT: u32 = 10;

/// A cable with stations, each of which hears each other one after the same time.
#[derive(Debug)]
pub struct Ethernet {
    propagation: Duration,
    random: Random,
    stations: Stations,
    places: Vec<Place>,
    /// Who sends since when.
    sending: Vec<(usize, Instant)>,
    /// When the only frame on the cable has been sent, or when the jam of a collision ends.
    ends_at: Instant,
    is_collision: bool,
    /// The cable is free for who waited, from then on.
    free_at: Instant,
    counters: Counters,
}

#[derive(Debug, Default)]
struct Place {
    queue: VecDeque<Vec<u8>>,
    attempts: u32,
    /// When it tries to send; none while it has nothing, or sends.
    tries_at: Option<Instant>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    frames: u64,
    collisions: u64,
    given_up: u64,
    deferred: u64,
}

impl Ethernet {
    /// An idle cable on which a signal takes `propagation` from any station to any other; less than half of a slot.
    pub fn new(propagation: Duration, seed: u64) -> Ethernet {
        Ethernet {
            propagation,
            random: Random::from_number(seed),
            stations: Stations::default(),
            places: Vec::new(),
            sending: Vec::new(),
            ends_at: Instant::FAR_FUTURE,
            is_collision: false,
            free_at: Instant::ZERO,
            counters: Counters::default(),
        }
    }
    /// A station tries to send its first frame.
    fn attempt(&mut self, station: usize, now: Instant) {
        let Some(bytes) = self.places[station].queue.front().map(Vec::len) else { return };
        let began_at = self.sending.first().map(|&(_, at)| at);
        match began_at {
            // It does not hear the other one yet, so both send.
            Some(began_at) if now < began_at + self.propagation => {
                self.sending.push((station, now));
                if !std::mem::replace(&mut self.is_collision, true) {
                    // The last one to hear of it sends its jam then.
                    self.ends_at = now + self.propagation + JAM;
                }
            }
            Some(_) => {
                self.counters.deferred += 1;
                self.places[station].tries_at = Some(self.ends_at + self.propagation + GAP);
            }
            None if now < self.free_at => {
                self.counters.deferred += 1;
                self.places[station].tries_at = Some(self.free_at);
            }
            None => {
                self.sending.push((station, now));
                self.ends_at = now + frame_time(bytes);
                self.is_collision = false;
            }
        }
    }
    /// What was sent is over.
    fn end(&mut self, now: Instant, happened: &mut Vec<Happened>) {
        self.ends_at = Instant::FAR_FUTURE;
        self.free_at = now + self.propagation + GAP;
        let senders = std::mem::take(&mut self.sending);
        let is_collision = std::mem::take(&mut self.is_collision);
        self.counters.collisions += u64::from(is_collision);
        for (station, _) in senders {
            match is_collision {
                true => self.back_off(station, happened),
                false => self.sent(station, happened),
            }
        }
    }
    fn sent(&mut self, station: usize, happened: &mut Vec<Happened>) {
        self.counters.frames += 1;
        if let Some(frame) = self.places[station].queue.pop_front() {
            let to = self.stations.receivers(station, &frame);
            happened.extend(to.map(|station| Happened::Delivered { station, frame: frame.clone() }));
        }
        self.go_on(station, happened);
    }
    fn back_off(&mut self, station: usize, happened: &mut Vec<Happened>) {
        let place = &mut self.places[station];
        place.attempts += 1;
        if place.attempts >= ATTEMPT_LIMIT {
            self.counters.given_up += 1;
            place.queue.pop_front();
            return self.go_on(station, happened);
        }
        let slots = self.random.public_below(1 << place.attempts.min(BACK_OFF_LIMIT));
        place.tries_at = Some(self.free_at + SLOT.times(u64::from(slots)));
    }
    /// A frame has left a station.
    fn go_on(&mut self, station: usize, happened: &mut Vec<Happened>) {
        happened.push(Happened::Released { station });
        let place = &mut self.places[station];
        place.attempts = 0;
        place.tries_at = (!place.queue.is_empty()).then_some(self.free_at);
    }
}

/// Time that a frame is on the cable, with its preamble.
fn frame_time(bytes: usize) -> Duration {
    let frame_bytes = (bytes as u64 + CHECK_SEQUENCE_BYTES).max(LEAST_FRAME_BYTES);
    Duration::from_nanos((PREAMBLE_BYTES + frame_bytes) * 8 * BIT_TIME_NS)
}

impl SharedMedium for Ethernet {
    fn attach(&mut self, address: Option<HardwareAddress>) -> usize {
        self.places.push(Place::default());
        self.stations.attach(address)
    }
    fn offer(&mut self, station: usize, frame: Vec<u8>, now: Instant) {
        let is_sending = self.sending.iter().any(|&(sender, _)| sender == station);
        let place = &mut self.places[station];
        place.queue.push_back(frame);
        if !is_sending && place.tries_at.is_none() {
            place.tries_at = Some(now);
        }
    }
    fn next(&self) -> Instant {
        let tries = self.places.iter().filter_map(|place| place.tries_at).min();
        tries.unwrap_or(Instant::FAR_FUTURE).min(self.ends_at)
    }
    fn step(&mut self, now: Instant, happened: &mut Vec<Happened>) {
        if self.ends_at <= now {
            self.end(self.ends_at, happened);
        }
        for station in 0..self.places.len() {
            if let Some(at) = self.places[station].tries_at.take_if(|at| *at <= now) {
                self.attempt(station, at);
            }
        }
    }
    fn counters(&self) -> Vec<(&'static str, u64)> {
        let Counters { frames, collisions, given_up, deferred } = self.counters;
        vec![
            ("frames", frames),
            ("collisions", collisions),
            ("frames given up", given_up),
            ("deferrals", deferred),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Share of the time in which frames of `bytes` are sent, when so many stations always have one.
    fn saturated(count: usize, bytes: usize) -> (f64, Counters) {
        let mut cable = Ethernet::new(Duration::from_micros(20), 7);
        for station in 0..count {
            cable.attach(None);
            cable.offer(station, vec![0; bytes], Instant::ZERO);
            cable.offer(station, vec![0; bytes], Instant::ZERO);
        }
        let end = Instant::from_millis(20_000);
        while cable.next() < end {
            let (now, mut happened) = (cable.next(), Vec::new());
            cable.step(now, &mut happened);
            for what in happened {
                if let Happened::Released { station } = what {
                    cable.offer(station, vec![0; bytes], now);
                }
            }
        }
        let used_s = frame_time(bytes).times(cable.counters.frames).as_secs_f64();
        (used_s / end.since(Instant::ZERO).as_secs_f64(), cable.counters)
    }

    #[test]
    fn efficiency_under_load_follows_the_known_curve() {
        // Boggs, Mogul and Kent 1988, figure 3-1: saturated stations on real Ethernets carry more than 9 Mbit/s of
        // frames of 1,500 bytes, and more than 7 of 512 bytes; Metcalfe and Boggs 1976 for the shortest ones: between
        // 1/e and a half, however many there are.
        for count in [2, 5, 10, 24] {
            let (large, _) = saturated(count, 1514);
            assert!((0.90..0.99).contains(&large), "{count}: {large}");
            let (middle, _) = saturated(count, 512);
            assert!((0.72..0.93).contains(&middle), "{count}: {middle}");
            let (small, counters) = saturated(count, 60);
            assert!((0.30..0.70).contains(&small), "{count}: {small} {counters:?}");
        }
        // Alone, there is nothing but the gap.
        let (alone, counters) = saturated(1, 1514);
        let gap_and_way_us = 9.6 + 20.0;
        assert!((alone - 1220.8 / (1220.8 + gap_and_way_us)).abs() < 0.001, "{alone}");
        assert_eq!(counters.collisions, 0);
    }

    #[test]
    fn two_who_wait_for_a_third_collide_and_then_both_get_through() {
        let mut cable = Ethernet::new(Duration::from_micros(5), 1);
        (0..3).for_each(|_| {
            cable.attach(None);
        });
        cable.offer(0, vec![0; 1000], Instant::ZERO);
        cable.offer(1, vec![1; 100], Instant::from_millis(0) + Duration::from_micros(100));
        cable.offer(2, vec![2; 100], Instant::from_millis(0) + Duration::from_micros(200));
        let mut sent = Vec::new();
        while cable.next() != Instant::FAR_FUTURE {
            let (now, mut happened) = (cable.next(), Vec::new());
            cable.step(now, &mut happened);
            sent.extend(happened.into_iter().filter_map(|what| match what {
                Happened::Released { station } => Some(station),
                Happened::Delivered { .. } => None,
            }));
        }
        assert_eq!((sent[0], sent.len()), (0, 3));
        assert!(cable.counters.collisions >= 1 && cable.counters.given_up == 0);
    }
}
