//! Which datagrams may be answered, so that no two services talk to each other for ever and no one is flooded
//! with answers to questions he never asked.

use crate::network::network;
use inhost_base::{Duration, Endpoint, Instant, IpAddr};
use std::collections::{BTreeMap, BTreeSet};

/// Ports below this belong to services. A datagram that comes from one was sent by a service, and an answer could be
/// answered in turn; RFC 862, 864 and 867 know no way to tell a question from an answer.
pub const SERVICE_PORTS_BELOW: u16 = 1024;
/// Limit of remembered sources; the least recently seen is evicted.
pub const SOURCES_LIMIT: usize = 1024;

/// Rate limit of answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rate {
    /// Answers that may go at once after a quiet time.
    pub burst: u32,
    /// Answers in a second in the long run; at least one.
    pub per_second: u32,
}

/// Why a datagram is not answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Refusal {
    /// It comes from a service's port.
    ServicePort,
    /// It comes from no address that an answer could go to.
    Source,
    /// Its sender, or all senders together, had their share.
    Rate,
}

/// A bucket of answers that fills with time.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    /// When the bucket was last full, less what was taken since: a virtual clock that each answer moves on.
    theoretical: Instant,
}

impl Bucket {
    fn take(&mut self, rate: Rate, now: Instant) -> bool {
        let step = Duration::from_secs(1).divided_by(u64::from(rate.per_second.max(1)));
        let start = self.theoretical.max(now);
        if start.since(now) + step > step.times(u64::from(rate.burst.max(1))) {
            return false;
        }
        self.theoretical = start + step;
        true
    }
}

/// Judges the datagrams of one or several services by their source: an IPv4 address, or an IPv6 /64. Memory is bounded by [`SOURCES_LIMIT`].
///
/// ```
/// use inhost_base::{Endpoint, Instant};
/// use inhost_common::{Guard, Rate};
/// let one = Rate { burst: 1, per_second: 1 };
/// let mut guard = Guard::new(one, Rate { burst: 100, per_second: 100 });
/// let client = Endpoint::new([10, 9, 0, 1], 50_000);
/// assert!(guard.admit(client, 7, Instant::ZERO).is_ok());
/// assert!(guard.admit(client, 7, Instant::ZERO).is_err(), "the second answer exceeds the rate");
/// let service = Endpoint::new([10, 9, 0, 2], 19);
/// assert!(guard.admit(service, 7, Instant::ZERO).is_err(), "services do not answer each other");
/// ```
#[derive(Debug)]
pub struct Guard {
    each: Rate,
    all: Rate,
    total: Bucket,
    sources: BTreeMap<IpAddr, (Bucket, Instant)>,
    by_age: BTreeSet<(Instant, IpAddr)>,
}

impl Guard {
    /// A guard that lets each source address have `each`, and all of them together `all`; the second bound is what
    /// holds when the sources are forged.
    pub fn new(each: Rate, all: Rate) -> Self {
        Guard {
            each,
            all,
            total: Bucket { theoretical: Instant::ZERO },
            sources: BTreeMap::new(),
            by_age: BTreeSet::new(),
        }
    }
    /// Whether a datagram from `source` that came to a service at `own_port` is to be answered.
    pub fn admit(&mut self, source: Endpoint, own_port: u16, now: Instant) -> Result<(), Refusal> {
        if source.port < SERVICE_PORTS_BELOW || source.port == own_port {
            return Err(Refusal::ServicePort);
        }
        self.admit_from_any_port(source, now)
    }
    /// The same for a service whose answers no service takes for questions, so that the source's port says nothing.
    pub fn admit_from_any_port(&mut self, source: Endpoint, now: Instant) -> Result<(), Refusal> {
        if source.address.is_unspecified() || source.address.is_multicast() || is_broadcast(source.address) {
            return Err(Refusal::Source);
        }
        let source = network(source.address);
        let mut bucket = match self.sources.remove(&source) {
            Some((bucket, last_seen)) => {
                self.by_age.remove(&(last_seen, source));
                bucket
            }
            None => {
                if self.sources.len() >= SOURCES_LIMIT
                    && let Some((_, oldest)) = self.by_age.pop_first()
                {
                    self.sources.remove(&oldest);
                }
                Bucket { theoretical: Instant::ZERO }
            }
        };
        // Only an answer that its own source may have counts against all.
        let admitted = bucket.take(self.each, now) && self.total.take(self.all, now);
        self.sources.insert(source, (bucket, now));
        self.by_age.insert((now, source));
        if admitted { Ok(()) } else { Err(Refusal::Rate) }
    }
    /// Sources remembered.
    pub fn sources(&self) -> usize {
        self.sources.len()
    }
}

fn is_broadcast(address: IpAddr) -> bool {
    matches!(address, IpAddr::V4(a) if a.is_broadcast())
}

#[cfg(test)]
mod tests {
    use super::*;

    const EACH: Rate = Rate { burst: 4, per_second: 2 };
    const ALL: Rate = Rate { burst: 6, per_second: 1_000 };

    fn from(address: [u8; 4], port: u16) -> Endpoint {
        Endpoint::new(address, port)
    }

    #[test]
    fn services_are_not_answered() {
        let mut guard = Guard::new(EACH, ALL);
        for port in [0, 7, 13, 19, 53, 1023] {
            assert_eq!(guard.admit(from([10, 0, 0, 1], port), 7, Instant::ZERO), Err(Refusal::ServicePort));
        }
        assert_eq!(guard.admit(from([10, 0, 0, 1], 2007), 2007, Instant::ZERO), Err(Refusal::ServicePort));
        assert_eq!(guard.admit(from([10, 0, 0, 1], 1024), 7, Instant::ZERO), Ok(()));
        assert_eq!(guard.admit(from([0, 0, 0, 0], 5000), 7, Instant::ZERO), Err(Refusal::Source));
        assert_eq!(guard.admit(from([255; 4], 5000), 7, Instant::ZERO), Err(Refusal::Source));
        assert_eq!(guard.admit(from([224, 0, 0, 1], 5000), 7, Instant::ZERO), Err(Refusal::Source));
    }

    #[test]
    fn a_source_has_its_burst_and_then_its_rate() {
        let mut guard = Guard::new(EACH, ALL);
        let (a, b) = (from([10, 0, 0, 1], 5000), from([10, 0, 0, 2], 5000));
        let admitted =
            |guard: &mut Guard, who, now| (0..10).filter(|_| guard.admit(who, 7, now).is_ok()).count();
        assert_eq!(admitted(&mut guard, a, Instant::ZERO), 4);
        assert_eq!(admitted(&mut guard, b, Instant::ZERO), 2, "all together have six");
        assert_eq!(admitted(&mut guard, a, Instant::from_millis(500)), 1);
        assert_eq!(admitted(&mut guard, a, Instant::from_millis(60_000)), 4);
    }

    #[test]
    fn the_table_is_bounded_and_forgets_the_oldest() {
        let mut guard = Guard::new(EACH, Rate { burst: u32::MAX, per_second: u32::MAX });
        for n in 0..5_000u32 {
            let source = Endpoint::new((0x0a00_0000 + n).to_be_bytes(), 5000);
            guard.admit(source, 7, Instant::from_millis(u64::from(n))).unwrap();
        }
        assert_eq!((guard.sources(), guard.by_age.len()), (SOURCES_LIMIT, SOURCES_LIMIT));
        assert!(guard.sources.contains_key(&IpAddr::from((0x0a00_0000u32 + 4_999).to_be_bytes())));
    }
}
