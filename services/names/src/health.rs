//! Health of name servers: failures, round-trip times, EDNS support.

use inhost_base::{Duration, Endpoint, Instant};
use std::collections::BTreeMap;

/// Silences in a row after which a server is passed over for a while.
const SILENCES_TO_DEATH: u32 = 2;
/// For how long a server is first passed over; each time it is still silent then, twice as long.
pub const FIRST_REST: Duration = Duration::from_secs(2);
/// The longest time for which a server is passed over.
pub const LONGEST_REST: Duration = Duration::from_secs(64);
/// Bounds of the wait for an answer over UDP.
const LEAST_WAIT: Duration = Duration::from_millis(400);
pub(crate) const MOST_WAIT: Duration = Duration::from_secs(3);
/// Initial timeout of an unknown server.
const FIRST_WAIT: Duration = Duration::from_millis(1500);
/// Servers that are remembered.
pub const SERVERS_REMEMBERED: usize = 64;
/// For how long a server is asked without EDNS after it did not understand it.
const PLAIN_FOR: Duration = Duration::from_secs(900);

#[derive(Clone, Copy, Debug)]
struct Known {
    silences: u32,
    rests: u32,
    rests_until: Instant,
    round_trip: Option<Duration>,
    plain_until: Instant,
    used: Instant,
}

impl Known {
    const fn new(now: Instant) -> Known {
        Known {
            silences: 0,
            rests: 0,
            rests_until: Instant::ZERO,
            round_trip: None,
            plain_until: Instant::ZERO,
            used: now,
        }
    }
}

/// Health of servers, shared by all queries of one host.
#[derive(Debug, Default)]
pub struct Health {
    servers: BTreeMap<Endpoint, Known>,
}

impl Health {
    /// Nothing known yet.
    pub fn new() -> Health {
        Health::default()
    }
    /// The servers in the order in which they are asked: those that answer, as they are configured, and then those
    /// that rest, the one that rests least first. Nobody is left out: where all are silent, all are tried.
    pub fn order(&self, servers: &[Endpoint], now: Instant) -> Vec<Endpoint> {
        let mut order = servers.to_vec();
        order.sort_by_key(|server| {
            self.rests_until(*server).filter(|until| *until > now).unwrap_or(Instant::ZERO)
        });
        order
    }
    /// Until when a server is passed over.
    pub fn rests_until(&self, server: Endpoint) -> Option<Instant> {
        self.servers.get(&server).map(|known| known.rests_until)
    }
    /// Timeout of its answer: four round trips, within bounds.
    pub(crate) fn wait(&self, server: Endpoint) -> Duration {
        match self.servers.get(&server).and_then(|known| known.round_trip) {
            Some(round_trip) => round_trip.times(4).clamp(LEAST_WAIT, MOST_WAIT),
            None => FIRST_WAIT,
        }
    }
    /// Whether it is asked with EDNS.
    pub(crate) fn knows_extension(&self, server: Endpoint, now: Instant) -> bool {
        self.servers.get(&server).is_none_or(|known| known.plain_until <= now)
    }
    /// It answered, with any response code.
    pub(crate) fn answered(&mut self, server: Endpoint, after: Duration, now: Instant) {
        let known = self.known(server, now);
        (known.silences, known.rests, known.rests_until) = (0, 0, Instant::ZERO);
        // RFC 6298 §2.3's gain for the round trip.
        known.round_trip = Some(match known.round_trip {
            Some(smoothed) => (smoothed.times(7) + after).divided_by(8),
            None => after,
        });
    }
    /// It did not answer in its time.
    pub(crate) fn silent(&mut self, server: Endpoint, now: Instant) {
        let known = self.known(server, now);
        known.silences += 1;
        if known.silences >= SILENCES_TO_DEATH {
            Health::rest(known, now);
        }
    }
    /// Somebody said that it cannot be reached.
    pub(crate) fn unreachable(&mut self, server: Endpoint, now: Instant) {
        Health::rest(self.known(server, now), now);
    }
    /// It does not understand EDNS.
    pub(crate) fn is_plain(&mut self, server: Endpoint, now: Instant) {
        self.known(server, now).plain_until = now + PLAIN_FOR;
    }
    fn rest(known: &mut Known, now: Instant) {
        // Several questions may learn of one silence; that counts once.
        if known.rests_until <= now {
            known.rests_until = now + FIRST_REST.times(1 << known.rests.min(8)).min(LONGEST_REST);
            known.rests = known.rests.saturating_add(1);
        }
    }
    fn known(&mut self, server: Endpoint, now: Instant) -> &mut Known {
        if self.servers.len() >= SERVERS_REMEMBERED
            && !self.servers.contains_key(&server)
            && let Some(oldest) = self.servers.iter().min_by_key(|(_, known)| known.used).map(|(at, _)| *at)
        {
            self.servers.remove(&oldest);
        }
        let known = self.servers.entry(server).or_insert(Known::new(now));
        known.used = now;
        known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(last: u8) -> Endpoint {
        Endpoint::new([192, 0, 2, last], 53)
    }

    #[test]
    fn a_silent_server_rests_longer_each_time_and_comes_back() {
        let mut health = Health::new();
        let servers = [at(1), at(2)];
        let mut now = Instant::from_millis(1000);
        health.silent(at(1), now);
        assert_eq!(health.order(&servers, now), servers, "once is bad luck");
        health.silent(at(1), now);
        assert_eq!(health.order(&servers, now), [at(2), at(1)]);
        for rest in [2, 4, 8, 16, 32, 64, 64] {
            let until = health.rests_until(at(1)).unwrap();
            assert_eq!(until.since(now), Duration::from_secs(rest));
            now = until;
            assert_eq!(health.order(&servers, now), servers, "tried again");
            health.silent(at(1), now);
        }
        health.answered(at(1), Duration::from_millis(20), now);
        assert_eq!(health.order(&servers, now), servers);
    }

    #[test]
    fn the_wait_follows_the_round_trip_within_bounds() {
        let mut health = Health::new();
        assert_eq!(health.wait(at(1)), FIRST_WAIT);
        health.answered(at(1), Duration::from_millis(1), Instant::ZERO);
        assert_eq!(health.wait(at(1)), LEAST_WAIT);
        health.answered(at(2), Duration::from_millis(300), Instant::ZERO);
        assert_eq!(health.wait(at(2)), Duration::from_millis(1200));
        health.answered(at(3), Duration::from_secs(9), Instant::ZERO);
        assert_eq!(health.wait(at(3)), MOST_WAIT);
    }

    #[test]
    fn memory_is_bounded() {
        let mut health = Health::new();
        for n in 0..200 {
            health.silent(at(n), Instant::from_millis(u64::from(n)));
        }
        assert_eq!(health.servers.len(), SERVERS_REMEMBERED);
        assert!(health.servers.contains_key(&at(199)));
    }
}
