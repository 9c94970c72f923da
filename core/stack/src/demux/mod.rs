//! Demultiplexing: from the endpoints of a packet to the place of its socket.

mod name;
mod ports;
mod share;

pub(crate) use name::{ANY_ADDRESS, NOWHERE, Name, NameHash, binding, echo_binding, hash};
pub(crate) use ports::Identity;
pub use share::{Share, Steer};
