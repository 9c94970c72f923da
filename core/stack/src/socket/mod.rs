//! What sockets of all kinds have: identifiers, options, readiness, information, recent destinations.

mod datagrams;
mod id;
mod info;
mod option;
mod readiness;
mod recent;

pub(crate) use datagrams::{Datagrams, Outgoing};
pub use id::{AnySocketId, EchoSocketId, ListenerId, ProbeSocketId, SocketId, TcpSocketId, UdpSocketId};
pub use info::{Accepted, DatagramInfo, EchoInfo, Refusal, SendDatagrams, SocketInfo, SocketKind};
pub use option::{ConnectionOptions, SocketOption};
pub use readiness::Readiness;
pub(crate) use recent::{Sent, Strangers};
