//! Segments for a listener: a SYN becomes a half-open connection, or is answered with a cookie.

use crate::demux::{Name, NameHash};
use crate::environment::Environment;
use crate::flows::outcome::apply;
use crate::options::SynCookies;
use crate::socket::{ListenerId, TcpSocketId};
use crate::sockets::Sockets;
use crate::tcp::{TcpSocket, TcpSocketFlags};
use alloc::sync::Arc;
use inhost_base::{Duration, Sequence};
use inhost_buf::Packet;
use inhost_event::Drop;
use inhost_ip::{Datagram, Path};
use inhost_tcp::{Config, Connection, Header, ResetReply};
use inhost_wire::tcp::Flags;

/// A handshake in progress that is older than this gives way to a new one when the SYN queue is full.
const HALF_OPEN_GIVES_WAY_AFTER: Duration = Duration::from_secs(3);

/// A segment for a listener, with its IP fields.
#[derive(Clone, Copy)]
pub(crate) struct IncomingSyn<'a> {
    pub(crate) listener: ListenerId,
    pub(crate) name: &'a Name,
    pub(crate) header: &'a Header,
    pub(crate) datagram: &'a Datagram,
    /// The least initial sequence number that may be chosen, where a connection in TIME-WAIT gives way.
    pub(crate) least_sequence: Option<Sequence>,
    /// The hash of the two ends, where it is known.
    pub(crate) name_hash: Option<NameHash>,
}

