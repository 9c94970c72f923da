//! The drivers: client and server over any face. Async and thin; what may be said when is [`crate::iperf3`]'s business.

mod client;
mod control;
mod counters;
mod datagrams;
mod door;
mod load;
mod report;
mod running;
mod server;
mod stream;
mod sweeping;
mod transactions;
mod watch;

use std::convert::Infallible;
use std::io;

use inhost_base::Duration;

use crate::face::Face;
use crate::iperf3::ProtocolError;
use crate::plan::PlanError;

pub use client::{Progress, run, run_once};
pub use server::{ServeOptions, Served, serve};
pub use sweeping::{SweepRunError, Swept, run_sweep};

/// Within which a control message is sent, answered, or a stream is opened.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(20);
/// Within which an accepted connection says what it is.
pub const HELLO_WITHIN: Duration = Duration::from_secs(5);
/// Without a byte for so long, a test is given up.
pub const SILENT_MAX: Duration = Duration::from_secs(120);
/// What a server adds to the duration that the client named.
pub const GRACE: Duration = Duration::from_secs(40);

/// The user's word to stop, for others to wait for. Clones are the same.
#[derive(Clone, Debug)]
pub struct Stop(async_channel::Receiver<Infallible>);

/// Says [`Stop`]; dropping it says it, too.
#[derive(Clone, Debug)]
pub struct Stopper(async_channel::Sender<Infallible>);

impl Stop {
    /// A word that was not said, and who may say it.
    pub fn new() -> (Stopper, Stop) {
        let (to, from) = async_channel::bounded(1);
        (Stopper(to), Stop(from))
    }
    /// Ready once it was said.
    pub async fn stopped(&self) {
        let _ = self.0.recv().await;
    }
    /// Whether it was said.
    pub fn is_stopped(&self) -> bool {
        self.0.is_closed()
    }
}

impl Stopper {
    /// Says it.
    pub fn stop(&self) {
        self.0.close();
    }
}

/// Why a run failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum RunError {
    /// The plan cannot be measured.
    Plan(PlanError),
    /// The server could not be reached.
    Connect(io::Error),
    /// A stream failed.
    Stream(io::Error),
    /// The server closed the control connection or a stream before the end.
    Closed,
    /// The server refused, or said what has no place.
    Protocol(ProtocolError),
    /// The server did not answer.
    Late(&'static str),
    /// Nothing went over the streams for [`SILENT_MAX`].
    Silent,
    /// The user stopped it before anything was measured.
    Stopped,
}

impl core::fmt::Display for RunError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            RunError::Plan(why) => write!(f, "the plan: {why}"),
            RunError::Connect(why) => write!(f, "the server cannot be reached: {why}"),
            RunError::Stream(why) => write!(f, "a stream failed: {why}"),
            RunError::Closed => f.write_str("the server closed the connection before the end of the test"),
            RunError::Protocol(why) => why.fmt(f),
            RunError::Late(what) => {
                write!(f, "the server did not {what} within {} s", ANSWER_WITHIN.as_secs())
            }
            RunError::Silent => write!(f, "nothing went over the streams for {} s", SILENT_MAX.as_secs()),
            RunError::Stopped => f.write_str("stopped before anything was measured"),
        }
    }
}
impl core::error::Error for RunError {}

impl From<ProtocolError> for RunError {
    fn from(why: ProtocolError) -> Self {
        RunError::Protocol(why)
    }
}

/// The result of `future`, or `None` when `limit` is over.
pub(crate) async fn within<F: Face, T>(
    face: &F,
    limit: Duration,
    future: impl Future<Output = T>,
) -> Option<T> {
    tokio::select! {
        biased;
        result = future => Some(result),
        () = face.sleep_until(face.now() + limit) => None,
    }
}
