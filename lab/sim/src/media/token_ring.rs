//! A ring with a token (IEEE 802.5): who has the token sends one frame, which goes around, and passes the token on.

use std::collections::VecDeque;

use inhost_base::{Duration, HardwareAddress, Instant};
use inhost_wire::ethernet;

use super::stations::Stations;
use super::{Happened, SharedMedium};

/// Bytes of a frame besides its IP packet: delimiters, access and frame control 5, addresses 12, LLC and SNAP 8, check
/// sequence 4, status 1.
const OVERHEAD_BYTES: usize = 30;
const TOKEN_BYTES: u64 = 3;

/// A ring. Frames are Ethernet frames, whose header stands for that of the ring.
#[derive(Debug)]
pub struct TokenRing {
    bits_per_second: u64,
    /// From a station to the next one.
    hop: Duration,
    stations: Stations,
    queues: Vec<VecDeque<Vec<u8>>>,
    token: Token,
    frames: u64,
    tokens: u64,
}

#[derive(Clone, Copy, Debug)]
enum Token {
    /// Nobody has a frame. It was, or will be, at `station` at `at`, and goes around.
    Idle { station: usize, at: Instant },
    /// On its way to `station`.
    Passing { station: usize, at: Instant },
    /// A station sends a frame until `until`.
    Held { station: usize, until: Instant },
}

impl TokenRing {
    /// A ring of so many bits a second, at least 1, with so much time from station to station, more than zero.
    pub fn new(bits_per_second: u64, hop: Duration) -> TokenRing {
        TokenRing {
            bits_per_second: bits_per_second.max(1),
            hop: hop.max(Duration::from_nanos(1)),
            stations: Stations::default(),
            queues: Vec::new(),
            token: Token::Idle { station: 0, at: Instant::ZERO },
            frames: 0,
            tokens: 0,
        }
    }
    fn time_of(&self, bytes: u64) -> Duration {
        Duration::from_nanos(bytes * 8_000_000_000 / self.bits_per_second)
    }
    fn frame_time(&self, frame_bytes: usize) -> Duration {
        self.time_of((frame_bytes.saturating_sub(ethernet::LENGTH) + OVERHEAD_BYTES) as u64)
    }
    fn hop_with_token(&self) -> Duration {
        self.hop + self.time_of(TOKEN_BYTES)
    }
    fn pass_on(&mut self, station: usize, now: Instant) {
        let (station, at) = ((station + 1) % self.queues.len().max(1), now + self.hop_with_token());
        self.token = match self.queues.iter().all(VecDeque::is_empty) {
            true => Token::Idle { station, at },
            false => Token::Passing { station, at },
        };
    }
}

impl SharedMedium for TokenRing {
    fn attach(&mut self, address: Option<HardwareAddress>) -> usize {
        self.queues.push(VecDeque::new());
        self.stations.attach(address)
    }
    fn offer(&mut self, station: usize, frame: Vec<u8>, now: Instant) {
        self.queues[station].push_back(frame);
        if let Token::Idle { station, at } = self.token {
            let hop = self.hop_with_token();
            let hops = now.since(at).as_nanos().div_ceil(hop.as_nanos());
            let next = (station + (hops % self.queues.len() as u64) as usize) % self.queues.len();
            self.token = Token::Passing { station: next, at: at + hop.times(hops) };
        }
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
            Token::Passing { station, at } if at <= now => {
                self.tokens += 1;
                match self.queues[station].front() {
                    // The token is released when the frame has been sent and its head is back.
                    Some(frame) => {
                        let around = self.hop.times(self.queues.len() as u64);
                        let until = at + self.frame_time(frame.len()).max(around);
                        self.token = Token::Held { station, until };
                    }
                    None => self.pass_on(station, at),
                }
            }
            Token::Held { station, until } if until <= now => {
                if let Some(frame) = self.queues[station].pop_front() {
                    self.frames += 1;
                    let to = self.stations.receivers(station, &frame);
                    happened.extend(to.map(|station| Happened::Delivered { station, frame: frame.clone() }));
                    happened.push(Happened::Released { station });
                }
                self.pass_on(station, until);
            }
            _ => {}
        }
    }
    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("frames", self.frames), ("tokens taken", self.tokens)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saturated_stations_take_turns_and_waste_only_the_token_s_way() {
        for count in [2, 5, 20] {
            let mut ring = TokenRing::new(4_000_000, Duration::from_micros(1));
            for station in 0..count {
                ring.attach(None);
                ring.offer(station, vec![0; 1014], Instant::ZERO);
                ring.offer(station, vec![0; 1014], Instant::ZERO);
            }
            let (end, mut sent) = (Instant::from_millis(5000), vec![0_u64; count]);
            while ring.next() < end {
                let (now, mut happened) = (ring.next(), Vec::new());
                ring.step(now, &mut happened);
                for what in happened {
                    if let Happened::Released { station } = what {
                        sent[station] += 1;
                        ring.offer(station, vec![0; 1014], now);
                    }
                }
            }
            let (least, most) = (sent.iter().min().unwrap(), sent.iter().max().unwrap());
            assert!(most - least <= 1, "{sent:?}");
            // 1,030 bytes are 2,060 us; a token takes 6 us and its hop 1 us.
            let used = ring.frame_time(1014).times(ring.frames).as_secs_f64() / 5.0;
            assert!((used - 2060.0 / 2067.0).abs() < 0.001, "{count}: {used}");
        }
    }
}
