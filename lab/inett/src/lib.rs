//! Measures a network or a stack, from both ends: how much goes through, how long transactions take, and who was the limit.
//!
//! - [`plan`]: what is to be measured; [`distribution`]: sizes and think times; [`sweep`]: a grid of plans;
//! - [`statistics`]: means, Student's confidence interval, percentiles, when to stop repeating;
//! - [`iperf3`]: the control protocol, pure, both ends; it speaks with `iperf3 -s` and `iperf3 -c`;
//! - [`face`]: the interfaces over which is measured: the system's sockets, or those that a host of inhost has;
//! - [`driver`]: client and server over any face;
//! - `here`: both ends in one process, so that faces stand beside each other (feature `control`);
//! - [`result`]: what was found, as text, JSON or CSV.
//!
//! Transactions need our own server at the other end; an iperf3 server has only streams, and the error says so. The tool is
//! DEC's inett (1993), VPI's pair of programs and UCLA's traffic generator (1985) of today.
//!
//! ```
//! use inhost_base::{Endpoint, Instant, Ipv4Addr};
//! use inhost_inett::driver::{ServeOptions, Stop, run, serve};
//! use inhost_inett::{face::LocalFace, plan::Plan};
//! use inhost_socket::Host;
//! use inhost_stack::{Stack, StackConfig};
//!
//! let host = Host::new(Stack::new(StackConfig::default(), [7; 32], Instant::ZERO), Instant::ZERO);
//! let (face, at) = (LocalFace::new(host.clone()), Endpoint::new(Ipv4Addr::LOCALHOST, 5201));
//! let (_stopper, stop) = Stop::new();
//! let (server, stopped) = (face.clone(), stop.clone());
//! host.spawn(async move {
//!     serve(&server, at, &ServeOptions::default(), &stopped, &mut |_| {}).await.unwrap();
//! }).detach();
//! let plan: Plan = toml::from_str("kind = 'screen'\ncount = 20")?;
//! let outcome = host.run_alone(async {
//!     inhost_socket::yield_now().await; // The server listens.
//!     run(&face, at, &plan, &stop, &mut |_| {}).await
//! }).unwrap()?;
//! assert_eq!(outcome.repetitions[0].transactions.unwrap().count, 20);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub mod distribution;
pub mod driver;
pub mod face;
#[doc(hidden)]
pub mod fuzz;
#[cfg(feature = "control")]
pub mod here;
pub mod iperf3;
pub mod plan;
pub mod result;
pub mod statistics;
pub mod sweep;
