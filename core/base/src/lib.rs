//! The words every layer shares: instants and durations in integer nanoseconds, sequence numbers,
//! addresses, the seeded random source, rate limits, and collections: the slab, and what runs beside its places.
//!
//! Nothing here knows an operating system, a clock or a thread. Time is a value that the caller makes up:
//!
//! ```
//! use inhost_base::{Duration, Instant};
//! let start = Instant::ZERO;
//! assert_eq!(start + Duration::from_millis(2), Instant::from_nanos(2_000_000));
//! ```
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod address;
mod bounded;
#[cfg(feature = "freeze")]
pub mod freeze;
mod growth;
mod list;
mod offset;
mod random;
mod rate_limit;
mod sequence;
mod slab;
mod time;
mod wheel;

pub use address::{Cidr, Endpoint, HardwareAddress, InvalidCidr, unspecified_like};
pub use bounded::Bounded;
pub use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
pub use growth::make_room;
pub use list::Lists;
pub use offset::Offset;
pub use random::{Random, SipKey};
pub use rate_limit::RateLimit;
pub use sequence::Sequence;
pub use slab::{Key, Slab};
pub use time::{Deadline, Duration, Instant};
pub use wheel::TimerWheel;

/// Writes the names of a set's members with `|` between them, or `-` where there is none.
pub fn write_names<'a>(
    f: &mut core::fmt::Formatter<'_>,
    mut names: impl Iterator<Item = &'a str>,
) -> core::fmt::Result {
    f.write_str(names.next().unwrap_or("-"))?;
    names.try_for_each(|name| write!(f, "|{name}"))
}

/// Names one link of a host, in the order in which the links were added.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct LinkId(pub u16);
