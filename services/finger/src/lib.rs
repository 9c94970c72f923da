//! finger: who is logged in, or who somebody is (RFC 1288).
//!
//! A client sends a line and reads text until the server closes; [`inhost_common::ask`] is that exchange.
//! [`client::Query`] says whom to ask, and what to send.
//!
//! ```
//! use inhost_finger::client::Query;
//! let query = Query::parse("ada@mit-ai@sri-nic.arpa", true)?;
//! assert_eq!((query.host(), query.line()), ("sri-nic.arpa", "/W ada@mit-ai\r\n"));
//! # Ok::<(), inhost_finger::client::QueryError>(())
//! ```
#![forbid(unsafe_code)]

pub mod client;
#[doc(hidden)]
pub mod fuzz;
