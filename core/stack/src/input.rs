//! TCP segments on their way up: what must be checked before a connection sees them, and what is answered when there
//! is none.

use crate::entry::{ANY_ADDRESS, Flow, Marks, NOWHERE, Socket};
use crate::listener::{acceptable_of, embryos_of};
use crate::options::SynCookies;
use crate::stack::{Stack, tcp_environment};
use crate::table::{Name, NameHash};
use inhost_base::{Duration, Endpoint, Instant, IpAddr, Ipv4Addr, Ipv6Addr, Key, LinkId, Sequence};
use inhost_buf::Packet;
use inhost_event::{Drop, Sink};
use inhost_ip::{Datagram, Path};
use inhost_tcp::{Config, Connection, Ecn, Header, Open, Outcome, ResetReply};
use inhost_wire::protocol;
use inhost_wire::tcp::{Flags, Segment, TcpView};
use std::sync::Arc;

/// A handshake in progress that is older than this gives way to a new one when the SYN queue is full.
const EMBRYO_GIVES_WAY_AFTER: Duration = Duration::from_secs(3);
/// What a peer takes that names no maximum (RFC 9293 §3.7.1).
// spec: RFC9293 MUST-15
const DEFAULT_MSS_V4: u16 = 536;
const DEFAULT_MSS_V6: u16 = 1220;

impl Stack {
    /// Takes a segment; an error says why it went no further.
    pub(crate) fn tcp_input(
        &mut self,
        datagram: &Datagram,
        packet: &mut Packet,
        now: Instant,
        sink: &mut dyn Sink,
    ) -> Result<(), Drop> {
        // spec: RFC9293 MUST-57
        if !datagram.to_unicast {
            return Err(Drop::NotForUs);
        }
        // spec: RFC9293 MUST-63
        if !can_talk(datagram.source) {
            return Err(Drop::BadSource);
        }
        let view = TcpView::new(packet.bytes()).map_err(|_| Drop::Malformed)?;
        // spec: RFC9293 MUST-3
        if !packet.checksum.is_good() && !view.checksum_ok(datagram.source, datagram.destination) {
            return Err(Drop::Checksum);
        }
        let header = Segment::parse(&view).header();
        let header_bytes = view.header_length();
        if header.source_port == 0 || header.destination_port == 0 {
            return Err(Drop::Malformed);
        }
        let local = Endpoint { address: datagram.destination, port: header.destination_port };
        let remote = Endpoint { address: datagram.source, port: header.source_port };
        packet.trim_front(header_bytes);

        let name = Name { protocol: protocol::TCP, local, remote };
        let mut least_sequence = None;
        if let Some(key) = self.find_flow(&name) {
            self.last_flow = Some(key);
            match self.yield_time_wait(key, &header, datagram.link) {
                Some(sequence) => least_sequence = Some(sequence),
                None => return self.flow_input(key, &header, packet, datagram, now, sink),
            }
        }
        let listener = self.find_listener(datagram.link, local);
        match listener.filter(|&key| !self.probe_tcp_input(key, &header, local, remote)) {
            Some(listener) => {
                let call = Call { header: &header, datagram, least_sequence, name_hash: None };
                self.listener_input(listener, call, packet, now, sink)
            }
            None => {
                self.no_connection(&header, packet.len(), datagram.link, local, remote, now);
                Err(Drop::NoSocket)
            }
        }
    }

    /// The connection between two ends: mostly that of the last segment.
    fn find_flow(&self, name: &Name) -> Option<Key> {
        let is_it = |key: &Key| match self.sockets.at(*key) {
            Some(Socket::Flow(flow)) => {
                (flow.local(), flow.remote()) == (name.local, name.remote) && !flow.marks.any(Marks::UNLISTED)
            }
            _ => false,
        };
        self.last_flow.filter(is_it).or_else(|| self.flows.find(&self.sockets, name))
    }
    pub(crate) fn flow_input(
        &mut self,
        key: Key,
        header: &Header,
        packet: &mut Packet,
        datagram: &Datagram,
        now: Instant,
        sink: &mut dyn Sink,
    ) -> Result<(), Drop> {
        let outcome = self.flow_segment(key, header, packet, datagram.ecn, now, sink)?;
        if self.ip.return_route().is_some() && outcome.dropped.is_none() {
            self.learn_route(key, now);
        }
        self.apply(key, outcome, now, sink);
        Ok(())
    }
    /// Gives a segment to its connection; what follows from it is for the caller to do.
    #[inline]
    pub(crate) fn flow_segment(
        &mut self,
        key: Key,
        header: &Header,
        packet: &mut Packet,
        ecn: Ecn,
        now: Instant,
        sink: &mut dyn Sink,
    ) -> Result<Outcome, Drop> {
        let pressed = !packet.is_empty() && self.pool.is_under_pressure();
        let Some(Socket::Flow(flow)) = self.sockets.at_mut(key) else { return Err(Drop::NoSocket) };
        if flow.marks.any(Marks::CHECK_INPUT) {
            let (marks, listener) = (flow.marks, flow.listener());
            self.check_embryo(marks, listener, header)?;
        }
        if pressed && self.takes_more_than_its_share(key, now, sink) {
            return Err(Drop::NoMemory);
        }
        let Some(Socket::Flow(flow)) = self.sockets.at_mut(key) else { return Err(Drop::NoSocket) };
        Ok(flow.connection.receive(header, packet, ecn, &mut tcp_environment!(self, now, key, sink)))
    }

