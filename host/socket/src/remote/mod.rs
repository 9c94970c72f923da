//! Remote sockets: a host's sockets for other threads.

mod blocks;
mod datagrams;
mod down;
mod host;
mod lent;
mod listener;
mod locked;
mod opening;
mod pipe;
mod pump;
mod readiness;
mod stream;
mod up;

pub use datagrams::RemoteUdpSocket;
pub use datagrams::groups::GroupLink;
pub use datagrams::shared::ReceivedDatagrams;
pub use host::RemoteHost;
pub use listener::{RemoteHeld, RemoteListener};
pub use readiness::StreamReadiness;
pub use stream::RemoteStream;
