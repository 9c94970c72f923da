//! One TCP connection: its state, both directions of its stream, its timers, loss recovery, congestion control,
//! and the two ledgers of its time.
//!
//! A [`Connection`] knows no address and no port, reads no clock and calls nobody: headers and payloads come in by
//! [`Connection::receive`], time by [`Connection::timeout`], the application's wishes by [`Connection::send`],
//! [`Connection::read`] and [`Connection::close`]; segments go out by [`Connection::transmit`] alone. The contract
//! is on [`Connection`] itself. Ports in the headers it makes are 0, for the stack to fill in.
//!
//! ```
//! use inhost_base::{Instant, Key, Sequence};
//! use inhost_buf::{Full, Pool, Slices};
//! use inhost_event::Ignore;
//! use inhost_tcp::{Config, Connection, Ecn, Environment, Header, Open, SegmentOutput};
//! use std::sync::Arc;
//!
//! struct Count(usize);
//! impl SegmentOutput for Count {
//!     fn segment(&mut self, header: &Header, _payload: Slices<'_>, _ecn: Ecn) -> Result<(), Full> {
//!         assert!(header.flags.syn());
//!         self.0 += 1;
//!         Ok(())
//!     }
//! }
//! let (mut pool, mut sink) = (Pool::new(1 << 20), Ignore);
//! let mut env = Environment::new(Instant::ZERO, Key::from_bits(0), &mut pool, &mut sink, false);
//! let open = Open { initial_sequence: Sequence(7), path_mtu_mss: 1460, default_mss: 536, ..Open::default() };
//! let mut connection = Connection::connect(&Arc::new(Config::default()), open, &mut env);
//! let mut sent = Count(0);
//! connection.transmit(&mut env, 10, &mut sent);
//! assert_eq!(sent.0, 1);
//! assert!(!connection.wants_transmit(env.now()) && connection.deadline() > env.now());
//! ```
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod arrival;
mod common;
mod config;
mod connection;
#[cfg(feature = "detail")]
mod detail;
mod environment;
mod error;
mod fast_open;
mod flags;
mod info;
mod ledger;
mod outcome;
mod policy;
mod receiver;
mod round_trip;
mod sender;

pub use config::{Config, EcnMode, KeepAlive, PathMtuProbing};
pub use connection::{Connection, ConnectionOption};
#[cfg(feature = "detail")]
pub use detail::LISTED;
pub use environment::{Environment, Open};
pub use error::{ConnectionError, NetworkError, SoftError, StreamError};
pub use fast_open::{FastOpenAnswer, FastOpenState};
pub use info::{Info, RecoveryState};
pub use inhost_congestion::{
    Acknowledged, CongestionAlgorithm, CongestionChoice, CongestionController, CongestionWindow, RateSample,
};
pub use inhost_event::{Ledgers, ReceiveLedger, SendLedger};
pub use inhost_wire::Ecn;
pub use inhost_wire::tcp::{PlainHeader, TcpHeader as Header};
pub use outcome::{Changes, Outcome, ResetReply, SegmentOutput, SendHow};
pub use policy::Policy;
pub use receiver::ReceiveView;
pub use sender::{SendQueue, SendView};

#[cfg(test)]
mod tests;
