//! UDP (RFC 768): a socket with its queues, and the headers of GSO frames.

mod gso;
mod socket;

pub use gso::MAX_GSO_DATAGRAMS;
pub(crate) use gso::{HEADERS_BYTES, write_gso_headers};
pub(crate) use socket::{LEAST_BYTES, Udp};
