//! Stateless SYN handling: a SYN cookie is sent, and the ACK that returns it opens a connection (RFC 4987 §3.6). The
//! cost of a SYN is constant, and it takes no memory.

use crate::listen::cookie::{Caller, Terms};
use crate::listen::handshake::IncomingSyn;
use crate::output::Reply;
use crate::parts::{Parts, tcp_environment};
use crate::sockets::{ListenerId, TcpSocket, TcpSocketFlags, TcpSocketId};
use alloc::sync::Arc;
use inhost_base::{Duration, Instant, LinkId};
use inhost_buf::{Packet, Slices};
use inhost_event::{Drop, Ignore, Sink};
use inhost_ip::Path;
use inhost_tcp::{Blocked, Config, Connection, Ecn, Header, Open, SegmentOutput};
use inhost_wire::tcp::{Flags, TcpOptions};

/// How long after the last cookie of a listener acknowledgments are looked at for one: twice as long as they hold.
const LOOKED_FOR: Duration = Duration::from_secs(256);

/// Keeps the one header that a connection without data sends first.
struct First(Option<Header>);

impl SegmentOutput for First {
    fn segment(&mut self, header: &Header, _payload: Slices<'_>, _ecn: Ecn) -> Result<(), Blocked> {
        self.0 = Some(*header);
        Ok(())
    }
}

