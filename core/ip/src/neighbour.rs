//! Neighbours: one cache for both families, filled by ARP and by neighbour discovery.

pub(crate) mod cache;
pub(crate) mod discovery;
mod transition;
