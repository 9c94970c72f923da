//! The cache of a router's forwarding decisions: routes are searched once for many packets.

use crate::table::Keyed;
use alloc::vec::Vec;
use core::hash::BuildHasher;
use inhost_base::{IpAddr, LinkId};

/// Destinations remembered; each has one place, by its hash.
pub(crate) const DECISION_LIMIT: usize = 1024;

/// Where a packet for others goes next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct RouteDecision {
    pub link: LinkId,
    pub next_hop: IpAddr,
}

#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
struct Known {
    destination: IpAddr,
    generation: u32,
    decision: RouteDecision,
}

/// Decisions by destination. It holds no memory in a host that does not forward.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct DecisionCache {
    places: Vec<Option<Known>>,
    keyed: Keyed,
}

impl DecisionCache {
    pub fn new(keyed: Keyed) -> Self {
        DecisionCache { places: Vec::new(), keyed }
    }
    /// Checks a thawed cache.
    #[cfg(feature = "freeze")]
    pub fn check(&self) -> Result<(), inhost_base::freeze::Invalid> {
        let places = self.places.len();
        inhost_base::freeze::require(places == 0 || places == DECISION_LIMIT, "the cache of decisions")
    }
    /// The decision for `destination`, if the tables are still those of `generation`.
    pub fn find(&self, destination: IpAddr, generation: u32) -> Option<RouteDecision> {
        let known = self.places.get(self.place(destination))?.as_ref()?;
        (known.destination == destination && known.generation == generation).then_some(known.decision)
    }
    /// Remembers a decision in the place of its hash, which another destination may have held.
    pub fn insert(&mut self, destination: IpAddr, generation: u32, decision: RouteDecision) {
        if self.places.is_empty() {
            self.places.resize(DECISION_LIMIT, None);
        }
        let at = self.place(destination);
        if let Some(place) = self.places.get_mut(at) {
            *place = Some(Known { destination, generation, decision });
        }
    }
    fn place(&self, destination: IpAddr) -> usize {
        self.keyed.hash_one(destination) as usize % DECISION_LIMIT
    }
}
