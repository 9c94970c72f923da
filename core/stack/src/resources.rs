//! What every step of a host uses: memory, randomness, counters, the time.

use crate::counters::Counters;
use inhost_base::{Instant, Key, Random};
use inhost_buf::{Memory, Pool};
use inhost_event::Sink;
use inhost_ip::IpEnvironment;

/// The resources of a host.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Resources {
    memory: Memory,
    random: Random,
    counters: Counters,
    /// The time of the latest call.
    now: Instant,
    /// Whether sinks are told the layers: see [`crate::Stack::tell_layers`].
    #[cfg_attr(feature = "freeze", serde(skip))]
    marks_layers: bool,
}

impl Resources {
    pub(crate) fn new(memory_limit_bytes: usize, random: Random, now: Instant) -> Resources {
        let memory = Memory::new(memory_limit_bytes);
        Resources { memory, random, counters: Counters::default(), now, marks_layers: false }
    }
    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }
    pub(crate) fn memory_mut(&mut self) -> &mut Memory {
        &mut self.memory
    }
    #[inline]
    pub(crate) fn pool_mut(&mut self) -> &mut Pool {
        self.memory.pool_mut()
    }
    pub(crate) fn random_mut(&mut self) -> &mut Random {
        &mut self.random
    }
    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }
    pub(crate) fn counters_mut(&mut self) -> &mut Counters {
        &mut self.counters
    }
    /// The time of the latest call.
    pub(crate) fn now(&self) -> Instant {
        self.now
    }
    /// Notes the time of a call, which never goes back.
    #[inline]
    pub(crate) fn tick(&mut self, now: Instant) {
        self.now = self.now.max(now);
    }
    pub(crate) fn tell_layers(&mut self, told: bool) {
        self.marks_layers = told;
    }
    /// What a connection is given in a call.
    #[inline(always)]
    pub(crate) fn for_tcp<'a>(
        &'a mut self,
        socket: Key,
        now: Instant,
        sink: &'a mut dyn Sink,
    ) -> inhost_tcp::Environment<'a> {
        inhost_tcp::Environment::new(now, socket, self.memory.pool_mut(), sink, self.marks_layers)
    }
    /// Whether sinks are told the layers.
    pub(crate) fn marks_layers(&self) -> bool {
        self.marks_layers
    }
    /// What IP is given in a call.
    pub(crate) fn for_ip<'a>(&'a mut self, now: Instant, sink: &'a mut dyn Sink) -> IpEnvironment<'a> {
        IpEnvironment::new(now, self.memory.pool_mut(), &mut self.random, sink)
    }
}
