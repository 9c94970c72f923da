//! Scopes and classes of addresses.

use inhost_base::{HardwareAddress, IpAddr, Ipv4Addr, Ipv6Addr};

/// All hosts of a link, IPv4 (RFC 1112).
pub(crate) const ALL_SYSTEMS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 1);
/// All routers of a link, IPv4.
pub(crate) const ALL_ROUTERS_V4: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 2);
/// All nodes of a link, IPv6 (RFC 4291 §2.7.1).
pub(crate) const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
/// All routers of a link, IPv6.
pub(crate) const ALL_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);

/// Scopes of RFC 4007, as RFC 6724 §3.1 compares them.
pub(crate) mod level {
    pub const INTERFACE: u8 = 1;
    pub const LINK: u8 = 2;
    pub const SITE: u8 = 5;
    pub const GLOBAL: u8 = 14;
}

/// The scope of an address (RFC 6724 §3.1, §3.2).
pub(crate) fn scope(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(a) if a.is_loopback() || a.is_link_local() => level::LINK,
        IpAddr::V4(_) => level::GLOBAL,
        IpAddr::V6(a) if a.is_multicast() => a.octets()[1] & 0xf,
        IpAddr::V6(a) if a.is_loopback() || a.is_unicast_link_local() => level::LINK,
        IpAddr::V6(a) if a.segments()[0] & 0xffc0 == 0xfec0 => level::SITE,
        IpAddr::V6(_) => level::GLOBAL,
    }
}

/// Whether an address can belong to one host, and so be a source or a unicast destination on some link.
// spec: RFC1122 3.2.1.3-4
pub(crate) fn is_unicast(address: IpAddr) -> bool {
    match address {
        // 0/8, 224/4 and 240/4 (with the limited broadcast) name no host.
        IpAddr::V4(a) => !matches!(a.octets()[0], 0 | 224..=255),
        IpAddr::V6(a) => !a.is_multicast() && !a.is_unspecified() && a.to_ipv4_mapped().is_none(),
    }
}

/// Whether an address lies in the loopback network of its family.
pub(crate) fn is_loopback(address: IpAddr) -> bool {
    address.is_loopback()
}

/// Whether an address is unicast of link-local scope, so that it says nothing without its link.
pub(crate) fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(a) => a.is_link_local(),
        IpAddr::V6(a) => a.is_unicast_link_local(),
    }
}

/// Whether an address means the same on every link, so that a router may forward packets from or to it.
// spec: RFC1812 5.3.7, RFC4291 2.5.6, RFC3927 2.6.2
pub(crate) fn is_forwardable(address: IpAddr) -> bool {
    is_unicast(address) && !is_loopback(address) && !is_link_local(address)
}

/// The Ethernet address of a group (RFC 1112 §6.4, RFC 2464 §7).
// spec: RFC1112 6.4
pub(crate) fn group_hardware(group: IpAddr) -> HardwareAddress {
    match group {
        IpAddr::V4(a) => {
            let [_, b, c, d] = a.octets();
            HardwareAddress([0x01, 0x00, 0x5e, b & 0x7f, c, d])
        }
        IpAddr::V6(a) => {
            let [.., b, c, d, e] = a.octets();
            HardwareAddress([0x33, 0x33, b, c, d, e])
        }
    }
}

/// Leading bits that two addresses of one family share.
pub(crate) fn common_prefix_bits(a: IpAddr, b: IpAddr) -> u32 {
    match (a, b) {
        (IpAddr::V4(a), IpAddr::V4(b)) => (u32::from(a) ^ u32::from(b)).leading_zeros(),
        (IpAddr::V6(a), IpAddr::V6(b)) => (u128::from(a) ^ u128::from(b)).leading_zeros(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_map_to_their_cards() {
        let v4 = group_hardware("239.129.2.3".parse().unwrap());
        assert_eq!(v4, HardwareAddress([0x01, 0x00, 0x5e, 0x01, 0x02, 0x03]));
        let v6 = group_hardware("ff02::1:ff12:3456".parse().unwrap());
        assert_eq!(v6, HardwareAddress([0x33, 0x33, 0xff, 0x12, 0x34, 0x56]));
    }

    // spec: RFC1122 3.2.1.3-4
    #[test]
    fn what_names_a_host() {
        for yes in ["10.0.0.1", "127.0.0.1", "169.254.1.1", "fe80::1", "2001:db8::1", "::1"] {
            assert!(is_unicast(yes.parse().unwrap()), "{yes}");
        }
        for no in ["0.0.0.0", "0.1.2.3", "224.0.0.1", "240.0.0.1", "255.255.255.255", "::", "ff02::1"] {
            assert!(!is_unicast(no.parse().unwrap()), "{no}");
        }
        assert!(!is_unicast("::ffff:10.0.0.1".parse().unwrap()));
    }
}
