//! whois: to whom a name or a number belongs (RFC 3912).
//!
//! A client sends a line and reads text until the server closes; [`inhost_common::ask`] is that exchange. [`Search`] is
//! the machine: whom to ask, what to send, and where an answer refers to. [`inhost_common::Cleaner`] makes what a stranger
//! sends fit to be shown on a terminal. Nothing here looks names up, opens connections or knows the time.
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
