//! Stateless SYN handling: a SYN cookie is sent, and the ACK that returns it opens a connection (RFC 4987 §3.6). The
//! cost of a SYN is constant, and it takes no memory.

use crate::environment::Environment;
use crate::flows::handshake::IncomingSyn;
use crate::flows::segment::flow_input;
use crate::listen::Terms;
use crate::output::Reply;
use crate::socket::TcpSocketId;
use crate::sockets::Sockets;
use crate::tcp::TcpSocketFlags;
use alloc::sync::Arc;
use inhost_base::Duration;
use inhost_buf::{Full, Packet, Slices};
use inhost_event::{Drop, Ignore};
use inhost_tcp::{Config, Connection, Ecn, Header, Open, SegmentOutput};
use inhost_wire::tcp::{Flags, TcpOptions};

/// How long after the last cookie of a listener acknowledgments are looked at for one: twice as long as they hold.
const LOOKED_FOR: Duration = Duration::from_secs(256);

/// Keeps the one header that a connection without data sends first.
struct First(Option<Header>);

impl SegmentOutput for First {
    fn segment(&mut self, header: &Header, _payload: Slices<'_>, _ecn: Ecn) -> Result<(), Full> {
        self.0 = Some(*header);
        Ok(())
    }
}

impl IncomingSyn<'_> {
    /// Answers a SYN with a cookie.
    pub(super) fn answer_with_cookie(
        self,
        sockets: &mut Sockets,
        config: &Arc<Config>,
        env: &mut Environment<'_>,
    ) -> Result<(), Drop> {
        let now = env.now();
        let path = self.route_back(sockets, env)?;
        let open = sockets.open(&path, self.name, now);
        let header = self.header;
        // The answer is the one that a connection would give, less what cannot be remembered for the caller.
        let mut answer = self.first_answer(config, open, env).ok_or(Drop::NotCredible)?;
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
        let cookies = sockets.listening().cookies();
        let cookie = cookies.make(self.name, header.sequence, mss, terms, now).ok_or(Drop::QueueFull)?;
        // RFC 9293 §3.10.7.4: who follows a connection in TIME-WAIT begins beyond its numbers. A cookie cannot choose.
        if self.least_sequence.is_some_and(|least| cookie.precedes(least)) {
            return Err(Drop::QueueFull);
        }
        answer.sequence = cookie;
        (answer.source_port, answer.destination_port) = (self.name.local.port, self.name.remote.port);
        if !env.network_mut().links_mut().push_reply(Reply { path, header: answer }) {
            return Err(Drop::QueueFull);
        }
        env.counters().cookies_sent += 1;
        if let Some(listener) = sockets.listener_mut(self.listener) {
            listener.expect_cookies(now + LOOKED_FOR);
        }
        Ok(())
    }
    /// The SYN and ACK that a connection would send.
    fn first_answer(self, config: &Arc<Config>, open: Open, env: &mut Environment<'_>) -> Option<Header> {
        let now = env.now();
        // A connection that was not established causes no events.
        let mut ignore = Ignore;
        let mut environment = env.resources().for_tcp(self.listener.key(), now, &mut ignore);
        let mut connection = Connection::accept(config, open, self.header, &mut environment);
        let mut first = First(None);
        connection.transmit(&mut environment, 1, &mut first);
        connection.clear(environment.pool());
        first.0
    }

    /// An acknowledgment for a listener: the answer to a cookie of ours, perhaps. `None` when it is not.
    pub(super) fn take_cookie(
        self,
        sockets: &mut Sockets,
        packet: &mut Packet,
        env: &mut Environment<'_>,
    ) -> Option<Result<(), Drop>> {
        let now = env.now();
        let header = self.header;
        let held = sockets.listener(self.listener).filter(|held| held.expects_cookies(now))?;
        if header.flags.intersects(Flags::SYN | Flags::RST) || !header.flags.ack() {
            return None;
        }
        let config = held.inherited().tcp.clone();
        let (_, timestamp_offset) = sockets.initial_sequence(self.name, now);
        let stamp = (now.as_millis() as u32).wrapping_add(timestamp_offset);
        let terms = match header.options.timestamps {
            Some((_, echo)) => Some(Terms::of_echo(echo, stamp)?),
            None => None,
        };
        let (sequence, cookie) = (header.sequence.back(1), header.acknowledgment.back(1));
        let Some(mss) = sockets.listening().cookies().check(self.name, sequence, cookie, terms, now) else {
            env.counters().cookies_refused += 1;
            // A caller that echoes our recent timestamp was answered a moment ago. One without timestamps that sends data may
            // have been. Its first ACK was lost, and it will retransmit, so it gets no reset.
            return (terms.is_some() || !packet.is_empty()).then_some(Err(Drop::NotCredible));
        };
        if sockets.is_backlog_full(self.listener) {
            // The caller is connected from its point of view, and retransmits until there is room.
            return Some(Err(Drop::QueueFull));
        }
        let syn = syn_of(header, mss, terms);
        let connected = self.connect_by_cookie(sockets, &syn, &config, env);
        Some(connected.and_then(|key| flow_input(sockets, key, header, packet, self.datagram.ecn, env)))
    }
    /// A connection as if `syn` had come in and been answered.
    fn connect_by_cookie(
        self,
        sockets: &mut Sockets,
        syn: &Header,
        config: &Arc<Config>,
        env: &mut Environment<'_>,
    ) -> Result<TcpSocketId, Drop> {
        let path = self.route_back(sockets, env)?;
        let open = Open {
            initial_sequence: self.header.acknowledgment.back(1),
            syn_was_sent: true,
            ..sockets.open(&path, self.name, env.now())
        };
        let key = sockets.next_tcp_id().ok_or(Drop::QueueFull)?;
        let connection = Connection::accept(config, open, syn, &mut env.tcp(key.key()));
        let key = self.add(sockets, connection, &path, TcpSocketFlags::HALF_OPEN, env)?;
        env.counters().cookies_accepted += 1;
        sockets.listening_mut().add_half_open(self.listener, key);
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
