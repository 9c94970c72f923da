//! The Berkeley r-commands: clients of rlogin (RFC 1282), rsh and rcp, and [servers](server) of rlogin and rsh.
//!
//! The machines are pure: [`rlogin::Login`] is a session on a terminal, [`codec::ReplyReader`] reads the
//! replies of servers, [`rcp::Sink`] and [`rcp::Source`] are the two ends of rcp. The drivers beside them
//! run over any async stream. Names from a server cannot lead out of the target folder: [`rcp::Folder`].
//!
//! These protocols trust the network: they use no password and no encryption. The clients never
//! open connections and never know the time.
//!
//! ```
//! use inhost_rcommands::codec::{Reply, ReplyReader};
//! let mut replies = ReplyReader::default();
//! let mut input: &[u8] = b"\x01Permission denied.\n";
//! assert_eq!(replies.take(&mut input), Some(Reply::Warning("Permission denied.".into())));
//! ```
#![forbid(unsafe_code)]

pub mod codec;
#[doc(hidden)]
pub mod fuzz;
pub mod rcp;
pub mod rlogin;
pub mod rsh;
pub mod server;
pub mod service;
