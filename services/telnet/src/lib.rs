//! Telnet, both ways: a server whose users get a shell in a pty, and a client for a terminal.
//!
//! Every part that decides is a pure machine: octets and time in, octets and actions out.
//!
//! - [`codec`]: the octets of RFC 854, options and subnegotiations;
//! - [`machine`]: a connection and its options, for either end;
//! - [`server`]: what a visitor meets, before and after logging in;
//! - [`client`]: keys, command level, sessions and screen;
//! - [`translation`]: text of an application with a charset of its own;
//! - [`line`](mod@line): a line being typed, which both use.
//!
//! [`driver`] carries octets between these and the world. It is given its streams, its time and its terminal
//! through traits, and runs on any executor, that of a simulation included. A shell runs in a [`pty`], which waits by
//! the reactor of the host's thread; the client's [`terminal`] has threads of its own.
//!
//! This crate never opens a connection, never reads a clock, and lets nothing of a peer's environment reach
//! a shell but TERM and LANG, validated.
//!
//! A server and a client that come to terms:
//!
//! ```
//! use inhost_telnet::codec::{Side, TelnetOption};
//! use inhost_telnet::machine::{Config, Telnet};
//! let (mut server, mut client) = (Telnet::new(Config::server()), Telnet::new(Config::client("vt100")));
//! server.start();
//! for _ in 0..4 {
//!     for turn in 0..2 {
//!         let (from, to) = if turn == 0 { (&mut server, &mut client) } else { (&mut client, &mut server) };
//!         let octets = from.pending().0.to_vec();
//!         from.sent(octets.len());
//!         let mut input = &octets[..];
//!         while to.receive(&mut input).is_some() {}
//!     }
//! }
//! assert!(client.is_active(Side::Remote, TelnetOption::Echo));
//! assert!(server.is_active(Side::Remote, TelnetOption::WindowSize));
//! ```
#![forbid(unsafe_code)]

pub mod client;
pub mod codec;
pub mod driver;
#[doc(hidden)]
pub mod fuzz;
pub mod line;
pub mod machine;
pub mod pty;
mod pump;
pub mod server;
pub mod service;
pub mod terminal;
pub mod translation;
