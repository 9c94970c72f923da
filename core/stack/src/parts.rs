//! The parts of a host as separate fields, so that a function borrows only those that it needs.

use crate::counters::Counters;
use crate::demux::Demux;
use crate::links::Links;
use crate::listen::Listening;
use crate::memory::Memory;
use crate::options::StackConfig;
use crate::output::Replies;
use crate::schedule::Schedule;
use crate::sockets::Sockets;
use crate::tcp::{OptionalState, SourceRoutes};
use alloc::sync::Arc;
use inhost_base::{Instant, LinkId, Random};
use inhost_ip::Ip;
use inhost_tcp::Config;

/// The parts of a host. Each owns its private state. This struct has no state or rules of its own; a rule that needs
/// several parts borrows it.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Parts {
    pub(crate) config: StackConfig,
    // Written with the other configurations, each once.
    #[cfg_attr(feature = "freeze", serde(skip))]
    pub(crate) tcp_config: Arc<Config>,
    pub(crate) memory: Memory,
    pub(crate) random: Random,
    pub(crate) ip: Ip,
    pub(crate) sockets: Sockets,
    pub(crate) demux: Demux,
    pub(crate) listening: Listening,
    pub(crate) source_routes: SourceRoutes,
    pub(crate) schedule: Schedule,
    pub(crate) optional: OptionalState,
    pub(crate) links: Links,
    pub(crate) replies: Replies,
    pub(crate) counters: Counters,
    /// The time of the latest call.
    pub(crate) now: Instant,
    /// Whether sinks are told the layers: see [`crate::Stack::tell_layers`].
    #[cfg_attr(feature = "freeze", serde(skip))]
    pub(crate) marks_layers: bool,
}

/// An [`IpEnvironment`] from a host's parts, beside `ip`.
macro_rules! ip_environment {
    ($parts:expr, $now:expr, $sink:expr) => {
        inhost_ip::IpEnvironment {
            now: $now,
            pool: $parts.memory.pool_mut(),
            random: &mut $parts.random,
            sink: $sink,
        }
    };
}
pub(crate) use ip_environment;

/// An [`Environment`] from a host's parts, beside `sockets`.
macro_rules! tcp_environment {
    ($parts:expr, $now:expr, $id:expr, $sink:expr) => {
        inhost_tcp::Environment {
            now: $now,
            socket: $id.key(),
            pool: $parts.memory.pool_mut(),
            random: &mut $parts.random,
            sink: $sink,
            marks_layers: $parts.marks_layers,
        }
    };
}
pub(crate) use tcp_environment;

impl Parts {
    pub(crate) fn new(config: StackConfig, seed: [u8; 32], now: Instant) -> Parts {
        let mut random = Random::from_seed(seed);
        let ip = Ip::new(config.ip.clone(), &mut random);
        Parts {
            tcp_config: Arc::new(config.tcp.clone()),
            memory: Memory::new(config.memory_limit_bytes),
            ip,
            sockets: Sockets::new(config.socket_limit),
            demux: Demux::new(&mut random),
            listening: Listening::new(&config.fast_open, &mut random, now),
            source_routes: SourceRoutes::default(),
            schedule: Schedule::new(now),
            optional: OptionalState::default(),
            links: Links::new(),
            replies: Replies::new(config.resets_per_second, now),
            counters: Counters::default(),
            now,
            marks_layers: false,
            random,
            config,
        }
    }

    #[inline]
    pub(crate) fn has_output(&self, link: LinkId) -> bool {
        self.schedule.has_senders(link) || self.replies.waits(link) || self.ip.wants_transmit(link)
    }
    #[inline]
    pub(crate) fn tick(&mut self, now: Instant) {
        self.now = self.now.max(now);
    }
}
