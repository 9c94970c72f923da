//! Thin drivers that carry messages between the machines and the world. They need no runtime: each is a future that any
//! executor may poll, and time, streams and datagrams come through traits.

mod client;
mod datagrams;
mod host;
mod server;

pub use client::{Connect, Peer, carry_datagrams, carry_stream, drive};
pub use datagrams::{DatagramLimits, Datagrams, serve_datagrams};
pub use host::{HostConnect, HostPeer};
pub use server::{SessionEnd, SessionLimits, serve_stream};
