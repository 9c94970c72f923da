//! FQ-CoDel: a queue for each flow, served in turn by bytes, each under CoDel (RFC 8290).

use std::collections::VecDeque;

use inhost_base::{Instant, SipKey};
use inhost_buf::Packet;
use inhost_wire::ipv4::Ipv4View;
use inhost_wire::ipv6::Ipv6View;
use inhost_wire::protocol;

use super::codel::{Codel, CodelConfig};
use super::{Around, Waiting};
use crate::ecn::packet_at;

/// Packets dropped at once from the longest queue, at most (RFC 8290 §4.1).
const MOST_DROPPED_AT_ONCE: usize = 64;

/// FQ-CoDel's knobs. Begin with [`FqCodelConfig::default`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FqCodelConfig {
    /// Of each queue. Default: CoDel's, with marks.
    pub codel: CodelConfig,
    /// Queues; flows are spread over them by a hash. Default: 1,024.
    pub queues: u16,
    /// Bytes that a queue sends in its turn. Default: 1,514.
    pub quantum_bytes: u32,
}

impl Default for FqCodelConfig {
    fn default() -> Self {
        let codel = CodelConfig { marks: true, ..CodelConfig::default() };
        FqCodelConfig { codel, queues: 1024, quantum_bytes: 1514 }
    }
}

#[derive(Debug)]
struct Flow {
    queue: Codel,
    credit_bytes: i64,
    is_listed: bool,
}

/// Queues of flows, and whose turn it is.
#[derive(Debug)]
pub(super) struct FqCodel {
    config: FqCodelConfig,
    key: SipKey,
    flows: Vec<Flow>,
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    packets: usize,
    bytes: usize,
}

