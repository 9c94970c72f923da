//! Control structures of a layered protocol program, compared.
//!
//! The same layers run under four structures: the driver's pipe of frames, IP and TCP of `inhost-stack`, and an application.
//! Two hosts live in one process. [`Structure::run`] carries a [`Load`] between them, and [`measure`] repeats that until
//! the intervals say something. MIT TM-233 §4.2 compares three of the structures; the fourth is inhost's own.
//!
//! ```
//! use inhost_structures::{Load, Structure};
//! for structure in Structure::ALL {
//!     let outcome = structure.run(Load::Echo(20))?;
//!     outcome.check()?;
//!     assert_eq!(outcome.delivered, [20, 20]);
//! }
//! # Ok::<(), String>(())
//! ```
#![forbid(unsafe_code)]

mod application;
mod idle;
pub mod measure;
mod outcome;
mod procedures;
mod processes;
mod protocols;
mod round;
mod signal;
mod tasks;
mod wire;

pub use application::{Load, SEGMENT_BYTES, Span, WRITE_BYTES, cpu_ns, resident_bytes};
pub use outcome::Outcome;
pub use wire::Sent;

use inhost_base::Duration;
use inhost_runtime::Clock;

/// Longest time of a run: a run that is not over by then has failed.
const LONGEST: Duration = Duration::from_secs(40);

/// How layers are given control.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Structure {
    /// Each layer is a thread, with bounded queues between them.
    Processes,
    /// Layers call each other, and a list of procedures decides what runs next.
    Procedures,
    /// Each layer is a coroutine that signals wake, with queues between them.
    Tasks,
    /// One pass from driver to task and back, without a queue between layers.
    Round,
}

impl Structure {
    /// All of them, in the order of the table.
    pub const ALL: [Structure; 4] =
        [Structure::Processes, Structure::Procedures, Structure::Tasks, Structure::Round];

    /// Its name on the command line and in the report.
    pub fn name(self) -> &'static str {
        match self {
            Structure::Processes => "processes",
            Structure::Procedures => "procedures",
            Structure::Tasks => "tasks",
            Structure::Round => "round",
        }
    }
    /// Carries `load` between two hosts.
    ///
    /// # Errors
    /// When a byte is wrong, a layer fails, or the load is not done within 40 seconds.
    pub fn run(self, load: Load) -> Result<Outcome, String> {
        let clock = Clock::start();
        let give_up = clock.now() + LONGEST;
        match self {
            Structure::Processes => processes::run(load, clock, give_up),
            Structure::Procedures => procedures::run(load, clock, give_up),
            Structure::Tasks => tasks::run(load, clock, give_up),
            Structure::Round => round::run(load, clock, give_up),
        }
    }
    /// Makes `times` bare dispatches or one more: a wait and a post, with nothing else to do. A dispatch of the round is a
    /// whole round. Returns how many there were.
    ///
    /// # Errors
    /// When a thread ends early, or no host can be made.
    pub fn dispatch(self, times: u64) -> Result<u64, String> {
        match self {
            Structure::Processes => {
                let clock = Clock::start();
                processes::dispatch(times, processes::Waiting { clock, give_up: clock.now() + LONGEST })
            }
            Structure::Procedures => Ok(procedures::dispatch(times)),
            Structure::Tasks => Ok(tasks::dispatch(times)),
            Structure::Round => round::dispatch(times),
        }
    }
}