    /// What an unfinished handshake does not get to see.
    fn check_embryo(&self, marks: Marks, listener: Option<Key>, header: &Header) -> Result<(), Drop> {
        if header.flags.rst() {
            return Ok(());
        }
        // Nothing was answered yet, so nothing but the SYN once more, or a mistake, can come.
        if marks.any(Marks::HELD) {
            return Err(Drop::NotCredible);
        }
        // The last step of the handshake waits for room to be accepted in; the caller sends it again.
        let Some(listener) = listener else { return Ok(()) };
        let Some(Socket::Listener(held)) = self.sockets.at(listener) else { return Ok(()) };
        let full = self.acceptable(listener) >= held.options.backlog.max(1);
        if marks.any(Marks::UNCLAIMED) && header.flags.ack() && full {
            return Err(Drop::QueueFull);
        }
        Ok(())
    }

    /// The answer where there is neither connection nor listener.
    fn no_connection(
        &mut self,
        header: &Header,
        payload_bytes: usize,
        link: LinkId,
        local: Endpoint,
        remote: Endpoint,
        now: Instant,
    ) {
        // RFC 9293 §3.10.7.1; a reset is never answered.
        if let Some(reply) = ResetReply::to(header, payload_bytes) {
            self.answer_with_reset(link, local, remote, reply, now);
        }
    }

    /// The listener that takes calls to `local` on `link`: the one at that very address before one at any, that one
    /// before one that takes every address, and that one before one that takes every port as well.
    pub(crate) fn find_listener(&mut self, link: LinkId, local: Endpoint) -> Option<Key> {
        self.find_binding(protocol::TCP, link, local)
    }
    /// As [`Stack::find_listener`], for any transport.
    pub(crate) fn find_binding(&mut self, number: u8, link: LinkId, local: Endpoint) -> Option<Key> {
        let wanted = (number, link, local);
        if let Some((last, key)) = self.last_binding
            && last == wanted
        {
            return Some(key);
        }
        let found = self.search_binding(number, link, local);
        // What takes every address depends on which are ours.
        self.last_binding = found.filter(|_| !self.population.any_address).map(|key| (wanted, key));
        found
    }
    fn search_binding(&self, number: u8, link: LinkId, local: Endpoint) -> Option<Key> {
        let any_v6 = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
        let any_own = match local.address {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(_) => any_v6,
        };
        let find = |protocol: u8, address: IpAddr, port: u16| {
            let name = Name { protocol, local: Endpoint { address, port }, remote: NOWHERE };
            self.flows_on(link, self.bindings.find(&self.sockets, &name))
        };
        if let Some(exact) = find(number, local.address, local.port) {
            return Some(exact);
        }
        let any = find(number, any_own, local.port).or_else(|| find(number, any_v6, local.port));
        if !self.population.any_address {
            return any;
        }
        let every = [(any_own, local.port), (any_v6, local.port), (any_own, 0), (any_v6, 0)]
            .into_iter()
            .find_map(|(address, port)| find(number | ANY_ADDRESS, address, port));
        // An ordinary socket at any address means any address of ours; others' are for those that take every one.
        match every {
            Some(_) if !self.ip.is_local(local.address) => every,
            _ => any.or(every),
        }
    }
    /// `key`, unless it is bound to another link.
    fn flows_on(&self, link: LinkId, key: Option<Key>) -> Option<Key> {
        let bound = match self.sockets.at(key?)? {
            Socket::Listener(listener) => listener.options.link,
            Socket::Udp(udp) => udp.options.link,
            Socket::Flow(_) | Socket::Echo(_) | Socket::Probe(_) => None,
        };
        key.filter(|_| bound.is_none_or(|bound| bound == link))
    }

