//! quinn on inhost: its sockets are those of [`inhost::net`], its timers and tasks tokio's.
//!
//! ```
//! use inhost::Host;
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> std::io::Result<()> {
//! let host = Host::builder().start()?;
//! let endpoint = inhost_example_quic::endpoint(&host, "127.0.0.1:443".parse().unwrap(), None).await?;
//! assert_eq!(endpoint.local_addr()?.port(), 443);
//! # Ok(()) }
//! ```
#![forbid(unsafe_code)]

mod runtime;
mod socket;

pub use runtime::TokioTimers;
pub use socket::{Counts, QuicSocket};

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use inhost::Host;
use inhost::stack::UdpOptions;
use quinn::{Endpoint, EndpointConfig, ServerConfig};

/// What may wait in a socket: more than QUIC's flow control lets a peer send ahead, so that nothing is dropped.
const RECEIVE_LIMIT_BYTES: usize = 4 << 20;

/// An endpoint of QUIC at `address` of `host`; one that accepts connections when it has a `server` configuration. It needs
/// a tokio runtime.
///
/// # Errors
/// When the address is taken or not the host's.
pub async fn endpoint(
    host: &Host,
    address: SocketAddr,
    server: Option<ServerConfig>,
) -> io::Result<Endpoint> {
    let socket = QuicSocket::bind(host, address).await?;
    endpoint_on(Arc::new(socket), server)
}

/// An endpoint of QUIC on a socket.
///
/// # Errors
/// None that is known.
pub fn endpoint_on(socket: Arc<QuicSocket>, server: Option<ServerConfig>) -> io::Result<Endpoint> {
    let runtime = Arc::new(TokioTimers);
    Endpoint::new_with_abstract_socket(EndpointConfig::default(), server, socket, runtime)
}

/// How the socket of an endpoint is opened.
fn options() -> UdpOptions {
    let mut options = UdpOptions::default();
    options.receive_limit_bytes = RECEIVE_LIMIT_BYTES;
    // QUIC finds the path MTU itself (RFC 9000 §14).
    options.dont_fragment = true;
    options
}
