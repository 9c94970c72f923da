//! Segments for a listener. A SYN becomes a half-open connection, or is answered with a cookie; the ACK that returns a cookie
//! opens a connection (RFC 4987 §3.6). A cookie's cost is constant, and it takes no memory.

use crate::demux::{Name, NameHash};
use crate::environment::Environment;
use crate::flows::outcome::apply;
use crate::flows::segment::flow_input;
use crate::listen::Terms;
use crate::options::SynCookies;
use crate::output::Reply;
use crate::socket::{ListenerId, TcpSocketId};
use crate::sockets::Sockets;
use crate::tcp::{TcpSocket, TcpSocketFlags};
use alloc::sync::Arc;
use inhost_base::{Duration, Sequence};
use inhost_buf::{Full, Packet, Slices};
use inhost_event::{Drop, Ignore};
use inhost_ip::{Datagram, Path};
use inhost_tcp::{Config, Connection, Ecn, Header, Open, ResetReply, SegmentOutput};
use inhost_wire::tcp::{Flags, TcpOptions};

/// A handshake in progress that is older than this gives way to a new one when the SYN queue is full.
const HALF_OPEN_GIVES_WAY_AFTER: Duration = Duration::from_secs(3);

/// How long after the last cookie of a listener acknowledgments are looked at for one: twice as long as they hold.
const LOOKED_FOR: Duration = Duration::from_secs(256);

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
    /// Handles the segment (RFC 9293 §3.10.7.2).
    pub(crate) fn input(
        &self,
        sockets: &mut Sockets,
        packet: &mut Packet,
        env: &mut Environment<'_>,
    ) -> Result<(), Drop> {
        let mut call = Handshake { syn: self, packet, sockets, env };
        let flags = self.header.flags;
        if flags.rst() {
            return Err(Drop::NoSocket);
        }
        if flags.ack() {
            if let Some(done) = call.take_cookie() {
                return done;
            }
            if let Some(reset) = ResetReply::to(self.header, call.packet.len()) {
                call.env.answer_with_reset(self.datagram.link, self.name, reset);
            }
            return Err(Drop::NoSocket);
        }
        if !flags.contains(Flags::SYN) {
            return Err(Drop::NoSocket);
        }
        let done = call.handle_syn();
        if matches!(done, Err(Drop::QueueFull | Drop::NoMemory)) {
            call.env.counters().listen_overflows += 1;
        }
        done
    }
}

/// A segment for a listener, and what it may change.
struct Handshake<'s, 'a, 'e> {
    syn: &'a IncomingSyn<'s>,
    packet: &'a mut Packet,
    sockets: &'a mut Sockets,
    env: &'a mut Environment<'e>,
}

