//! A debugger for TCP hosts: two hosts, a client and a server, stepped frame by frame and timer by timer.
//!
//! A [`Session`] takes commands as lines and gives text and values: the frame in words, what changed in each connection,
//! the timers and when they are due. Between two steps a frame may be lost, repeated, delayed, overtaken or spoilt; a step
//! may be taken back. The hosts are those of production, on the virtual clock of [`inhost_sim`]: the same lines give the
//! same text. The idea is UCLA's (TR-46 §2.7): the ACP ran under an interactive debugger, its output looped back to its
//! input.
//!
//! The crate knows no operating system, clock or thread.
//!
//! ```
//! let mut session = inhost_debug::Session::new()?;
//! let mut text = String::new();
//! let stopped = session.play::<()>("connect\nstep 3\nsend 1000\n", |line, outcome| {
//!     text += &format!("{line}\n{}", outcome.text);
//!     Ok(())
//! });
//! assert_eq!(stopped, Ok(None));
//! assert!(text.contains("client  state SYN-SENT → ESTABLISHED"), "{text}");
//! # Ok::<(), String>(())
//! ```
#![forbid(unsafe_code)]

mod application;
mod changes;
mod command;
mod report;
mod session;
mod settings;
pub mod show;
mod words;
mod world;

pub use command::{COMMANDS, Known, completions, goes_on};
pub use report::{About, Change, EndState, Event, Figures, Frame, Record, Step, Timer, Why};
pub use session::{Outcome, Session};
