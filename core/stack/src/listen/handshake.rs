//! Segments for a listener: a SYN becomes a half-open connection, or is answered with a cookie.

use crate::demux::NameHash;
use crate::listen::fast_open::Verdict;
use crate::listen::listener::Listener;
use crate::options::SynCookies;
use crate::parts::{Parts, tcp_environment};
use crate::sockets::{ListenerId, TcpSocket, TcpSocketFlags};
use alloc::sync::Arc;
use inhost_base::{Duration, Endpoint, Instant, IpAddr, Sequence};
use inhost_buf::Packet;
use inhost_event::{Drop, Sink};
use inhost_ip::Datagram;
use inhost_tcp::{Config, Connection, Header};
use inhost_wire::tcp::Flags;

/// A handshake in progress that is older than this gives way to a new one when the SYN queue is full.
const HALF_OPEN_GIVES_WAY_AFTER: Duration = Duration::from_secs(3);

/// A segment for a listener, with its IP fields.
#[derive(Clone, Copy)]
pub(crate) struct IncomingSyn<'a> {
    pub(crate) header: &'a Header,
    pub(crate) datagram: &'a Datagram,
    /// The least initial sequence number that may be chosen, where a connection in TIME-WAIT gives way.
    pub(crate) least_sequence: Option<Sequence>,
    /// The hash of the two ends, where it is known.
    pub(crate) name_hash: Option<NameHash>,
}

impl IncomingSyn<'_> {
    /// Our end and theirs.
    pub(crate) fn ends(&self) -> (Endpoint, Endpoint) {
        let IncomingSyn { header, datagram, .. } = self;
        let local = Endpoint { address: datagram.destination, port: header.destination_port };
        (local, Endpoint { address: datagram.source, port: header.source_port })
    }
}

