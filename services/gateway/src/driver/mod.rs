//! Between the guest's connections, datagrams and echo requests and the sockets of the operating system.

pub(crate) mod echo;
pub(crate) mod link;
mod relay;
pub(crate) mod tcp;
pub(crate) mod udp;
