//! What a socket can be asked while it lives (RFC 9293 §3.9.1, and what practice added).

use crate::entry::{Marks, Socket};
use crate::error::SocketError;
use crate::listener::Listener;
use crate::options::SynCookies;
use crate::socket::SocketId;
use crate::stack::{Stack, tcp_environment};
use crate::stream::claimed;
use inhost_base::{Duration, Instant};
use inhost_event::Sink;
use inhost_tcp::{Config, CongestionChoice, KeepAlive};
use std::sync::Arc;

/// An option of a socket, with its new value. Those of connections can be set on a listener, too: the connections that
/// it takes from then on begin with them.
#[derive(Clone, Copy, Debug)]
pub enum SocketOption {
    /// Connections: hold small segments back while data is unacknowledged.
    // spec: RFC9293 MUST-17
    Nagle(bool),
    /// Connections: hold back what does not fill a segment, until this is off again or
    /// [`inhost_tcp::Config::aggregation_delay`] is over.
    Cork(bool),
    /// Connections: acknowledge the next segments without delay. It wears off.
    QuickAcknowledgment(bool),
    /// Connections: probe an idle peer.
    // spec: RFC9293 MUST-24
    KeepAlive(Option<KeepAlive>),
    /// Connections: how long data may stay unacknowledged.
    // spec: RFC9293 MUST-21
    UserTimeout(Duration),
    /// Connections: how long FIN-WAIT-2 lasts once the application has let go, or reads no more.
    FinWait2(Duration),
    /// Connections: how long what was sent survives the socket's close. `None` is as long as it takes; with a time
    /// the peer gets a reset when it is over; with no time at all closing is resetting.
    Linger(Option<Duration>),
    /// Connections, UDP: the limit on what waits to be sent.
    SendBufferLimit(usize),
    /// Connections, UDP: the limit on what waits to be received.
    ReceiveBufferLimit(usize),
    /// Connections: be writable only while fewer bytes than this wait that were never sent; `None` for no such limit.
    NotSentLowWater(Option<usize>),
    /// Connections: the longest wait before data is acknowledged.
    AcknowledgmentDelay(Duration),
    /// Connections: how much may be in flight, and how that follows what the network does.
    Congestion(CongestionChoice),
    /// Connections: no segment leaves faster than this many bytes a second; `None` for no limit of its own.
    MaxPacingRate(Option<u64>),
    /// Connections: the largest payload of a segment; before the handshake also the largest that is asked for.
    MaxSegment(u16),
    /// Connections: retransmissions of the SYN before the call is given up.
    SynRetries(u8),
    /// Connections, UDP: differentiated services, six bits; it may change at any time.
    // spec: RFC9293 MUST-48
    // spec: RFC9293 SHLD-21
    DifferentiatedServices(u8),
    /// Connections, UDP: hops that packets may take, or the path's own.
    HopLimit(Option<u8>),
    /// Connections, UDP: whether packets are kept from being fragmented, which is what path MTU discovery needs.
    DontFragment(bool),
    /// Listeners: connections that may wait to be accepted.
    Backlog(usize),
    /// Listeners: a connection is given out when it has data, or after this time without; `None` gives it out at once.
    DeferAccept(Option<Duration>),
    /// Listeners: connections whose SYN's data may be taken before their handshake is done.
    FastOpenQueue(usize),
    /// Listeners: when SYNs are answered without keeping anything.
    SynCookies(SynCookies),
    /// UDP, echo: whether broadcast destinations are allowed.
    Broadcast(bool),
    /// UDP: whether ICMP errors are reported while not connected.
    ReportUnconnectedErrors(bool),
}

/// The options of a connection as they stand, or what a listener's connections begin with.
#[derive(Clone, Debug)]
pub struct ConnectionOptions {
    /// Everything that belongs to TCP.
    pub tcp: Arc<Config>,
    /// Small segments are held back by the application's wish. Never of a listener.
    pub cork: bool,
    /// How long what was sent survives the socket.
    pub linger: Option<Duration>,
    /// Differentiated services, six bits.
    pub differentiated_services: u8,
    /// Hops that packets may take, or `None` for the path's own.
    pub hop_limit: Option<u8>,
    /// Whether packets are kept from being fragmented.
    pub dont_fragment: bool,
}

