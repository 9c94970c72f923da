//! A serial line with SLIP between two stations (RFC 1055), octet by octet and full duplex.

use std::collections::VecDeque;

use inhost_base::{Duration, HardwareAddress, Instant};
use inhost_wire::slip::{self, Decoder};

use super::{Happened, SharedMedium};

/// Bits that the line sends for an octet: start bit, eight of data, stop bit.
const BITS_PER_OCTET: u64 = 10;
/// The longest packet that an end takes.
const PACKET_LIMIT_BYTES: usize = 65_535;

/// A serial line. Stations are 0 and 1; frames are IP packets.
#[derive(Debug)]
pub struct SlipLine {
    octet_time: Duration,
    ends: [End; 2],
    attached: usize,
}

#[derive(Debug)]
struct End {
    decoder: Decoder,
    /// Packets as octets for the line.
    queue: VecDeque<VecDeque<u8>>,
    /// When the octet that is being sent has arrived.
    arrives_at: Option<Instant>,
    octets: u64,
    packets: u64,
}

impl SlipLine {
    /// An idle line of so many bits a second, at least 1.
    pub fn new(bits_per_second: u64) -> SlipLine {
        let octet_time = Duration::from_nanos(BITS_PER_OCTET * 1_000_000_000 / bits_per_second.max(1));
        let end = || End {
            decoder: Decoder::new(PACKET_LIMIT_BYTES),
            queue: VecDeque::new(),
            arrives_at: None,
            octets: 0,
            packets: 0,
        };
        SlipLine { octet_time, ends: [end(), end()], attached: 0 }
    }
    fn take_octet(&mut self, station: usize, now: Instant, happened: &mut Vec<Happened>) {
        let octet_time = self.octet_time;
        let end = &mut self.ends[station];
        if end.arrives_at.is_none_or(|at| at > now) {
            return;
        }
        let Some(packet) = end.queue.front_mut() else { return };
        let octet = packet.pop_front();
        if packet.is_empty() {
            end.queue.pop_front();
            end.packets += 1;
            happened.push(Happened::Released { station });
        }
        end.arrives_at = (!end.queue.is_empty()).then(|| now + octet_time);
        self.ends.iter_mut().for_each(|end| end.octets += 1);
        let other = &mut self.ends[1 - station];
        if let Some(frame) = octet.and_then(|octet| other.decoder.push(octet)) {
            happened.push(Happened::Delivered { station: 1 - station, frame: frame.to_vec() });
        }
    }
}

impl SharedMedium for SlipLine {
    fn attach(&mut self, _: Option<HardwareAddress>) -> usize {
        assert!(self.attached < 2, "a serial line has two ends");
        self.attached += 1;
        self.attached - 1
    }
    fn offer(&mut self, station: usize, frame: Vec<u8>, now: Instant) {
        let octet_time = self.octet_time;
        let end = &mut self.ends[station];
        let mut octets = VecDeque::new();
        slip::encode(&frame, &mut octets);
        end.queue.push_back(octets);
        end.arrives_at = end.arrives_at.or(Some(now + octet_time));
    }
    fn next(&self) -> Instant {
        self.ends.iter().filter_map(|end| end.arrives_at).min().unwrap_or(Instant::FAR_FUTURE)
    }
    fn step(&mut self, now: Instant, happened: &mut Vec<Happened>) {
        (0..2).for_each(|station| self.take_octet(station, now, happened));
    }
    fn octets(&self, station: usize) -> u64 {
        self.ends[station].octets
    }
    fn counters(&self) -> Vec<(&'static str, u64)> {
        let [a, b] = &self.ends;
        vec![("octets", a.octets), ("packets", a.packets + b.packets)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_take_their_octets_and_escapes_both_ways_at_once() {
        let mut line = SlipLine::new(10_000);
        line.attach(None);
        line.attach(None);
        let escaped = vec![slip::END, slip::ESC, 1];
        line.offer(0, vec![0x45; 40], Instant::ZERO);
        line.offer(1, escaped.clone(), Instant::ZERO);
        let mut delivered = Vec::new();
        while line.next() != Instant::FAR_FUTURE {
            let (now, mut happened) = (line.next(), Vec::new());
            line.step(now, &mut happened);
            for what in happened {
                if let Happened::Delivered { station, frame } = what {
                    delivered.push((now.as_millis(), station, frame));
                }
            }
        }
        let octets = |packet: &[u8]| slip::encoded_length(packet) as u64;
        let (short_ms, long_ms) = (octets(&escaped), octets(&[0x45; 40]));
        assert_eq!(delivered, [(short_ms, 0, escaped), (long_ms, 1, vec![0x45; 40])]);
        assert_eq!(line.octets(0), short_ms + long_ms);
    }
}
