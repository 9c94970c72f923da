//! The simulator, with the sockets of production: a program that uses [`net`], [`time`] and [`task`] runs on virtual time
//! and a real TCP, under loss, cuts and pauses, and every run repeats from its seed.
//!
//! A program chooses by one line which world it lives in:
//!
//! ```
//! # mod program {
//! #[cfg(not(test))]
//! use inhost::net;
//! #[cfg(test)]
//! use inhost::sim::net;
//! # }
//! ```
//!
//! and a test tries it under a hundred seeds:
//!
//! ```
//! use inhost::sim::{LinkConfig, Loss, Simulation, net, time};
//! use std::time::Duration;
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! // Code of your own.
//! async fn shout(mut stream: net::TcpStream) -> std::io::Result<()> {
//!     let mut word = String::new();
//!     stream.read_to_string(&mut word).await?;
//!     stream.write_all(word.to_uppercase().as_bytes()).await
//! }
//!
//! #[inhost::sim_test(seeds = 100)]
//! fn it_shouts_under_loss(simulation: &mut Simulation) {
//!     let mut link = LinkConfig::default();
//!     link.loss = Loss::per_mille(100);
//!     simulation.set_link(link);
//!     simulation.host("server", async |_| {
//!         let listener = net::TcpListener::bind("0.0.0.0:7").await?;
//!         loop {
//!             let (stream, _) = listener.accept().await?;
//!             inhost::sim::task::spawn(shout(stream));
//!         }
//!     });
//!     simulation.client("client", async |_| {
//!         let mut stream = net::TcpStream::connect("server:7").await?;
//!         stream.write_all(b"hello").await?;
//!         stream.shutdown().await?;
//!         let mut answer = String::new();
//!         time::timeout(Duration::from_secs(60), stream.read_to_string(&mut answer)).await??;
//!         assert_eq!(answer, "HELLO");
//!         Ok(())
//!     });
//! }
//! # inhost::sim::explore(0..3, |simulation| {
//! #     simulation.host("server", async |_| {
//! #         let listener = net::TcpListener::bind("0.0.0.0:7").await?;
//! #         loop { let (stream, _) = listener.accept().await?; inhost::sim::task::spawn(shout(stream)); }
//! #     });
//! #     simulation.client("client", async |_| {
//! #         let mut stream = net::TcpStream::connect("server:7").await?;
//! #         stream.write_all(b"hello").await?;
//! #         stream.shutdown().await?;
//! #         let mut answer = String::new();
//! #         time::timeout(Duration::from_secs(60), stream.read_to_string(&mut answer)).await??;
//! #         assert_eq!(answer, "HELLO");
//! #         Ok(())
//! #     });
//! # });
//! ```
//!
//! A host's names are those of the other hosts. A library that insists on `tokio::net` does not run here unless it is given
//! a stream: most take anything that reads and writes (hyper, tokio-rustls, quinn by its socket trait). docs/simulator.md
//! says what to do about the others.

pub mod task;
pub mod time;

/// The sockets of production, which find the simulated host by whose task makes them.
pub mod net {
    pub use crate::net::*;
}

pub use inhost_sim::{
    CodelConfig, DialError, Discipline, Ecn, FqCodelConfig, GilbertElliott, LinkConfig, LinkStatistics, Loss,
    Network, Node, ProgramResult, QueueConfig, QueueLimit, Report, RunError, Simulation, WhenFull, explore,
};

use inhost_socket::Host;

/// The host whose task runs.
#[track_caller]
fn host() -> Host {
    Host::current()
        .unwrap_or_else(|| panic!("no simulated host runs here: use sim::time and sim::task in its tasks"))
}