/// What a listener's connections begin with, beside TCP's own.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Inherited {
    pub(crate) linger: Option<Duration>,
    pub(crate) traffic_class: u8,
    pub(crate) hop_limit: Option<u8>,
    pub(crate) fragments: bool,
}

impl Stack {
    /// Changes an option.
    pub fn set_option(
        &mut self,
        socket: SocketId,
        option: SocketOption,
        now: Instant,
        sink: &mut dyn Sink,
    ) -> Result<(), SocketError> {
        self.tick(now);
        if let SocketOption::DifferentiatedServices(64..) | SocketOption::HopLimit(Some(0)) = option {
            return Err(SocketError::Invalid);
        }
        match self.sockets.at_mut(socket.0) {
            Some(Socket::Udp(_)) => return self.set_udp_option(socket, option),
            Some(Socket::Listener(listener)) => return set_listener_option(listener, option),
            Some(Socket::Echo(echo)) => return echo.set_option(option),
            _ => {}
        }
        let flow = claimed(self.sockets.at_mut(socket.0))?;
        let mut environment = tcp_environment!(self, now, socket.0, sink);
        let (connection, environment) = (&mut flow.connection, &mut environment);
        match option {
            SocketOption::Nagle(on) => connection.set_nagle(on, environment),
            SocketOption::Cork(on) => connection.set_cork(on, environment),
            SocketOption::QuickAcknowledgment(on) => connection.set_quick_acknowledgment(on, environment),
            SocketOption::KeepAlive(when) => connection.set_keep_alive(when, environment),
            SocketOption::UserTimeout(limit) => connection.set_user_timeout(limit, environment),
            SocketOption::FinWait2(limit) => connection.set_fin_wait_2(limit, environment),
            SocketOption::Linger(linger) => self.set_linger(socket.0, linger),
            SocketOption::SendBufferLimit(bytes) => connection.set_send_buffer_limit(bytes, environment),
            SocketOption::ReceiveBufferLimit(bytes) => {
                connection.set_receive_buffer_limit(bytes, environment);
            }
            SocketOption::NotSentLowWater(bytes) => connection.set_not_sent_low_water(bytes, environment),
            SocketOption::AcknowledgmentDelay(delay) => {
                connection.set_acknowledgment_delay(delay, environment);
            }
            SocketOption::Congestion(choice) => connection.set_congestion(choice, environment),
            SocketOption::MaxPacingRate(rate) => connection.set_max_pacing_rate(rate, environment),
            SocketOption::MaxSegment(bytes) => connection.set_mss_limit(bytes, environment),
            SocketOption::SynRetries(retries) => connection.set_syn_retries(retries, environment),
            SocketOption::DifferentiatedServices(bits) => flow.traffic_class = bits << 2,
            SocketOption::HopLimit(limit) => flow.hop_limit = limit,
            SocketOption::DontFragment(on) => flow.marks.put(Marks::FRAGMENTS, !on),
            SocketOption::Backlog(_)
            | SocketOption::DeferAccept(_)
            | SocketOption::FastOpenQueue(_)
            | SocketOption::SynCookies(_)
            | SocketOption::Broadcast(_)
            | SocketOption::ReportUnconnectedErrors(_) => return Err(SocketError::WrongKind),
        }
        self.follow(socket.0, now);
        Ok(())
    }
    /// The options of a connection or a listener.
    pub fn options(&self, socket: SocketId) -> Result<ConnectionOptions, SocketError> {
        let (tcp, cork, inherited) = match self.sockets.at(socket.0).ok_or(SocketError::NoSocket)? {
            Socket::Flow(flow) if flow.marks.any(Marks::SILENT) => return Err(SocketError::NoSocket),
            Socket::Flow(flow) => {
                let inherited = Inherited {
                    linger: self.extras(socket.0).linger,
                    traffic_class: flow.traffic_class,
                    hop_limit: flow.hop_limit,
                    fragments: flow.marks.any(Marks::FRAGMENTS),
                };
                (flow.connection.shared_config(), flow.connection.is_corked(), inherited)
            }
            Socket::Listener(listener) => (&listener.tcp, false, listener.inherited),
            _ => return Err(SocketError::WrongKind),
        };
        let Inherited { linger, traffic_class, hop_limit, fragments } = inherited;
        Ok(ConnectionOptions {
            tcp: Arc::clone(tcp),
            cork,
            linger,
            differentiated_services: traffic_class >> 2,
            hop_limit,
            dont_fragment: !fragments,
        })
    }
    fn set_udp_option(&mut self, socket: SocketId, option: SocketOption) -> Result<(), SocketError> {
        let options = &mut self.udp_mut(socket)?.options;
        match option {
            SocketOption::SendBufferLimit(bytes) => options.send_limit_bytes = bytes,
            SocketOption::ReceiveBufferLimit(bytes) => options.receive_limit_bytes = bytes,
            SocketOption::DifferentiatedServices(bits) => options.differentiated_services = bits,
            SocketOption::HopLimit(limit) => options.hop_limit = limit,
            SocketOption::Broadcast(on) => options.broadcast = on,
            SocketOption::ReportUnconnectedErrors(on) => options.report_unconnected_errors = on,
            SocketOption::DontFragment(on) => {
                (options.dont_fragment, options.fragments_at_source) = (on, false);
            }
            _ => return Err(SocketError::WrongKind),
        }
        Ok(())
    }
    /// Gives a connection what its listener was asked for.
    pub(crate) fn inherit(&mut self, key: inhost_base::Key, listener: inhost_base::Key) {
        let Some(Socket::Listener(held)) = self.sockets.at(listener) else { return };
        let Inherited { linger, traffic_class, hop_limit, fragments } = held.inherited;
        if let Some(flow) = self.flow_mut(key) {
            (flow.traffic_class, flow.hop_limit) = (traffic_class, hop_limit);
            flow.marks.put(Marks::FRAGMENTS, fragments);
        }
        if linger.is_some() {
            self.set_linger(key, linger);
        }
    }
}

