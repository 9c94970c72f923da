//! Who is next door, and where: one cache for both families, two protocols that fill it.

pub(crate) mod arp;
pub(crate) mod cache;
pub(crate) mod discovery;
pub(crate) mod ndp;
pub(crate) mod transition;
