//! Flight recorder: the heads of a host's latest frames and its latest events, in bounded memory.
//!
//! A [`Recorder`] sees each frame that comes in ([`Recorder::received`]) or is taken by a device ([`Recorder::device`]),
//! and is the host's event [`Sink`](inhost_event::Sink). It keeps no state of connections, so an idle connection costs nothing. What it holds
//! is written as pcapng ([`Recorder::write`]), all of it or that of one connection; events become comments of the frame
//! that follows them. A [`Trap`] says when: UCLA's trace traps (TR-46 §2.7).
//!
//! With the feature `tracing` each connection is a span of `tracing` too, target `inhost::tcp`, and its events are events within;
//! dropped packets and neighbours have the target `inhost::ip`.
//!
//! A comment has a line for each event: `@TIME HOST LOCAL REMOTE WORDS`, the time in nanoseconds since 1970.
//!
//! ```
//! use inhost_base::{Instant, LinkId};
//! use inhost_buf::{Batch, Pool};
//! use inhost_record::{Config, Recorder, Selection, Writer};
//!
//! let recorder = Recorder::new(Config::default());
//! recorder.add_link(LinkId(1), "memory", false);
//! let (mut pool, mut batch) = (Pool::new(1 << 20), Batch::new());
//! let mut packet = pool.take(20).unwrap();
//! packet.append(&[0x45; 20]);
//! batch.push(packet).unwrap();
//! recorder.received(LinkId(1), &batch, Instant::ZERO);
//!
//! let mut writer = Writer::new(Vec::new())?;
//! let written = recorder.write(&mut writer, &mut 0, &Selection::default(), &|_| None)?;
//! assert_eq!(written.frames, 1);
//! # Ok::<(), std::io::Error>(())
//! ```
#![forbid(unsafe_code)]

mod ends;
mod frames;
mod notes;
mod recorder;
#[cfg(feature = "tracing")]
mod spans;
mod trap;
mod write;

pub use ends::Selection;
pub use recorder::{Config, Notice, Offence, Recorded, Recorder, Seen, Sprung};
pub use trap::{Condition, Trap, TrapError};
pub use write::{Writer, Written};
