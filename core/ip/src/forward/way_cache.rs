//! The ways that packets took last, so that routes are searched once for many packets.

use super::Way;
use crate::table::Keyed;
use core::hash::BuildHasher;
use inhost_base::IpAddr;

/// Destinations remembered; each has one place, by its hash.
pub(crate) const WAY_LIMIT: usize = 1024;

#[derive(Clone, Copy, Debug)]
struct Known {
    destination: IpAddr,
    generation: u32,
    way: Way,
}

/// Ways by destination. Of a host that does not forward it holds no memory.
#[derive(Debug)]
pub(crate) struct WayCache {
    places: Vec<Option<Known>>,
    keyed: Keyed,
}

impl WayCache {
    pub fn new(keyed: Keyed) -> Self {
        WayCache { places: Vec::new(), keyed }
    }
    /// The way to `destination`, if the tables are those of `generation` still.
    pub fn find(&self, destination: IpAddr, generation: u32) -> Option<Way> {
        let known = self.places.get(self.place(destination))?.as_ref()?;
        (known.destination == destination && known.generation == generation).then_some(known.way)
    }
    /// Remembers a way; another destination's may go for it.
    pub fn insert(&mut self, destination: IpAddr, generation: u32, way: Way) {
        if self.places.is_empty() {
            self.places.resize(WAY_LIMIT, None);
        }
        let at = self.place(destination);
        if let Some(place) = self.places.get_mut(at) {
            *place = Some(Known { destination, generation, way });
        }
    }
    fn place(&self, destination: IpAddr) -> usize {
        self.keyed.hash_one(destination) as usize % WAY_LIMIT
    }
}
