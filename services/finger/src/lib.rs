//! Finger, server and client: who is logged in, and information about a user (RFC 1288).
//!
//! - [`codec`]: the query line;
//! - [`server`]: the answer to a query, pure;
//! - [`client`]: the host to ask, and the query to send;
//! - [`driver`]: a session of the server over any stream; the client's exchange is [`inhost_common::ask`];
//! - [`service`]: the server as a service of a host; `notes`: the files that it shows.
//!
//! ```
//! use inhost_finger::{client::Query, codec::Request};
//! let query = Query::parse("ada@mit-ai@sri-nic.arpa", true)?;
//! assert_eq!((query.host(), query.line()), ("sri-nic.arpa", "/W ada@mit-ai\r\n"));
//! let request = Request::parse(query.line().as_bytes());
//! assert_eq!((request.user.as_str(), request.hosts.as_slice()), ("ada", &["mit-ai".to_owned()][..]));
//! # Ok::<(), inhost_finger::client::QueryError>(())
//! ```
#![forbid(unsafe_code)]

pub mod client;
pub mod codec;
pub mod driver;
#[doc(hidden)]
pub mod fuzz;
mod notes;
pub mod server;
pub mod service;

pub use notes::NotesFolder;
