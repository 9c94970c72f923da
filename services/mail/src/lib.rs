//! Mail: an SMTP server and client, a durable queue, Maildir and LMTP.
//!
//! - [`codec`]: mailboxes, commands, replies, and the text of messages as it is carried;
//! - [`server`], [`client`]: a session of each side, pure;
//! - [`driver`]: both over any stream, with TLS;
//! - [`queue`]: messages that wait, on disk;
//! - [`Body`]: a message on its way; [`Trace`]: the last lines of a dialogue.
//!
//! ```
//! use inhost_mail::codec::{Command, Reply};
//! assert!(matches!(Command::parse("RCPT TO:<ada@example.net>"), Ok(Command::Recipient(_))));
//! let mut octets = Vec::new();
//! Reply::new(250, "2.1.5", "Ok").encode(&mut octets);
//! assert_eq!(octets, b"250 2.1.5 Ok\r\n");
//! ```
#![forbid(unsafe_code)]

mod body;
pub mod client;
pub mod codec;
pub mod compose;
mod date;
pub mod driver;
#[doc(hidden)]
pub mod fuzz;
mod maildir;
pub mod queue;
pub mod sender;
pub mod server;
pub mod service;
mod trace;

pub use body::{Body, MEMORY_BYTES, Pieces, Spool, SpoolFile, SpoolFolder};
pub use compose::with_crlf;
pub use maildir::Maildir;
pub use trace::{Speaker, TRACE_LINE_BYTES, TRACE_LINES, Trace, TraceLine};