fn set_listener_option(listener: &mut Listener, option: SocketOption) -> Result<(), SocketError> {
    let (options, inherited) = (&mut listener.options, &mut listener.inherited);
    let tcp = Arc::make_mut(&mut listener.tcp);
    match option {
        SocketOption::Nagle(on) => tcp.nagle = on,
        SocketOption::KeepAlive(when) => tcp.keep_alive = when,
        SocketOption::UserTimeout(limit) => tcp.user_timeout = limit,
        SocketOption::FinWait2(limit) => tcp.fin_wait_2 = limit,
        SocketOption::SendBufferLimit(bytes) => tcp.send_buffer_limit_bytes = bytes,
        SocketOption::ReceiveBufferLimit(bytes) => tcp.receive_buffer_limit_bytes = bytes,
        SocketOption::NotSentLowWater(bytes) => tcp.not_sent_low_water_bytes = bytes.unwrap_or(usize::MAX),
        SocketOption::AcknowledgmentDelay(delay) => tcp.acknowledgment_delay = delay,
        SocketOption::Congestion(choice) => tcp.congestion = choice,
        SocketOption::MaxPacingRate(rate) => tcp.max_pacing_rate_bytes_per_second = rate,
        SocketOption::MaxSegment(bytes) => tcp.mss_limit_bytes = bytes,
        SocketOption::SynRetries(retries) => tcp.syn_answer_retries = retries,
        SocketOption::Linger(linger) => inherited.linger = linger,
        SocketOption::DifferentiatedServices(bits) => inherited.traffic_class = bits << 2,
        SocketOption::HopLimit(limit) => inherited.hop_limit = limit,
        SocketOption::DontFragment(on) => inherited.fragments = !on,
        SocketOption::Backlog(count) => options.backlog = count,
        SocketOption::DeferAccept(patience) => options.defer_accept = patience,
        SocketOption::FastOpenQueue(count) => options.fast_open_queue = count,
        SocketOption::SynCookies(when) => options.syn_cookies = when,
        SocketOption::Cork(_)
        | SocketOption::QuickAcknowledgment(_)
        | SocketOption::Broadcast(_)
        | SocketOption::ReportUnconnectedErrors(_) => return Err(SocketError::WrongKind),
    }
    Ok(())
}
