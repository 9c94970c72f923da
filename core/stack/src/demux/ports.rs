//! Unpredictable numbers: ephemeral ports, initial sequence numbers, timestamp offsets.

use super::name::{Name, hash};
use super::share::Share;
use inhost_base::{Endpoint, Instant, IpAddr, Random, Sequence, SipKey};

/// Counters of algorithm 4 of RFC 6056 §3.3.4, by which conversations do not tell of each other.
const COUNTERS: usize = 64;

/// The secrets of a host and the counters beside them, and which ephemeral ports it chooses from.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Identity {
    sequence_key: SipKey,
    port_key: SipKey,
    #[cfg_attr(feature = "freeze", serde(with = "inhost_base::freeze::array"))]
    counters: [u16; COUNTERS],
    /// The first ephemeral port and the last.
    range: (u16, u16),
    /// Where several stacks with the same addresses form one host.
    share: Option<Share>,
}

/// The keyed hash of a protocol and two ends.
fn hash_of(key: &SipKey, name: &Name) -> u64 {
    hash(name, |words| key.secret_words(words), |words| key.secret_words(words))
}

impl Identity {
    /// New secrets of a host that chooses its ephemeral ports from `range`.
    pub(crate) fn new(range: (u16, u16), share: Option<Share>, random: &mut Random) -> Identity {
        let mut counters = [0; COUNTERS];
        counters.fill_with(|| random.private_u32() as u16);
        let (sequence_key, port_key) = (random.private_key(), random.private_key());
        Identity { sequence_key, port_key, counters, range, share }
    }
    /// Gives a fork secrets of its own.
    #[cfg(feature = "freeze")]
    pub(crate) fn reseed(&mut self, random: &mut Random) {
        *self = Identity::new(self.range, self.share, random);
    }
    /// Whether the segments between two ends come to this stack, where several form one host.
    pub(crate) fn shares(&self, name: &Name) -> bool {
        self.share.is_none_or(|share| share.has(name.local, name.remote))
    }
    /// The initial sequence number of a connection that begins now, and the offset of its timestamp clock: a clock of
    /// 4 us plus a keyed hash of the two ends (RFC 6528 §3), and the other half of that hash. The same two ends get
    /// the same offset, so that their timestamps go on from one connection to the next (RFC 6191).
    // spec: RFC9293 MUST-8
    // spec: RFC9293 MUST-9
    // spec: RFC9293 SHLD-1
    pub(crate) fn initial_sequence(&self, name: &Name, now: Instant) -> (Sequence, u32) {
        let hash = hash_of(&self.sequence_key, name);
        let clock = (now.as_micros() / 4) as u32;
        (Sequence(clock.wrapping_add(hash as u32)), (hash >> 32) as u32)
    }
    /// An ephemeral port of those that `free` allows: of a call, which has two ends, by a keyed hash of them and a counter
    /// (RFC 6056 §3.3.4), else at random, as RFC 5452 §9.2 asks of a socket that is bound. `None` if there is none.
    pub(crate) fn ephemeral_port(
        &mut self,
        call: Option<(IpAddr, Endpoint)>,
        random: &mut Random,
        mut free: impl FnMut(u16) -> bool,
    ) -> Option<u16> {
        let (first, last) = self.range;
        let first = first.max(1);
        let count = u32::from(last.checked_sub(first)?) + 1;
        // The port is the result, so the local endpoint is hashed without one. The algorithm's two hashes are the halves of one.
        let hash = call.map(|(address, remote)| {
            hash_of(&self.port_key, &Name { protocol: 0, local: Endpoint { address, port: 0 }, remote })
        });
        let start = random.private_u32();
        for step in 0..count {
            let place = match hash {
                None => start.wrapping_add(step),
                Some(hash) => {
                    let counter = &mut self.counters[(hash >> 32) as usize % COUNTERS];
                    let count = *counter;
                    *counter = count.wrapping_add(1);
                    (hash as u32).wrapping_add(u32::from(count))
                }
            };
            let port = first + (place % count) as u16;
            if self.share.is_none_or(|share| share.is_ephemeral_here(port)) && free(port) {
                return Some(port);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use inhost_base::Ipv4Addr;
    use std::collections::HashSet;

    fn identity(range: (u16, u16), seed: u64) -> Identity {
        Identity::new(range, None, &mut Random::from_number(seed))
    }
    fn end(last: u8, port: u16) -> Endpoint {
        Endpoint::new(Ipv4Addr::new(10, 0, 0, last), port)
    }

    // spec: RFC9293 MUST-8
    // spec: RFC9293 MUST-9
    // spec: RFC9293 SHLD-1
    #[test]
    fn initial_sequence_numbers_follow_the_clock_for_the_same_ends_and_nothing_else() {
        let identity = identity((1, 9), 1);
        let at = |local, remote, millis| {
            identity.initial_sequence(&Name::tcp(local, remote), Instant::from_millis(millis))
        };
        let (first, offset) = at(end(1, 1000), end(2, 23), 0);
        let (later, same_offset) = at(end(1, 1000), end(2, 23), 4000);
        assert_eq!(later.since(first), 1_000_000, "250,000 a second");
        assert_eq!(offset, same_offset);
        let others: HashSet<u32> = (0..200).map(|port| at(end(1, port), end(2, 23), 0).0.0).collect();
        assert_eq!(others.len(), 200);
        let stranger = super::tests::identity((1, 9), 2);
        assert_ne!(stranger.initial_sequence(&Name::tcp(end(1, 1000), end(2, 23)), Instant::ZERO).0, first);
    }

    #[test]
    fn every_selection_finds_the_last_free_port_and_stays_in_range() {
        let mut random = Random::from_number(4);
        for call in [None, Some((end(1, 0).address, end(2, 80)))] {
            let mut choose = |identity: &mut Identity, free: &dyn Fn(u16) -> bool| {
                identity.ephemeral_port(call, &mut random, free)
            };
            let (mut taken, mut hundred) = (HashSet::new(), identity((50_000, 50_099), 4));
            for _ in 0..100 {
                let port = choose(&mut hundred, &|port| !taken.contains(&port)).unwrap();
                assert!((50_000..50_100).contains(&port) && taken.insert(port), "{call:?}");
            }
            assert_eq!(choose(&mut hundred, &|port| !taken.contains(&port)), None);
            assert_eq!(choose(&mut identity((65_535, 65_535), 4), &|_| true), Some(65_535));
            assert_eq!(choose(&mut identity((9, 8), 4), &|_| true), None);
        }
    }

    #[test]
    fn hashed_ports_step_for_one_remote_and_start_elsewhere_for_another() {
        let mut random = Random::from_number(5);
        let mut identity = identity((49_152, 65_535), 5);
        let mut starts = HashSet::new();
        for last in 0..50 {
            let mut choose = || {
                let call = Some((end(1, 0).address, end(last, 80)));
                identity.ephemeral_port(call, &mut random, |_| true).unwrap()
            };
            let (a, b) = (choose(), choose());
            assert!(b == a.wrapping_add(1) || b == 49_152);
            starts.insert(a);
        }
        assert!(starts.len() > 40);
    }
}
