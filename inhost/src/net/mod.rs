//! Sockets with the names, signatures and semantics of `tokio::net`, on a host of inhost.
//!
//! They are `Send` and `Sync` and work on any executor: tokio, smol, a plain `block_on`, a task of a simulated host. To
//! move a program over, replace `use tokio::net` by `use inhost::net`.
//!
//! The page `docs/tokio.md` has each method that is not here, and each that means something else. The
//! shortest of it: there is no descriptor, so no `from_std` and no `into_std`; options count for what is written from then
//! on, and their setters return no error; names are looked up by the host's resolver.
//!
mod addr;
mod ready;
mod split;
mod tcp_listener;
mod tcp_socket;
mod tcp_stream;
mod tos;
mod udp_socket;

pub use inhost_socket::ReceivedDatagrams;
pub use inhost_stack::{DatagramInfo, Ecn, KeepAlive, Refusal, SendDatagrams, Unreachable};

pub use addr::{ToSocketAddrs, lookup_host};
pub use ready::{Interest, Ready};
pub use split::{OwnedReadHalf, OwnedWriteHalf, ReadHalf, ReuniteError, WriteHalf};
pub(crate) use tcp_listener::listen;
pub use tcp_listener::{Held, TcpListener};
pub use tcp_socket::TcpSocket;
pub use tcp_stream::TcpStream;
pub(crate) use tcp_stream::connect;
pub use udp_socket::UdpSocket;
pub(crate) use udp_socket::bind;

/// The halves of a connection under the path that they have in tokio.
pub mod tcp {
    pub use super::split::{OwnedReadHalf, OwnedWriteHalf, ReadHalf, ReuniteError, WriteHalf};
}