impl IncomingSyn<'_> {
    /// A segment for a listener (RFC 9293 §3.10.7.2).
    pub(crate) fn input(
        self,
        sockets: &mut Sockets,
        packet: &mut Packet,
        env: &mut Environment<'_>,
    ) -> Result<(), Drop> {
        let flags = self.header.flags;
        if flags.rst() {
            return Err(Drop::NoSocket);
        }
        if flags.ack() {
            if let Some(done) = self.take_cookie(sockets, packet, env) {
                return done;
            }
            if let Some(reset) = ResetReply::to(self.header, packet.len()) {
                env.answer_with_reset(self.datagram.link, self.name, reset);
            }
            return Err(Drop::NoSocket);
        }
        if !flags.contains(Flags::SYN) {
            return Err(Drop::NoSocket);
        }
        let done = self.handle_syn(sockets, packet, env);
        if matches!(done, Err(Drop::QueueFull | Drop::NoMemory)) {
            env.counters().listen_overflows += 1;
        }
        done
    }

    /// A SYN for a listener: a new connection if there is room, or else a cookie.
    fn handle_syn(
        self,
        sockets: &mut Sockets,
        packet: &mut Packet,
        env: &mut Environment<'_>,
    ) -> Result<(), Drop> {
        let Some(held) = sockets.listener(self.listener) else { return Err(Drop::NoSocket) };
        let (hold, config) = (held.options().hold_syn, held.inherited().tcp.clone());
        let cookies = if hold { SynCookies::Off } else { held.options().syn_cookies };
        // A full accept queue admits no SYN, with or without state.
        if sockets.is_backlog_full(self.listener) {
            return Err(Drop::QueueFull);
        }
        let room = match cookies {
            SynCookies::Always => Err(Drop::QueueFull),
            SynCookies::Off | SynCookies::WhenFull => self.room_for_syn(sockets, env),
        };
        match room {
            Ok(()) => self.add_half_open(sockets, packet, (hold, &config), env),
            // A cookie has no room for a source route.
            Err(why) if cookies == SynCookies::Off || env.network().ip().return_route().is_some() => Err(why),
            Err(_) => self.answer_with_cookie(sockets, &config, env),
        }
    }
    /// Whether the host can keep one more handshake of a listener's in progress.
    fn room_for_syn(self, sockets: &mut Sockets, env: &mut Environment<'_>) -> Result<(), Drop> {
        let Some(held) = sockets.listener(self.listener) else { return Err(Drop::NoSocket) };
        if sockets.listening().half_open(self.listener) >= held.options().syn_queue.max(1) {
            self.make_room(sockets, env)?;
        }
        if env.pool().is_under_pressure() { Err(Drop::NoMemory) } else { Ok(()) }
    }
    /// Ends the oldest handshake in progress, when it is old enough; one that only awaits data is given out instead.
    fn make_room(self, sockets: &mut Sockets, env: &mut Environment<'_>) -> Result<(), Drop> {
        let oldest = sockets.listening().oldest_half_open(self.listener).ok_or(Drop::QueueFull)?;
        let key = sockets.tcp_at_place(oldest).ok_or(Drop::QueueFull)?;
        let flow = sockets.tcp(key).ok_or(Drop::QueueFull)?;
        if flow.has(TcpSocketFlags::AWAITS_DATA) {
            sockets.offer_to_accept(key);
            return Ok(());
        }
        if flow.connection().ledgers(env.now()).send.total() < HALF_OPEN_GIVES_WAY_AFTER {
            return Err(Drop::QueueFull);
        }
        sockets.reap(key, env.resources());
        Ok(())
    }
    /// A new connection, from its SYN.
    fn add_half_open(
        self,
        sockets: &mut Sockets,
        packet: &mut Packet,
        (hold, config): (bool, &Arc<Config>),
        env: &mut Environment<'_>,
    ) -> Result<(), Drop> {
        let path = self.route_back(sockets, env)?;
        let mut open = sockets.open(&path, self.name, env.now());
        if let Some(least) = self.least_sequence {
            open.initial_sequence = open.initial_sequence.later(least);
        }
        let key = sockets.next_tcp_id().ok_or(Drop::QueueFull)?;
        let fast = sockets.decide_fast_open(self.listener, self.header, self.name, !packet.is_empty(), env);
        (open.hold_syn, open.fast_open) = (hold, fast.grants);
        let connection = Connection::accept(config, open, self.header, &mut env.tcp(key.key()));
        let held = if hold { TcpSocketFlags::HELD } else { TcpSocketFlags::default() };
        let flags = held.union(match fast.accepts {
            true => TcpSocketFlags::FAST_OPEN,
            false => TcpSocketFlags::HALF_OPEN,
        });
        let key = self.add(sockets, connection, &path, flags, env)?;
        sockets.set_route(key, env.network().ip().return_route().copied());
        if fast.accepts {
            // The connection can be accepted before its handshake is done (RFC 7413 §4.2.2).
            let Some(flow) = sockets.tcp_mut(key) else { return Ok(()) };
            let environment = &mut env.tcp(key.key());
            let outcome = flow.connection_mut().take_syn_data(self.header, packet, environment);
            sockets.add_acceptable(self.listener, key);
            apply(sockets, key, &outcome, env);
        } else if hold {
            sockets.add_acceptable(self.listener, key);
        } else {
            sockets.listening_mut().add_half_open(self.listener, key);
        }
        sockets.reschedule(key, env.now());
        Ok(())
    }
    /// Puts a new connection of the listener's into the table.
    #[inline(always)]
    pub(super) fn add(
        self,
        sockets: &mut Sockets,
        connection: Connection,
        path: &Path,
        flags: TcpSocketFlags,
        env: &mut Environment<'_>,
    ) -> Result<TcpSocketId, Drop> {
        let Name { local, remote, .. } = self.name;
        let flags = flags.union(TcpSocketFlags::UNCLAIMED).union(TcpSocketFlags::BOUND);
        let flow = TcpSocket::new(connection, path, local.port, remote.port, Some(self.listener), flags);
        let key = sockets.add_flow(flow, self.name_hash).ok_or(Drop::QueueFull)?;
        env.counters().connections_accepted += 1;
        sockets.inherit(key, self.listener);
        Ok(key)
    }
    /// The route back to a caller: through the gateway by which it came.
    pub(super) fn route_back(self, sockets: &Sockets, env: &mut Environment<'_>) -> Result<Path, Drop> {
        let (now, link) = (env.now(), self.datagram.link);
        let (local, remote) = (Some(self.name.local.address), self.name.remote.address);
        // spec: RFC9293 MUST-53
        if let Some(route) = env.network().ip().return_route().copied() {
            let (routes, paths) = (sockets.optional(), env.paths_mut());
            let path = routes.path_by(paths, &route, (local, remote), Some(link), now);
            return path.map_err(|_| Drop::BadSource);
        }
        let gateway = env.network().ip().gateway_towards(link, remote);
        let paths = env.paths_mut();
        let route = paths.route_through(gateway, remote, local, Some(link), now);
        route.map_err(|_| Drop::BadSource)
    }
}
