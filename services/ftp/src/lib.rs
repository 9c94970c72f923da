//! FTP, both ways: RFC 959 with its block, compressed and record modes, RFC 1123, 2228, 2389, 2428, 3659 and 4217.
//!
//! Every part that decides is a pure machine: octets and time in, octets and actions out.
//!
//! - [`codec`]: lines, commands, replies, addresses and facts, for either end;
//! - [`codec::data`]: representation, structure and mode of data;
//! - [`server`]: a control connection as the server has it;
//! - [`client`]: the same as the client has it.
//!
//! Files are reached by [`inhost_common::storage`]: a small trait, and a folder behind it that no path leads out of. [`driver`]
//! carries octets between all these and the world, on the host's own sockets or any other stream with tokio's traits,
//! in clear text or in TLS.
//!
//! This crate reads no clock and lets no path of a peer reach the system but below a handle of `cap-std`. What may
//! wait for a disk is done on the threads of the crate `blocking`.
//!
//! A text with records, in block mode, there and back:
//!
//! ```
//! use inhost_ftp::codec::data::{Decoded, Decoder, Encoder};
//! use inhost_ftp::codec::{Mode, Parameters, Representation, Structure};
//!
//! let parameters = Parameters {
//!     representation: Representation::parse("E").unwrap(),
//!     structure: Structure::Record,
//!     mode: Mode::Block,
//! };
//! let (mut wire, mut file) = (Vec::new(), Vec::new());
//! let mut encoder = Encoder::new(parameters, 0);
//! encoder.encode(b"one\ntwo\n", &mut wire);
//! encoder.finish(&mut wire);
//! assert_eq!(wire[..6], [128, 0, 3, 0x96, 0x95, 0x85]);
//! let decoded = Decoder::new(parameters).decode(&mut &wire[..], &mut file);
//! assert_eq!((decoded, &file[..]), (Ok(Decoded::End), &b"one\ntwo\n"[..]));
//! ```
#![forbid(unsafe_code)]

pub mod client;
pub mod codec;
pub mod driver;
#[doc(hidden)]
pub mod fuzz;
pub mod server;
pub mod service;
