//! A lease.

use inhost_base::{Cidr, Duration, Instant, Ipv4Addr};

/// A lease for no less is taken: a host that asks every second serves nobody.
pub const LEAST_LEASE_S: u32 = 4;
/// The lease time that means for ever (RFC 2131 §3.3).
pub const FOR_EVER_S: u32 = u32::MAX;

/// An address for a time, and what goes with it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lease {
    /// The address.
    pub address: Ipv4Addr,
    /// Prefix length.
    pub prefix_bits: u8,
    /// The DHCP server.
    pub server: Ipv4Addr,
    /// When it was asked for, from which its times count (RFC 2131 §4.4.1).
    pub asked_at: Instant,
    /// T1, T2 and the end, in seconds from then.
    pub terms: Terms,
    /// Options of the lease.
    pub settings: Settings,
}

/// The times of a lease, in seconds; each less than the next, or all [`FOR_EVER_S`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Terms {
    /// T1: the server is asked for more time.
    pub renew_s: u32,
    /// T2: every server is asked.
    pub rebind_s: u32,
    /// The address is no longer ours.
    pub lease_s: u32,
}

/// Options of a lease beside the address.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Settings {
    /// Routes in order of preference; at most [`crate::limits::ROUTES`].
    pub routes: Vec<LeasedRoute>,
    /// Name servers in order of preference; at most [`crate::limits::NAME_SERVERS`].
    pub name_servers: Vec<Ipv4Addr>,
    /// Domains that short names are searched in; at most [`crate::limits::SEARCH_DOMAINS`].
    pub search: Vec<String>,
    /// The longest IP datagram of the link, in bytes.
    pub mtu_bytes: Option<u16>,
}

/// A route that came with a lease.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LeasedRoute {
    /// The destinations.
    pub destination: Cidr,
    /// Through whom; `None` when they are on the link (RFC 3442).
    pub gateway: Option<Ipv4Addr>,
}

impl Terms {
    /// The times of a lease of `lease_s`, with T1 and T2 where the server gave sensible ones (RFC 2131 §4.4.5).
    pub fn new(lease_s: u32, renew_s: Option<u32>, rebind_s: Option<u32>) -> Terms {
        if lease_s == FOR_EVER_S {
            return Terms { renew_s: FOR_EVER_S, rebind_s: FOR_EVER_S, lease_s };
        }
        let of_lease = |eighths: u64| (u64::from(lease_s) * eighths / 8) as u32;
        let rebind = rebind_s.filter(|&rebind| rebind > 1 && rebind < lease_s).unwrap_or(of_lease(7));
        let usual = of_lease(4).min(rebind / 2 + rebind / 4);
        let renew_s = renew_s.filter(|&renew| renew > 0 && renew < rebind).unwrap_or(usual);
        Terms { renew_s, rebind_s: rebind, lease_s }
    }
}

impl Lease {
    /// The address within its network.
    pub fn cidr(&self) -> Option<Cidr> {
        Cidr::new(self.address, self.prefix_bits).ok()
    }
    /// When its server is asked for more time.
    pub fn renew_at(&self) -> Instant {
        self.after(self.terms.renew_s)
    }
    /// When every server is asked.
    pub fn rebind_at(&self) -> Instant {
        self.after(self.terms.rebind_s)
    }
    /// When it ends.
    pub fn expires_at(&self) -> Instant {
        self.after(self.terms.lease_s)
    }
    fn after(&self, seconds: u32) -> Instant {
        match seconds {
            FOR_EVER_S => Instant::FAR_FUTURE,
            seconds => self.asked_at + Duration::from_secs(u64::from(seconds)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // RFC 2131 §4.4.5
    #[test]
    fn times_are_the_servers_where_they_make_sense() {
        let times = |lease, renew, rebind| {
            let Terms { renew_s, rebind_s, lease_s } = Terms::new(lease, renew, rebind);
            (renew_s, rebind_s, lease_s)
        };
        assert_eq!(times(1000, None, None), (500, 875, 1000));
        assert_eq!(times(1000, Some(100), Some(200)), (100, 200, 1000));
        assert_eq!(times(1000, Some(900), Some(2000)), (500, 875, 1000));
        assert_eq!(times(1000, Some(0), Some(0)), (500, 875, 1000));
        assert_eq!(times(1000, None, Some(300)), (225, 300, 1000), "half of the lease is behind T2");
        assert_eq!(times(FOR_EVER_S, Some(1), Some(2)), (FOR_EVER_S, FOR_EVER_S, FOR_EVER_S));
        for lease in LEAST_LEASE_S..200 {
            for hint in [None, Some(1), Some(2), Some(3), Some(lease - 1), Some(lease), Some(u32::MAX)] {
                let (renew, rebind, lease) = times(lease, hint, hint);
                assert!(0 < renew && renew < rebind && rebind < lease, "{lease} {hint:?}: {renew} {rebind}");
            }
        }
    }
}
