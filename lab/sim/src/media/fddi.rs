//! FDDI: a ring with a timed token (ANSI X3.139), and Digital's full-duplex mode for two stations.

use std::collections::VecDeque;

use inhost_base::{Duration, HardwareAddress, Instant};
use inhost_wire::ethernet;

use super::stations::Stations;
use super::{Happened, SharedMedium};

/// 100 Mbit/s.
const BYTE_TIME: Duration = Duration::from_nanos(80);
/// Bytes of a frame besides its IP packet: preamble 8, starting delimiter 1, frame control 1, addresses 12, LLC and SNAP
/// 8 (RFC 1390), check sequence 4, ending delimiter and status 2.
const OVERHEAD_BYTES: usize = 36;
/// A token with its preamble.
const TOKEN_BYTES: u64 = 11;

/// A ring. Frames are Ethernet frames, whose header stands for that of FDDI; the time on the ring is that of an FDDI
/// frame with the same packet.
#[derive(Debug)]
pub struct Fddi {
    target_rotation: Duration,
    /// From a station to the next one.
    hop: Duration,
    stations: Stations,
    ring: Vec<Station>,
    token: Token,
    counters: Counters,
}

#[derive(Debug, Default)]
struct Station {
    queue: VecDeque<Vec<u8>>,
    /// When the token-rotation timer runs out.
    rotation_due: Instant,
    /// When the token came last.
    token_came_at: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
enum Token {
    /// Nobody has a frame. It was, or will be, at `station` at `at`, and goes around.
    Idle { station: usize, at: Instant },
    /// On its way to `station`.
    Passing { station: usize, at: Instant },
    /// Held by a station, which sends a frame until `until` and may begin another before `hold_until`.
    Held { station: usize, until: Instant, hold_until: Instant },
}

#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    frames: u64,
    rotations: u64,
    late_tokens: u64,
    longest_rotation_us: u64,
}

impl Fddi {
    /// A ring with the target rotation time `target_rotation` and so much time from station to station, more than zero.
    pub fn new(target_rotation: Duration, hop: Duration) -> Fddi {
        Fddi {
            target_rotation,
            hop: hop.max(Duration::from_nanos(1)),
            stations: Stations::default(),
            ring: Vec::new(),
            token: Token::Idle { station: 0, at: Instant::ZERO },
            counters: Counters::default(),
        }
    }
    fn hop_with_token(&self) -> Duration {
        self.hop + BYTE_TIME.times(TOKEN_BYTES)
    }
    fn after(&self, station: usize) -> usize {
        (station + 1) % self.ring.len().max(1)
    }
    /// The token comes to a station, which may begin to send.
    fn arrive(&mut self, station: usize, now: Instant) {
        let place = &mut self.ring[station];
        if let Some(before) = place.token_came_at.replace(now) {
            self.counters.rotations += 1;
            let rotation_us = now.since(before).as_micros();
            self.counters.longest_rotation_us = self.counters.longest_rotation_us.max(rotation_us);
        }
        let is_early = now < place.rotation_due;
        let hold_until = if is_early { place.rotation_due } else { now };
        if is_early {
            place.rotation_due = now + self.target_rotation;
        } else {
            // The token is late. The timer goes on from when it ran out, and nothing is sent.
            self.counters.late_tokens += 1;
            while place.rotation_due <= now {
                place.rotation_due += self.target_rotation;
            }
        }
        self.go_on(station, now, hold_until);
    }
    /// A station sends its next frame, or passes the token on.
    fn go_on(&mut self, station: usize, now: Instant, hold_until: Instant) {
        let frame_bytes = self.ring[station].queue.front().map(Vec::len);
        self.token = match frame_bytes {
            Some(bytes) if now < hold_until => {
                Token::Held { station, until: now + frame_time(bytes), hold_until }
            }
            _ => {
                let (station, at) = (self.after(station), now + self.hop_with_token());
                match self.ring.iter().all(|station| station.queue.is_empty()) {
                    true => Token::Idle { station, at },
                    false => Token::Passing { station, at },
                }
            }
        };
    }
    /// Somebody has a frame while the token goes around: where it comes next, from `now` on.
    fn wake_token(&mut self, now: Instant) {
        let Token::Idle { station, at } = self.token else { return };
        let (count, hop) = (self.ring.len(), self.hop_with_token());
        let hops = now.since(at).as_nanos().div_ceil(hop.as_nanos());
        let next_at = at + hop.times(hops);
        let next = (station + (hops % count as u64) as usize) % count;
        // It came to each of the others within the last rotation.
        for back in 0..(count as u64).min(hops) {
            let passed = (station + ((hops - 1 - back) % count as u64) as usize) % count;
            let came_at = next_at - hop.times(back + 1);
            self.ring[passed].token_came_at = Some(came_at);
            self.ring[passed].rotation_due = came_at + self.target_rotation;
        }
        self.token = Token::Passing { station: next, at: next_at };
    }
}

