//! Side under test: our stack in virtual time, or a kernel in real time.

use crate::language::{Failure, SocketCall};
use inhost_base::{Duration, Instant};

/// The port that listeners listen on.
pub const SERVER_PORT: u16 = 8000;
/// The host's datagram socket has this port where nothing is said.
pub const DATAGRAM_PORT: u16 = 9000;
/// Peer number `n` speaks from this port plus `n`.
pub const PEER_PORTS: u16 = 40_000;

/// A host under test and the wire to it.
pub trait Side {
    /// Time since the script began.
    fn now(&self) -> Instant;
    /// Tolerated lateness.
    fn slack(&self, due_in: Duration) -> Duration;
    /// Puts an IP packet on the wire to the host.
    fn inject(&mut self, packet: &[u8]) -> Result<(), String>;
    /// The host's next packet, and when it came. Waits for it until `until`; then the time is `until` or a little
    /// later.
    fn next_packet(&mut self, until: Instant) -> Result<Option<(Instant, Vec<u8>)>, String>;
    /// Does what an application does. `data` is what a write, or a connect with data, sends.
    fn call(&mut self, call: &SocketCall, data: &[u8]) -> Result<Came, String>;
    /// A figure of the information structure; `None` where this side has none of the name.
    fn figure(&mut self, on: &str, field: &str) -> Result<Option<Figure>, String>;
    /// Whether a socket is ready in the way named.
    fn is_ready(&mut self, on: &str, field: &str) -> Result<Option<bool>, String>;
}

/// Result of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Came {
    /// It worked.
    Done,
    /// So many bytes were taken.
    Taken(usize),
    /// These bytes were read.
    Read(Vec<u8>),
    /// A datagram was taken.
    Received {
        /// As much of it as there was room for.
        bytes: Vec<u8>,
        /// How many bytes it has.
        whole: usize,
        /// The port of the peer that sent it.
        from: u16,
    },
    /// It failed.
    Failed(Failure),
}

/// A figure: a number (times in nanoseconds), or a word.
#[derive(Clone, Debug, PartialEq)]
pub enum Figure {
    /// A count, a number of bytes, or a time in nanoseconds.
    Number(f64),
    /// A name.
    Word(String),
}

impl From<Duration> for Figure {
    fn from(time: Duration) -> Self {
        Figure::Number(time.as_nanos() as f64)
    }
}
impl From<bool> for Figure {
    fn from(yes: bool) -> Self {
        Figure::Word(if yes { "yes" } else { "no" }.to_owned())
    }
}