impl FqCodel {
    pub(super) fn new(config: FqCodelConfig, salt: u64) -> FqCodel {
        let flow = || Flow { queue: Codel::new(config.codel), credit_bytes: 0, is_listed: false };
        FqCodel {
            config,
            key: SipKey::from_halves(salt, salt.rotate_left(32)),
            flows: (0..config.queues.max(1)).map(|_| flow()).collect(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            packets: 0,
            bytes: 0,
        }
    }
    /// Packets and bytes that wait.
    pub(super) fn length(&self) -> (usize, usize) {
        (self.packets, self.bytes)
    }
    pub(super) fn push(&mut self, waiting: Waiting, is_ethernet: bool) {
        let place = self.place_of(waiting.frame.bytes(), is_ethernet);
        (self.packets, self.bytes) = (self.packets + 1, self.bytes + waiting.frame.len());
        let flow = &mut self.flows[place];
        flow.queue.push(waiting);
        if !flow.is_listed {
            flow.is_listed = true;
            flow.credit_bytes = i64::from(self.config.quantum_bytes);
            self.new.push_back(place);
        }
    }
    /// The next frame: new flows first, then the others in turn (RFC 8290 §4.2).
    pub(super) fn pop(&mut self, now: Instant, around: &mut Around<'_>) -> Option<Packet> {
        loop {
            let is_new = !self.new.is_empty();
            let &place = self.new.front().or(self.old.front())?;
            let flow = &mut self.flows[place];
            if flow.credit_bytes <= 0 {
                flow.credit_bytes += i64::from(self.config.quantum_bytes.max(1));
                self.step(is_new);
                self.old.push_back(place);
                continue;
            }
            let before = flow.queue.length();
            let frame = flow.queue.pop(now, around);
            let after = flow.queue.length();
            self.packets -= before.0 - after.0;
            self.bytes -= before.1 - after.1;
            let Some(frame) = frame else {
                // A flow that was new has its turn among the old ones first, so that it cannot stay new for ever.
                flow.is_listed = is_new;
                self.step(is_new);
                if is_new {
                    self.old.push_back(place);
                }
                continue;
            };
            flow.credit_bytes -= frame.len() as i64;
            return Some(frame);
        }
    }
    fn step(&mut self, is_new: bool) {
        let list = if is_new { &mut self.new } else { &mut self.old };
        list.pop_front();
    }
    /// Drops half of the longest queue, from its front (RFC 8290 §4.1); how many packets and bytes.
    pub(super) fn drop_from_longest(&mut self, around: &mut Around<'_>) -> (usize, usize) {
        let listed = self.new.iter().chain(&self.old);
        let Some(&longest) = listed.max_by_key(|&&place| (self.flows[place].queue.length().1, place)) else {
            return (0, 0);
        };
        let queue = &mut self.flows[longest].queue;
        let count = queue.length().0.div_ceil(2).min(MOST_DROPPED_AT_ONCE);
        let mut dropped = (0, 0);
        for _ in 0..count {
            let Some(waiting) = queue.pop_front() else { break };
            dropped = (dropped.0 + 1, dropped.1 + waiting.frame.len());
            around.overflows(waiting.frame);
        }
        self.packets -= dropped.0;
        self.bytes -= dropped.1;
        dropped
    }
    fn place_of(&self, frame: &[u8], is_ethernet: bool) -> usize {
        let mut name = [0; 37];
        if let Some(at) = packet_at(frame, is_ethernet) {
            name_of(&frame[at..], &mut name);
        }
        (self.key.hash(&name) % self.flows.len() as u64) as usize
    }
}

/// Addresses, protocol and ports of a packet. Fragments have no ports.
fn name_of(packet: &[u8], name: &mut [u8; 37]) {
    let (number, payload) = if packet.first().is_some_and(|byte| byte >> 4 == 4) {
        let Ok(view) = Ipv4View::new(packet) else { return };
        name[..4].copy_from_slice(&view.source().octets());
        name[16..20].copy_from_slice(&view.destination().octets());
        (view.protocol(), if view.is_fragment() { &[][..] } else { view.payload() })
    } else {
        let Ok(view) = Ipv6View::new(packet) else { return };
        name[..16].copy_from_slice(&view.source().octets());
        name[16..32].copy_from_slice(&view.destination().octets());
        (view.next_header(), view.payload())
    };
    name[32] = number;
    if let (protocol::TCP | protocol::UDP, Some(ports)) = (number, payload.first_chunk::<4>()) {
        name[33..].copy_from_slice(ports);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffers::Buffers;
    use crate::link::{LinkStatistics, Losses};
    use crate::queue::{Discipline, Queue, QueueConfig};
    use inhost_base::Ipv4Addr;
    use inhost_wire::ipv4::Ipv4Header;

    /// A UDP packet of a flow, of `bytes` in all.
    fn packet(flow: u16, bytes: usize) -> Vec<u8> {
        let mut packet = vec![0; bytes];
        let (from, to) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
        Ipv4Header::new(from, to, protocol::UDP, bytes as u16 - 20).emit(&mut packet);
        packet[20..22].copy_from_slice(&flow.to_be_bytes());
        packet
    }
    fn flow_of(packet: &[u8]) -> u16 {
        u16::from_be_bytes([packet[20], packet[21]])
    }
    fn push(queue: &mut Queue, packet: Vec<u8>, config: &QueueConfig, around: &mut Around<'_>) {
        let frame = around.buffers.copy(&packet);
        queue.push(frame, Instant::ZERO, config, around);
    }
    fn queue(packets: usize) -> (Queue, QueueConfig) {
        let discipline = Discipline::FqCodel(FqCodelConfig::default());
        let config = QueueConfig { discipline, ..QueueConfig::tail_drop(packets) };
        (Queue::new(&config, 7), config)
    }

    #[test]
    fn flows_share_by_bytes_and_a_thin_one_does_not_wait() {
        let (mut queue, config) = queue(10_000);
        let (mut buffers, mut statistics) = (Buffers::default(), LinkStatistics::default());
        let mut losses = Losses::default();
        let (buffers, statistics, losses) = (&mut buffers, &mut statistics, &mut losses);
        let mut around = Around { buffers, statistics, losses, is_ethernet: false };
        // Large packets against small ones, fifty times the thin flow's.
        for _ in 0..300 {
            push(&mut queue, packet(1, 1500), &config, &mut around);
            (0..5).for_each(|_| push(&mut queue, packet(2, 300), &config, &mut around));
        }
        let mut sent = [0; 4];
        for number in 0..400 {
            if number == 200 {
                push(&mut queue, packet(3, 100), &config, &mut around);
            }
            let frame = queue.pop(Instant::ZERO, &mut around).unwrap();
            sent[usize::from(flow_of(frame.bytes()))] += frame.len();
            assert_eq!(
                sent[3] > 0,
                number >= 201 || (number == 200 && flow_of(frame.bytes()) == 3),
                "after {number}"
            );
        }
        let ratio = sent[1] as f64 / sent[2] as f64;
        assert!((0.95..1.05).contains(&ratio), "{sent:?}");
    }

    #[test]
    fn the_longest_queue_pays_for_an_overflow() {
        let (mut queue, config) = queue(100);
        let (mut buffers, mut statistics) = (Buffers::default(), LinkStatistics::default());
        let mut losses = Losses::default();
        let (buffers, statistics, losses) = (&mut buffers, &mut statistics, &mut losses);
        let mut around = Around { buffers, statistics, losses, is_ethernet: false };
        (0..5).for_each(|_| push(&mut queue, packet(2, 1000), &config, &mut around));
        (0..500).for_each(|_| push(&mut queue, packet(1, 1000), &config, &mut around));
        let mut left = [0; 3];
        while let Some(frame) = queue.pop(Instant::ZERO, &mut around) {
            left[usize::from(flow_of(frame.bytes()))] += 1;
        }
        assert_eq!(left[2], 5, "{left:?}");
        assert!(left[1] <= 95 && left[1] >= 40, "{left:?}");
        assert_eq!(statistics.overflowed, 505 - 5 - left[1]);
    }
}
