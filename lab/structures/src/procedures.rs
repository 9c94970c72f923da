//! A scheduler of procedures (MIT §4.2.2): layers call each other, and a list of procedure numbers decides what runs next.
//!
//! A procedure runs to its end and has no stack of its own. Frames that come in go up by procedure call: driver, IP and
//! TCP, application. Sending is a procedure of its own, so that reply and acknowledgment share a segment (MIT §4.1.3).

use crate::application::{Application, Load};
use crate::idle;
use crate::outcome::{Outcome, Side};
use crate::protocols::{Protocols, READ_BYTES, connected};
use crate::wire::End;
use bytes::Bytes;
use inhost_base::Instant;
use inhost_runtime::Clock;
use std::collections::VecDeque;

/// Procedures of each host: input, user, output.
const PROCEDURES: usize = 3;

/// Decides which procedure runs next: in the order in which they were posted.
pub struct Scheduler {
    posted: VecDeque<usize>,
    /// The event flag of each procedure: whether it is posted.
    flags: [bool; 2 * PROCEDURES],
    /// Procedures that have run.
    dispatches: u64,
}

impl Scheduler {
    fn new() -> Scheduler {
        let posted = VecDeque::with_capacity(2 * PROCEDURES);
        Scheduler { posted, flags: [false; 2 * PROCEDURES], dispatches: 0 }
    }
    /// Lets a procedure run; once, however often it is posted before it does.
    fn post(&mut self, number: usize) {
        if !core::mem::replace(&mut self.flags[number], true) {
            self.posted.push_back(number);
        }
    }
    fn next(&mut self) -> Option<usize> {
        let number = self.posted.pop_front()?;
        self.flags[number] = false;
        self.dispatches += 1;
        Some(number)
    }
}

/// A procedure, and the host that it is to work for.
type Procedure = fn(&mut World, usize) -> Result<(), String>;
const TABLE: [Procedure; PROCEDURES] = [World::input, World::user, World::output];
const INPUT: usize = 0;
const USER: usize = 1;
const OUTPUT: usize = 2;

struct World {
    clock: Clock,
    scheduler: Scheduler,
    hosts: [Layers; 2],
}

/// The layers of a host.
struct Layers {
    end: End,
    protocols: Protocols,
    application: Application,
    /// What the send buffer has no room for yet.
    rest: Bytes,
    place: Vec<u8>,
}

/// Runs `load` until it is done or `give_up`.
pub fn run(load: Load, clock: Clock, give_up: Instant) -> Result<Outcome, String> {
    let mut applications = load.applications(clock).into_iter();
    let hosts = connected(clock.now())?.map(|(protocols, end)| {
        let application = applications.next();
        application.map(|application| Layers {
            end,
            protocols,
            application,
            rest: Bytes::new(),
            place: vec![0; READ_BYTES],
        })
    });
    let [Some(caller), Some(called)] = hosts else { return Err("a host has no application".into()) };
    let mut world = World { clock, scheduler: Scheduler::new(), hosts: [caller, called] };
    world.scheduler.post(USER);
    while !world.hosts[0].application.is_done() {
        match world.scheduler.next() {
            Some(number) => TABLE[number % PROCEDURES](&mut world, number / PROCEDURES)?,
            None => world.wait(give_up)?,
        }
    }
    // Both hosts share the scheduler, whose count is the caller's.
    let mut dispatches = world.scheduler.dispatches;
    let sides = world.hosts.map(|host| {
        let dispatches = core::mem::take(&mut dispatches);
        Side { application: host.application, sent: host.protocols.sent(), dispatches }
    });
    Outcome::of(load, sides)
}

impl World {
    fn post(&mut self, host: usize, procedure: usize) {
        self.scheduler.post(host * PROCEDURES + procedure);
    }
    /// Frames that came, and timers that are due.
    fn input(&mut self, host: usize) -> Result<(), String> {
        let Layers { end, protocols, .. } = &mut self.hosts[host];
        while protocols.has_room()
            && let Ok(packet) = end.inward.try_recv()
        {
            protocols.admit(packet)?;
        }
        protocols.input(self.clock.now());
        if !end.inward.is_empty() {
            self.post(host, INPUT);
        }
        self.user(host)
    }
    /// What the application reads and writes.
    fn user(&mut self, host: usize) -> Result<(), String> {
        let now = self.clock.now();
        let Layers { protocols, application, rest, place, .. } = &mut self.hosts[host];
        loop {
            protocols.write(rest, now)?;
            while rest.is_empty()
                && let Some(bytes) = application.next()
            {
                *rest = bytes;
                protocols.write(rest, now)?;
            }
            match protocols.read(place, now)? {
                0 => break,
                count => application.receive(&place[..count])?,
            }
        }
        if protocols.wants_output() {
            self.post(host, OUTPUT);
        }
        Ok(())
    }
    /// Frames to send.
    fn output(&mut self, host: usize) -> Result<(), String> {
        let Layers { end, protocols, .. } = &mut self.hosts[host];
        // There are not more buffers than the pipe has places.
        let frames = protocols.output(self.clock.now(), |packet| drop(end.outward.try_send(packet)));
        if protocols.wants_output() {
            self.post(host, OUTPUT);
        }
        if frames > 0 {
            self.post(1 - host, INPUT);
        }
        Ok(())
    }
    /// Waits for the next timer.
    fn wait(&mut self, give_up: Instant) -> Result<(), String> {
        let deadlines = [0, 1].map(|host| self.hosts[host].protocols.deadline());
        let now = idle::until(self.clock, deadlines, give_up)?;
        for (host, deadline) in deadlines.into_iter().enumerate() {
            if deadline.is_some_and(|deadline| deadline <= now) {
                self.post(host, INPUT);
            }
        }
        Ok(())
    }
}

/// The bare cost: two procedures that do nothing but post each other. Returns the number of dispatches.
pub fn dispatch(times: u64) -> u64 {
    fn vacuous(scheduler: &mut Scheduler, number: usize) {
        scheduler.post(1 - number);
    }
    let table: [fn(&mut Scheduler, usize); 2] = [vacuous, vacuous];
    let table = std::hint::black_box(table);
    let mut scheduler = Scheduler::new();
    scheduler.post(0);
    while scheduler.dispatches < times
        && let Some(number) = scheduler.next()
    {
        table[number](&mut scheduler, number);
    }
    scheduler.dispatches
}
