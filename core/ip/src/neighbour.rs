//! Neighbours: one cache for both families, filled by ARP and by neighbour discovery.

pub(crate) mod arp;
pub(crate) mod cache;
pub(crate) mod discovery;
pub(crate) mod ndp;
pub(crate) mod transition;
