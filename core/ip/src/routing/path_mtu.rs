//! The path MTU table (RFC 1191, RFC 8201).
//!
//! An ICMP error alone changes nothing: anyone can send one (RFC 5927 §7). The transport whose packet is quoted checks
//! that it is in flight, and then calls [`crate::Paths::path_mtu_confirmed`].

use crate::table::{Keyed, Map};
use inhost_base::{Duration, Instant, IpAddr};

/// Most destinations remembered.
pub(crate) const PATH_MTU_LIMIT: usize = 1024;
/// Lifetime of an entry; the path is assumed to have the link's MTU afterwards (RFC 8201 §4).
pub(crate) const PATH_MTU_LIFETIME: Duration = Duration::from_secs(600);
/// The smallest MTU that an ICMP error can set for an IPv4 path. It is far above the values that would help an attacker
/// (RFC 1191 §3 allows down to 68).
pub(crate) const IPV4_FLOOR_BYTES: u16 = 552;
/// The smallest MTU of an IPv6 path (RFC 8200 §5).
pub(crate) const IPV6_FLOOR_BYTES: u16 = 1280;

#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
struct Known {
    mtu_bytes: u16,
    until: Instant,
}

/// MTUs by destination.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct PathMtu {
    #[cfg_attr(feature = "freeze", serde(with = "crate::table::frozen"))]
    known: Map<IpAddr, Known>,
}

impl PathMtu {
    pub fn new(keyed: Keyed) -> Self {
        PathMtu { known: Map::with_hasher(keyed) }
    }
    /// Chooses a new key.
    #[cfg(feature = "freeze")]
    pub fn rekey(&mut self, keyed: Keyed) {
        crate::table::rekey(&mut self.known, keyed);
    }
    /// The MTU towards `destination`, at most `link_mtu_bytes`.
    pub fn towards(&self, destination: IpAddr, link_mtu_bytes: u16, now: Instant) -> u16 {
        match self.known.get(&destination) {
            Some(known) if known.until > now => known.mtu_bytes.min(link_mtu_bytes),
            _ => link_mtu_bytes,
        }
    }
    /// Lowers the MTU towards `destination`. True when it was higher before; an ICMP error never raises it
    /// (RFC 8201 §4).
    // spec: RFC8201 4; RFC1191 3; RFC4821 5.2-1, 5.2-2
    pub fn lower(&mut self, destination: IpAddr, mtu_bytes: u16, current_bytes: u16, now: Instant) -> bool {
        let mtu_bytes = mtu_bytes.max(floor_bytes(destination));
        if mtu_bytes >= current_bytes {
            return false;
        }
        if self.known.len() >= PATH_MTU_LIMIT && !self.known.contains_key(&destination) {
            self.make_room(now);
        }
        self.known.insert(destination, Known { mtu_bytes, until: now + PATH_MTU_LIFETIME });
        true
    }
    /// Removes expired entries, or else the one that expires first.
    fn make_room(&mut self, now: Instant) {
        self.known.retain(|_, known| known.until > now);
        if self.known.len() >= PATH_MTU_LIMIT
            && let Some(oldest) = self.known.iter().map(|(address, known)| (known.until, *address)).min()
        {
            self.known.remove(&oldest.1);
        }
    }
    /// Destinations remembered.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.known.len()
    }
    /// When the first entry expires.
    pub fn deadline(&self) -> Instant {
        self.known.values().map(|known| known.until).min().unwrap_or(Instant::FAR_FUTURE)
    }
    /// Removes expired entries. True when there was any, so that paths may have a larger MTU.
    pub fn timeout(&mut self, now: Instant) -> bool {
        let before = self.known.len();
        self.known.retain(|_, known| known.until > now);
        self.known.len() != before
    }
}

/// The smallest MTU that an ICMP error can set.
pub(crate) const fn floor_bytes(destination: IpAddr) -> u16 {
    match destination {
        IpAddr::V4(_) => IPV4_FLOOR_BYTES,
        IpAddr::V6(_) => IPV6_FLOOR_BYTES,
    }
}

/// The probable MTU of an old router that reports none: the plateau below the refused packet (RFC 1191 §7.1).
pub(crate) fn plateau_below(refused_bytes: u16) -> u16 {
    const PLATEAUS_BYTES: [u16; 9] = [32_000, 17_914, 8_166, 4_352, 2_002, 1_492, 1_006, 552, 508];
    PLATEAUS_BYTES.into_iter().find(|&plateau| plateau < refused_bytes).unwrap_or(IPV4_FLOOR_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use inhost_base::Random;

    // spec: RFC4821 5.2-1, 5.2-2
    #[test]
    fn it_only_falls_is_held_to_the_floor_ages_and_stays_bounded() {
        let mut table = PathMtu::new(Keyed::new(&mut Random::from_number(3)));
        let now = Instant::from_millis(5);
        let (v4, v6): (IpAddr, IpAddr) = ("192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap());
        assert!(table.lower(v4, 1400, 1500, now) && table.lower(v6, 100, 1500, now));
        assert!(!table.lower(v4, 1450, 1400, now), "spec: RFC8201 4: a report never raises it");
        assert_eq!((table.towards(v4, 1500, now), table.towards(v6, 1500, now)), (1400, 1280));
        assert!(table.lower(v4, 68, 1400, now));
        assert_eq!(table.towards(v4, 1500, now), IPV4_FLOOR_BYTES);
        assert_eq!(table.deadline(), now + PATH_MTU_LIFETIME);
        assert!(table.timeout(now + PATH_MTU_LIFETIME));
        assert_eq!(table.towards(v4, 1500, now), 1500);
        for i in 0..5000u32 {
            table.lower(IpAddr::V4(i.into()), 1000, 1500, now + Duration::from_nanos(u64::from(i)));
        }
        assert_eq!(table.len(), PATH_MTU_LIMIT);
        assert_eq!(table.towards(IpAddr::V4(4999.into()), 1500, now), 1000, "the newest is kept");
    }

    #[test]
    fn plateaus_fall() {
        assert_eq!((plateau_below(1500), plateau_below(1492), plateau_below(300)), (1492, 1006, 552));
    }
}
