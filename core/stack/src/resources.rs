//! What every step of a host uses: memory, randomness, counters, the time; and the environments of the crates below.

use crate::counters::Counters;
use crate::memory::Memory;
use inhost_base::{Instant, Key, Random};
use inhost_buf::Pool;
use inhost_event::{Layer, Sink};
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
    #[cfg(feature = "freeze")]
    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }
    pub(crate) fn memory_mut(&mut self) -> &mut Memory {
        &mut self.memory
    }
    #[inline]
    pub(crate) fn pool(&self) -> &Pool {
        self.memory.pool()
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
    #[inline]
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
    /// What IP is given in a call.
    #[inline(always)]
    pub(crate) fn for_ip<'a>(&'a mut self, now: Instant, sink: &'a mut dyn Sink) -> IpEnvironment<'a> {
        IpEnvironment { now, pool: self.memory.pool_mut(), random: &mut self.random, sink }
    }
}

/// What a step of a call or a round uses: the host's resources, the time and the sink.
pub(crate) struct Environment<'a> {
    now: Instant,
    sink: &'a mut dyn Sink,
    resources: &'a mut Resources,
}

impl<'a> Environment<'a> {
    /// For a call at `now`.
    #[inline]
    pub(crate) fn new(resources: &'a mut Resources, now: Instant, sink: &'a mut dyn Sink) -> Environment<'a> {
        resources.tick(now);
        Environment { now, sink, resources }
    }
    #[inline(always)]
    pub(crate) fn now(&self) -> Instant {
        self.now
    }
    #[inline(always)]
    pub(crate) fn sink(&mut self) -> &mut dyn Sink {
        &mut *self.sink
    }
    #[inline(always)]
    pub(crate) fn resources(&mut self) -> &mut Resources {
        self.resources
    }
    #[inline(always)]
    pub(crate) fn memory(&self) -> &Memory {
        &self.resources.memory
    }
    #[inline(always)]
    pub(crate) fn pool(&mut self) -> &mut Pool {
        self.resources.memory.pool_mut()
    }
    #[inline(always)]
    pub(crate) fn counters(&mut self) -> &mut Counters {
        &mut self.resources.counters
    }
    /// For IP.
    #[inline(always)]
    pub(crate) fn ip(&mut self) -> IpEnvironment<'_> {
        self.resources.for_ip(self.now, &mut *self.sink)
    }
    /// For a connection.
    #[inline(always)]
    pub(crate) fn tcp(&mut self, socket: Key) -> inhost_tcp::Environment<'_> {
        let Resources { memory, random, marks_layers, .. } = &mut *self.resources;
        inhost_tcp::Environment {
            now: self.now,
            socket,
            pool: memory.pool_mut(),
            random,
            sink: &mut *self.sink,
            marks_layers: *marks_layers,
        }
    }
    /// Whether the sink is told the layers.
    #[inline(always)]
    pub(crate) fn marks_layers(&self) -> bool {
        self.resources.marks_layers
    }
    /// Tells the sink that a layer begins, if it is told the layers.
    #[inline(always)]
    pub(crate) fn begin_layer(&mut self, layer: Layer) {
        if self.resources.marks_layers {
            self.sink.begin_layer(layer);
        }
    }
    /// Tells it that the layer ends.
    #[inline(always)]
    pub(crate) fn end_layer(&mut self) {
        if self.resources.marks_layers {
            self.sink.end_layer();
        }
    }
}
