//! Sockets with the names, signatures and semantics of `tokio::net`, on a host of inhost.
//!
//! They are `Send` and `Sync` and work on any executor: tokio, smol, a plain `block_on`, a task of a simulated host. To
//! move a program over, replace `use tokio::net` by `use inhost::net`.
//!
//! | differs from tokio | |
//! |---|---|
//! | `set_nodelay`, `set_linger`, `set_ttl` | counts for what is written from then on; no error is returned |
//! | `from_std`, `into_std` | missing: there is no descriptor |
//! | options of `UdpSocket` | count for what is sent from then on; multicast has no TTL and no loop of its own; no `device` |
//! | errors of a sent datagram | what needs a route is learnt by a later call, as ICMP errors are |
//! | names | looked up by the host's resolver, not by the system |

mod addr;
mod ready;
mod split;
mod tcp_listener;
mod tcp_socket;
mod tcp_stream;
mod udp_socket;

pub use inhost_socket::ReceivedDatagrams;
pub use inhost_stack::{DatagramInfo, Ecn, SendDatagrams};

pub use addr::{ToSocketAddrs, lookup_host};
pub use ready::{Interest, Ready};
pub use split::{OwnedReadHalf, OwnedWriteHalf, ReadHalf, ReuniteError, WriteHalf};
pub use tcp_listener::TcpListener;
pub(crate) use tcp_listener::listen;
pub use tcp_socket::TcpSocket;
pub use tcp_stream::TcpStream;
pub(crate) use tcp_stream::connect;
pub use udp_socket::UdpSocket;
pub(crate) use udp_socket::bind;

/// The halves of a connection under the path that they have in tokio.
pub mod tcp {
    pub use super::split::{OwnedReadHalf, OwnedWriteHalf, ReadHalf, ReuniteError, WriteHalf};
}
