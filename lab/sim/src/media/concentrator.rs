//! MIT's packet concentrator: a node between a serial line with LLP and a network that is much faster (MIT §6.3).

use std::collections::VecDeque;

use inhost_base::{Duration, HardwareAddress, Instant, Random};

use super::{Happened, LlpLine, SharedMedium};

/// The station on the serial line.
const LINE: usize = 0;
/// The end of the line that the concentrator has.
const OWN_END: usize = 1;

/// How a concentrator is built. Begin with [`ConcentratorConfig::default`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConcentratorConfig {
    /// Speed of the serial line. Default: 9,600.
    pub line_bits_per_second: u64,
    /// Speed of the network behind it. Default: 1 Mbit/s, as the ring at MIT.
    pub network_bits_per_second: u64,
    /// Time through the network besides. Default: 1 ms.
    pub network_delay: Duration,
    /// Packets for the line that it holds, the one on the line included; the next is lost. Default: 16. The paper only
    /// says that twenty are too many.
    pub packet_buffers: usize,
    /// The paper's bug: so many in a hundred of the packets that come while the line is busy are lost. Default: none.
    pub lost_percent: u32,
}

impl Default for ConcentratorConfig {
    fn default() -> Self {
        ConcentratorConfig {
            line_bits_per_second: 9600,
            network_bits_per_second: 1_000_000,
            network_delay: Duration::from_millis(1),
            packet_buffers: 16,
            lost_percent: 0,
        }
    }
}

/// The concentrator, its line (station 0) and its network (station 1). Frames are IP packets.
#[derive(Debug)]
pub struct Concentrator {
    config: ConcentratorConfig,
    line: LlpLine,
    random: Random,
    attached: usize,
    /// Packets that the concentrator has given to its end of the line.
    held: usize,
    /// In the network, each way, with when they are through.
    inward: Crossing,
    outward: Crossing,
    overflowed: u64,
    lost_to_bug: u64,
}

#[derive(Debug, Default)]
struct Crossing {
    frames: VecDeque<(Instant, Vec<u8>)>,
    free_at: Instant,
}

impl Crossing {
    fn send(&mut self, frame: Vec<u8>, now: Instant, config: &ConcentratorConfig) {
        let nanos = frame.len() as u64 * 8_000_000_000 / config.network_bits_per_second.max(1);
        self.free_at = self.free_at.max(now) + Duration::from_nanos(nanos);
        self.frames.push_back((self.free_at + config.network_delay, frame));
    }
    fn next(&self) -> Instant {
        self.frames.front().map_or(Instant::FAR_FUTURE, |&(at, _)| at)
    }
    fn arrived(&mut self, now: Instant) -> Option<Vec<u8>> {
        let is_through = self.next() <= now;
        if is_through { self.frames.pop_front().map(|(_, frame)| frame) } else { None }
    }
}

impl Concentrator {
    /// An idle concentrator.
    pub fn new(config: ConcentratorConfig, seed: u64) -> Concentrator {
        let mut line = LlpLine::new(config.line_bits_per_second);
        let _ = (line.attach(None), line.attach(None));
        Concentrator {
            config,
            line,
            random: Random::from_number(seed),
            attached: 0,
            held: 0,
            inward: Crossing::default(),
            outward: Crossing::default(),
            overflowed: 0,
            lost_to_bug: 0,
        }
    }
    /// A packet has come from the network for the line.
    fn take(&mut self, frame: Vec<u8>, now: Instant) {
        if self.held >= self.config.packet_buffers {
            self.overflowed += 1;
        } else if self.held > 0 && self.random.public_below(100) < self.config.lost_percent {
            self.lost_to_bug += 1;
        } else {
            self.held += 1;
            self.line.offer(OWN_END, frame, now);
        }
    }
}

impl SharedMedium for Concentrator {
    fn attach(&mut self, _: Option<HardwareAddress>) -> usize {
        assert!(self.attached < 2, "a concentrator has one line and one network");
        self.attached += 1;
        self.attached - 1
    }
    fn offer(&mut self, station: usize, frame: Vec<u8>, now: Instant) {
        match station {
            LINE => self.line.offer(LINE, frame, now),
            _ => self.inward.send(frame, now, &self.config),
        }
    }
    fn next(&self) -> Instant {
        self.line.next().min(self.inward.next()).min(self.outward.next())
    }
    fn step(&mut self, now: Instant, happened: &mut Vec<Happened>) {
        while let Some(frame) = self.inward.arrived(now) {
            happened.push(Happened::Released { station: 1 });
            self.take(frame, now);
        }
        while let Some(frame) = self.outward.arrived(now) {
            happened.push(Happened::Delivered { station: 1, frame });
        }
        if self.line.next() > now {
            return;
        }
        let mut on_line = Vec::new();
        self.line.step(now, &mut on_line);
        for what in on_line {
            match what {
                Happened::Delivered { station: OWN_END, frame } => {
                    self.outward.send(frame, now, &self.config);
                }
                Happened::Released { station: OWN_END } => self.held = self.held.saturating_sub(1),
                of_line => happened.push(of_line),
            }
        }
    }
    fn octets(&self, station: usize) -> u64 {
        if station == LINE { self.line.octets(LINE) } else { 0 }
    }
    fn counters(&self) -> Vec<(&'static str, u64)> {
        let mut counters = self.line.counters();
        counters.push(("packets without a buffer", self.overflowed));
        counters.push(("packets lost to the bug", self.lost_to_bug));
        counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of the packets that reach the line of 30 that come at once, and the counters.
    fn burst(config: ConcentratorConfig) -> (Vec<u8>, Vec<(&'static str, u64)>) {
        let mut concentrator = Concentrator::new(config, 5);
        concentrator.attach(None);
        concentrator.attach(None);
        (0..30).for_each(|number| concentrator.offer(1, vec![0x45, number], Instant::ZERO));
        let mut through = Vec::new();
        while concentrator.next() != Instant::FAR_FUTURE {
            let (now, mut happened) = (concentrator.next(), Vec::new());
            concentrator.step(now, &mut happened);
            through.extend(happened.into_iter().filter_map(|what| match what {
                Happened::Delivered { station: LINE, frame } => Some(frame[1]),
                _ => None,
            }));
        }
        (through, concentrator.counters())
    }

    #[test]
    fn a_burst_that_finds_no_buffers_loses_its_end() {
        let (through, counters) = burst(ConcentratorConfig::default());
        // One leaves at once, and its buffer is free only when it is over the line.
        assert_eq!(through, (0..16).collect::<Vec<_>>());
        assert!(counters.contains(&("packets without a buffer", 14)));
    }

    #[test]
    fn with_the_bug_the_first_packet_of_a_burst_is_never_lost() {
        let (through, counters) =
            burst(ConcentratorConfig { lost_percent: 100, ..ConcentratorConfig::default() });
        assert_eq!(through, [0]);
        assert!(counters.contains(&("packets lost to the bug", 29)));
        let (through, _) = burst(ConcentratorConfig { lost_percent: 30, ..ConcentratorConfig::default() });
        assert!(through[0] == 0 && (8..=16).contains(&through.len()), "{through:?}");
    }
}
