//! What sockets of all kinds have: identifiers, options, information.

mod id;
mod info;
mod option;

pub use id::{AnySocketId, EchoSocketId, ListenerId, ProbeSocketId, SocketId, TcpSocketId, UdpSocketId};
pub use info::{Accepted, Refusal, SocketInfo, SocketKind};
pub use option::{ConnectionOptions, SocketOption};
