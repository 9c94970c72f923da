//! A serial line with MIT's low level protocol between two stations (MIT §5.3), octet by octet.

use std::collections::VecDeque;

use inhost_base::{Duration, HardwareAddress, Instant};
use inhost_wire::llp::{Config, Event, Line, Packet};

use super::{Happened, SharedMedium};

/// Bits that the line sends for an octet: start bit, eight of data, stop bit.
const BITS_PER_OCTET: u64 = 10;

/// A serial line with LLP at both ends. The ends are those of production ([`Line`]); this only moves their octets.
/// Stations are 0 and 1; frames are IP packets.
#[derive(Debug)]
pub struct LlpLine {
    octet_time: Duration,
    ends: [End; 2],
    attached: usize,
}

#[derive(Debug)]
struct End {
    line: Line,
    queue: VecDeque<Vec<u8>>,
    /// The octet that is being sent, and when it has arrived.
    sending: Option<(u8, Instant)>,
    /// The packet was given up, or its last octet is on the line.
    is_over: bool,
    octets: u64,
    given_up: u64,
}

impl LlpLine {
    /// An idle line of so many bits a second, at least 1.
    pub fn new(bits_per_second: u64) -> LlpLine {
        let octet_time = Duration::from_nanos(BITS_PER_OCTET * 1_000_000_000 / bits_per_second.max(1));
        let end = || End {
            line: Line::new(Config::default()),
            queue: VecDeque::new(),
            sending: None,
            is_over: false,
            octets: 0,
            given_up: 0,
        };
        LlpLine { octet_time, ends: [end(), end()], attached: 0 }
    }
    /// Time that an octet takes.
    pub fn octet_time(&self) -> Duration {
        self.octet_time
    }
    /// Puts the next octet of an end on the line, if the line is free and there is one.
    fn pump(&mut self, end: usize, now: Instant) {
        let arrives_at = now + self.octet_time;
        let End { line, queue, sending, .. } = &mut self.ends[end];
        if sending.is_some() {
            return;
        }
        if line.is_idle()
            && let Some(frame) = queue.front()
            && line.send(Packet::Data(frame), now).is_ok()
        {
            queue.pop_front();
        }
        *sending = line.next_octet(now).map(|octet| (octet, arrives_at));
    }
    fn take_octet(&mut self, end: usize, now: Instant, happened: &mut Vec<Happened>) {
        let Some((octet, at)) = self.ends[end].sending else { return };
        if at > now {
            return;
        }
        self.ends[end].sending = None;
        self.ends.iter_mut().for_each(|end| end.octets += 1);
        self.ends[1 - end].line.receive(octet, now);
        self.poll(happened);
    }
    fn poll(&mut self, happened: &mut Vec<Happened>) {
        for (station, end) in self.ends.iter_mut().enumerate() {
            while let Some(event) = end.line.poll_event() {
                match event {
                    Event::Data(frame) => happened.push(Happened::Delivered { station, frame }),
                    Event::Sent => end.is_over = true,
                    Event::NotAcknowledged => {
                        end.is_over = true;
                        end.given_up += 1;
                    }
                    Event::AddressRequest(_) | Event::AddressReply(_) => {}
                }
            }
            if end.is_over && end.sending.is_none() {
                end.is_over = false;
                happened.push(Happened::Released { station });
            }
        }
    }
}

impl SharedMedium for LlpLine {
    fn attach(&mut self, _: Option<HardwareAddress>) -> usize {
        assert!(self.attached < 2, "a serial line has two ends");
        self.attached += 1;
        self.attached - 1
    }
    fn offer(&mut self, station: usize, frame: Vec<u8>, now: Instant) {
        self.ends[station].queue.push_back(frame);
        self.pump(station, now);
    }
    fn next(&self) -> Instant {
        let of_end = |end: &End| match end.sending {
            Some((_, at)) => at,
            None => end.line.deadline().unwrap_or(Instant::FAR_FUTURE),
        };
        of_end(&self.ends[0]).min(of_end(&self.ends[1]))
    }
    fn step(&mut self, now: Instant, happened: &mut Vec<Happened>) {
        for end in 0..2 {
            self.take_octet(end, now, happened);
            self.ends[end].line.timeout(now);
        }
        self.poll(happened);
        (0..2).for_each(|end| self.pump(end, now));
    }
    fn octets(&self, station: usize) -> u64 {
        self.ends[station].octets
    }
    fn counters(&self) -> Vec<(&'static str, u64)> {
        let [a, b] = &self.ends;
        let (of_a, of_b) = (a.line.counters(), b.line.counters());
        vec![
            ("octets", a.octets),
            ("packets", of_a.packets_sent + of_b.packets_sent),
            ("packets given up", a.given_up + b.given_up),
            ("requests repeated", of_a.requests_repeated + of_b.requests_repeated),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All that happens, with its microsecond.
    fn run(line: &mut LlpLine) -> Vec<(u64, Happened)> {
        let mut all = Vec::new();
        while line.next() != Instant::FAR_FUTURE {
            let (now, mut happened) = (line.next(), Vec::new());
            line.step(now, &mut happened);
            all.extend(happened.into_iter().map(|what| (now.as_micros(), what)));
        }
        all
    }

    #[test]
    fn a_packet_takes_its_own_octets_and_seven_of_ten_bits() {
        let mut line = LlpLine::new(10_000);
        assert_eq!((line.attach(None), line.attach(None)), (0, 1));
        line.offer(0, vec![0x45; 40], Instant::ZERO);
        let happened = run(&mut line);
        // REQ, ACK, four of header, 40 of packet, END (MIT §6.2.1: 47 for a packet without data).
        let delivered = Happened::Delivered { station: 1, frame: vec![0x45; 40] };
        assert_eq!(happened, [(47_000, Happened::Released { station: 0 }), (47_000, delivered)]);
        assert_eq!((line.octets(0), line.octets(1)), (47, 47));
    }

    #[test]
    fn an_acknowledgment_goes_between_two_octets_of_the_other_direction() {
        let mut line = LlpLine::new(10_000);
        line.offer(0, vec![0x45; 40], Instant::ZERO);
        // While the first packet is half way.
        while line.next() < Instant::from_millis(20) {
            line.step(line.next(), &mut Vec::new());
        }
        line.offer(1, vec![0x46; 10], Instant::from_millis(20));
        let happened = run(&mut line);
        let arrived = |of: usize| {
            let is = |(_, what): &&(u64, Happened)| matches!(what, Happened::Delivered { station, .. } if *station == of);
            happened.iter().find(is).map(|&(at_us, _)| at_us)
        };
        assert_eq!(arrived(1), Some(48_000), "one octet later for the ACK in it");
        // REQ until 21 ms; the ACK waits for the octet in progress and ends at 22 ms; 15 octets follow.
        assert_eq!(arrived(0), Some(37_000));
    }
}
