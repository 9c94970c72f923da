//! The ARPANET as its hosts saw it: messages to an IMP over an 1822 interface, and a RFNM for each (BBN report 1822).

use std::collections::{BTreeMap, VecDeque};

use inhost_base::{Duration, HardwareAddress, Instant};

use super::stations::Stations;
use super::{Happened, SharedMedium};

/// Messages between two hosts for which no RFNM has come; the next one stops the sender's interface.
const OUTSTANDING_LIMIT: usize = 8;
/// Bits of the leader before a message. A RFNM is nothing else.
const LEADER_BITS: u64 = 96;

/// IMPs with a host each, and the network between them, which loses nothing and keeps the order.
#[derive(Debug)]
pub struct Imps {
    bits_per_second: u64,
    transit: Duration,
    stations: Stations,
    hosts: Vec<Interface>,
    /// What arrives at an IMP for its host, by time and in order.
    transits: BTreeMap<(Instant, u64), (usize, Inbound)>,
    transit_count: u64,
    messages: u64,
    most_outstanding: usize,
    stops: u64,
}

/// One host's 1822 interface: full duplex.
#[derive(Debug, Default)]
struct Interface {
    queue: VecDeque<Vec<u8>>,
    /// When the message at the front of the queue is at the IMP.
    sent_at: Option<Instant>,
    /// Messages without a RFNM, by the host for which they are.
    outstanding: BTreeMap<usize, usize>,
    inbound: VecDeque<Inbound>,
    /// When what is at the front of `inbound` is at the host.
    received_at: Option<Instant>,
}

#[derive(Debug)]
enum Inbound {
    Message { from: usize, frame: Vec<u8> },
    Rfnm { from: usize },
}

impl Imps {
    /// IMPs without hosts. An interface carries so many bits a second, at least 1, each way; `transit` is from IMP to IMP.
    pub fn new(bits_per_second: u64, transit: Duration) -> Imps {
        Imps {
            bits_per_second: bits_per_second.max(1),
            transit,
            stations: Stations::default(),
            hosts: Vec::new(),
            transits: BTreeMap::new(),
            transit_count: 0,
            messages: 0,
            most_outstanding: 0,
            stops: 0,
        }
    }
    fn time_of(&self, bytes: usize) -> Duration {
        let bits = LEADER_BITS + bytes as u64 * 8;
        Duration::from_nanos(bits * 1_000_000_000 / self.bits_per_second)
    }
    /// Whom the message at the front of a queue is for; the host itself when nobody has its address.
    fn target(&self, host: usize) -> Option<usize> {
        let frame = self.hosts[host].queue.front()?;
        Some(self.stations.receivers(host, frame).next().unwrap_or(host))
    }
    /// Begins to send the next message of a host, unless too many are outstanding.
    fn send_next(&mut self, host: usize, now: Instant) {
        let (Some(target), None) = (self.target(host), self.hosts[host].sent_at) else { return };
        let bytes = self.hosts[host].queue.front().map_or(0, Vec::len);
        let ends_at = now + self.time_of(bytes);
        let interface = &mut self.hosts[host];
        let outstanding = interface.outstanding.entry(target).or_default();
        if *outstanding >= OUTSTANDING_LIMIT {
            self.stops += 1;
            return;
        }
        *outstanding += 1;
        self.most_outstanding = self.most_outstanding.max(*outstanding);
        interface.sent_at = Some(ends_at);
    }
    fn receive_next(&mut self, host: usize, now: Instant) {
        let bytes = match self.hosts[host].inbound.front() {
            Some(Inbound::Message { frame, .. }) => frame.len(),
            Some(Inbound::Rfnm { .. }) => 0,
            None => return,
        };
        if self.hosts[host].received_at.is_none() {
            self.hosts[host].received_at = Some(now + self.time_of(bytes));
        }
    }
    fn go(&mut self, to: usize, what: Inbound, now: Instant) {
        self.transit_count += 1;
        self.transits.insert((now + self.transit, self.transit_count), (to, what));
    }
    /// A message of a host is at its IMP.
    fn sent(&mut self, host: usize, now: Instant, happened: &mut Vec<Happened>) {
        let target = self.target(host);
        self.hosts[host].sent_at = None;
        if let (Some(target), Some(frame)) = (target, self.hosts[host].queue.pop_front()) {
            self.messages += 1;
            self.go(target, Inbound::Message { from: host, frame }, now);
            happened.push(Happened::Released { station: host });
        }
        self.send_next(host, now);
    }
    /// Something is at its host.
    fn received(&mut self, host: usize, now: Instant, happened: &mut Vec<Happened>) {
        self.hosts[host].received_at = None;
        match self.hosts[host].inbound.pop_front() {
            Some(Inbound::Message { from, frame }) => {
                happened.push(Happened::Delivered { station: host, frame });
                self.go(from, Inbound::Rfnm { from: host }, now);
            }
            Some(Inbound::Rfnm { from }) => {
                if let Some(outstanding) = self.hosts[host].outstanding.get_mut(&from) {
                    *outstanding = outstanding.saturating_sub(1);
                }
                self.send_next(host, now);
            }
            None => {}
        }
        self.receive_next(host, now);
    }
}

