//! When a trace ends: a signal, or a time.

use crate::failure::Failure;
use inhost_base::Instant;
use inhost_runtime::Clock;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long somebody waits who asks whether the trace is over.
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// The same of who has nothing to read meanwhile.
const LOOK: Duration = Duration::from_millis(50);

/// Whether a trace is over. A second signal ends the process at once.
#[derive(Clone)]
pub struct Ending {
    has_signal: Arc<AtomicBool>,
    clock: Clock,
    at: Option<Instant>,
}

impl Ending {
    /// After so many seconds from now, if any, or by SIGINT or SIGTERM.
    pub fn new(seconds: Option<f64>) -> Result<Ending, Failure> {
        let has_signal = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register_conditional_default(signal, has_signal.clone())
                .and_then(|_| signal_hook::flag::register(signal, has_signal.clone()))
                .map_err(|e| Failure::operation(format!("signals cannot be received: {e}")))?;
        }
        let clock = Clock::start();
        let duration = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        Ok(Ending { has_signal, clock, at: duration.map(|duration| clock.now() + duration.into()) })
    }
    /// Whether it is.
    pub fn is_due(&self) -> bool {
        self.has_signal.load(Ordering::Relaxed) || self.at.is_some_and(|at| self.clock.now() >= at)
    }
    /// Waits until it is.
    pub fn pass(&self) {
        while !self.is_due() {
            std::thread::park_timeout(LOOK);
        }
    }
    /// Waits until there is something to read; false after a while without.
    pub fn wait(&self, descriptor: BorrowedFd<'_>) -> io::Result<bool> {
        let mut descriptors = [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)];
        match poll(&mut descriptors, Some(&PATIENCE)) {
            Ok(count) => Ok(count > 0),
            Err(Errno::INTR) => Ok(false),
            Err(why) => Err(why.into()),
        }
    }
}

/// A reader that is at its end when the trace is over.
pub struct Until<R> {
    pub inner: R,
    pub ending: Ending,
}

impl<R: Read + AsFd> Read for Until<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while !self.ending.is_due() {
            if self.ending.wait(self.inner.as_fd())? {
                return self.inner.read(buffer);
            }
        }
        Ok(0)
    }
}
