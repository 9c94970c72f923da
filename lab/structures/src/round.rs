//! The round: a frame climbs from the driver to the task in one pass, and what the task writes goes down in the same round.
//!
//! This is `inhost_socket::Host` as it is. One thread gives each host its round in turn.

use crate::application::{Application, Load};
use crate::idle;
use crate::outcome::{Outcome, Side};
use crate::protocols::{LINK, PASS_FRAMES, READ_BYTES, called, hosts};
use crate::signal::Signal;
use crate::wire::{Buffers, End};
use inhost_base::Instant;
use inhost_buf::Batch;
use inhost_runtime::Clock;
use inhost_socket::{Host, Stream};
use inhost_stack::ListenOptions;
use std::cell::RefCell;
use std::rc::Rc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Polls of tasks in one round at most.
const POLLS: usize = 256;

/// A host with its end of the pipe.
struct Driven {
    host: Host,
    end: End,
    buffers: Buffers,
    batch: Batch,
    rounds: u64,
}

impl Driven {
    /// One round. Returns whether anything happened.
    fn round(&mut self, now: Instant) -> Result<bool, String> {
        let Driven { host, end, buffers, batch, .. } = self;
        host.with_stack(|stack, _| {
            while batch.has_room()
                && let Ok(packet) = end.inward.try_recv()
            {
                buffers.admit(packet, stack.pool(), batch)?;
            }
            Ok::<(), String>(())
        })?;
        let is_input = !batch.is_empty();
        host.receive(LINK, batch, now);
        let polls = host.run(now, POLLS);
        // There are not more buffers than the pipe has places.
        let mut outbox = buffers.outbox(|packet| drop(end.outward.try_send(packet)));
        let sent = host.transmit(LINK, now, PASS_FRAMES, &mut outbox);
        self.rounds += 1;
        Ok(is_input || polls > 0 || sent.frames > 0)
    }
    fn deadline(&self) -> Option<Instant> {
        self.host.deadline()
    }
}

/// An application, and why it failed.
type Shared = Rc<RefCell<(Application, Option<String>)>>;

/// Runs `load` until it is done or `give_up`.
pub fn run(load: Load, clock: Clock, give_up: Instant) -> Result<Outcome, String> {
    let mut sides = hosts(clock.now())?.map(|(stack, end, buffers)| {
        let host = Host::new(stack, clock.now());
        Driven { host, end, buffers, batch: Batch::new(), rounds: 0 }
    });
    let applications = load.applications(clock).map(|application| Rc::new(RefCell::new((application, None))));
    start(&sides, &applications)?;
    let ended = drive(&mut sides, &applications, clock, give_up);
    sides.iter().for_each(|side| side.host.stop());
    ended?;
    let [near, far] = sides;
    let [caller, called] = applications;
    Outcome::of(load, [finish(near, caller)?, finish(far, called)?])
}

fn finish(driven: Driven, shared: Shared) -> Result<Side, String> {
    let (application, failed) = Rc::into_inner(shared).ok_or("a task still runs")?.into_inner();
    failed.map_or(Ok(()), Err)?;
    Ok(Side { application, sent: driven.buffers.sent, dispatches: driven.rounds })
}

/// Gives the hosts their rounds until the caller's work is over.
fn drive(
    sides: &mut [Driven; 2],
    applications: &[Shared; 2],
    clock: Clock,
    give_up: Instant,
) -> Result<(), String> {
    while !applications[0].borrow().0.is_done() {
        let [near, far] = sides;
        let is_busy = near.round(clock.now())? | far.round(clock.now())?;
        if is_busy {
            continue;
        }
        for shared in applications {
            shared.borrow_mut().1.take().map_or(Ok(()), Err)?;
        }
        idle::until(clock, [near.deadline(), far.deadline()], give_up)?;
    }
    Ok(())
}

/// Starts the task of each application.
fn start(sides: &[Driven; 2], [caller, answerer]: &[Shared; 2]) -> Result<(), String> {
    let (near, far) = (&sides[0].host, &sides[1].host);
    let listener = far.listen(called(), ListenOptions::default()).map_err(|e| e.to_string())?;
    let shared = answerer.clone();
    far.spawn(async move {
        let ended = match listener.accept().await {
            Ok(stream) => apply(stream, &shared).await,
            Err(error) => Err(error.to_string()),
        };
        shared.borrow_mut().1 = ended.err();
    })
    .detach();
    let (host, shared) = (near.clone(), caller.clone());
    near.spawn(async move {
        let ended = match host.connect(called()).await {
            Ok(stream) => apply(stream, &shared).await,
            Err(error) => Err(error.to_string()),
        };
        shared.borrow_mut().1 = ended.err();
    })
    .detach();
    Ok(())
}

/// The application: a task of the host.
async fn apply(mut stream: Stream, shared: &Shared) -> Result<(), String> {
    let mut place = vec![0; READ_BYTES];
    loop {
        loop {
            let next = shared.borrow_mut().0.next();
            let Some(bytes) = next else { break };
            stream.write_all(&bytes).await.map_err(|e| e.to_string())?;
        }
        if shared.borrow().0.is_done() {
            return Ok(());
        }
        match stream.read(&mut place).await.map_err(|e| e.to_string())? {
            0 => return Ok(()),
            count => shared.borrow_mut().0.receive(&place[..count])?,
        }
    }
}

/// The bare cost: whole rounds without a frame, each of which wakes one task. Returns the number of rounds.
pub fn dispatch(times: u64) -> Result<u64, String> {
    let clock = Clock::start();
    let [(stack, end, buffers), _other] = hosts(clock.now())?;
    let host = Host::new(stack, clock.now());
    let mut driven = Driven { host, end, buffers, batch: Batch::new(), rounds: 0 };
    let signal = Rc::new(Signal::default());
    let waits_for = signal.clone();
    driven
        .host
        .spawn(async move {
            loop {
                waits_for.wait().await;
            }
        })
        .detach();
    while signal.dispatches() < times {
        signal.post();
        driven.round(clock.now())?;
    }
    driven.host.stop();
    Ok(driven.rounds)
}
