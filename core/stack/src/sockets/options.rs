//! Socket options: set, read, and inherited from a listener.

use crate::environment::Environment;
use crate::socket::{ConnectionOptions, SocketId, SocketOption, TcpSocketId};
use crate::sockets::{Socket, Sockets};
use crate::tcp::TcpSocketFlags;
use inhost_datagram::SocketError;

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
        match self.any_mut(socket).ok_or(SocketError::NoSocket)? {
            Socket::Tcp(_) => self.set_tcp_option(TcpSocketId::of(socket.0), option, env),
            Socket::Listener(listener) => listener.set_option(option),
            Socket::Udp(udp) if udp.is_closed() => Err(SocketError::NoSocket),
            Socket::Udp(udp) => option.configure_udp(udp.options_mut()),
            Socket::Echo(echo) => match option {
                SocketOption::Broadcast(allowed) => {
                    echo.set_broadcast(allowed);
                    Ok(())
                }
                _ => Err(SocketError::WrongKind),
            },
            Socket::Probe(_) => Err(SocketError::WrongKind),
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
