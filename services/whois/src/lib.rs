//! Whois client: the registration of a domain name, an address or an AS number (RFC 3912).
//!
//! A client sends a line and reads text until the server closes; [`inhost_common::ask`] is that exchange. [`Search`] is
//! the machine: which server to ask, what to send, and the referral in an answer. [`inhost_common::Cleaner`] removes
//! terminal control sequences from answers. This crate does no name look-ups, opens no connections and has no clock.
//!
//! ```
//! use inhost_whois::{PORT, ROOT, Search, Server};
//! let root = Server { host: ROOT.to_owned(), port: PORT };
//! let mut search = Search::new("example.com", root, true)?;
//! assert_eq!(search.question().unwrap().1, "example.com\r\n");
//! search.answered("refer: whois.example");
//! assert_eq!(search.question().unwrap().0.host, "whois.example");
//! # Ok::<(), inhost_whois::QueryError>(())
//! ```
#![forbid(unsafe_code)]

#[doc(hidden)]
pub mod fuzz;
mod machine;

pub use machine::{PORT, QueryError, ROOT, SERVERS_LIMIT, Search, Server};
