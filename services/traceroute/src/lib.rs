//! The way to a host, router by router: which answer, how fast, and how large a packet may be up to there.
//!
//! [`Trace`] is the machine. It says which probes to send, takes their answers and the time, and reports hop after hop.
//! It knows no clock and no socket. [`run`] drives it over a host's probe sockets
//! ([`inhost_socket::Host::probe`]): UDP datagrams, ICMP echo requests or TCP calls, over IPv4 and IPv6.
//!
//! The crate never looks names up and never prints.
//!
//! ```
//! use inhost_base::{Duration, Instant, IpAddr};
//! use inhost_stack::{ErrorKind, ProbeAnswer, ProbeNews};
//! use inhost_traceroute::{Config, Event, Trace};
//!
//! let to: IpAddr = "192.0.2.7".parse().unwrap();
//! let mut config = Config::default();
//! (config.probes_per_hop, config.last_hop) = (1, 1);
//! let mut trace = Trace::new(config, to);
//! let probe = trace.poll_probe(Instant::ZERO).unwrap();
//! assert_eq!((probe.to, probe.hop_limit), (to, 1));
//! let from = "10.9.0.1".parse().unwrap();
//! let news = ProbeNews::Error { kind: ErrorKind::TimeExceeded, mtu_bytes: None };
//! let later = Instant::ZERO + Duration::from_millis(3);
//! trace.answer(&ProbeAnswer { number: probe.number, to, from, news }, later);
//! let Some(Event::Hop(hop)) = trace.poll_event() else { panic!() };
//! assert_eq!(hop.replies[0].unwrap().round_trip, Duration::from_millis(3));
//! ```
#![forbid(unsafe_code)]

mod driver;
pub mod fuzz;
mod machine;
mod measure;
mod report;
#[cfg(test)]
mod tests;

pub use driver::{TraceError, run};
pub use machine::{Config, LARGEST_PARALLEL, LARGEST_PROBES_PER_HOP, Trace};
pub use report::{Event, Hop, Mtu, Reply, TraceOutcome};
