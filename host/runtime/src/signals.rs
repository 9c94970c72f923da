//! Operator signals: SIGINT, SIGTERM, SIGHUP, SIGWINCH.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::future::poll_fn;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

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
    /// Its number on this system.
    pub const fn number(self) -> i32 {
        match self {
            Signal::Interrupt => SIGINT,
            Signal::Terminate => SIGTERM,
            Signal::Hangup => SIGHUP,
            Signal::WindowChange => SIGWINCH,
        }
    }
}

/// Signals that are kept from their usual effect on the process while this lives.
pub struct HeldSignals(Vec<Signal>);

/// How many hold a signal, and whether nobody does.
type Held = BTreeMap<i32, (usize, Arc<AtomicBool>)>;

/// A handler stays installed for ever: the usual effect of a signal that nobody holds any more is brought about by hand.
static HELD: Mutex<Held> = Mutex::new(Held::new());

impl HeldSignals {
    /// Holds these signals from now on.
    ///
    /// # Errors
    /// When a handler cannot be installed.
    pub fn new(signals: &[Signal]) -> io::Result<HeldSignals> {
        // Before the lock, which its drop takes: what is held already is given back if a handler cannot be installed.
        let mut ours = HeldSignals(Vec::new());
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        for &signal in signals {
            let number = signal.number();
            let (count, is_free) = match held.entry(number) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => {
                    let is_free = Arc::new(AtomicBool::new(false));
                    signal_hook::flag::register_conditional_default(number, is_free.clone())?;
                    new.insert((0, is_free))
                }
            };
            *count += 1;
            is_free.store(false, Ordering::SeqCst);
            ours.0.push(signal);
        }
        Ok(ours)
    }
    /// Holds them until the process ends.
    pub fn for_good(self) {
        std::mem::forget(self);
    }
}

impl Drop for HeldSignals {
    fn drop(&mut self) {
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        for signal in &self.0 {
            if let Some((count, is_free)) = held.get_mut(&signal.number()) {
                *count -= 1;
                is_free.store(*count == 0, Ordering::SeqCst);
            }
        }
    }
}

/// Signals as something to await. They keep their usual effect off the process while this lives; several arrivals of
/// one signal may be reported once.
pub struct Signals {
    _held: HeldSignals,
    arrivals: Vec<(Signal, AsyncFd<UnixStream>, signal_hook::SigId)>,
}

impl Signals {
    /// Takes these signals over from now on.
    pub fn new(reactor: &Reactor, signals: &[Signal]) -> io::Result<Signals> {
        let held = HeldSignals::new(signals)?;
        let mut arrivals = Vec::new();
        for &signal in signals {
            let (ours, theirs) = UnixStream::pair()?;
            theirs.set_nonblocking(true)?;
            let ours = AsyncFd::new(reactor, ours)?;
            let id = signal_hook::low_level::pipe::register(signal.number(), OwnedFd::from(theirs))?;
            arrivals.push((signal, ours, id));
        }
        Ok(Signals { _held: held, arrivals })
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
