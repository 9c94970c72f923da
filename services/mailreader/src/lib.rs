//! Mail as a person reads and writes it: a Maildir is read, messages become text and threads, answers are drafted.
//!
//! - [`Mailbox`]: a Maildir on the disk, with the [`Flags`] of its messages;
//! - [`Summary`], [`thread`], [`Document`]: a message as a line of a list, in its thread, and as a page;
//! - [`Composition`]: a message that is written;
//!
//! ```
//! use inhost_mailreader::{Composition, Document};
//! let question = Document::parse(b"From: ada@example.net\nSubject: Lunch?\n\nAt one?\n", "");
//! let answer = Composition::reply(&question, "bob@example.org", false);
//! assert_eq!((answer.to.as_str(), answer.subject.as_str()), ("ada@example.net", "Re: Lunch?"));
//! assert_eq!(answer.text, "ada@example.net wrote:\n> At one?\n\n");
//! ```
#![forbid(unsafe_code)]

mod compose;
mod document;
#[doc(hidden)]
pub mod fuzz;
mod mailbox;
mod name;
mod summary;
pub mod text;
pub mod thread;

pub use compose::{ATTACHMENT_BYTES, About, Composition, Finished, split};
pub use document::{Attachment, Checks, Document};
pub use mailbox::{MESSAGE_BYTES, MESSAGES, Mailbox, Stamp};
pub use name::{FileName, Flags};
pub use summary::Summary;
