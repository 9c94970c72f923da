//! The machine over a host's probe sockets.

use crate::machine::{Config, Trace};
use crate::report::{Event, TraceOutcome};
use futures_lite::future::or;
use inhost_base::IpAddr;
use inhost_socket::{DatagramError, Host, ListenError, ProbeSocket};
use inhost_stack::{ProbeAnswer, ProbeMethod};
use std::fmt;

/// Why a trace was not made, or not to its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum TraceError {
    /// There is no socket for it.
    Open(ListenError),
    /// A probe could not leave the host.
    Send(DatagramError),
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TraceError::Open(why) => why.fmt(f),
            TraceError::Send(why) => why.fmt(f),
        }
    }
}
impl std::error::Error for TraceError {}

/// Traces the route from `host` to `to` by probes of `method`. `tell` gets each hop as soon as it and all hops before
/// are complete.
pub async fn run(
    host: &Host,
    method: ProbeMethod,
    config: Config,
    to: IpAddr,
    mut tell: impl FnMut(&Event),
) -> Result<TraceOutcome, TraceError> {
    let socket = host.probe(method).map_err(TraceError::Open)?;
    let mut trace = Trace::new(config, to);
    loop {
        while let Some(probe) = trace.poll_probe(host.now()) {
            socket.send(&probe).await.map_err(TraceError::Send)?;
        }
        match next(host, &socket, &trace).await.map_err(TraceError::Send)? {
            Some(answer) => trace.answer(&answer, host.now()),
            None => trace.timeout(host.now()),
        }
        while let Some(event) = trace.poll_event() {
            tell(&event);
            if let Event::Done(outcome) = event {
                return Ok(outcome);
            }
        }
    }
}

/// The next answer; `None` when the time for one is over.
async fn next(
    host: &Host,
    socket: &ProbeSocket,
    trace: &Trace,
) -> Result<Option<ProbeAnswer>, DatagramError> {
    let received = async { socket.receive().await.map(Some) };
    match trace.deadline() {
        None => received.await,
        Some(at) => {
            let late = async {
                host.sleep_until(at).await;
                Ok(None)
            };
            or(received, late).await
        }
    }
}