    /// A segment for a listener (RFC 9293 §3.10.7.2).
    pub(crate) fn listener_input(
        &mut self,
        listener: Key,
        call: Call<'_>,
        packet: &mut Packet,
        now: Instant,
        sink: &mut dyn Sink,
    ) -> Result<(), Drop> {
        let header = call.header;
        if header.flags.rst() {
            return Err(Drop::NoSocket);
        }
        if header.flags.ack() {
            if let Some(done) = self.take_cookie(listener, call, packet, now, sink) {
                return done;
            }
            let (local, remote) = call.ends();
            self.no_connection(header, packet.len(), call.datagram.link, local, remote, now);
            return Err(Drop::NoSocket);
        }
        if !header.flags.contains(Flags::SYN) {
            return Err(Drop::NoSocket);
        }
        let done = self.call(listener, call, packet, now, sink);
        if matches!(done, Err(Drop::QueueFull | Drop::NoMemory)) {
            self.counters.listen_overflows += 1;
            if let Some(Socket::Listener(listener)) = self.sockets.at_mut(listener) {
                listener.overflows += 1;
            }
        }
        done
    }

    /// A SYN for a listener: a new connection if there is room, or else a cookie.
    fn call(
        &mut self,
        listener: Key,
        call: Call<'_>,
        packet: &mut Packet,
        now: Instant,
        sink: &mut dyn Sink,
    ) -> Result<(), Drop> {
        let Some(Socket::Listener(held)) = self.sockets.at(listener) else { return Err(Drop::NoSocket) };
        let (hold, config) = (held.options.hold_syn, held.tcp.clone());
        let cookies = if hold { SynCookies::Off } else { held.options.syn_cookies };
        // What nobody takes from the accept queue is not added to, with or without state.
        if self.acceptable(listener) >= held.options.backlog.max(1) {
            return Err(Drop::QueueFull);
        }
        let room = match cookies {
            SynCookies::Always => Err(Drop::QueueFull),
            SynCookies::Off | SynCookies::WhenFull => self.room_for_call(listener, now),
        };
        match room {
            Ok(()) => self.begin(listener, call, packet, (hold, &config), now, sink),
            // A cookie has no room for a source route.
            Err(why) if cookies == SynCookies::Off || self.ip.return_route().is_some() => Err(why),
            Err(_) => self.answer_with_cookie(listener, call, &config, now),
        }
    }
    /// Whether the host can keep one more handshake of a listener's in progress.
    fn room_for_call(&mut self, listener: Key, now: Instant) -> Result<(), Drop> {
        let Some(Socket::Listener(held)) = self.sockets.at(listener) else { return Err(Drop::NoSocket) };
        if self.embryos(listener) >= held.options.syn_queue.max(1) {
            self.make_room(listener, now)?;
        }
        if self.pool.is_under_pressure() { Err(Drop::NoMemory) } else { Ok(()) }
    }
    /// A new connection, from its SYN.
    fn begin(
        &mut self,
        listener: Key,
        call: Call<'_>,
        packet: &mut Packet,
        (hold, config): (bool, &Arc<Config>),
        now: Instant,
        sink: &mut dyn Sink,
    ) -> Result<(), Drop> {
        let (local, remote) = call.ends();
        let path = self.way_back(&call, now)?;
        let mut open = self.open(&path, local, remote, now);
        if let Some(least) = call.least_sequence {
            open.initial_sequence = open.initial_sequence.later(least);
        }
        let key = self.sockets.next_key().ok_or(Drop::QueueFull)?;
        let mut environment = tcp_environment!(self, now, key, sink);
        let mut connection = Connection::accept(config, open, call.header, hold, &mut environment);
        let ends = (local.address, remote.address);
        let fast = self.judge_fast_open(listener, call.header, ends, !packet.is_empty(), now);
        if let Some((cookie, experimental)) = fast.grants {
            connection.grant_fast_open(cookie, experimental);
        }
        let mut marks = Marks::UNCLAIMED.and(Marks::EMBRYO).and(Marks::BOUND);
        if hold {
            marks.set(Marks::HELD);
        }
        if fast.accepts {
            marks.set(Marks::FAST_OPEN);
            marks.clear(Marks::EMBRYO);
        }
        let flow = Flow::new(connection, &path, local.port, remote.port, listener, marks);
        let key = self.add_flow(flow, call.name_hash).ok_or(Drop::QueueFull)?;
        self.source_routes.insert(key, self.ip.return_route().copied());
        self.counters.connections_accepted += 1;
        self.inherit(key, listener);
        if fast.accepts {
            self.take_fast_open(listener, key, call.header, packet, now, sink);
        } else if hold {
            self.queues.push_back(acceptable_of(listener.index()), key.index());
            self.tell(listener);
        } else {
            self.queues.push_back(embryos_of(listener.index()), key.index());
        }
        self.follow(key, now);
        Ok(())
    }

