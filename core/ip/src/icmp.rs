//! ICMP of both families: what is answered, what is believed, and what is told to others.

pub(crate) mod errors;
pub(crate) mod limits;
pub(crate) mod receive;
