//! Between the guest's connections, datagrams and echo requests and the sockets of the operating system.

mod carry;
pub(crate) mod echo;
pub(crate) mod link;
pub(crate) mod tcp;
pub(crate) mod udp;

pub(crate) use carry::{CHUNK_BYTES, Scratch};
