//! Demultiplexing: from the endpoints of a packet to its socket.

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