impl IncomingSyn<'_> {
    /// A segment for a listener (RFC 9293 §3.10.7.2).
    pub(crate) fn input(
        self,
        parts: &mut Parts,
        listener: ListenerId,
        packet: &mut Packet,
        now: Instant,
        sink: &mut dyn Sink,
    ) -> Result<(), Drop> {
        let header = self.header;
        if header.flags.rst() {
            return Err(Drop::NoSocket);
        }
        let drops_fin =
            |listener: &Listener| header.flags.fin() && listener.tcp().policy.syn_with_fin_is_dropped;
        if header.flags.syn()
            && !header.flags.ack()
            && parts.sockets.listener(listener).is_some_and(drops_fin)
        {
            return Err(Drop::Malformed);
        }
        if header.flags.ack() {
            if let Some(done) = self.take_cookie(parts, listener, packet, now, sink) {
                return done;
            }
            let (local, remote) = self.ends();
            parts.no_connection(header, packet.len(), self.datagram.link, local, remote, now);
            return Err(Drop::NoSocket);
        }
        if !header.flags.contains(Flags::SYN) {
            return Err(Drop::NoSocket);
        }
        let done = self.handle_syn(parts, listener, packet, now, sink);
        if matches!(done, Err(Drop::QueueFull | Drop::NoMemory)) {
            parts.counters.listen_overflows += 1;
            if let Some(listener) = parts.sockets.listener_mut(listener) {
                listener.count_overflow();
            }
        }
        done
    }

    /// A SYN for a listener: a new connection if there is room, or else a cookie.
    fn handle_syn(
        self,
        parts: &mut Parts,
        listener: ListenerId,
        packet: &mut Packet,
        now: Instant,
        sink: &mut dyn Sink,
    ) -> Result<(), Drop> {
        let Some(held) = parts.sockets.listener(listener) else { return Err(Drop::NoSocket) };
        let (hold, config) = (held.options().hold_syn, held.tcp().clone());
        let cookies = if hold { SynCookies::Off } else { held.options().syn_cookies };
        // A full accept queue admits no SYN, with or without state.
        if parts.listening.acceptable(listener) >= held.backlog() {
            return Err(Drop::QueueFull);
        }
        let room = match cookies {
            SynCookies::Always => Err(Drop::QueueFull),
            SynCookies::Off | SynCookies::WhenFull => self.room_for_syn(parts, listener, now),
        };
        match room {
            Ok(()) => self.add_half_open(parts, listener, packet, (hold, &config), now, sink),
            // A cookie has no room for a source route.
            Err(why) if cookies == SynCookies::Off || parts.ip.return_route().is_some() => Err(why),
            Err(_) => self.answer_with_cookie(parts, listener, &config, now),
        }
    }
    /// Whether the host can keep one more handshake of a listener's in progress.
    fn room_for_syn(self, parts: &mut Parts, listener: ListenerId, now: Instant) -> Result<(), Drop> {
        let Some(held) = parts.sockets.listener(listener) else { return Err(Drop::NoSocket) };
        if parts.listening.half_open(listener) >= held.options().syn_queue.max(1) {
            self.make_room(parts, listener, now)?;
        }
        if parts.memory.pool().is_under_pressure() { Err(Drop::NoMemory) } else { Ok(()) }
    }
    /// A new connection, from its SYN.
    fn add_half_open(
        self,
        parts: &mut Parts,
        listener: ListenerId,
        packet: &mut Packet,
        (hold, config): (bool, &Arc<Config>),
        now: Instant,
        sink: &mut dyn Sink,
    ) -> Result<(), Drop> {
        let (local, remote) = self.ends();
        let path = self.route_back(parts, now)?;
        let mut open = parts.open(&path, local, remote, now);
        if let Some(least) = self.least_sequence {
            open.initial_sequence = open.initial_sequence.later(least);
        }
        let key = parts.sockets.next_tcp_id().ok_or(Drop::QueueFull)?;
        let mut environment = tcp_environment!(parts, now, key, sink);
        let mut connection = Connection::accept(config, open, self.header, hold, &mut environment);
        let ends = (local.address, remote.address);
        let fast = self.decide_fast_open(parts, listener, self.header, ends, !packet.is_empty(), now);
        if let Some((cookie, experimental)) = fast.grants {
            connection.opening().grant_fast_open(cookie, experimental);
        }
        let mut flags = TcpSocketFlags::UNCLAIMED.and(TcpSocketFlags::BOUND);
        if hold {
            flags = flags.and(TcpSocketFlags::HELD);
        }
        flags = flags.and(match fast.accepts {
            true => TcpSocketFlags::FAST_OPEN,
            false => TcpSocketFlags::HALF_OPEN,
        });
        let flow = TcpSocket::new(connection, &path, local.port, remote.port, Some(listener), flags);
        let key = parts.add_flow(flow, self.name_hash).ok_or(Drop::QueueFull)?;
        parts.source_routes.insert(key, parts.ip.return_route().copied());
        parts.counters.connections_accepted += 1;
        parts.inherit(key, listener);
        if fast.accepts {
            parts.take_fast_open(listener, key, self.header, packet, now, sink);
        } else if hold {
            parts.listening.add_acceptable(listener, key);
            parts.notify(listener.into());
        } else {
            parts.listening.add_half_open(listener, key);
        }
        parts.reschedule(key, now);
        Ok(())
    }

    /// Ends the oldest handshake in progress, when it is old enough; one that only awaits data is given out instead.
    fn make_room(self, parts: &mut Parts, listener: ListenerId, now: Instant) -> Result<(), Drop> {
        let oldest = parts.listening.oldest_half_open(listener).ok_or(Drop::QueueFull)?;
        let key = parts.sockets.tcp_at_place(oldest).ok_or(Drop::QueueFull)?;
        let flow = parts.sockets.tcp(key).ok_or(Drop::QueueFull)?;
        if flow.has(TcpSocketFlags::AWAITS_DATA) {
            parts.offer_to_accept(key);
            return Ok(());
        }
        if flow.connection().ledgers(now).send.total() < HALF_OPEN_GIVES_WAY_AFTER {
            return Err(Drop::QueueFull);
        }
        parts.reap(key);
        Ok(())
    }
    /// Decides about the Fast Open option and the data of a SYN.
    fn decide_fast_open(
        self,
        parts: &mut Parts,
        listener: ListenerId,
        syn: &Header,
        ends: (IpAddr, IpAddr),
        has_data: bool,
        now: Instant,
    ) -> Verdict {
        let Parts { listening, sockets, config, random, counters, .. } = parts;
        let Some(held) = sockets.listener_mut(listener) else { return Verdict::default() };
        let with = (&config.fast_open, random);
        let verdict = listening.fast_open().decide(held, syn, ends, has_data, with, now);
        counters.fast_opens_over_limit += u64::from(verdict.over_limit);
        counters.fast_open_cookies_granted += u64::from(verdict.grants.is_some());
        counters.fast_opens_accepted += u64::from(verdict.accepts);
        verdict
    }
}
