//! IP identifications of datagrams that may be fragmented: never repeated in a row for one pair of hosts, and
//! unpredictable to other hosts.

use alloc::vec::Vec;
use inhost_base::{IpAddr, Random, SipKey};

/// Counters; pairs of hosts share them by hash.
const COUNTERS: usize = 1024;

/// A keyed hash of the pair, plus a counter shared by few pairs (RFC 7739 §5.3): a peer cannot infer how many datagrams
/// another gets, unless both share a counter, and those start at different values.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Identifications {
    offset_key: SipKey,
    bucket_key: SipKey,
    counters: Vec<u32>,
}

impl Identifications {
    pub fn new(random: &mut Random) -> Self {
        Identifications {
            offset_key: random.private_key(),
            bucket_key: random.private_key(),
            counters: (0..COUNTERS).map(|_| random.private_u32()).collect(),
        }
    }
    /// The next for datagrams of `protocol` from `source` to `destination`. IPv4 uses the low 16 bits.
    // spec: RFC6864 4.3, RFC8200 4.5
    pub fn next(&mut self, source: IpAddr, destination: IpAddr, protocol: u8) -> u32 {
        let mut bytes = [0; 33];
        write_address(&mut bytes[..16], source);
        write_address(&mut bytes[16..32], destination);
        bytes[32] = protocol;
        let offset = self.offset_key.hash(&bytes) as u32;
        let bucket = self.bucket_key.hash(&bytes) as usize % COUNTERS;
        match self.counters.get_mut(bucket) {
            Some(counter) => {
                *counter = counter.wrapping_add(1);
                offset.wrapping_add(*counter)
            }
            None => offset,
        }
    }
}

pub(crate) fn write_address(into: &mut [u8], address: IpAddr) {
    match address {
        IpAddr::V4(a) => inhost_buf::copy(into, &a.to_ipv6_mapped().octets()),
        IpAddr::V6(a) => inhost_buf::copy(into, &a.octets()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_repetition_within_a_pair_and_no_relation_between_pairs() {
        let mut ids = Identifications::new(&mut Random::from_number(1));
        let us: IpAddr = "10.0.0.1".parse().unwrap();
        let peers: [IpAddr; 2] = ["10.0.0.2".parse().unwrap(), "10.0.0.3".parse().unwrap()];
        let mut seen = std::collections::HashSet::new();
        for _ in 0..65_536 {
            assert!(seen.insert(ids.next(us, peers[0], 17) as u16), "spec: RFC6864 4.3");
        }
        let a = ids.next(us, peers[0], 17);
        let b = ids.next(us, peers[1], 17);
        assert!(a.abs_diff(b) > 65_536, "neighbouring peers see unrelated values");
    }
}
