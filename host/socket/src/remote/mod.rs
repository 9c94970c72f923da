//! Remote sockets: a host's sockets for other threads.

mod blocks;
mod datagrams;
mod host;
mod lent;
mod listener;
mod locked;
mod opening;
mod pipe;
mod pump;
mod stream;

pub use datagrams::RemoteUdpSocket;
pub use datagrams::groups::GroupLink;
pub use datagrams::shared::ReceivedDatagrams;
pub use host::RemoteHost;
pub use listener::{RemoteHeld, RemoteListener};
pub use pipe::{REMOTE_RING_BYTES, StreamReadiness};
pub use stream::RemoteStream;
