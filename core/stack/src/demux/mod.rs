//! Demultiplexing: from the two ends in a packet to the socket that it is for.

mod lookup;
mod name;
mod ports;
mod share;
mod table;

pub(crate) use lookup::Demux;
pub(crate) use name::{NOWHERE, Name, NameHash, binding};
pub use ports::PortSelection;
pub(crate) use ports::Tuple;
pub use share::{Share, Steer};
