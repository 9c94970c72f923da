//! Records of closed connections: what each was, and by which causes its time went.
//!
//! A [`Writer`] puts [`Record`]s into a folder: `history.sqlite`, and where asked `connections.jsonl` with a line each. It
//! commits twice a second, and removes what is older or more than its [`Limits`] say. [`History`] answers [`Question`]s, from
//! any process, while it is written.
//!
//! ```
//! use inhost_history::{History, Limits, Question, Writer};
//! let folder = std::env::temp_dir().join(format!("history-of-{}", std::process::id()));
//! let writer = Writer::open(&folder, Limits::default())?;
//! drop(writer);
//! assert!(History::open(&folder)?.ask(&Question::default())?.records.is_empty());
//! # std::fs::remove_dir_all(&folder).unwrap();
//! # Ok::<(), inhost_history::HistoryError>(())
//! ```
#![forbid(unsafe_code)]

mod ask;
mod draw;
mod error;
mod lines;
mod record;
mod store;
mod writer;

pub use ask::{Answer, History, Order, Question, Span, Sums};
pub use draw::{draw, span_length_ms};
pub use error::HistoryError;
pub use record::{Limit, Record};
pub use writer::{Limits, Writer};
