//! The parts of a host, side by side, so that what needs several of them borrows just those.

use crate::counters::{Counters, LinkCounters};
use crate::demux::Demux;
use crate::icmp::{EchoSockets, ProbeSockets};
use crate::limit::RateLimit;
use crate::listen::Listening;
use crate::memory::Memory;
use crate::optional::OptionalState;
use crate::options::StackConfig;
use crate::reply::Replies;
use crate::schedule::Schedule;
use crate::sockets::{AnySocketId, ConnectionFlags, Sockets};
use crate::source_route::SourceRoutes;
use crate::udp::UdpSockets;
use inhost_base::{Instant, LinkId, Random};
use inhost_buf::Packet;
use inhost_event::{Drop, Event, FrameDropped, FrameReceived, Mask, Sink};
use inhost_ip::{Ip, Received};
use inhost_tcp::Config;
use inhost_wire::protocol;
use std::sync::Arc;

/// Neighbours whose decision one call looks at.
const RESOLVED_PER_CALL: usize = 64;

#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) config: StackConfig,
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
    pub(crate) links: Vec<Link>,
    pub(crate) replies: Replies,
    pub(crate) reset_limit: RateLimit,
    pub(crate) counters: Counters,
    /// The only frame lengths of a pass that a sink wants to hear of.
    pub(crate) sent_lengths: Vec<u32>,
    /// The latest time told.
    pub(crate) now: Instant,
}

/// What is kept for each link.
#[derive(Debug, Default)]
pub(crate) struct Link {
    pub(crate) counters: LinkCounters,
    /// See [`InterfaceConfig::runs`].
    pub(crate) runs: bool,
    /// See [`InterfaceConfig::coalesce`].
    pub(crate) coalesces: bool,
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
            links: vec![Link::default()],
            replies: Replies::default(),
            reset_limit: RateLimit::new(config.resets_per_second, now),
            counters: Counters::default(),
            sent_lengths: Vec::new(),
            now,
            random,
            config,
        }
    }

    #[inline]
    pub(crate) fn has_output(&self, link: LinkId) -> bool {
        self.schedule.has_ready(link) || self.replies.waits(link) || self.ip.wants_transmit(link)
    }
    pub(crate) fn link_ids(&self) -> impl Iterator<Item = LinkId> + use<> {
        (0..self.links.len() as u16).map(LinkId)
    }
    #[inline]
    pub(crate) fn tick(&mut self, now: Instant) {
        self.now = self.now.max(now);
    }
    /// Takes one frame, to its end.
    pub(crate) fn frame(&mut self, link: LinkId, mut packet: Packet, now: Instant, sink: &mut dyn Sink) {
        let length_bytes = packet.len() as u32;
        if let Some(link) = self.links.get_mut(usize::from(link.0)) {
            link.counters.received_frames += 1;
            link.counters.received_bytes += u64::from(length_bytes);
        }
        sink.emit(Mask::LINK, now, || Event::FrameReceived(FrameReceived { link, length_bytes }));
        match self.ip.receive(link, &mut packet, &mut ip_environment!(self, now, sink)) {
            Received::Handled => {}
            Received::Dropped(why) => self.count_drop(link, why),
            Received::Error(error) => self.network_error(&error, now, sink),
            Received::Redirect(redirect) => self.redirected(&redirect, now, sink),
            // Whoever stands in for other hosts does not answer pings for them yet.
            Received::EchoRequest(_) => self.drop_frame(link, Drop::NoSocket, now, sink),
            Received::EchoReply(reply) => {
                let found = self.demux.find_echo(&self.sockets, reply.identifier);
                let taken = match found.and_then(|found| self.sockets.typed(found)) {
                    None => Err(Drop::NoSocket),
                    Some(AnySocketId::Probe(id)) => {
                        ProbeSockets::new(self).echo_input(id, reply.source, reply.sequence);
                        Ok(())
                    }
                    Some(AnySocketId::Echo(id)) => EchoSockets::new(self).input(id, &reply, &mut packet),
                    Some(_) => Err(Drop::QueueFull),
                };
                if let Err(why) = taken {
                    self.drop_frame(reply.link, why, now, sink);
                }
            }
            Received::Datagram(datagram) => {
                let done = match datagram.protocol {
                    protocol::TCP => self.tcp_input(&datagram, &mut packet, now, sink),
                    protocol::UDP => UdpSockets::new(self).input(&datagram, &mut packet, now, sink),
                    _ => {
                        let mut environment = ip_environment!(self, now, sink);
                        self.ip.protocol_unreachable(&datagram, &mut packet, &mut environment);
                        Err(Drop::UnknownProtocol)
                    }
                };
                if let Err(why) = done {
                    self.drop_frame(link, why, now, sink);
                }
            }
        }
        self.memory.pool_mut().give(packet);
    }
    /// Counts and tells why a frame went no further.
    pub(crate) fn drop_frame(&mut self, link: LinkId, why: Drop, now: Instant, sink: &mut dyn Sink) {
        self.count_drop(link, why);
        sink.emit(Mask::LINK, now, || Event::FrameDropped(FrameDropped { link, why }));
    }
    fn count_drop(&mut self, link: LinkId, why: Drop) {
        if let Some(link) = self.links.get_mut(usize::from(link.0)) {
            link.counters.dropped[why as usize] += 1;
        }
    }
    /// Lets those send again whose neighbour is known now, or known not to answer.
    #[inline(always)]
    pub(crate) fn wake_resolved(&mut self) {
        if self.ip.has_resolved() {
            self.wake_some_resolved();
        }
    }
    #[inline(never)]
    fn wake_some_resolved(&mut self) {
        for _ in 0..RESOLVED_PER_CALL {
            let Some((link, neighbour)) = self.ip.take_resolved() else { return };
            self.replies.wake(link);
            self.schedule.neighbour_resolved(link, neighbour);
        }
    }
    /// Lets those try again that found no memory to send.
    pub(crate) fn retry_memory(&mut self, now: Instant) {
        if self.memory.retries(now) {
            while let Some(place) = self.memory.pop_waiting() {
                if let Some(socket) = self.sockets.at_place(place) {
                    self.tell_holder(socket);
                }
            }
        }
    }
    pub(crate) fn timer_expired(&mut self, place: usize, now: Instant, sink: &mut dyn Sink) {
        let key = match self.sockets.at_place(place).and_then(|socket| self.sockets.typed(socket)) {
            Some(AnySocketId::Tcp(key)) => key,
            Some(AnySocketId::Udp(key)) => return UdpSockets::new(self).closing_expired(key),
            _ => return,
        };
        let Some(flow) = self.sockets.tcp(key) else { return };
        let mut deadline = flow.connection().deadline();
        if flow.has(ConnectionFlags::OPTIONAL_STATE) {
            if self.optional_expired(key, now, sink) {
                return;
            }
            deadline = deadline.min(self.optional.until(key));
        }
        if deadline > now {
            // It moved on since it was armed.
            self.schedule.arm(place, deadline);
            return;
        }
        let Some(flow) = self.sockets.tcp_mut(key) else { return };
        let outcome = flow.connection_mut().timeout(&mut tcp_environment!(self, now, key, sink));
        self.apply(key, outcome, now, sink);
        if self.sockets.tcp(key).is_some_and(|flow| flow.has(ConnectionFlags::OPTIONAL_STATE)) {
            self.schedule.arm_no_later(place, self.optional.until(key));
        }
    }
}
