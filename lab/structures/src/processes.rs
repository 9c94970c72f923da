//! Layers as processes (MIT §4.2.1): each layer of each host is a thread, with bounded queues between them.
//!
//! A thread blocks until a queue has something for it. When the caller's application is done its queues close, and
//! thread after thread ends.

use crate::application::{Application, Load};
use crate::outcome::{Outcome, Side};
use crate::protocols::{Protocols, connected};
use crate::wire::{BUFFERS, End};
use bytes::Bytes;
use crossbeam_channel::{Receiver, RecvError, Select, Sender, TryRecvError, bounded};
use inhost_base::{Duration, Instant};
use inhost_buf::Packet;
use inhost_runtime::Clock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{Scope, ScopedJoinHandle, Thread, current, park_timeout, scope};

/// Messages of bytes that wait between stack and application, each way.
const MESSAGES: usize = 4;
/// What a wait says that found nothing until the deadline.
const LATE: &str = "a layer waited until its deadline";

/// What a thread ends with: its layer, and how often it had to wait.
type Ended<T> = Result<(T, u64), String>;

/// Runs `load` until it is done or `give_up`.
pub fn run(load: Load, clock: Clock, give_up: Instant) -> Result<Outcome, String> {
    let [near, far] = connected(clock.now())?;
    let [caller, called] = load.applications(clock);
    let waiting = Waiting { clock, give_up };
    scope(|scope| {
        let sides = [start(scope, waiting, near, caller), start(scope, waiting, far, called)];
        let [near, far] = sides.map(Threads::join);
        Outcome::of(load, [near?, far?])
    })
}

/// The three threads of a host.
struct Threads<'s> {
    driver: ScopedJoinHandle<'s, Ended<()>>,
    stack: ScopedJoinHandle<'s, Ended<Protocols>>,
    application: ScopedJoinHandle<'s, Ended<Application>>,
}

fn start<'s>(
    scope: &'s Scope<'s, '_>,
    waiting: Waiting,
    (protocols, end): (Protocols, End),
    application: Application,
) -> Threads<'s> {
    let (up, received) = bounded(BUFFERS);
    let (down, to_send) = bounded(BUFFERS);
    let (write, writes) = bounded(MESSAGES);
    let (read, reads) = bounded(MESSAGES);
    let layer = Layer { protocols, frames: received, down, writes, reads: read, rest: Bytes::new() };
    Threads {
        driver: scope.spawn(move || drive(&end, &up, &to_send, waiting)),
        stack: scope.spawn(move || layer.run(waiting)),
        application: scope.spawn(move || apply(application, &write, &reads, waiting)),
    }
}

impl Threads<'_> {
    fn join(self) -> Result<Side, String> {
        let panicked = |_| "a layer panicked".to_owned();
        let (application, application_waits) = self.application.join().map_err(panicked)??;
        let (protocols, stack_waits) = self.stack.join().map_err(panicked)??;
        let ((), driver_waits) = self.driver.join().map_err(panicked)??;
        let dispatches = application_waits + stack_waits + driver_waits;
        Ok(Side { application, sent: protocols.sent(), dispatches })
    }
}

/// How a thread waits.
#[derive(Clone, Copy)]
pub struct Waiting {
    /// The clock of the run.
    pub clock: Clock,
    /// When the run has failed.
    pub give_up: Instant,
}

impl Waiting {
    fn left(self, until: Option<Instant>) -> std::time::Duration {
        let until = until.unwrap_or(self.give_up).min(self.give_up);
        let now = self.clock.now();
        let left = if until > now { until.since(now) } else { Duration::ZERO };
        left.into()
    }
    /// Waits until one of the queues of `select` is ready, or `until`.
    fn wait(self, select: &mut Select<'_>, until: Option<Instant>) -> Result<(), String> {
        let is_late = select.ready_timeout(self.left(until)).is_err() && self.clock.now() >= self.give_up;
        if is_late { Err(LATE.into()) } else { Ok(()) }
    }
}

/// The driver: frames from the pipe go up, frames from the stack go into the pipe.
fn drive(end: &End, up: &Sender<Packet>, down: &Receiver<Packet>, waiting: Waiting) -> Ended<()> {
    let mut waits = 0;
    loop {
        // No queue can be full: there are not more buffers than it has places.
        let is_over = carry(down, &end.outward) || carry(&end.inward, up);
        if is_over {
            return Ok(((), waits));
        }
        let mut select = Select::new();
        select.recv(down);
        select.recv(&end.inward);
        waits += 1;
        waiting.wait(&mut select, None)?;
    }
}

