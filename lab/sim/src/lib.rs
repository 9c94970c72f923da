//! Networks of hosts on virtual time, for programs that are to be tried on a real TCP, and the checks that hold on them.
//!
//! The front door is [`Simulation`]: named hosts on a switch, each with a program of yours that reads and writes
//! streams by tokio's traits. Everything follows from one seed; [`explore`] tries many, and a failure says how to see
//! it again, with a capture. Where turmoil and madsim simulate sockets, here frames are lost, and the TCP that repeats
//! them is the one of production. `docs/simulator.md` begins with an example.
//!
//! Below it a [`Network`] has hosts, each a whole [`inhost_socket::Host`] with its tasks, switches, and links that take
//! time, queue, drop, mark, lose, repeat, reorder and spoil frames as a seed says ([`LinkConfig`]); links are cut and
//! healed, hosts pause, clocks go wrong and memory gets short in mid-run. Its rounds are those of the real clock's
//! runtime; only time is made up, so a day passes in seconds and every run repeats to the bit.
//!
//! Time can be modelled, too: a host's work takes as long as its [`Processor`] says, for machines of any age; and hosts share
//! a [`SharedMedium`]: an [`Ethernet`] with collisions, a [`TokenRing`], [`Fddi`], serial lines with LLP or SLIP, [`Imps`].
//! Their frames stay those of the stack.
//!
//! On top of that: [`Checker`], on in every run, which judges both ends of each connection from frames alone; [`Talk`],
//! two ends that know every byte that the other will say; [`Scenario`], a run drawn from a seed; [`soak`], which runs and
//! checks one; and [`hostile`], which throws rubbish and forgeries at a host in the middle of transfers. The command
//! `inhost-sim` runs many.
//!
//! This crate reads no clock, and knows no real link. When a run has failed, and only then, it asks git for the commit.
//!
//! ```
//! use inhost_base::{Duration, Endpoint, Instant};
//! use inhost_sim::{LinkConfig, Loss, Network, Ran, address, interface};
//! use inhost_stack::{ListenOptions, StackConfig};
//! use std::{cell::Cell, rc::Rc};
//!
//! let mut network = Network::new(Instant::ZERO, 100_000);
//! let (a, b) = (network.add_host(StackConfig::default(), 1), network.add_host(StackConfig::default(), 2));
//! let bad = LinkConfig { loss: Loss::per_mille(100), ..LinkConfig::default() };
//! network.join([(a, interface(a, false, 1500)), (b, interface(b, false, 1500))], bad, 3).unwrap();
//!
//! let listener = network.host(b).listen(Endpoint::new(address(b, false), 7), ListenOptions::default()).unwrap();
//! network.host(b).spawn(async move {
//!     let stream = listener.accept().await.unwrap();
//!     stream.send(b"hello", Default::default()).await.unwrap();
//! }).detach();
//! let (host, heard) = (network.host(a).clone(), Rc::new(Cell::new(0)));
//! let hears = heard.clone();
//! network.host(a).spawn(async move {
//!     let stream = host.connect(Endpoint::new(address(b, false), 7)).await.unwrap();
//!     hears.set(stream.receive(&mut [0; 9]).await.unwrap());
//! }).detach();
//! assert_eq!(network.run(Duration::from_secs(60), |_| heard.get() == 5), Ran::Done);
//! ```
#![forbid(unsafe_code)]

mod agenda;
mod buffers;
pub mod bulk;
mod capture;
mod check;
mod clock;
mod digest;
mod ecn;
#[cfg(feature = "freeze")]
mod freeze;
mod gather;
pub mod hostile;
mod jump;
mod link;
mod loss;
mod media;
mod network;
pub mod processor;
pub mod provenance;
mod queue;
mod scenario;
mod segment;
pub mod setup;
mod simulation;
pub mod soak;
mod stream;
mod switch;
mod watchdog;

pub use capture::Capture;
pub use check::Checker;
pub use clock::Clock;
pub use digest::{Digest, Takes};
pub use ecn::Ecn;
#[cfg(feature = "freeze")]
pub use freeze::Freezer;
pub use inhost_base::{Duration, Instant};
pub use jump::JumpPlan;
pub use link::{LinkConfig, LinkStatistics, LossCause};
pub use loss::{GilbertElliott, Loss};
pub use media::{
    Concentrator, ConcentratorConfig, Ethernet, Fddi, FullDuplexFddi, Happened, Imps, LlpLine, SharedMedium,
    SlipLine, TokenRing,
};
pub use network::{Flying, Network, Ran, Seen, Tamper, TaskFailure, TaskFault, Watcher};
pub use processor::{
    Charges, CoarseClock, FrameWork, INTERRUPTS, LINE_WAIT, Processor, Spent, Step, Used, Work, Yield,
};
pub use queue::{CodelConfig, Discipline, FqCodelConfig, QueueConfig, QueueLimit, WhenFull};
pub use scenario::{
    ConnectionPlan, Event, HostPlan, Offloads, Orphan, Scenario, Shape, What, address, interface,
};
pub use segment::{SeenSegment, describe};
pub use simulation::{DialError, Node, ProgramResult, Report, RunError, Simulation, explore};
pub use stream::{Fault, Talk, byte_at};
