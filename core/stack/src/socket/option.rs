//! Socket options (RFC 9293 §3.9.1).

use crate::options::SynCookies;
use alloc::sync::Arc;
use inhost_base::Duration;
use inhost_datagram::{SocketError, UdpOptions};
use inhost_tcp::{Config, ConnectionOption};

/// An option of a socket, with its new value. Those of connections can be set on a listener, too: the connections that
/// it takes from then on begin with them.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum SocketOption {
    /// Connections: one of TCP's.
    Tcp(ConnectionOption),
    /// Connections: linger time, for which unsent data outlives the socket (SO_LINGER). `None`: as long as needed. With
    /// a time, the connection is reset when it is over; with zero, closing resets at once.
    Linger(Option<Duration>),
    /// Connections, UDP: the limit on what waits to be sent.
    SendBufferLimit(usize),
    /// Connections, UDP: the limit on what waits to be received.
    ReceiveBufferLimit(usize),
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

impl SocketOption {
    /// Sets it in the options of a UDP socket.
    pub(crate) fn configure_udp(self, options: &mut UdpOptions) -> Result<(), SocketError> {
        match self {
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
    /// The option of TCP that this is, if it is one.
    pub(crate) fn of_connection(self) -> Option<ConnectionOption> {
        match self {
            SocketOption::Tcp(option) => Some(option),
            SocketOption::SendBufferLimit(bytes) => Some(ConnectionOption::SendBufferLimit(bytes)),
            SocketOption::ReceiveBufferLimit(bytes) => Some(ConnectionOption::ReceiveBufferLimit(bytes)),
            _ => None,
        }
    }
}

/// The current options of a connection, or those that a listener's connections inherit.
#[derive(Clone, Debug)]
#[non_exhaustive]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct ConnectionOptions {
    /// Everything that belongs to TCP.
    // A listener's is written with the other configurations, each once.
    #[cfg_attr(feature = "freeze", serde(skip))]
    pub tcp: Arc<Config>,
    /// Small segments are held back by the application's wish. Never of a listener.
    pub cork: bool,
    /// Linger time.
    pub linger: Option<Duration>,
    /// Differentiated services, six bits.
    pub differentiated_services: u8,
    /// Hops that packets may take, or `None` for the path's own.
    pub hop_limit: Option<u8>,
    /// Whether packets are kept from being fragmented.
    pub dont_fragment: bool,
}
