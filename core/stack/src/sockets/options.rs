//! Socket options: set, read, and inherited from a listener.

use crate::environment::Environment;
use crate::error::SocketError;
use crate::socket::{AnySocketId, ConnectionOptions, SocketId, SocketOption, TcpSocketId};
use crate::sockets::{Socket, Sockets};
use crate::tcp::TcpSocketFlags;

impl Sockets {
    /// Changes an option.
    pub(crate) fn set_option(
        &mut self,
        socket: SocketId,
        option: SocketOption,
        env: &mut Environment<'_>,
    ) -> Result<(), SocketError> {
        if let SocketOption::DifferentiatedServices(64..) | SocketOption::HopLimit(Some(0)) = option {
            return Err(SocketError::Invalid);
        }
        match self.typed(socket).ok_or(SocketError::NoSocket)? {
            AnySocketId::Tcp(id) => self.set_tcp_option(id, option, env),
            AnySocketId::Listener(id) => {
                let listener = self.listener_mut(id).ok_or(SocketError::NoSocket)?;
                listener.set_option(option)
            }
            AnySocketId::Udp(id) => self.held_udp_mut(id)?.set_option(option),
            AnySocketId::Echo(id) => self.echo_mut(id).ok_or(SocketError::NoSocket)?.set_option(option),
            AnySocketId::Probe(_) => Err(SocketError::WrongKind),
        }
    }
    fn set_tcp_option(
        &mut self,
        id: TcpSocketId,
        option: SocketOption,
        env: &mut Environment<'_>,
    ) -> Result<(), SocketError> {
        let flow = self.held_tcp_mut(id)?;
        match option {
            SocketOption::Linger(linger) => self.times_mut(id).linger = linger,
            SocketOption::DifferentiatedServices(bits) => flow.set_traffic_class(bits << 2),
            SocketOption::HopLimit(limit) => flow.set_hop_limit(limit),
            SocketOption::DontFragment(on) => flow.set(TcpSocketFlags::FRAGMENTS, !on),
            _ => {
                let option = option.of_connection().ok_or(SocketError::WrongKind)?;
                flow.connection_mut().set(option, &mut env.tcp(id.key()));
            }
        }
        self.reschedule(id, env.now());
        Ok(())
    }
    /// The options of a connection or a listener.
    pub(crate) fn options(&self, socket: SocketId) -> Result<ConnectionOptions, SocketError> {
        match self.any(socket).ok_or(SocketError::NoSocket)? {
            Socket::Tcp(flow) if flow.has(TcpSocketFlags::SILENT) => Err(SocketError::NoSocket),
            Socket::Tcp(flow) => Ok(ConnectionOptions {
                tcp: flow.connection().config().clone(),
                cork: flow.connection().sender().is_corked(),
                linger: self.optional.linger(TcpSocketId::of(socket.0)),
                differentiated_services: flow.traffic_class() >> 2,
                hop_limit: flow.hop_limit(),
                dont_fragment: !flow.has(TcpSocketFlags::FRAGMENTS),
            }),
            Socket::Listener(listener) => Ok(listener.inherited().clone()),
            _ => Err(SocketError::WrongKind),
        }
    }
}
