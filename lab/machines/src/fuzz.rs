//! Fuzz target: setups of any kind, with numbers in their ranges and out of them.

use crate::setup::{Link, Machine, Parameters, Program, Setup};

/// Takes numbers from the input, and zeros when it is used up.
struct Numbers<'a>(&'a [u8]);

impl Numbers<'_> {
    fn next(&mut self) -> u32 {
        let (first, rest) = self.0.split_at(self.0.len().min(2));
        self.0 = rest;
        first.iter().fold(0, |number, &byte| number << 8 | u32::from(byte))
    }
    fn below(&mut self, limit: u32) -> u32 {
        self.next() % limit
    }
    /// A number that a run can have without taking long; one in 16 may be out of every range.
    fn small(&mut self, limit: u32) -> u32 {
        match self.below(16) {
            0 => [0, u32::MAX, 1 << 24][self.below(3) as usize],
            _ => 1 + self.below(limit),
        }
    }
    fn maybe(&mut self, limit: u32) -> Option<u32> {
        (self.below(2) == 1).then(|| self.small(limit))
    }
    fn machine(&mut self) -> Machine {
        match self.below(16) {
            0 => Machine::Ideal {},
            1 => Machine::IbmPc {},
            2 => Machine::Alpha {},
            3 => Machine::AlphaBefore {},
            4 => Machine::Csr {},
            5 => Machine::Comet {},
            6 => Machine::Xx {},
            7 => Machine::Multics {},
            8 => Machine::Dell310 {},
            9 => Machine::Ps2 {},
            10 => Machine::Dec5000 {},
            11 => Machine::MacIiSlowed {},
            12 => Machine::MacIi {},
            13 => Machine::Dec5000Slowed {},
            14 => Machine::Dec2100 {},
            _ => Machine::Ibm3033 {},
        }
    }
    fn link(&mut self) -> Link {
        match self.below(8) {
            5 => Link::Slip { bits_per_second: 9600 },
            6 => Link::TokenRing { bits_per_second: 4_000_000 },
            0 => Link::Llp { bits_per_second: 4800 + u64::from(self.small(40_000)) },
            1 => Link::Concentrator {
                bits_per_second: 9600,
                packet_buffers: self.small(40),
                lost_percent: self.below(110),
            },
            2 => Link::Imp { bits_per_second: 50_000 + u64::from(self.small(50_000)) },
            3 => Link::Ethernet {},
            4 => Link::None {},
            _ => Link::Fddi { full_duplex: self.below(2) == 1, rings: self.below(4) as u8 },
        }
    }
    fn program(&mut self) -> Program {
        match self.below(6) {
            4 => Program::Blast {
                message_bytes: self.small(10_000),
                duration_ms: self.maybe(20),
                total_bytes: self.maybe(20_000),
            },
            0 => Program::Echo {
                count: self.small(5),
                bytes: self.small(2000),
                prints: true,
                scrolls: self.below(2) == 1,
            },
            1 => Program::Screenful {},
            2 => Program::Bulk {
                write_bytes: self.small(3000),
                total_bytes: self.maybe(20_000),
                duration_s: self.maybe(3),
                prints: self.below(2) == 1,
                sessions: self.small(3),
            },
            3 => Program::FullScreen {
                interactions: self.small(4),
                interval_ms: self.small(1000),
                in_bytes: self.small(2000),
                out_bytes: self.small(4000),
                write_bytes: self.maybe(2000),
            },
            _ => Program::Queue {
                arrivals_per_s: f64::from(self.next()) - 100.0,
                services_per_s: f64::from(self.next()),
                places: self.small(1000),
                packets: self.small(500),
            },
        }
    }
}

/// Runs a setup that the input stands for, twice: it gives numbers or an error, and the same ones again.
pub fn fuzz_setup(input: &[u8]) {
    let mut numbers = Numbers(input);
    let setup = Setup {
        machine: numbers.machine(),
        link: numbers.link(),
        program: numbers.program(),
        parameters: Parameters {
            peer: (numbers.below(2) == 1).then(|| numbers.machine()),
            window_bytes: numbers.maybe(70_000),
            send_buffer_bytes: numbers.maybe(70_000),
            segment_bytes: numbers.maybe(2000).map(|bytes| bytes as u16),
            load: numbers.below(4).saturating_sub(1),
            early_answer: numbers.below(2) == 1,
        },
    };
    let seed = u64::from(numbers.next());
    let first = crate::run(&setup, seed);
    if let Ok(measured) = &first {
        assert!(measured.iter().all(|(_, value)| value.is_finite()), "{setup:?} {measured:?}");
    }
    assert_eq!(first, crate::run(&setup, seed), "{setup:?}");
}

#[cfg(test)]
mod tests {
    use inhost_base::Random;

    #[test]
    fn setups_of_any_kind_give_numbers_or_an_error_and_the_same_again() {
        let mut random = Random::from_number(11);
        for _ in 0..400 {
            let input: Vec<u8> = (0..60).map(|_| random.public_below(256) as u8).collect();
            super::fuzz_setup(&input);
        }
    }
}
