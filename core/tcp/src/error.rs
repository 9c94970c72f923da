//! How a connection ends, and what a call may say instead of its result.

/// Why a connection ended other than by both sides closing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[error("{}", self.text())]
#[non_exhaustive]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub enum ConnectionError {
    /// The peer answered our SYN with a reset.
    Refused,
    /// The peer reset the connection.
    Reset,
    /// The peer did not answer within the user timeout, or the connect timeout.
    TimedOut,
    /// The peer did not answer keep-alive probes.
    KeepAliveTimedOut,
    /// While opening, an ICMP error or the host's routing reported that the destination is unreachable.
    Unreachable,
    /// The same of the destination's network: ENETUNREACH.
    NetworkUnreachable,
    /// The destination's host does not know the protocol: ENOPROTOOPT.
    ProtocolUnreachable,
    /// The peer did not answer in time after an ICMP parameter problem was reported: EPROTO in Linux ([`Policy::soft_errors_name_timeouts`](crate::Policy::soft_errors_name_timeouts)).
    ParameterProblem,
    /// Our side aborted it.
    Aborted,
}

/// An ICMP error that does not end a connection (RFC 1122 §4.2.3.9); the user can query it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub enum SoftError {
    /// A router has no route to the host, or the host is down.
    #[error("destination unreachable")]
    Unreachable,
    /// A router has no route to the network.
    #[error("network unreachable")]
    NetworkUnreachable,
    /// The destination does not know the protocol, reported while the connection is synchronised.
    #[error("protocol unreachable")]
    ProtocolUnreachable,
    /// The destination refuses the port, reported while the connection is synchronised.
    #[error("refused by the destination's host")]
    Refused,
    /// A router or the host does not allow it.
    #[error("prohibited")]
    Prohibited,
    /// The hop limit or the reassembly time ran out.
    #[error("time exceeded")]
    TimeExceeded,
    /// An ICMP parameter problem was reported.
    #[error("parameter problem")]
    ParameterProblem,
    /// Retransmissions have passed the threshold R1 (RFC 9293 §3.8.3) unanswered.
    #[error("the peer does not respond")]
    NotResponding,
}

/// What an ICMP error says that quotes a segment of this connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NetworkError {
    /// Never fatal.
    Soft(SoftError),
    /// Protocol or port unreachable: ends an attempt to open; soft in every synchronised state.
    Hard(ConnectionError),
    /// A datagram did not fit a link of the path.
    TooBig {
        /// The largest payload that the path allows now: its new MTU less the IP header and 20 bytes.
        path_mtu_mss: u16,
    },
}

/// Why nothing was taken to be sent, or nothing was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StreamError {
    /// The send buffer is full, or no buffer memory is left: there will be a change WRITABLE. Or nothing is there yet to be
    /// read: there will be a change READABLE.
    #[error("not ready now")]
    WouldBlock,
    /// Our side is closed, so that nothing can be sent.
    #[error("the sending side is closed")]
    Closed,
    /// The connection ended.
    #[error(transparent)]
    Connection(ConnectionError),
}

impl ConnectionError {
    /// The error in words.
    pub const fn text(self) -> &'static str {
        match self {
            ConnectionError::Refused => "connection refused",
            ConnectionError::Reset => "connection reset by the peer",
            ConnectionError::TimedOut => "connection timed out",
            ConnectionError::KeepAliveTimedOut => "peer did not answer keep-alive probes",
            ConnectionError::Unreachable => "destination unreachable",
            ConnectionError::NetworkUnreachable => "network unreachable",
            ConnectionError::ProtocolUnreachable => "protocol unreachable",
            ConnectionError::ParameterProblem => "no answer after a parameter problem",
            ConnectionError::Aborted => "connection aborted",
        }
    }
}
