//! Sockets: the table, typed identifiers, and socket information.

mod id;
mod info;
mod option;
mod readiness;
mod recent;
mod table;
mod tcp;

pub use id::{AnySocketId, EchoSocketId, ListenerId, ProbeSocketId, SocketId, TcpSocketId, UdpSocketId};
pub use info::{Accepted, DatagramInfo, EchoInfo, SendDatagrams, SocketInfo, SocketKind};
pub(crate) use option::Inherited;
pub use option::{ConnectionOptions, SocketOption};
pub use readiness::Readiness;
pub(crate) use recent::{RecentlySent, Strangers};
pub(crate) use table::{Socket, Sockets};
pub(crate) use tcp::{TcpSocket, TcpSocketFlags};
