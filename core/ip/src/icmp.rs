//! ICMP and ICMPv6: replies, errors sent, errors accepted.

pub(crate) mod errors;
pub(crate) mod limits;
pub(crate) mod receive;
