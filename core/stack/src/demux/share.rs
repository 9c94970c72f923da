//! The share of one shard: which of several stacks with the same addresses a packet belongs to. Shards of a host share
//! no state.
//!
//! A flow belongs to one shard for its life, and both of its ends follow from the packet alone, so that no shard asks
//! another: an ephemeral port belongs to one shard, which uses no others, and for any other port the two endpoints are
//! hashed. The hash is keyed, so that peers cannot direct flows at one shard.

use inhost_base::{Endpoint, IpAddr, Ipv4Addr, Ipv6Addr};
use inhost_wire::ethernet::{EtherType, EthernetView};
use inhost_wire::{arp, ipv4, ipv6, protocol};

/// ICMP and ICMPv6 numbers of what any shard answers for all: echo requests, and solicitations of a neighbour.
const ICMPV4_ECHO_REQUEST: u8 = 8;
const ICMPV6_ECHO_REQUEST: u8 = 128;
const ICMPV6_NEIGHBOUR_SOLICITATION: u8 = 135;

/// The share of one shard of several.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct Share {
    index: u16,
    count: u16,
    key: [u64; 2],
    ephemeral: (u16, u16),
}

/// Where a frame belongs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Steer {
    /// To the shard with this index.
    Here,
    /// To this shard.
    To(u16),
    /// To all shards, because any may need it: neighbours' answers, and ICMP.
    All,
    /// Dropped: a fragmented TCP segment, whose later fragments have no ports. A sender with path MTU discovery never
    /// sends one.
    Nobody,
}

impl Share {
    /// Share `index` of `count`. `key` is secret, and `ephemeral` the range of ports that are divided.
    pub(crate) fn new(index: u16, count: u16, key: [u64; 2], ephemeral: (u16, u16)) -> Share {
        Share { index, count, key, ephemeral }
    }
    /// Its number, from 0 on.
    pub fn index(&self) -> u16 {
        self.index
    }
    /// How many there are.
    pub fn count(&self) -> u16 {
        self.count
    }
    /// Whether it may give out this ephemeral port.
    pub(crate) fn is_ephemeral_here(&self, port: u16) -> bool {
        port % self.count == self.index
    }
    /// Where a frame belongs that begins with an Ethernet header where `ethernet`, else with that of IP.
    #[inline]
    pub fn steer(&self, ethernet: bool, frame: &[u8]) -> Steer {
        let packet = match ethernet {
            false => frame,
            true => match EthernetView::new(frame).map(|view| (view.ethertype(), view.payload())) {
                Ok((EtherType::IPV4 | EtherType::IPV6, packet)) => packet,
                Ok((EtherType::ARP, packet)) => return steer_arp(packet),
                _ => return Steer::Here,
            },
        };
        match packet.first() {
            Some(first) if first >> 4 == 4 => self.steer_v4(packet),
            _ => self.steer_v6(packet),
        }
    }
    #[inline]
    fn steer_v4(&self, packet: &[u8]) -> Steer {
        let Ok(view) = ipv4::Ipv4View::new(packet) else { return Steer::Here };
        let ends = ends_v4(view.source(), view.destination());
        match (view.protocol(), view.is_fragment()) {
            (protocol::TCP, true) => Steer::Nobody,
            (protocol::UDP, true) => self.by_hash(ends, u64::from(view.identification())),
            (protocol::TCP | protocol::UDP, false) => self.by_ports(ends, view.payload()),
            (protocol::ICMPV4, _) if view.payload().first() == Some(&ICMPV4_ECHO_REQUEST) => Steer::Here,
            (protocol::ICMPV4 | protocol::IGMP, _) => Steer::All,
            _ => Steer::Here,
        }
    }
    fn steer_v6(&self, packet: &[u8]) -> Steer {
        let Ok(view) = ipv6::Ipv6View::new(packet) else { return Steer::Here };
        let Ok(upper) = ipv6::walk(&view) else { return Steer::Here };
        let ends = ends_v6(view.source(), view.destination());
        let payload = packet.get(upper.offset..).unwrap_or(&[]);
        match (upper.protocol, upper.fragment) {
            (protocol::TCP, Some(_)) => Steer::Nobody,
            (protocol::UDP, Some(fragment)) => self.by_hash(ends, u64::from(fragment.identification)),
            (protocol::TCP | protocol::UDP, None) => self.by_ports(ends, payload),
            (protocol::ICMPV6, _) => match payload.first() {
                Some(&(ICMPV6_ECHO_REQUEST | ICMPV6_NEIGHBOUR_SOLICITATION)) => Steer::Here,
                _ => Steer::All,
            },
            _ => Steer::Here,
        }
    }
    #[inline]
    fn by_ports(&self, ends: u64, transport: &[u8]) -> Steer {
        let Some(&[a, b, c, d]) = transport.first_chunk() else { return Steer::Here };
        let ours = u16::from_be_bytes([c, d]);
        if (self.ephemeral.0..=self.ephemeral.1).contains(&ours) {
            return self.to(ours % self.count);
        }
        self.by_hash(ends, u64::from(u32::from_be_bytes([a, b, c, d])))
    }
    /// Two words, each mixed with a secret, multiplied. Every bit that a peer can vary affects all middle bits.
    #[inline]
    fn by_hash(&self, ends: u64, rest: u64) -> Steer {
        let product = u128::from(ends ^ self.key[0]) * u128::from(rest.wrapping_mul(SPREAD) ^ self.key[1]);
        let hash = (product >> 64) as u64 ^ product as u64;
        self.to(((u128::from(hash) * u128::from(self.count)) >> 64) as u16)
    }
    #[inline]
    fn to(&self, shard: u16) -> Steer {
        if shard == self.index { Steer::Here } else { Steer::To(shard) }
    }
    /// Whether a packet from `remote` to `local` belongs here.
    pub fn has(&self, local: Endpoint, remote: Endpoint) -> bool {
        let ends = match (remote.address, local.address) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => ends_v4(source, destination),
            (IpAddr::V6(source), IpAddr::V6(destination)) => ends_v6(source, destination),
            _ => return false,
        };
        let ports = u32::from(remote.port) << 16 | u32::from(local.port);
        self.by_ports(ends, &ports.to_be_bytes()) == Steer::Here
    }
}

