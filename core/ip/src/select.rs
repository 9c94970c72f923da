//! Default address selection (RFC 6724): source and destination.

use crate::address_state::{AddressState, Assigned};
use crate::scope::{common_prefix_bits, scope};
use crate::{Interface, Ip};
use core::cmp::Ordering;
use inhost_base::{Instant, IpAddr, Ipv6Addr};

/// Most destinations that [`Ip::order_destinations`] sorts; those beyond keep their place behind.
pub(crate) const DESTINATION_LIMIT: usize = 64;

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
fn policy(address: IpAddr) -> (u8, u8) {
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
fn shared_bits(source: &Assigned, destination: IpAddr) -> u32 {
    common_prefix_bits(source.address(), destination).min(u32::from(source.cidr.prefix_bits()))
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
    for candidate in &interface.addresses {
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
        (next_hop.is_some() && a.router == next_hop, next_hop.is_some() && b.router == next_hop);
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

/// A destination with what decides its place.
#[derive(Clone, Copy)]
struct Candidate {
    destination: IpAddr,
    source: Option<Assigned>,
}

/// Rules 1, 2, 3, 5, 6, 8 and 9 of RFC 6724 §6; 4 (home addresses) and 7 (tunnels) have nothing to decide.
fn is_better_destination(a: &Candidate, b: &Candidate) -> bool {
    // Rule 1: one that can be reached.
    let (source_a, source_b) = match (&a.source, &b.source) {
        (Some(a), Some(b)) => (a, b),
        (source_a, source_b) => return source_a.is_some() && source_b.is_none(),
    };
    // Rule 2: source and destination of one scope.
    let scope_a = scope(a.destination);
    let scope_b = scope(b.destination);
    let (match_a, match_b) = (scope(source_a.address()) == scope_a, scope(source_b.address()) == scope_b);
    if match_a != match_b {
        return match_a;
    }
    // Rule 3: a source that is not deprecated.
    let is_old = |source: &Assigned| source.state() == AddressState::Deprecated;
    if is_old(source_a) != is_old(source_b) {
        return is_old(source_b);
    }
    // Rule 5: source and destination of one label.
    let ((precedence_a, label_a), (precedence_b, label_b)) = (policy(a.destination), policy(b.destination));
    let (match_a, match_b) =
        (policy(source_a.address()).1 == label_a, policy(source_b.address()).1 == label_b);
    if match_a != match_b {
        return match_a;
    }
    // Rule 6: the higher precedence. Rule 8: the smaller scope.
    if precedence_a != precedence_b {
        return precedence_a > precedence_b;
    }
    if scope_a != scope_b {
        return scope_a < scope_b;
    }
    // Rule 9: the longest prefix shared with the source, within one family.
    a.destination.is_ipv4() == b.destination.is_ipv4()
        && shared_bits(source_a, a.destination) > shared_bits(source_b, b.destination)
}

impl Ip {
    /// Sorts `destinations` by RFC 6724 §6, the one to try first in front; equals keep their order. RFC 8305 races
    /// them in this order. Only the first 64 are sorted.
    // spec: RFC6724 6
    pub fn order_destinations(&mut self, destinations: &mut [IpAddr], now: Instant) {
        let length = destinations.len().min(DESTINATION_LIMIT);
        let mut sorted: Vec<Candidate> = Vec::with_capacity(length);
        for &destination in destinations.iter().take(length) {
            let candidate = Candidate { destination, source: self.source_towards(destination, now) };
            // An insertion keeps equals in order, and does not ask that the rules be transitive, which they are not.
            let at = sorted.iter().position(|other| is_better_destination(&candidate, other));
            sorted.insert(at.unwrap_or(sorted.len()), candidate);
        }
        for (place, candidate) in destinations.iter_mut().zip(sorted) {
            *place = candidate.destination;
        }
    }
    fn source_towards(&mut self, destination: IpAddr, now: Instant) -> Option<Assigned> {
        let path = self.route(destination, None, None, now).ok()?;
        let link = self.interfaces.get(path.link)?;
        let own = || self.interfaces.iter().find_map(|interface| interface.assigned(path.source));
        link.assigned(path.source).or_else(own).copied()
    }
}
