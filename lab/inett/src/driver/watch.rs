//! The server's limits of a test that runs: how long it takes, and how long a peer may be silent.

use std::rc::Rc;

use inhost_base::{Duration, Instant};

use super::counters::Counter;
use super::running::Ran;
use super::server::WORKERS_MAX;
use super::{GRACE, SILENT_MAX};
use crate::face::{Face, Processor};
use crate::plan::Plan;

/// Time between two looks at the counters: a silent peer is found so much later at most.
const LOOK_EVERY: Duration = Duration::from_secs(15);

/// Streams and connections that are kept, those that are over among them.
const PEERS_MAX: usize = 2 * WORKERS_MAX;

/// Which limit a test has passed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Overrun {
    /// The client did not end the test in time.
    Time,
    /// A stream or connection was silent for [`SILENT_MAX`].
    Silent,
}

/// The limits of a test that runs.
pub struct Watch {
    began: Instant,
    measured_from: Instant,
    ends: Instant,
    looks_at: Instant,
    /// When a stream or connection was last opened or used. Opening all takes a while, during which the first are silent.
    opened: Instant,
    used: Instant,
    peers: Vec<Peer>,
    processor: Option<Processor>,
}

/// A stream, or a connection of transactions.
struct Peer {
    counter: Rc<Counter>,
    count: u64,
    used: Instant,
}

impl Watch {
    /// A test that begins now. It ends after the duration that the client named; where it named none, after `time_max`.
    pub fn new<F: Face>(face: &F, plan: &Plan, time_max: Duration) -> Watch {
        let now = face.now();
        Watch {
            began: now,
            measured_from: now,
            ends: now + takes(plan).map_or(time_max, |takes| takes.min(time_max)) + GRACE,
            looks_at: now + LOOK_EVERY,
            opened: now,
            used: now,
            peers: Vec::new(),
            processor: face.processor(),
        }
    }
    /// Watches a stream or connection that was opened now, until its counter says that it is over.
    pub fn add<F: Face>(&mut self, face: &F, counter: &Rc<Counter>) {
        self.opened = face.now();
        if self.peers.len() >= PEERS_MAX {
            // Half of them are over: no test has more than half as many workers.
            self.peers.retain(|peer| !peer.counter.is_over.get());
        }
        self.peers.push(Peer { counter: counter.clone(), count: 0, used: self.opened });
    }
    /// The warm-up is over.
    pub fn measure<F: Face>(&mut self, face: &F) {
        self.measured_from = face.now();
        self.processor = face.processor();
    }
    /// Whether a limit is passed.
    ///
    /// # Errors
    /// The limit.
    pub fn look<F: Face>(&mut self, face: &F) -> Result<(), Overrun> {
        let now = face.now();
        if now >= self.ends {
            return Err(Overrun::Time);
        }
        if now < self.looks_at {
            return Ok(());
        }
        self.looks_at = now + LOOK_EVERY;
        for peer in &mut self.peers {
            let count = peer.counter.activity();
            if count != peer.count {
                (peer.count, peer.used, self.used) = (count, now, now);
            }
        }
        self.peers.retain(|peer| !peer.counter.is_over.get());
        let least_used = self.peers.iter().map(|peer| peer.used).min().unwrap_or(self.used);
        match now.since(least_used.max(self.opened)) >= SILENT_MAX {
            true => Err(Overrun::Silent),
            false => Ok(()),
        }
    }
    /// When to look next.
    pub fn wake(&self) -> Instant {
        self.ends.min(self.looks_at)
    }
    /// How the test ran, at its end.
    pub fn ran<F: Face>(&self, face: &F) -> Ran {
        let used = face.processor().zip(self.processor);
        let processor = used.map(|(after, before)| after.since(before));
        Ran {
            began: self.began,
            measured_from: self.measured_from,
            ended: face.now(),
            intervals: Vec::new(),
            is_aborted: false,
            processor,
        }
    }
}

/// How long the test takes that a client asks for, warm-up included; `None` where the client named no duration.
pub fn takes(plan: &Plan) -> Option<Duration> {
    plan.time_ms.map(|time_ms| Duration::from_millis(time_ms) + Duration::from_millis(plan.warm_up_ms))
}

#[cfg(all(test, feature = "kernel"))]
mod tests {
    use super::*;
    use crate::face::Kernel;

    /// A test of connects opens and closes many thousands between two looks.
    #[test]
    fn connections_that_are_over_are_forgotten() {
        let face = Kernel::new();
        let mut watch = Watch::new(&face, &Plan::default(), Duration::from_secs(10));
        let open: Rc<Counter> = Rc::default();
        watch.add(&face, &open);
        for _ in 0..3 * PEERS_MAX {
            let counter: Rc<Counter> = Rc::default();
            counter.is_over.set(true);
            watch.add(&face, &counter);
            assert!(watch.peers.len() <= PEERS_MAX);
        }
        assert!(watch.peers.iter().any(|peer| Rc::ptr_eq(&peer.counter, &open)));
    }
}
