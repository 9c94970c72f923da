//! A packet trace for people: which frames (tcpdump's filters), what they say (decodes in words), and what the hosts did
//! meanwhile (the events that a flight recorder has put into the comments of frames).
//!
//! The crate knows no operating system: it is given frames, and gives text and values.
//!
//! ```
//! use inhost_explain::capture::Reader;
//! use inhost_peep::{Trace, View};
//! let mut file = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0];
//! file.resize(20, 0);
//! file.extend([1, 0, 0, 0]);
//! let (mut reader, mut trace) = (Reader::new(&file[..])?, Trace::new(View::default()));
//! while let Some(frame) = reader.next_frame()? {
//!     let decoded = trace.decode(&frame);
//!     println!("{}", trace.text(&frame, &decoded, None));
//! }
//! # Ok::<(), inhost_explain::CaptureError>(())
//! ```
#![forbid(unsafe_code)]

mod clocks;
pub mod decode;
mod events;
pub mod filter;
mod flows;
pub mod fuzz;
pub mod qlog;
mod recent;
mod source;
mod states;
mod stream;
mod trace;

pub use clocks::{Clocks, Skew};
pub use events::{Event, events};
pub use flows::Flows;
pub use source::{Item, Merge, Next, Source, SourceError};
pub use states::States;
pub use stream::Conversation;
pub use trace::{Hex, Time, Trace, View};

use inhost_explain::capture::{Frame, dissect};
use std::net::SocketAddr;

/// Sender and receiver of a frame's TCP segment.
pub fn ends(frame: &Frame<'_>) -> Option<[SocketAddr; 2]> {
    dissect(frame).ok().map(|(flow, _)| [flow.source, flow.destination])
}
