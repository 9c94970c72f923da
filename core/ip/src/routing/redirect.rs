//! Accepted ICMP redirects, bounded in number and in time.

use alloc::vec::Vec;
use inhost_base::{Duration, Instant, IpAddr, LinkId};

/// Most destinations with a redirect.
pub(crate) const REDIRECT_LIMIT: usize = 128;
/// How long a redirect holds.
const LIFETIME: Duration = Duration::from_secs(600);

#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
struct Redirect {
    link: LinkId,
    destination: IpAddr,
    next_hop: IpAddr,
    until: Instant,
}

/// Accepted redirects, the oldest first.
#[derive(Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Redirects {
    list: Vec<Redirect>,
}

impl Redirects {
    /// The next hop that a redirect names for `destination`.
    pub fn next_hop(&self, link: LinkId, destination: IpAddr, now: Instant) -> Option<IpAddr> {
        self.list
            .iter()
            .find(|r| r.link == link && r.destination == destination && r.until > now)
            .map(|r| r.next_hop)
    }
    /// Adds a redirect; the oldest is removed when the table is full.
    // spec: RFC1122 3.2.2.2-2, 3.3.1.2-1
    pub fn insert(&mut self, link: LinkId, destination: IpAddr, next_hop: IpAddr, now: Instant) {
        self.list.retain(|r| r.link != link || r.destination != destination);
        if self.list.len() >= REDIRECT_LIMIT {
            self.list.remove(0);
        }
        self.list.push(Redirect { link, destination, next_hop, until: now + LIFETIME });
    }
    /// Removes the redirects to a next hop that is gone. True when there was any.
    // spec: RFC1122 3.3.1.4-3
    pub fn forget_through(&mut self, link: LinkId, next_hop: IpAddr) -> bool {
        let before = self.list.len();
        self.list.retain(|r| r.link != link || r.next_hop != next_hop);
        self.list.len() != before
    }
    /// When the first redirect expires.
    pub fn deadline(&self) -> Instant {
        self.list.iter().map(|r| r.until).min().unwrap_or(Instant::FAR_FUTURE)
    }
    /// Removes expired redirects. True when there was any.
    pub fn timeout(&mut self, now: Instant) -> bool {
        let before = self.list.len();
        self.list.retain(|r| r.until > now);
        self.list.len() != before
    }
    /// Number of redirects.
    pub fn len(&self) -> usize {
        self.list.len()
    }
}