/// Moves what there is; true when one side has ended.
fn carry(from: &Receiver<Packet>, to: &Sender<Packet>) -> bool {
    loop {
        match from.try_recv() {
            Ok(packet) => {
                if to.send(packet).is_err() {
                    return true;
                }
            }
            Err(TryRecvError::Empty) => return false,
            Err(TryRecvError::Disconnected) => return true,
        }
    }
}

/// The layer of IP and TCP with its queues.
struct Layer {
    protocols: Protocols,
    frames: Receiver<Packet>,
    down: Sender<Packet>,
    writes: Receiver<Bytes>,
    reads: Sender<Bytes>,
    /// What the send buffer has no room for yet.
    rest: Bytes,
}

impl Layer {
    fn run(mut self, waiting: Waiting) -> Ended<Protocols> {
        let mut waits = 0;
        while self.turn(waiting.clock.now())? {
            if !self.frames.is_empty() || self.can_send() {
                continue;
            }
            let mut select = Select::new();
            select.recv(&self.frames);
            if self.rest.is_empty() {
                select.recv(&self.writes);
            }
            if self.protocols.readable_bytes() > 0 {
                select.send(&self.reads);
            }
            if self.protocols.wants_output() {
                select.recv(&self.protocols.buffers().free);
            }
            waits += 1;
            waiting.wait(&mut select, self.protocols.deadline())?;
        }
        Ok((self.protocols, waits))
    }
    fn can_send(&self) -> bool {
        self.protocols.wants_output() && !self.protocols.buffers().free.is_empty()
    }
    /// One turn; false when a neighbour has ended.
    fn turn(&mut self, now: Instant) -> Result<bool, String> {
        while self.protocols.has_room() {
            match self.frames.try_recv() {
                Ok(packet) => self.protocols.admit(packet)?,
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return Ok(false),
            }
        }
        self.protocols.input(now);
        self.protocols.write(&mut self.rest, now)?;
        while self.rest.is_empty() {
            match self.writes.try_recv() {
                Ok(bytes) => self.rest = bytes,
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return Ok(false),
            }
            self.protocols.write(&mut self.rest, now)?;
        }
        while !self.reads.is_full()
            && let Some(bytes) = self.protocols.read_owned(now)?
        {
            // It is the only sender, so that there is room; a reader that has ended is found at its writes.
            let _ = self.reads.try_send(bytes);
        }
        let down = &self.down;
        self.protocols.output(now, |packet| drop(down.try_send(packet)));
        Ok(true)
    }
}

/// The application: it blocks when it has nothing to write, and when its writes are not taken.
fn apply(
    mut application: Application,
    writes: &Sender<Bytes>,
    reads: &Receiver<Bytes>,
    waiting: Waiting,
) -> Ended<Application> {
    let mut waits = 0;
    loop {
        while let Some(bytes) = application.next() {
            waits += u64::from(writes.is_full());
            if let Err(error) = writes.send_timeout(bytes, waiting.left(None)) {
                return if error.is_timeout() { Err(LATE.into()) } else { Ok((application, waits)) };
            }
        }
        if application.is_done() {
            return Ok((application, waits));
        }
        let bytes = match reads.try_recv() {
            Err(TryRecvError::Empty) => {
                waits += 1;
                reads.recv_timeout(waiting.left(None))
            }
            now => now.map_err(|_| RecvError.into()),
        };
        match bytes {
            Ok(bytes) => application.receive(&bytes)?,
            Err(error) if error.is_timeout() => return Err(LATE.into()),
            Err(_) => return Ok((application, waits)),
        }
    }
}

/// The bare cost: two threads that do nothing but wake each other, each of which sleeps until it is woken. Returns the number
/// of dispatches.
pub fn dispatch(times: u64, waiting: Waiting) -> Result<u64, String> {
    let (turn, caller) = (AtomicU64::new(0), current());
    let turns = times.div_ceil(2);
    scope(|scope| {
        let other = scope.spawn(|| take_turns(&turn, 1, turns, &caller, waiting));
        take_turns(&turn, 0, turns, other.thread(), waiting)?;
        other.join().map_err(|_| "the other thread panicked".to_owned())?
    })?;
    Ok(2 * turns)
}

/// Sleeps until it is `own` turn and wakes `other`, `turns` times.
fn take_turns(
    turn: &AtomicU64,
    own: u64,
    turns: u64,
    other: &Thread,
    waiting: Waiting,
) -> Result<(), String> {
    for wanted in (0..turns).map(|n| 2 * n + own) {
        while turn.load(Ordering::Acquire) != wanted {
            if waiting.clock.now() >= waiting.give_up {
                return Err(LATE.into());
            }
            park_timeout(waiting.left(None));
        }
        turn.store(wanted + 1, Ordering::Release);
        other.unpark();
    }
    Ok(())
}