impl SharedMedium for Imps {
    fn attach(&mut self, address: Option<HardwareAddress>) -> usize {
        self.hosts.push(Interface::default());
        self.stations.attach(address)
    }
    fn offer(&mut self, station: usize, frame: Vec<u8>, now: Instant) {
        self.hosts[station].queue.push_back(frame);
        self.send_next(station, now);
    }
    fn next(&self) -> Instant {
        let interfaces = self.hosts.iter().flat_map(|host| [host.sent_at, host.received_at]).flatten();
        let transit = self.transits.first_key_value().map(|(&(at, _), _)| at);
        interfaces.chain(transit).min().unwrap_or(Instant::FAR_FUTURE)
    }
    fn step(&mut self, now: Instant, happened: &mut Vec<Happened>) {
        while let Some(first) = self.transits.first_entry()
            && first.key().0 <= now
        {
            let (to, what) = first.remove();
            self.hosts[to].inbound.push_back(what);
            self.receive_next(to, now);
        }
        for host in 0..self.hosts.len() {
            if let Some(at) = self.hosts[host].sent_at.filter(|at| *at <= now) {
                self.sent(host, at, happened);
            }
            if let Some(at) = self.hosts[host].received_at.filter(|at| *at <= now) {
                self.received(host, at, happened);
            }
        }
    }
    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("messages", self.messages),
            ("most outstanding", self.most_outstanding as u64),
            ("stops of an interface", self.stops),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_messages_are_outstanding_at_most_and_the_ninth_waits_for_a_rfnm() {
        // So long a way that nothing comes back while eight are sent: 896 bits at 100 kbit/s are 8.96 ms.
        let mut imps = Imps::new(100_000, Duration::from_millis(500));
        imps.attach(None);
        imps.attach(None);
        (0..20).for_each(|number| imps.offer(0, vec![number; 100], Instant::ZERO));
        let (mut arrived, mut most) = (Vec::new(), 0);
        while imps.next() != Instant::FAR_FUTURE {
            let (now, mut happened) = (imps.next(), Vec::new());
            imps.step(now, &mut happened);
            most = most.max(imps.hosts[0].outstanding.values().copied().max().unwrap_or_default());
            for what in happened {
                if let Happened::Delivered { frame, .. } = what {
                    arrived.push((frame[0], now.as_micros()));
                }
            }
        }
        assert_eq!((most, imps.most_outstanding), (8, 8));
        assert_eq!(
            arrived.iter().map(|&(number, _)| number).collect::<Vec<_>>(),
            (0..20).collect::<Vec<_>>()
        );
        // Sent at 8.96 ms, on its way, and over the second interface.
        assert_eq!(arrived[0].1, 8960 + 500_000 + 8960);
        // The RFNM is back half a second later; then the ninth goes.
        let rfnm_us = arrived[0].1 + 500_000 + 960;
        assert_eq!(arrived[8].1, rfnm_us + 8960 + 500_000 + 8960);
        assert!(imps.stops > 0);
    }
}
