//! The network of a caller, by which limits count.

use inhost_base::{IpAddr, Ipv6Addr};

/// The network that limits count as one caller, since one customer usually has all of it: an IPv4 address, or an IPv6
/// /64.
pub fn network(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX))),
        address => address,
    }
}