impl Handshake<'_, '_, '_> {
    /// A SYN for a listener: a new connection if there is room, or else a cookie.
    fn handle_syn(&mut self) -> Result<(), Drop> {
        let Some(held) = self.sockets.listener(self.syn.listener) else { return Err(Drop::NoSocket) };
        let (hold, config) = (held.options().hold_syn, held.tcp().clone());
        let cookies = if hold { SynCookies::Off } else { held.options().syn_cookies };
        // A full accept queue admits no SYN, with or without state.
        if self.sockets.is_backlog_full(self.syn.listener) {
            return Err(Drop::QueueFull);
        }
        let room = match cookies {
            SynCookies::Always => Err(Drop::QueueFull),
            SynCookies::Off | SynCookies::WhenFull => self.room_for_syn(),
        };
        match room {
            Ok(()) => self.add_half_open(hold, &config),
            // A cookie has no room for a source route.
            Err(why) if cookies == SynCookies::Off || self.env.network().ip().return_route().is_some() => {
                Err(why)
            }
            Err(_) => self.answer_with_cookie(&config),
        }
    }
    /// Whether the host can keep one more handshake of a listener's in progress.
    fn room_for_syn(&mut self) -> Result<(), Drop> {
        let Some(held) = self.sockets.listener(self.syn.listener) else { return Err(Drop::NoSocket) };
        if self.sockets.listening().half_open(self.syn.listener) >= held.options().syn_queue.max(1) {
            self.make_room()?;
        }
        if self.env.pool().is_under_pressure() { Err(Drop::NoMemory) } else { Ok(()) }
    }
    /// Ends the oldest handshake in progress, when it is old enough; one that only awaits data is given out instead.
    fn make_room(&mut self) -> Result<(), Drop> {
        let oldest = self.sockets.listening().oldest_half_open(self.syn.listener).ok_or(Drop::QueueFull)?;
        let key = self.sockets.tcp_at_place(oldest).ok_or(Drop::QueueFull)?;
        let flow = self.sockets.tcp(key).ok_or(Drop::QueueFull)?;
        if flow.has(TcpSocketFlags::AWAITS_DATA) {
            self.sockets.offer_to_accept(key);
            return Ok(());
        }
        if flow.connection().ledgers(self.env.now()).send.total() < HALF_OPEN_GIVES_WAY_AFTER {
            return Err(Drop::QueueFull);
        }
        self.sockets.reap(key, self.env.resources());
        Ok(())
    }
    /// A new connection, from its SYN.
    fn add_half_open(&mut self, hold: bool, config: &Arc<Config>) -> Result<(), Drop> {
        let path = self.route_back()?;
        let mut open = self.sockets.open(&path, self.syn.name, self.env.now());
        if let Some(least) = self.syn.least_sequence {
            open.initial_sequence = open.initial_sequence.later(least);
        }
        let key = self.sockets.next_tcp_id().ok_or(Drop::QueueFull)?;
        let fast = self.sockets.decide_fast_open(
            self.syn.listener,
            self.syn.header,
            self.syn.name,
            !self.packet.is_empty(),
            self.env,
        );
        (open.hold_syn, open.fast_open) = (hold, fast.grants);
        let connection = Connection::accept(config, open, self.syn.header, &mut self.env.tcp(key.key()));
        let held = if hold { TcpSocketFlags::HELD } else { TcpSocketFlags::default() };
        let flags = held.union(match fast.accepts {
            true => TcpSocketFlags::FAST_OPEN,
            false => TcpSocketFlags::HALF_OPEN,
        });
        let key = self.add(connection, &path, flags)?;
        self.sockets.set_route(key, self.env.network().ip().return_route().copied());
        if fast.accepts {
            // The connection can be accepted before its handshake is done (RFC 7413 §4.2.2).
            let Some(flow) = self.sockets.tcp_mut(key) else { return Ok(()) };
            let environment = &mut self.env.tcp(key.key());
            let outcome = flow.connection_mut().take_syn_data(self.syn.header, self.packet, environment);
            self.sockets.add_acceptable(self.syn.listener, key);
            apply(self.sockets, key, &outcome, self.env);
        } else if hold {
            self.sockets.add_acceptable(self.syn.listener, key);
        } else {
            self.sockets.listening_mut().add_half_open(self.syn.listener, key);
        }
        self.sockets.reschedule(key, self.env.now());
        Ok(())
    }
    /// Puts a new connection of the listener's into the table.
    #[inline(always)]
    fn add(
        &mut self,
        connection: Connection,
        path: &Path,
        flags: TcpSocketFlags,
    ) -> Result<TcpSocketId, Drop> {
        let flags = flags.union(TcpSocketFlags::UNCLAIMED).union(TcpSocketFlags::BOUND);
        let flow = TcpSocket::new(connection, path, self.syn.name, Some(self.syn.listener), flags);
        let key = self.sockets.add_flow(flow, self.syn.name_hash, self.env.pool()).ok_or(Drop::QueueFull)?;
        self.env.counters().connections_accepted += 1;
        self.sockets.inherit(key, self.syn.listener);
        Ok(key)
    }
    /// The route back to a caller: through the gateway by which it came.
    fn route_back(&mut self) -> Result<Path, Drop> {
        let (now, link) = (self.env.now(), self.syn.datagram.link);
        let (local, remote) = (Some(self.syn.name.local.address), self.syn.name.remote.address);
        // spec: RFC9293 MUST-53
        if let Some(route) = self.env.network().ip().return_route().copied() {
            let (routes, paths) = (self.sockets.optional(), self.env.paths_mut());
            let path = routes.path_by(paths, &route, (local, remote), Some(link), now);
            return path.map_err(|_| Drop::BadSource);
        }
        let gateway = self.env.network().ip().gateway_towards(link, remote);
        let paths = self.env.paths_mut();
        let route = paths.route_through(gateway, remote, local, Some(link), now);
        route.map_err(|_| Drop::BadSource)
    }

    /// Answers a SYN with a cookie.
    fn answer_with_cookie(&mut self, config: &Arc<Config>) -> Result<(), Drop> {
        let now = self.env.now();
        let path = self.route_back()?;
        let open = self.sockets.open(&path, self.syn.name, now);
        let header = self.syn.header;
        // The answer is the one that a connection would give, less what cannot be remembered for the caller.
        let mut answer = self.first_answer(config, open).ok_or(Drop::NotCredible)?;
        let terms = answer.options.timestamps.map(|_| Terms {
            scale: header.options.window_scale.filter(|_| answer.options.window_scale.is_some()),
            sack: answer.options.sack_permitted,
            ecn: answer.flags.ece(),
        });
        match (terms, &mut answer.options.timestamps) {
            (Some(terms), Some((value, _))) => *value = terms.stamp(*value),
            _ => {
                answer.options.window_scale = None;
                answer.options.sack_permitted = false;
                answer.flags = answer.flags.difference(Flags::ECE);
            }
        }
        let mss = header.options.mss.unwrap_or(open.default_mss);
        let cookie = self
            .sockets
            .listening()
            .cookies()
            .make(self.syn.name, header.sequence, mss, terms, now)
            .ok_or(Drop::QueueFull)?;
        // RFC 9293 §3.10.7.4: who follows a connection in TIME-WAIT begins beyond its numbers. A cookie cannot choose.
        if self.syn.least_sequence.is_some_and(|least| cookie.precedes(least)) {
            return Err(Drop::QueueFull);
        }
        answer.sequence = cookie;
        (answer.source_port, answer.destination_port) = (self.syn.name.local.port, self.syn.name.remote.port);
        if !self.env.network_mut().replies_mut().push(Reply { path, header: answer }) {
            return Err(Drop::QueueFull);
        }
        self.env.counters().cookies_sent += 1;
        if let Some(listener) = self.sockets.listener_mut(self.syn.listener) {
            listener.expect_cookies(now + LOOKED_FOR);
        }
        Ok(())
    }
    /// The SYN and ACK that a connection would send.
    fn first_answer(&mut self, config: &Arc<Config>, open: Open) -> Option<Header> {
        let now = self.env.now();
        // A connection that was not established causes no events.
        let mut ignore = Ignore;
        let mut environment = self.env.resources().for_tcp(self.syn.listener.key(), now, &mut ignore);
        let mut connection = Connection::accept(config, open, self.syn.header, &mut environment);
        let mut first = First(None);
        connection.transmit(&mut environment, 1, &mut first);
        connection.clear(environment.pool());
        first.0
    }

    /// An acknowledgment for a listener: the answer to a cookie of ours, perhaps. `None` when it is not.
    fn take_cookie(&mut self) -> Option<Result<(), Drop>> {
        let now = self.env.now();
        let header = self.syn.header;
        let held = self.sockets.listener(self.syn.listener).filter(|held| held.expects_cookies(now))?;
        if header.flags.intersects(Flags::SYN | Flags::RST) || !header.flags.ack() {
            return None;
        }
        let config = held.tcp().clone();
        let (_, timestamp_offset) = self.sockets.initial_sequence(self.syn.name, now);
        let stamp = (now.as_millis() as u32).wrapping_add(timestamp_offset);
        let terms = match header.options.timestamps {
            Some((_, echo)) => Some(Terms::of_echo(echo, stamp)?),
            None => None,
        };
        let sequence = header.sequence.back(1);
        let cookie = header.acknowledgment.back(1);
        let Some(mss) = self.sockets.listening().cookies().check(self.syn.name, sequence, cookie, terms, now)
        else {
            self.env.counters().cookies_refused += 1;
            // A caller that echoes our recent timestamp was answered a moment ago. Its first ACK was lost, and it will
            // retransmit, so it gets no reset.
            return terms.is_some().then_some(Err(Drop::NotCredible));
        };
        if self.sockets.is_backlog_full(self.syn.listener) {
            // The caller is connected from its point of view, and retransmits until there is room.
            return Some(Err(Drop::QueueFull));
        }
        let syn = syn_of(header, mss, terms);
        let connected = self.connect_by_cookie(&syn, &config);
        let key = match connected {
            Ok(key) => key,
            Err(why) => return Some(Err(why)),
        };
        Some(flow_input(self.sockets, key, header, self.packet, self.syn.datagram.ecn, self.env))
    }
    /// A connection as if `syn` had come in and been answered.
    fn connect_by_cookie(&mut self, syn: &Header, config: &Arc<Config>) -> Result<TcpSocketId, Drop> {
        let path = self.route_back()?;
        let open = Open {
            initial_sequence: self.syn.header.acknowledgment.back(1),
            syn_was_sent: true,
            ..self.sockets.open(&path, self.syn.name, self.env.now())
        };
        let key = self.sockets.next_tcp_id().ok_or(Drop::QueueFull)?;
        let connection = Connection::accept(config, open, syn, &mut self.env.tcp(key.key()));
        let key = self.add(connection, &path, TcpSocketFlags::HALF_OPEN)?;
        self.env.counters().cookies_accepted += 1;
        self.sockets.listening_mut().add_half_open(self.syn.listener, key);
        Ok(key)
    }
}

/// The SYN that must have come before `header`.
fn syn_of(header: &Header, mss: u16, terms: Option<Terms>) -> Header {
    let ecn = terms.is_some_and(|terms| terms.ecn);
    let flags = if ecn { Flags::SYN | Flags::ECE | Flags::CWR } else { Flags::SYN };
    let options = TcpOptions {
        mss: Some(mss),
        window_scale: terms.and_then(|terms| terms.scale),
        sack_permitted: terms.is_some_and(|terms| terms.sack),
        timestamps: header.options.timestamps.map(|(value, _)| (value, 0)),
        ..TcpOptions::NONE
    };
    Header {
        sequence: header.sequence.back(1),
        acknowledgment: Default::default(),
        flags,
        options,
        ..*header
    }
}

/// Keeps the one header that a connection without data sends first.
struct First(Option<Header>);

impl SegmentOutput for First {
    fn segment(&mut self, header: &Header, _payload: Slices<'_>, _ecn: Ecn) -> Result<(), Full> {
        self.0 = Some(*header);
        Ok(())
    }
}
