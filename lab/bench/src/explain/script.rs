//! What programs do, as values, and what they note of it. Each stack has an interpreter of its own.

use inhost_base::{Duration, Instant};
use std::sync::{Arc, Mutex, PoisonError};

/// One action of a program.
#[derive(Clone, Debug)]
pub enum Step {
    /// Does nothing for a time.
    Wait(Duration),
    /// Writes bytes in calls of at most `piece` bytes that begin at intervals; without an interval one after the other.
    Write {
        /// In all.
        bytes: usize,
        /// Of one call.
        piece: usize,
        /// From the beginning of one call to that of the next.
        every: Duration,
    },
    /// Reads so many bytes.
    Read(usize),
    /// Reads to the end of the stream.
    ReadToEnd,
    /// Reads to the end of the stream, at most `piece` bytes at an interval.
    ReadSlowly {
        /// Of one call.
        piece: usize,
        /// Between two calls.
        every: Duration,
    },
    /// Ends the stream in this direction.
    Shutdown,
    /// Resets the connection.
    Reset,
    /// The host vanishes without a word: nothing that it sends leaves any more, and nothing reaches it.
    Vanish,
    /// Repeats steps.
    Repeat(usize, Vec<Step>),
}

/// Writes in large calls.
pub const PIECE_BYTES: usize = 64 << 10;

/// Writes so many bytes as fast as the connection takes them.
pub fn write(bytes: usize) -> Step {
    Step::Write { bytes, piece: PIECE_BYTES, every: Duration::ZERO }
}

/// How a host and its socket are set. The defaults are those of a current system, with buffers that do not limit.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The largest receive window, fixed from the beginning; none for one that grows as far as is useful.
    pub receive_window_bytes: Option<u32>,
    /// The send buffer, fixed; none for one that grows.
    pub send_buffer_bytes: Option<usize>,
    /// Offers window scaling.
    pub window_scaling: bool,
    /// Offers selective acknowledgments.
    pub sack: bool,
    /// Offers timestamps.
    pub timestamps: bool,
    /// Nagle's algorithm.
    pub nagle: bool,
    /// Congestion control: `cubic` or `reno`.
    pub congestion: &'static str,
    /// The most that is sent in a second, in bytes.
    pub pacing_bytes_per_second: Option<u64>,
    /// Returns to the initial window after idle time.
    pub restart_after_idle: bool,
    /// The largest segment that is announced.
    pub mss_bytes: Option<u16>,
    /// Connections that may wait to be accepted. The client then opens as many before the one under test.
    pub backlog: Option<usize>,
    /// How many that are, which depends on the server's stack: the runs set it.
    pub fillers: usize,
    /// How long the client waits before it connects, and the server before it accepts for the first time.
    pub wait_first: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            receive_window_bytes: None,
            send_buffer_bytes: None,
            window_scaling: true,
            sack: true,
            timestamps: true,
            nagle: true,
            congestion: "cubic",
            pacing_bytes_per_second: None,
            restart_after_idle: true,
            mss_bytes: None,
            backlog: None,
            fillers: 0,
            wait_first: Duration::ZERO,
        }
    }
}

/// What a program noted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Note {
    /// It called the peer, or began to listen.
    Began,
    /// The connection is open and in its hands.
    Open,
    /// It has so many bytes to write, and calls.
    Wants(u64),
    /// The call took so many.
    Wrote(u64),
    /// It calls to read.
    Reads,
    /// The call gave so many; 0 at the end of the stream.
    Read(u64),
    /// It has ended the stream.
    Shut,
    /// It reset the connection.
    Reset,
    /// Its host vanished.
    Vanished,
    /// The connection ended with an error.
    Failed,
    /// It has come to the end of its script.
    Done,
}

/// The notes of one program, by time.
#[derive(Clone, Default, Debug)]
pub struct Notes(Arc<Mutex<Vec<(Instant, Note)>>>);

impl Notes {
    /// Adds a note.
    pub fn add(&self, at: Instant, note: Note) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((at, note));
    }
    /// All so far.
    pub fn all(&self) -> Vec<(Instant, Note)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
