//! Thin drivers that carry datagrams and files between the pure machines and the world. They need no runtime: each is a
//! future that any executor may poll, and time, datagrams and files come through traits.

mod carry;
mod client;
mod server;

use std::task::{Context, Poll};

use inhost_base::Endpoint;
use inhost_socket::{Ends, UdpSocket};

pub use carry::{Arriving, Progress, carry};
pub use client::{get, put};
pub use inhost_common::Clock;
pub use server::{Server, ServerConfig, ServerEvent, serve};

/// A socket for datagrams: the host's own, or any other.
pub trait Datagrams {
    /// Sends one.
    fn poll_send(&self, cx: &mut Context<'_>, bytes: &[u8], to: Endpoint) -> Poll<Result<(), String>>;
    /// Puts the next one into `into`, and says how long it is and whose; or that an earlier one met with an obstacle,
    /// in words.
    fn poll_receive(&self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<Result<(usize, Endpoint), String>>;
}

impl Datagrams for UdpSocket {
    fn poll_send(&self, cx: &mut Context<'_>, bytes: &[u8], to: Endpoint) -> Poll<Result<(), String>> {
        UdpSocket::poll_send(self, cx, bytes, Ends::towards(to)).map_err(|error| error.to_string())
    }
    fn poll_receive(&self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<Result<(usize, Endpoint), String>> {
        let received = UdpSocket::poll_receive(self, cx, into);
        received.map_ok(|info| (info.length_bytes, info.from)).map_err(|error| error.to_string())
    }
}
