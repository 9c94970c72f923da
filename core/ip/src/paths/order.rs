//! Destination address selection (RFC 6724 §6): which of several destinations to try first.

use super::Paths;
use crate::address_state::{AddressState, Assigned};
use crate::scope::scope;
use crate::select::{policy, shared_bits};
use alloc::vec::Vec;
use inhost_base::{Instant, IpAddr};

/// Most destinations that [`Paths::order_destinations`] sorts; those beyond keep their place behind.
const DESTINATION_LIMIT: usize = 64;

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

impl Paths {
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
