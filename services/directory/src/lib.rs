//! Who is who: clients of finger (RFC 1288) and whois (RFC 3912).
//!
//! Both send a line and read text until the server closes. [`finger::Query`] and [`whois::Search`] are the machines:
//! whom to ask, what to send, and, of whois, where an answer refers to. [`inhost_common::Cleaner`] makes what a stranger sends
//! fit to be shown on a terminal. [`ask`] does one exchange over any async stream. Nothing here looks names up, opens
//! connections or knows the time.
//!
//! ```
//! use inhost_directory::finger::Query;
//! let query = Query::parse("ada@mit-ai@sri-nic.arpa", true).unwrap();
//! assert_eq!((query.host(), query.line()), ("sri-nic.arpa", "/W ada@mit-ai\r\n"));
//! ```
#![forbid(unsafe_code)]

mod driver;
pub mod finger;
pub mod fuzz;
pub mod whois;

pub use driver::{AskError, ask};