/// Spreads a small number over a word: 2^64 divided by the golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Both addresses of a packet in a word.
#[inline]
fn ends_v4(source: Ipv4Addr, destination: Ipv4Addr) -> u64 {
    u64::from(u32::from(source)) << 32 | u64::from(u32::from(destination))
}

fn ends_v6(source: Ipv6Addr, destination: Ipv6Addr) -> u64 {
    let both = u128::from(source) ^ u128::from(destination).rotate_left(64);
    (both >> 64) as u64 ^ (both as u64).rotate_left(32)
}

/// A neighbour's answer may concern any shard.
fn steer_arp(packet: &[u8]) -> Steer {
    match arp::ArpView::new(packet).map(|view| view.operation()) {
        Ok(arp::ArpOperation::Request) | Err(_) => Steer::Here,
        Ok(_) => Steer::All,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::StackConfig;

    fn shares(count: u16) -> Vec<Share> {
        StackConfig::default().shares(count, [7, 9]).iter().filter_map(|config| config.share).collect()
    }
    fn v4(number: u8, payload: &[u8], flags: u8) -> Vec<u8> {
        let (source, destination) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
        let mut packet = vec![0; ipv4::LENGTH];
        ipv4::Ipv4Header::new(source, destination, number, payload.len() as u16).emit(&mut packet);
        packet[6] = flags;
        packet.extend_from_slice(payload);
        packet
    }

    #[test]
    fn every_flow_belongs_to_one_shard_and_each_shard_has_its_part() {
        for count in [2, 3, 8] {
            let shares = shares(count);
            let mut owned = vec![0; usize::from(count)];
            for n in 0..4000_u32 {
                let v6 = n % 2 == 1;
                let (local, remote) = if v6 {
                    (Endpoint::new(Ipv6Addr::LOCALHOST, 80), Ipv6Addr::from(u128::from(n / 100)).into())
                } else {
                    (
                        Endpoint::new(Ipv4Addr::new(10, 0, 0, 2), 80),
                        Ipv4Addr::from(0x0a00_0000 + n / 100).into(),
                    )
                };
                let remote = Endpoint { address: remote, port: 1000 + (n % 100) as u16 };
                let owners: Vec<&Share> = shares.iter().filter(|share| share.has(local, remote)).collect();
                assert_eq!(owners.len(), 1);
                owned[usize::from(owners[0].index())] += 1;
            }
            let even = 4000 / usize::from(count);
            assert!(owned.iter().all(|&n| n > even * 8 / 10 && n < even * 12 / 10), "{owned:?}");
        }
    }

    #[test]
    fn ephemeral_ports_are_divided() {
        let shares = shares(3);
        for port in 49_152..=65_535 {
            let givers: Vec<_> = shares.iter().filter(|share| share.is_ephemeral_here(port)).collect();
            assert_eq!(givers.len(), 1);
            let local = Endpoint::new(Ipv4Addr::new(10, 0, 0, 2), port);
            assert!(givers[0].has(local, Endpoint::new(Ipv4Addr::new(10, 9, 9, 9), port ^ 77)));
        }
    }

    #[test]
    fn what_has_no_ports_is_answered_once_or_heard_by_all() {
        let share = shares(2)[0];
        assert_eq!(share.steer(false, &v4(protocol::ICMPV4, &[8, 0, 0, 0], 0)), Steer::Here);
        assert_eq!(share.steer(false, &v4(protocol::ICMPV4, &[3, 4, 0, 0], 0)), Steer::All);
        assert_eq!(share.steer(false, &v4(protocol::TCP, &[0; 20], 0x20)), Steer::Nobody);
        let fragments =
            [v4(protocol::UDP, &[0; 20], 0x20), v4(protocol::UDP, &[9; 20], 0)].map(|mut packet| {
                packet[7] = 3;
                share.steer(false, &packet)
            });
        assert_eq!(fragments[0], fragments[1], "all fragments meet in one shard");
        assert_eq!(share.steer(false, &[]), Steer::Here);
        assert_eq!(share.steer(true, &[0; 5]), Steer::Here);
    }

    #[test]
    fn one_shard_is_none() {
        assert!(shares(1).is_empty());
        let parts = StackConfig::default().shares(4, [1, 2]);
        assert_eq!(parts[3].memory_limit_bytes * 4, StackConfig::default().memory_limit_bytes);
    }
}
