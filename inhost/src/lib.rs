//! An Internet host in a process: link, IP, TCP and UDP in one memory-safe program, with tokio's sockets.
//!
//! [`Host::builder`] makes a host, on a thread of its own or within your runtime. The types of [`net`] are those of
//! `tokio::net` in names, signatures and semantics; they are `Send` and work on any executor.
//!
//! ```
//! use inhost::{Host, net::{TcpListener, TcpStream}};
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! let host = Host::builder().start()?;
//! let greeting = host.block_on(async {
//!     let listener = TcpListener::bind("127.0.0.1:7").await?;
//!     let mut caller = TcpStream::connect(listener.local_addr()?).await?;
//!     let (mut stream, _) = listener.accept().await?;
//!     stream.write_all(b"hello").await?;
//!     drop(stream);
//!     let mut greeting = String::new();
//!     caller.read_to_string(&mut greeting).await?;
//!     std::io::Result::Ok(greeting)
//! })?;
//! assert_eq!(greeting, "hello");
//! # std::io::Result::Ok(())
//! ```
//!
//! # Which host
//!
//! A socket belongs to the host that is *current* where it is made: in a future of [`Host::block_on`] or
//! [`Host::scope`], in a task of the host, on a thread that has [entered](Host::enter) it, or anywhere after
//! [`Host::make_default`]. [`Host::connect`] and its kind name the host.
//!
//! # Names
//!
//! With the feature `names` a host has a DNS client of its own, and a name may stand wherever an address may:
//! `TcpStream::connect("example.com:80")`, [`lookup_host`](net::lookup_host). So libraries that are given a
//! [`net::TcpStream`] by a name work as they do on tokio. It asks the servers of `/etc/resolv.conf`, those that a `user`
//! link knows of, or the ones that `Builder::nameserver` gives, over the host's own links, and reads `/etc/hosts`. Without the
//! feature only addresses and `localhost` are known, and any other name is an error of the kind `Unsupported`. In a simulation
//! the hosts know each other by name without it.
//!
//! # Watching a host
//!
//! [`Builder::record`] writes the host's frames and events to a file, [`Host::recorded`] gives the latest of them, and
//! [`TcpStream::info`](net::TcpStream::info) has a connection's figures. With the feature `control` the command `inhost` looks at a
//! host of yours as at its own, and with `tracing` your log has each connection.
//!
//! # Features
//!
//! | feature | |
//! |---|---|
//! | `tun` (default) | links to the kernel by TUN and TAP devices |
//! | `user` | the link that needs no privilege: the system's own sockets carry the traffic |
//! | `serial` | serial lines with SLIP or LLP |
//! | `names` | [looking up names](#names) by DNS |
//! | `sim` | the simulator |
//! | `tokio` | a host within a tokio runtime |
//! | `control` | a control socket, by which the command `inhost` (`netstat`, `top`, `peep`) looks at a host of yours: `Builder::control` |
//! | `tracing` | each connection is a span of the crate `tracing`, target `inhost::tcp`, with its states, retransmissions and windows as events, and with bytes, age and the cause of most waiting at its end |
#![forbid(unsafe_code)]

mod current;
pub mod device;
mod host;
pub mod net;
#[cfg(feature = "sim")]
pub mod sim;

#[cfg(feature = "tokio")]
pub use host::HostTask;
pub use host::{BuildError, Builder, Entered, Host};
pub use inhost_base::{Cidr, Endpoint, HardwareAddress};
/// Link drivers.
pub use inhost_link as link;
#[cfg(feature = "sim")]
pub use inhost_macros::sim_test;
/// The control socket of [`Builder::control`]: its protocol, and its client for programs.
#[cfg(feature = "control")]
pub use inhost_runtime::control;
/// Sockets and tasks on the host's own thread, without a ring between.
pub use inhost_socket as local;
pub use inhost_stack as stack;

/// Runs a future on this thread, without a host; see [`Host::block_on`].
///
/// # Panics
/// In a task of a host: it would block all tasks of its thread, and wait for ever for the host.
pub fn block_on<F: std::future::Future>(future: F) -> F::Output {
    assert!(
        local::Host::current().is_none(),
        "block_on in a task of a host would block the host: await the future instead"
    );
    futures_lite::future::block_on(future)
}

/// The programs of the pages are tried as those of the documentation.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../README.md")]
    mod package {}
    #[doc = include_str!("../../README.md")]
    mod project {}
    #[cfg(feature = "sim")]
    #[doc = include_str!("../../docs/simulator.md")]
    mod simulator {}
}