fn frame_time(frame_bytes: usize) -> Duration {
    BYTE_TIME.times((frame_bytes.saturating_sub(ethernet::LENGTH) + OVERHEAD_BYTES) as u64)
}

impl SharedMedium for Fddi {
    fn attach(&mut self, address: Option<HardwareAddress>) -> usize {
        let rotation_due = Instant::ZERO + self.target_rotation;
        self.ring.push(Station { rotation_due, ..Station::default() });
        self.stations.attach(address)
    }
    fn offer(&mut self, station: usize, frame: Vec<u8>, now: Instant) {
        self.ring[station].queue.push_back(frame);
        self.wake_token(now);
    }
    fn next(&self) -> Instant {
        match self.token {
            Token::Idle { .. } => Instant::FAR_FUTURE,
            Token::Passing { at, .. } => at,
            Token::Held { until, .. } => until,
        }
    }
    fn step(&mut self, now: Instant, happened: &mut Vec<Happened>) {
        match self.token {
            Token::Passing { station, at } if at <= now => self.arrive(station, at),
            Token::Held { station, until, hold_until } if until <= now => {
                if let Some(frame) = self.ring[station].queue.pop_front() {
                    self.counters.frames += 1;
                    let to = self.stations.receivers(station, &frame);
                    happened.extend(to.map(|station| Happened::Delivered { station, frame: frame.clone() }));
                    happened.push(Happened::Released { station });
                }
                self.go_on(station, until, hold_until);
            }
            _ => {}
        }
    }
    fn counters(&self) -> Vec<(&'static str, u64)> {
        let Counters { frames, rotations, late_tokens, longest_rotation_us } = self.counters;
        vec![
            ("frames", frames),
            ("rotations", rotations),
            ("late tokens", late_tokens),
            ("longest rotation us", longest_rotation_us),
        ]
    }
}

/// FDDI between two stations without a token: each sends when it has a frame.
#[derive(Debug, Default)]
pub struct FullDuplexFddi {
    stations: Stations,
    sides: [Side; 2],
}

#[derive(Debug, Default)]
struct Side {
    queue: VecDeque<Vec<u8>>,
    /// When the frame at the front has left.
    sent_at: Option<Instant>,
    frames: u64,
}

impl Side {
    fn begin(&mut self, now: Instant) {
        self.sent_at = self.queue.front().map(|frame| now + frame_time(frame.len()));
    }
}

impl FullDuplexFddi {
    /// An idle link.
    pub fn new() -> FullDuplexFddi {
        FullDuplexFddi::default()
    }
}

