//! Rate limits of each client and of all clients.

use inhost_base::{Duration, Instant, IpAddr};
use inhost_common::network;
use std::collections::BTreeMap;

/// Limit of remembered clients; the least recently seen idle one is evicted.
pub const CLIENTS_REMEMBERED: usize = 1024;

/// Rate limits of clients.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ClientLimits {
    /// Questions of one client that wait for servers. Default 128.
    pub waiting_each: usize,
    /// Questions of all clients that wait for servers. Default 2048. Cost: some 300 bytes each.
    pub waiting_all: usize,
    /// Questions that one client may ask in a second in the long run. Default 500.
    pub per_second: u32,
    /// Questions that one client may ask at once after a quiet time. Default 1000.
    pub burst: u32,
}

impl Default for ClientLimits {
    fn default() -> Self {
        ClientLimits { waiting_each: 128, waiting_all: 2048, per_second: 500, burst: 1000 }
    }
}

#[derive(Clone, Copy, Debug)]
struct Client {
    waiting: usize,
    /// When its share is whole again: each question moves it on.
    whole_at: Instant,
    last_seen: Instant,
}

/// The clients. One of IPv6 is its /64, of which anybody has as many addresses as he likes.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    list: BTreeMap<IpAddr, Client>,
    waiting: usize,
}

impl Clients {
    /// Counts a question; false when its client has had its share.
    pub(crate) fn asks(&mut self, address: IpAddr, limits: &ClientLimits, now: Instant) -> bool {
        let Some(client) = self.client(address, now) else { return false };
        let step = Duration::from_secs(1).divided_by(u64::from(limits.per_second.max(1)));
        let start = client.whole_at.max(now);
        if start.since(now) + step > step.times(u64::from(limits.burst.max(1))) {
            return false;
        }
        client.whole_at = start + step;
        true
    }
    /// Takes a place to wait; false when there is none.
    pub(crate) fn waits(&mut self, address: IpAddr, limits: &ClientLimits, now: Instant) -> bool {
        if self.waiting >= limits.waiting_all {
            return false;
        }
        let Some(client) = self.client(address, now).filter(|client| client.waiting < limits.waiting_each)
        else {
            return false;
        };
        client.waiting += 1;
        self.waiting += 1;
        true
    }
    /// Gives the place back.
    pub(crate) fn served(&mut self, address: IpAddr) {
        if let Some(client) = self.list.get_mut(&network(address)).filter(|client| client.waiting > 0) {
            client.waiting -= 1;
            self.waiting -= 1;
        }
    }
    /// Questions that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }
    fn client(&mut self, address: IpAddr, now: Instant) -> Option<&mut Client> {
        let address = network(address);
        if self.list.len() >= CLIENTS_REMEMBERED && !self.list.contains_key(&address) {
            let idle = self.list.iter().filter(|(_, client)| client.waiting == 0);
            let oldest = *idle.min_by_key(|(_, client)| client.last_seen)?.0;
            self.list.remove(&oldest);
        }
        let client = self.list.entry(address).or_insert(Client {
            waiting: 0,
            whole_at: Instant::ZERO,
            last_seen: now,
        });
        client.last_seen = now;
        Some(client)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn four(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    #[test]
    fn a_client_has_its_burst_and_then_its_rate() {
        let limits = ClientLimits { per_second: 10, burst: 5, ..ClientLimits::default() };
        let mut clients = Clients::default();
        let count =
            |clients: &mut Clients, who, now| (0..20).filter(|_| clients.asks(who, &limits, now)).count();
        assert_eq!(count(&mut clients, four(1), Instant::ZERO), 5);
        assert_eq!(count(&mut clients, four(2), Instant::ZERO), 5);
        assert_eq!(count(&mut clients, four(1), Instant::from_millis(200)), 2);
        let six = |last: &str| last.parse::<IpAddr>().unwrap();
        assert_eq!(count(&mut clients, six("fd00::1"), Instant::ZERO), 5);
        assert_eq!(count(&mut clients, six("fd00::2:1"), Instant::ZERO), 0, "the same /64");
    }

    #[test]
    fn places_are_bounded_and_given_back() {
        let limits = ClientLimits { waiting_each: 2, waiting_all: 3, ..ClientLimits::default() };
        let mut clients = Clients::default();
        let mut waits = |who| clients.waits(four(who), &limits, Instant::ZERO);
        assert_eq!([waits(1), waits(1), waits(1), waits(2), waits(2)], [true, true, false, true, false]);
        clients.served(four(1));
        clients.served(four(9));
        assert!(clients.waits(four(3), &limits, Instant::ZERO));
        assert_eq!(clients.waiting(), 3);
    }

    #[test]
    fn memory_is_bounded_and_who_waits_is_not_forgotten() {
        let limits = ClientLimits::default();
        let mut clients = Clients::default();
        assert!(clients.waits(four(1), &limits, Instant::ZERO));
        for n in 0..5000u32 {
            clients.asks(IpAddr::from(n.to_be_bytes()), &limits, Instant::from_millis(u64::from(n)));
        }
        assert_eq!(clients.list.len(), CLIENTS_REMEMBERED);
        clients.served(four(1));
        assert_eq!(clients.waiting(), 0);
    }
}
