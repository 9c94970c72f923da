//! Layers as tasks (MIT §4.2.3): each layer of each host is a coroutine that signals wake, with queues between them.
//!
//! All six tasks run on one thread, on the executor that inhost's own tasks have.

use crate::application::{Application, Load};
use crate::idle;
use crate::outcome::{Outcome, Side};
use crate::protocols::{Protocols, connected};
use crate::signal::{Queue, Signal};
use crate::wire::{BUFFERS, End};
use async_executor::LocalExecutor;
use bytes::Bytes;
use inhost_base::Instant;
use inhost_buf::Packet;
use inhost_runtime::Clock;
use std::cell::RefCell;
use std::rc::Rc;

/// Messages of bytes that wait between stack and application, each way.
const MESSAGES: usize = 4;

/// The event flags of a host's tasks.
#[derive(Clone, Default)]
struct Signals {
    driver: Rc<Signal>,
    stack: Rc<Signal>,
    application: Rc<Signal>,
}

impl Signals {
    fn dispatches(&self) -> u64 {
        [&self.driver, &self.stack, &self.application].map(|signal| signal.dispatches()).iter().sum()
    }
}

/// What the tasks of a host share with the loop that runs them.
struct Shared {
    signals: Signals,
    protocols: RefCell<Protocols>,
    application: RefCell<Application>,
    failed: RefCell<Option<String>>,
}

/// The queues of a host.
struct Queues {
    up: Rc<Queue<Packet>>,
    down: Rc<Queue<Packet>>,
    writes: Rc<Queue<Bytes>>,
    reads: Rc<Queue<Bytes>>,
}

/// Runs `load` until it is done or `give_up`.
pub fn run(load: Load, clock: Clock, give_up: Instant) -> Result<Outcome, String> {
    let [near, far] = connected(clock.now())?;
    let [caller, called] = load.applications(clock);
    let signals = [Signals::default(), Signals::default()];
    let executor = LocalExecutor::new();
    let near = start(&executor, clock, near, caller, (&signals[0], &signals[1]));
    let far = start(&executor, clock, far, called, (&signals[1], &signals[0]));
    let sides = [near, far];
    while !sides[0].application.borrow().is_done() {
        if executor.try_tick() {
            continue;
        }
        for side in &sides {
            side.failed.take().map_or(Ok(()), Err)?;
        }
        let deadlines = [0, 1].map(|side: usize| sides[side].protocols.borrow().deadline());
        let now = idle::until(clock, deadlines, give_up)?;
        for (side, deadline) in sides.iter().zip(deadlines) {
            if deadline.is_some_and(|deadline| deadline <= now) {
                side.signals.stack.post();
            }
        }
    }
    // The tasks end here, and what they share is the loop's alone.
    drop(executor);
    let [near, far] = sides.map(finish);
    Outcome::of(load, [near?, far?])
}

fn finish(shared: Rc<Shared>) -> Result<Side, String> {
    let shared = Rc::into_inner(shared).ok_or("a task still runs")?;
    let sent = shared.protocols.into_inner().sent();
    let dispatches = shared.signals.dispatches();
    Ok(Side { application: shared.application.into_inner(), sent, dispatches })
}

/// Starts the tasks of a host. `signals` are its own and the other host's.
fn start(
    executor: &LocalExecutor<'_>,
    clock: Clock,
    (protocols, end): (Protocols, End),
    application: Application,
    (own, other): (&Signals, &Signals),
) -> Rc<Shared> {
    let shared = Rc::new(Shared {
        signals: own.clone(),
        protocols: RefCell::new(protocols),
        application: RefCell::new(application),
        failed: RefCell::default(),
    });
    let queues = Rc::new(Queues {
        up: Queue::new(BUFFERS, &own.driver, &own.stack),
        down: Queue::new(BUFFERS, &own.stack, &own.driver),
        writes: Queue::new(MESSAGES, &own.application, &own.stack),
        reads: Queue::new(MESSAGES, &own.stack, &own.application),
    });
    executor.spawn(drive(end, queues.clone(), own.driver.clone(), other.driver.clone())).detach();
    let (layer, between) = (shared.clone(), queues.clone());
    executor
        .spawn(async move {
            let Err(why) = protocol(&layer, &between, clock).await;
            *layer.failed.borrow_mut() = Some(why);
        })
        .detach();
    let layer = shared.clone();
    executor
        .spawn(async move {
            if let Err(why) = apply(&layer, &queues).await {
                *layer.failed.borrow_mut() = Some(why);
            }
        })
        .detach();
    shared
}

/// The driver: frames from the pipe go up, frames from the stack go into the pipe, whose other end is signalled.
async fn drive(end: End, queues: Rc<Queues>, own: Rc<Signal>, peer: Rc<Signal>) {
    loop {
        own.wait().await;
        while let Some(packet) = queues.down.pop() {
            // There are not more buffers than the pipe has places, nor the queue.
            let _ = end.outward.try_send(packet);
            peer.post();
        }
        while let Ok(packet) = end.inward.try_recv() {
            let _ = queues.up.push(packet);
        }
    }
}

/// IP and TCP.
async fn protocol(
    shared: &Shared,
    queues: &Queues,
    clock: Clock,
) -> Result<std::convert::Infallible, String> {
    let signal = &shared.signals.stack;
    let mut rest = Bytes::new();
    loop {
        signal.wait().await;
        let mut protocols = shared.protocols.borrow_mut();
        let now = clock.now();
        let mut is_empty = false;
        while !is_empty && protocols.has_room() {
            match queues.up.pop() {
                Some(packet) => protocols.admit(packet)?,
                None => is_empty = true,
            }
        }
        protocols.input(now);
        protocols.write(&mut rest, now)?;
        while rest.is_empty()
            && let Some(bytes) = queues.writes.pop()
        {
            rest = bytes;
            protocols.write(&mut rest, now)?;
        }
        while !queues.reads.is_full()
            && let Some(bytes) = protocols.read_owned(now)?
        {
            let _ = queues.reads.push(bytes);
        }
        protocols.output(now, |packet| drop(queues.down.push(packet)));
        if !is_empty || protocols.wants_output() {
            signal.post();
        }
    }
}

/// The application: it waits when it has nothing to write, and when its writes are not taken.
async fn apply(shared: &Shared, queues: &Queues) -> Result<(), String> {
    let signal = &shared.signals.application;
    loop {
        loop {
            let next = shared.application.borrow_mut().next();
            let Some(mut bytes) = next else { break };
            while let Err(again) = queues.writes.push(bytes) {
                bytes = again;
                signal.wait().await;
            }
        }
        match queues.reads.pop() {
            Some(bytes) => shared.application.borrow_mut().receive(&bytes)?,
            None if shared.application.borrow().is_done() => return Ok(()),
            None => signal.wait().await,
        }
    }
}

/// The bare cost: two tasks that do nothing but signal each other. Returns the number of dispatches.
pub fn dispatch(times: u64) -> u64 {
    let executor = LocalExecutor::new();
    let signals = [(); 2].map(|()| Rc::new(Signal::default()));
    for (own, other) in [(0, 1), (1, 0)] {
        let (own, other): (Rc<Signal>, Rc<Signal>) = (signals[own].clone(), signals[other].clone());
        executor
            .spawn(async move {
                loop {
                    own.wait().await;
                    other.post();
                }
            })
            .detach();
    }
    signals[0].post();
    let count = || signals[0].dispatches() + signals[1].dispatches();
    while count() < times && executor.try_tick() {}
    count()
}
