//! Operator signals: SIGINT, SIGTERM, SIGHUP, SIGWINCH.

use std::io;
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::task::{Context, Poll};
use std::{future::poll_fn, os::fd::OwnedFd};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGWINCH};

use crate::async_fd::AsyncFd;
use crate::reactor::{Interest, Reactor};

/// A signal of the system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signal {
    /// SIGINT: the interrupt key.
    Interrupt,
    /// SIGTERM: please end.
    Terminate,
    /// SIGHUP: read the configuration again, or the terminal is gone.
    Hangup,
    /// SIGWINCH: the terminal's size has changed.
    WindowChange,
}

impl Signal {
    const fn number(self) -> i32 {
        match self {
            Signal::Interrupt => SIGINT,
            Signal::Terminate => SIGTERM,
            Signal::Hangup => SIGHUP,
            Signal::WindowChange => SIGWINCH,
        }
    }
}

/// Signals as something to await. They keep their usual effect off the process while this lives; several arrivals of
/// one signal may be reported once.
pub struct Signals {
    arrivals: Vec<(Signal, AsyncFd<UnixStream>, signal_hook::SigId)>,
}

impl Signals {
    /// Takes these signals over from now on.
    pub fn new(reactor: &Reactor, signals: &[Signal]) -> io::Result<Signals> {
        let mut arrivals = Vec::new();
        for &signal in signals {
            let (ours, theirs) = UnixStream::pair()?;
            theirs.set_nonblocking(true)?;
            let ours = AsyncFd::new(reactor, ours)?;
            let id = signal_hook::low_level::pipe::register(signal.number(), OwnedFd::from(theirs))?;
            arrivals.push((signal, ours, id));
        }
        Ok(Signals { arrivals })
    }
    /// The next signal.
    pub async fn next(&self) -> Signal {
        poll_fn(|context| self.poll_next(context)).await
    }
    /// One step of [`Signals::next`].
    pub fn poll_next(&self, context: &Context<'_>) -> Poll<Signal> {
        for (signal, arrivals, _) in &self.arrivals {
            let read = arrivals.poll_io(Interest::Read, context, |mut pipe| pipe.read(&mut [0; 64]));
            if matches!(read, Poll::Ready(Ok(1..))) {
                return Poll::Ready(*signal);
            }
        }
        Poll::Pending
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for (_, _, id) in &self.arrivals {
            signal_hook::low_level::unregister(*id);
        }
    }
}
