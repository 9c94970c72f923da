//! Async sockets of a host, remote and blocking sockets for other threads, and the executor of its tasks.
//!
//! [`Host`] is a whole Internet host as the tasks on it see it: it has connections, listeners, datagram sockets, timers
//! and tasks, all on one thread and without an operating system. [`Stream`] reads and writes by tokio's traits and
//! nothing else of tokio. The driver of the host supplies the time: a runtime under the real clock or a simulator. The
//! same tasks run under either.
//!
//! Other threads come in by [`RemoteHost`] and [`RemoteStream`], which are `Send`; [`blocking`] has Berkeley's sockets
//! for them. [`errno`] is the only place that knows the system's error numbers.
//!
//! This crate never reads a clock for a task, never waits, and starts no thread.
//!
//! ```
//! use inhost_base::{Endpoint, Instant, Ipv4Addr};
//! use inhost_socket::Host;
//! use inhost_stack::{ListenOptions, Stack, StackConfig};
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! let host = Host::new(Stack::new(StackConfig::default(), [7; 32], Instant::ZERO), Instant::ZERO);
//! let here = Endpoint::new(Ipv4Addr::LOCALHOST, 7);
//! let listener = host.listen(here, ListenOptions::default())?;
//! host.spawn(async move {
//!     let (mut from, mut to) = tokio::io::split(listener.accept().await.unwrap());
//!     tokio::io::copy(&mut from, &mut to).await.unwrap();
//!     to.shutdown().await.unwrap();
//! }).detach();
//! let echo = host.run_alone(async {
//!     let mut stream = host.connect(here).await.unwrap();
//!     stream.write_all(b"hello, host").await.unwrap();
//!     stream.shutdown();
//!     let mut echo = String::new();
//!     stream.read_to_string(&mut echo).await.unwrap();
//!     echo
//! });
//! assert_eq!(echo.as_deref(), Some("hello, host"));
//! # Ok::<(), inhost_socket::ListenError>(())
//! ```
#![forbid(unsafe_code)]

mod block_on;
pub mod blocking;
mod current;
mod datagram;
mod delivery;
mod doorbell;
pub mod errno;
mod error;
mod executor;
mod future;
mod host;
mod inspect;
mod listener;
mod memory;
mod observer;
mod remote;
mod requests;
mod resolve;
mod send_buffer;
mod stream;
mod stream_socket;
mod tasks;
mod timers;
mod waiters;

pub use current::Entered;
pub use datagram::{EchoSocket, Ends, ProbeSocket, UdpSocket};
pub use doorbell::Doorbell;
pub use error::{
    AcceptError, BindError, ConnectError, ConnectionError, DatagramError, Gone, ListenError, StreamError,
};
pub use executor::Task;
pub use future::{Either, both, race, yield_now};
pub use host::Host;
pub use inspect::{SocketWaits, TaskWaits};
pub use listener::{Held, Listener};
pub use memory::REMOTE_RING_BYTES;
pub use observer::TaskObserver;
pub use remote::{
    GroupLink, ReceivedDatagrams, RemoteHeld, RemoteHost, RemoteListener, RemoteStream, RemoteUdpSocket,
    StreamReadiness,
};
pub use resolve::{AddressFuture, Resolve};
pub use send_buffer::{SendBuffer, Taken, UNCOUNTED_BYTES};
pub use stream::Stream;
pub use tasks::{Elapsed, Sleep};
pub use waiters::WakerSet;