impl IncomingSyn<'_> {
    /// Answers a SYN with a cookie.
    pub(crate) fn answer_with_cookie(
        self,
        parts: &mut Parts,
        listener: ListenerId,
        config: &Arc<Config>,
        now: Instant,
    ) -> Result<(), Drop> {
        let (local, remote) = self.ends();
        let path = self.route_back(parts, now)?;
        let open = parts.open(&path, local, remote, now);
        let header = self.header;
        // The answer is the one that a connection would give, less what cannot be remembered for the caller.
        let mut answer =
            self.first_answer(parts, listener, config, open, header, now).ok_or(Drop::NotCredible)?;
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
                answer.flags = answer.flags.without(Flags::ECE);
            }
        }
        let mss = header.options.mss.unwrap_or(open.default_mss);
        let caller = Caller { local, remote, sequence: header.sequence };
        let cookie = parts.listening.cookies().make(caller, mss, terms, now).ok_or(Drop::QueueFull)?;
        // RFC 9293 §3.10.7.4: who follows a connection in TIME-WAIT begins beyond its numbers. A cookie cannot choose.
        if self.least_sequence.is_some_and(|least| cookie.precedes(least)) {
            return Err(Drop::QueueFull);
        }
        answer.sequence = cookie;
        (answer.source_port, answer.destination_port) = (local.port, remote.port);
        if !parts.replies.push(Reply { path, header: answer }) {
            return Err(Drop::QueueFull);
        }
        parts.counters.cookies_sent += 1;
        if let Some(listener) = parts.sockets.listener_mut(listener) {
            listener.expect_cookies(now + LOOKED_FOR);
        }
        Ok(())
    }
    /// The SYN and ACK that a connection would send.
    fn first_answer(
        self,
        parts: &mut Parts,
        listener: ListenerId,
        config: &Arc<Config>,
        open: Open,
        syn: &Header,
        now: Instant,
    ) -> Option<Header> {
        // A connection that was not established causes no events.
        let mut environment = tcp_environment!(parts, now, listener, &mut Ignore);
        let mut connection = Connection::accept(config, open, syn, false, &mut environment);
        let mut first = First(None);
        connection.transmit(&mut environment, 1, &mut first);
        connection.clear(environment.pool);
        first.0
    }

    /// An acknowledgment for a listener: the answer to a cookie of ours, perhaps. `None` when it is not.
    pub(crate) fn take_cookie(
        self,
        parts: &mut Parts,
        listener: ListenerId,
        packet: &mut Packet,
        now: Instant,
        sink: &mut dyn Sink,
    ) -> Option<Result<(), Drop>> {
        let header = self.header;
        let held = parts.sockets.listener(listener).filter(|held| held.expects_cookies(now))?;
        if header.flags.intersects(Flags::SYN | Flags::RST) || !header.flags.ack() {
            return None;
        }
        let (backlog, config) = (held.backlog(), held.tcp().clone());
        let (local, remote) = self.ends();
        let (_, timestamp_offset) = parts.demux.initial_sequence(local, remote, now);
        let stamp = (now.as_millis() as u32).wrapping_add(timestamp_offset);
        let terms = match header.options.timestamps {
            Some((_, echo)) => Some(Terms::of_echo(echo, stamp)?),
            None => None,
        };
        let caller = Caller { local, remote, sequence: header.sequence.back(1) };
        let cookie = header.acknowledgment.back(1);
        let Some(mss) = parts.listening.cookies().check(caller, cookie, terms, now) else {
            parts.counters.cookies_refused += 1;
            // A caller that echoes our recent timestamp was answered a moment ago. Its first ACK was lost, and it will
            // retransmit, so it gets no reset.
            return terms.is_some().then_some(Err(Drop::NotCredible));
        };
        if parts.listening.acceptable(listener) >= backlog {
            // The caller is connected from its point of view, and retransmits until there is room.
            return Some(Err(Drop::QueueFull));
        }
        let syn = syn_of(header, mss, terms);
        let connected = self.connect_by_cookie(parts, listener, &syn, &config, now, sink);
        let key = match connected {
            Ok(key) => key,
            Err(why) => return Some(Err(why)),
        };
        Some(parts.flow_input(key, header, packet, self.datagram, now, sink))
    }
    /// A connection as if `syn` had come in and been answered.
    fn connect_by_cookie(
        self,
        parts: &mut Parts,
        listener: ListenerId,
        syn: &Header,
        config: &Arc<Config>,
        now: Instant,
        sink: &mut dyn Sink,
    ) -> Result<TcpSocketId, Drop> {
        let (local, remote) = self.ends();
        let path = self.route_back(parts, now)?;
        let open = Open {
            initial_sequence: self.header.acknowledgment.back(1),
            ..parts.open(&path, local, remote, now)
        };
        let key = parts.sockets.next_tcp_id().ok_or(Drop::QueueFull)?;
        let mut environment = tcp_environment!(parts, now, key, sink);
        let mut connection = Connection::accept(config, open, syn, false, &mut environment);
        connection.opening().answered(&mut environment);
        let flags = TcpSocketFlags::UNCLAIMED.and(TcpSocketFlags::HALF_OPEN).and(TcpSocketFlags::BOUND);
        let flow = TcpSocket::new(connection, &path, local.port, remote.port, Some(listener), flags);
        let key = parts.add_flow(flow, self.name_hash).ok_or(Drop::QueueFull)?;
        parts.counters.connections_accepted += 1;
        parts.counters.cookies_accepted += 1;
        parts.inherit(key, listener);
        parts.listening.add_half_open(listener, key);
        Ok(key)
    }
    /// The route back to a caller: through the gateway by which it came.
    pub(crate) fn route_back(self, parts: &mut Parts, now: Instant) -> Result<Path, Drop> {
        let (local, remote) = self.ends();
        let link: LinkId = self.datagram.link;
        let local = Some(local.address);
        // spec: RFC9293 MUST-53
        if let Some(route) = parts.ip.return_route().copied() {
            let Parts { source_routes, ip, .. } = parts;
            let path = source_routes.path_by(ip, &route, (local, remote.address), Some(link), now);
            return path.map_err(|_| Drop::BadSource);
        }
        let gateway = parts.ip.gateway_towards(link, remote.address);
        let route = parts.ip.paths_mut().route_through(gateway, remote.address, local, Some(link), now);
        route.map_err(|_| Drop::BadSource)
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