impl SharedMedium for FullDuplexFddi {
    fn attach(&mut self, address: Option<HardwareAddress>) -> usize {
        assert!(self.stations.len() < 2, "a full-duplex link has two ends");
        self.stations.attach(address)
    }
    fn offer(&mut self, station: usize, frame: Vec<u8>, now: Instant) {
        let side = &mut self.sides[station];
        side.queue.push_back(frame);
        if side.sent_at.is_none() {
            side.begin(now);
        }
    }
    fn next(&self) -> Instant {
        self.sides.iter().filter_map(|side| side.sent_at).min().unwrap_or(Instant::FAR_FUTURE)
    }
    fn step(&mut self, now: Instant, happened: &mut Vec<Happened>) {
        for (station, side) in self.sides.iter_mut().enumerate() {
            let Some(at) = side.sent_at.filter(|at| *at <= now) else { continue };
            if let Some(frame) = side.queue.pop_front() {
                side.frames += 1;
                happened.push(Happened::Delivered { station: 1 - station, frame });
                happened.push(Happened::Released { station });
            }
            side.begin(at);
        }
    }
    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("frames", self.sides[0].frames + self.sides[1].frames)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET: Duration = Duration::from_millis(8);
    const HOP: Duration = Duration::from_micros(1);

    /// Stations that always have a frame of `bytes` to send; the share of the time in which they sent, and the counters.
    fn saturated(count: usize, bytes: usize, time: Duration) -> (f64, Counters) {
        let mut ring = Fddi::new(TARGET, HOP);
        (0..count).for_each(|_| {
            ring.attach(None);
        });
        (0..count).for_each(|station| {
            ring.offer(station, vec![0; bytes], Instant::ZERO);
            ring.offer(station, vec![0; bytes], Instant::ZERO);
        });
        let end = Instant::ZERO + time;
        while ring.next() < end {
            let (now, mut happened) = (ring.next(), Vec::new());
            ring.step(now, &mut happened);
            for what in happened {
                if let Happened::Released { station } = what {
                    ring.offer(station, vec![0; bytes], now);
                }
            }
        }
        let busy = frame_time(bytes).times(ring.counters.frames);
        (busy.as_secs_f64() / time.as_secs_f64(), ring.counters)
    }

    #[test]
    fn a_rotation_takes_at_most_twice_the_target() {
        for count in [2, 3, 5, 20] {
            for bytes in [100, 1500, 4366] {
                let (_, counters) = saturated(count, bytes, Duration::from_secs(2));
                assert!(counters.rotations > 100);
                assert!(
                    counters.longest_rotation_us <= 2 * TARGET.as_micros(),
                    "{count} {bytes}: {counters:?}"
                );
            }
        }
    }

    #[test]
    fn a_saturated_ring_is_used_as_the_timed_token_allows() {
        // Jain 1990: n stations use n(T - D) / (n T + D) of a ring with the latency D.
        for count in [2, 5, 20] {
            let (used, _) = saturated(count, 4366, Duration::from_secs(4));
            let latency_s = Duration::from_nanos(1880).times(count as u64).as_secs_f64();
            let (n, target_s) = (count as f64, TARGET.as_secs_f64());
            let allowed = n * (target_s - latency_s) / (n * target_s + latency_s);
            assert!((used - allowed).abs() < 0.01, "{count}: {used} of {allowed}");
        }
    }

    #[test]
    fn a_lone_frame_waits_for_the_token_and_then_takes_its_time() {
        let mut ring = Fddi::new(TARGET, HOP);
        ring.attach(None);
        ring.attach(None);
        // Two hops of 1.88 us: at 1 ms the token has gone around 265 times, and comes to station 0 at 1.00016 ms.
        ring.offer(0, vec![0; 4366], Instant::from_millis(1));
        let mut delivered = Vec::new();
        while ring.next() != Instant::FAR_FUTURE {
            let (now, mut happened) = (ring.next(), Vec::new());
            ring.step(now, &mut happened);
            let of_it = happened.iter().filter(|what| matches!(what, Happened::Delivered { .. }));
            delivered.extend(of_it.map(|_| now.as_nanos()));
        }
        assert_eq!(delivered, [1_000_160 + 351_040]);
    }
}
