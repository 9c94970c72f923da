//! TFTP, both ways: RFC 1350 with the options of RFC 2347, 2348, 2349 and 7440, and what RFC 1123 §4.2 asks.
//!
//! [`Transfer`] is one transfer as either end has it, a pure machine: datagrams and time in, datagrams and a deadline
//! out. [`RequestHandler`] decides which requests a server meets. [`driver`] carries datagrams and files between these and the
//! world: over the host's own sockets, or any other datagrams.
//!
//! A duplicate of an acknowledgment never has a block sent again in lock-step, so that the Sorcerer's Apprentice has
//! nothing to sweep; with a window it does so once at most. Files are those below one folder, by the handle that FTP
//! serves from; one that comes gets its name when it is whole.
//!
//! This crate reads no clock, and lets no name of a peer reach the system but below that handle.
//!
//! Two ends of which each gets what the other sends:
//!
//! ```
//! use inhost_base::{Endpoint, Instant};
//! use inhost_tftp::{Limits, Mode, Options, Packet, Request, Settings, Transfer};
//!
//! let (here, there) = (Endpoint::new([10, 9, 0, 1], 2000), Endpoint::new([10, 9, 0, 2], 69));
//! let mut options = Options::default();
//! options.block_size = Some(1024);
//! let request = Request { is_write: false, name: "boot.img".into(), mode: Mode::Octet, options };
//! let mut client = Transfer::ask(request, there, Settings::default(), Instant::ZERO);
//!
//! let mut wire = Vec::new();
//! assert_eq!(client.transmit(&mut wire, Instant::ZERO), Some(there));
//! let Ok(Packet::Request(asked)) = Packet::parse(&wire) else { panic!() };
//! let mut limits = Limits::default();
//! (limits.block_size, limits.window) = (512, 1);
//! let mut server = Transfer::answer(asked, here, Some(7), &limits, Settings::default(), Instant::ZERO);
//! for _ in 0..4 {
//!     while server.transmit(&mut wire, Instant::ZERO).is_some() {
//!         client.datagram(there, &wire, Instant::ZERO);
//!     }
//!     if server.wants() > 0 {
//!         server.supply(b"octets.");
//!         server.supply(b"");
//!     }
//!     while client.transmit(&mut wire, Instant::ZERO).is_some() {
//!         server.datagram(here, &wire, Instant::ZERO);
//!     }
//! }
//! assert_eq!(client.agreed().block_size, Some(512));
//! assert_eq!((client.is_whole(), client.file().unwrap().as_slice()), (true, b"octets.".as_slice()));
//! client.stored(Instant::ZERO);
//! client.transmit(&mut wire, Instant::ZERO);
//! server.datagram(here, &wire, Instant::ZERO);
//! assert!(server.outcome().unwrap().is_ok() && client.outcome().unwrap().is_ok());
//! ```
#![forbid(unsafe_code)]

mod codec;
pub mod driver;
#[doc(hidden)]
pub mod fuzz;
mod machine;
mod server;
pub mod service;

pub use codec::numbering::Rollover;
pub use codec::options::{
    BLOCK_BYTES, BLOCK_BYTES_LIMITS, Limits, Options, Terms, WINDOW_BYTES_LIMIT, WINDOW_LIMIT,
};
pub use codec::{ErrorCode, HEADER_BYTES, Malformed, Mode, Packet, REQUEST_BYTES, Request};
pub use machine::timer::{FIRST_TIMEOUT, LEAST_TIMEOUT, LONGEST_TIMEOUT};
pub use machine::{Settings, Summary, Transfer, TransferError};
pub use server::{RequestHandler, Rights, TransferLimits, Verdict, error_code};
