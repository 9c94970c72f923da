//! Source address selection and the policy table (RFC 6724).

use crate::address_state::{AddressState, Assigned};
use crate::interface::Interface;
use crate::scope::{common_prefix_bits, scope};
use core::cmp::Ordering;
use inhost_base::{IpAddr, Ipv6Addr};

/// A line of the policy table (RFC 6724 §2.1): prefix, its length, precedence, label.
type Policy = (Ipv6Addr, u32, u8, u8);

/// The default policy table, longest prefix first.
// spec: RFC6724 2.1
const POLICIES: [Policy; 9] = [
    (Ipv6Addr::LOCALHOST, 128, 50, 0),
    (Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0), 96, 35, 4),
    (Ipv6Addr::UNSPECIFIED, 96, 1, 3),
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 32, 5, 5),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16, 30, 2),
    (Ipv6Addr::new(0x3ffe, 0, 0, 0, 0, 0, 0, 0), 16, 1, 12),
    (Ipv6Addr::new(0xfec0, 0, 0, 0, 0, 0, 0, 0), 10, 1, 11),
    (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7, 3, 13),
    (Ipv6Addr::UNSPECIFIED, 0, 40, 1),
];

/// Precedence and label of an address; IPv4 in its mapped form.
pub(crate) fn policy(address: IpAddr) -> (u8, u8) {
    let address = match address {
        IpAddr::V4(a) => a.to_ipv6_mapped(),
        IpAddr::V6(a) => a,
    };
    POLICIES
        .iter()
        .find(|(prefix, bits, ..)| common_prefix_bits(IpAddr::V6(*prefix), IpAddr::V6(address)) >= *bits)
        .map_or((40, 1), |(_, _, precedence, label)| (*precedence, *label))
}

/// Rule 8 of the source rules and rule 9 of the destination rules compare no more than the source's own prefix.
pub(crate) fn shared_bits(source: &Assigned, destination: IpAddr) -> u32 {
    common_prefix_bits(source.address(), destination).min(u32::from(source.cidr().prefix_bits()))
}

/// Our address for packets to `destination` that leave by `interface`, whose next hop is `next_hop`. Rules 4 (home
/// addresses) and 7 (temporary addresses) have nothing to decide here, and rule 5 (outgoing interface) holds of every
/// candidate, by the strong host model.
// spec: RFC6724 5
pub(crate) fn select_source(
    interface: &Interface,
    destination: IpAddr,
    next_hop: Option<IpAddr>,
) -> Option<Assigned> {
    let mut best: Option<&Assigned> = None;
    for candidate in interface.addresses() {
        let fits = candidate.is_usable() && candidate.address().is_ipv4() == destination.is_ipv4();
        if fits && best.is_none_or(|best| is_better_source(candidate, best, destination, next_hop)) {
            best = Some(candidate);
        }
    }
    best.copied()
}

fn is_better_source(a: &Assigned, b: &Assigned, destination: IpAddr, next_hop: Option<IpAddr>) -> bool {
    // Rule 1: the destination itself.
    if (a.address() == destination) != (b.address() == destination) {
        return a.address() == destination;
    }
    // Rule 2: an appropriate scope: the smallest that reaches, else the largest.
    let (scope_a, scope_b, scope_d) = (scope(a.address()), scope(b.address()), scope(destination));
    match scope_a.cmp(&scope_b) {
        Ordering::Less => return scope_a >= scope_d,
        Ordering::Greater => return scope_b < scope_d,
        Ordering::Equal => {}
    }
    // Rule 3: not deprecated.
    let (old_a, old_b) = (a.state() == AddressState::Deprecated, b.state() == AddressState::Deprecated);
    if old_a != old_b {
        return old_b;
    }
    // Rule 5.5: from a prefix of the router that is the next hop.
    let (here_a, here_b) =
        (next_hop.is_some() && a.router() == next_hop, next_hop.is_some() && b.router() == next_hop);
    if here_a != here_b {
        return here_a;
    }
    // Rule 6: the destination's label.
    let label = policy(destination).1;
    let (fits_a, fits_b) = (policy(a.address()).1 == label, policy(b.address()).1 == label);
    if fits_a != fits_b {
        return fits_a;
    }
    // Rule 8: the longest shared prefix.
    shared_bits(a, destination) > shared_bits(b, destination)
}
