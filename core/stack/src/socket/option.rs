//! Socket options (RFC 9293 §3.9.1).

use crate::options::SynCookies;
use alloc::sync::Arc;
use inhost_base::Duration;
use inhost_tcp::{Config, CongestionChoice, ConnectionOption, KeepAlive};

/// An option of a socket, with its new value. Those of connections can be set on a listener, too: the connections that
/// it takes from then on begin with them.
#[derive(Clone, Debug)]
#[non_exhaustive]
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
    /// Connections: linger time, for which unsent data outlives the socket (SO_LINGER). `None`: as long as needed. With
    /// a time, the connection is reset when it is over; with zero, closing resets at once.
    Linger(Option<Duration>),
    /// Connections, UDP: the limit on what waits to be sent.
    SendBufferLimit(usize),
    /// Connections, UDP: the limit on what waits to be received.
    ReceiveBufferLimit(usize),
    /// Connections: be writable only while fewer bytes than this wait that were never sent; `None` for no such limit.
    NotSentLowWater(Option<usize>),
    /// Connections: the longest wait before data is acknowledged.
    AcknowledgmentDelay(Duration),
    /// Connections: the congestion control algorithm.
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

impl SocketOption {
    /// The option of TCP that this is, if it is one.
    pub(crate) fn of_connection(self) -> Option<ConnectionOption> {
        Some(match self {
            SocketOption::Nagle(on) => ConnectionOption::Nagle(on),
            SocketOption::Cork(on) => ConnectionOption::Cork(on),
            SocketOption::QuickAcknowledgment(on) => ConnectionOption::QuickAcknowledgment(on),
            SocketOption::KeepAlive(when) => ConnectionOption::KeepAlive(when),
            SocketOption::UserTimeout(timeout) => ConnectionOption::UserTimeout(timeout),
            SocketOption::FinWait2(wait) => ConnectionOption::FinWait2(wait),
            SocketOption::SendBufferLimit(bytes) => ConnectionOption::SendBufferLimit(bytes),
            SocketOption::ReceiveBufferLimit(bytes) => ConnectionOption::ReceiveBufferLimit(bytes),
            SocketOption::NotSentLowWater(bytes) => ConnectionOption::NotSentLowWater(bytes),
            SocketOption::AcknowledgmentDelay(delay) => ConnectionOption::AcknowledgmentDelay(delay),
            SocketOption::Congestion(choice) => ConnectionOption::Congestion(choice),
            SocketOption::MaxPacingRate(rate) => ConnectionOption::MaxPacingRate(rate),
            SocketOption::MaxSegment(bytes) => ConnectionOption::MaxSegment(bytes),
            SocketOption::SynRetries(retries) => ConnectionOption::SynRetries(retries),
            _ => return None,
        })
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