    /// Puts a flow into the tables; `None` when they are full or its ends are taken. `name_hash` is that of its ends,
    /// where it is known.
    #[inline]
    pub(crate) fn add_flow(&mut self, flow: Flow, name_hash: Option<NameHash>) -> Option<Key> {
        let key = match self.sockets.insert(Socket::Flow(flow)) {
            Ok(key) => key,
            Err(Socket::Flow(mut flow)) => {
                flow.connection.clear(&mut self.pool);
                return None;
            }
            Err(_) => return None,
        };
        let listed = self.flows.insert_hashed(&self.sockets, key, name_hash);
        if let (Some(name_hash), Some(Socket::Flow(flow))) = (listed, self.sockets.at_mut(key)) {
            flow.name_hash = name_hash;
        } else {
            if let Some(Socket::Flow(mut flow)) = self.sockets.remove(key) {
                flow.connection.clear(&mut self.pool);
            }
            return None;
        }
        self.population.flows += 1;
        Some(key)
    }

    /// Ends the oldest handshake in progress, when it is old enough; one that only awaits data is given out instead.
    fn make_room(&mut self, listener: Key, now: Instant) -> Result<(), Drop> {
        let oldest = self.queues.first(embryos_of(listener.index())).ok_or(Drop::QueueFull)?;
        let key = self.sockets.key_at(oldest).ok_or(Drop::QueueFull)?;
        let flow = self.flow(key).ok_or(Drop::QueueFull)?;
        if flow.marks.any(Marks::AWAITS_DATA) {
            self.offer_to_accept(key);
            return Ok(());
        }
        if flow.connection.ledgers(now).send.total() < EMBRYO_GIVES_WAY_AFTER {
            return Err(Drop::QueueFull);
        }
        self.reap(key);
        Ok(())
    }

    /// Lets a connection in TIME-WAIT give way to a new one of the same ends, where that is safe and somebody listens:
    /// the least initial sequence number that the new one may choose.
    // spec: RFC9293 MAY-2
    fn yield_time_wait(&mut self, key: Key, header: &Header, link: LinkId) -> Option<Sequence> {
        if !header.flags.contains(Flags::SYN) {
            return None;
        }
        let flow = self.flow(key)?;
        let (least, local) = (flow.connection.yields_to(header)?, flow.local());
        self.find_listener(link, local)?;
        if self.flow(key)?.marks.any(Marks::ORPHAN) {
            self.reap(key);
        } else {
            // The application still holds it, and keeps what it can read of it.
            self.unlist(key);
        }
        self.counters.time_wait_reused += 1;
        Some(least)
    }

    /// What the host decides for a new connection.
    pub(crate) fn open(&self, path: &Path, local: Endpoint, remote: Endpoint, now: Instant) -> Open {
        let (initial_sequence, timestamp_offset) = self.identity.initial_sequence(local, remote, now);
        let default_mss = if remote.address.is_ipv4() { DEFAULT_MSS_V4 } else { DEFAULT_MSS_V6 };
        Open { initial_sequence, timestamp_offset, path_mtu_mss: segment_limit(path), default_mss }
    }
}

/// A segment for a listener, and what it came in.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    pub(crate) header: &'a Header,
    pub(crate) datagram: &'a Datagram,
    /// The least initial sequence number that may be chosen, where a connection in TIME-WAIT gives way.
    pub(crate) least_sequence: Option<Sequence>,
    /// The hash of the two ends, where it is known.
    pub(crate) name_hash: Option<NameHash>,
}

impl Call<'_> {
    /// Our end and theirs.
    pub(crate) fn ends(&self) -> (Endpoint, Endpoint) {
        let Call { header, datagram, .. } = self;
        let local = Endpoint { address: datagram.destination, port: header.destination_port };
        (local, Endpoint { address: datagram.source, port: header.source_port })
    }
}

/// The largest payload of a segment without options (RFC 9293 §3.7.1, RFC 6691).
// spec: RFC9293 MUST-67, SHLD-6; RFC1122 3.3.2-3
// spec: RFC4821 5.1-1
pub(crate) fn segment_limit(path: &Path) -> u16 {
    path.payload_limit_bytes().saturating_sub(inhost_wire::tcp::LENGTH) as u16
}

/// Whether an address can be one end of a TCP connection.
pub(crate) fn can_talk(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            !address.is_unspecified() && !address.is_multicast() && !address.is_broadcast()
        }
        IpAddr::V6(address) => !address.is_unspecified() && !address.is_multicast(),
    }
}
