//! Options of sockets: setting them, reading them, and passing them on from a listener to its connections.

use crate::error::SocketError;
use crate::listener::Listener;
use crate::parts::{Parts, tcp_environment};
use crate::sockets::{
    AnySocketId, ConnectionFlags, ConnectionOptions, Inherited, ListenerId, Socket, SocketId, SocketOption,
    TcpSocketId, UdpSocketId,
};
use inhost_base::Instant;
use inhost_event::Sink;
use std::sync::Arc;

impl Parts {
    /// Changes an option.
    pub(crate) fn set_option(
        &mut self,
        socket: SocketId,
        option: SocketOption,
        now: Instant,
        sink: &mut dyn Sink,
    ) -> Result<(), SocketError> {
        if let SocketOption::DifferentiatedServices(64..) | SocketOption::HopLimit(Some(0)) = option {
            return Err(SocketError::Invalid);
        }
        match self.sockets.typed(socket).ok_or(SocketError::NoSocket)? {
            AnySocketId::Tcp(id) => self.set_tcp_option(id, option, now, sink),
            AnySocketId::Listener(id) => {
                let listener = self.sockets.listener_mut(id).ok_or(SocketError::NoSocket)?;
                set_listener_option(listener, option)
            }
            AnySocketId::Udp(id) => self.set_udp_option(id, option),
            AnySocketId::Echo(id) => {
                self.sockets.echo_mut(id).ok_or(SocketError::NoSocket)?.set_option(option)
            }
            AnySocketId::Probe(_) => Err(SocketError::WrongKind),
        }
    }
    fn set_tcp_option(
        &mut self,
        id: TcpSocketId,
        option: SocketOption,
        now: Instant,
        sink: &mut dyn Sink,
    ) -> Result<(), SocketError> {
        let flow = self.sockets.held_tcp_mut(id)?;
        match option {
            SocketOption::Linger(linger) => {
                self.set_linger(id, linger);
                self.follow(id, now);
                return Ok(());
            }
            SocketOption::DifferentiatedServices(bits) => flow.set_traffic_class(bits << 2),
            SocketOption::HopLimit(limit) => flow.set_hop_limit(limit),
            SocketOption::DontFragment(on) => flow.put(ConnectionFlags::FRAGMENTS, !on),
            _ => {}
        }
        let (connection, environment) = (flow.connection_mut(), &mut tcp_environment!(self, now, id, sink));
        match option {
            SocketOption::Nagle(on) => connection.set_nagle(on, environment),
            SocketOption::Cork(on) => connection.set_cork(on, environment),
            SocketOption::QuickAcknowledgment(on) => connection.set_quick_acknowledgment(on, environment),
            SocketOption::KeepAlive(when) => connection.set_keep_alive(when, environment),
            SocketOption::UserTimeout(limit) => connection.set_user_timeout(limit, environment),
            SocketOption::FinWait2(limit) => connection.set_fin_wait_2(limit, environment),
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
            SocketOption::Linger(_)
            | SocketOption::DifferentiatedServices(_)
            | SocketOption::HopLimit(_)
            | SocketOption::DontFragment(_) => {}
            SocketOption::Backlog(_)
            | SocketOption::DeferAccept(_)
            | SocketOption::FastOpenQueue(_)
            | SocketOption::SynCookies(_)
            | SocketOption::Broadcast(_)
            | SocketOption::ReportUnconnectedErrors(_) => return Err(SocketError::WrongKind),
        }
        self.follow(id, now);
        Ok(())
    }
    /// The options of a connection or a listener.
    pub(crate) fn options(&self, socket: SocketId) -> Result<ConnectionOptions, SocketError> {
        let (tcp, cork, inherited) = match self.sockets.any(socket).ok_or(SocketError::NoSocket)? {
            Socket::Tcp(flow) if flow.has(ConnectionFlags::SILENT) => return Err(SocketError::NoSocket),
            Socket::Tcp(flow) => {
                let inherited = Inherited {
                    linger: self.extras(TcpSocketId::of(socket.0)).linger,
                    traffic_class: flow.traffic_class(),
                    hop_limit: flow.hop_limit(),
                    fragments: flow.has(ConnectionFlags::FRAGMENTS),
                };
                (flow.connection().shared_config(), flow.connection().is_corked(), inherited)
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
    fn set_udp_option(&mut self, socket: UdpSocketId, option: SocketOption) -> Result<(), SocketError> {
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
    pub(crate) fn inherit(&mut self, key: TcpSocketId, listener: ListenerId) {
        let Some(held) = self.sockets.listener(listener) else { return };
        let Inherited { linger, traffic_class, hop_limit, fragments } = held.inherited;
        if let Some(flow) = self.sockets.tcp_mut(key) {
            flow.set_traffic_class(traffic_class);
            flow.set_hop_limit(hop_limit);
            flow.put(ConnectionFlags::FRAGMENTS, fragments);
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
