//! What each state of RFC 9293 §3.3.2 allows.

use inhost_event::TcpState;

/// Questions that are asked of a state.
pub(crate) trait Allows {
    /// The handshake is not done.
    fn opens(self) -> bool;
    /// The peer's data and FIN are still expected.
    fn expects_data(self) -> bool;
    /// The application may add to the stream.
    fn may_send(self) -> bool;
    /// Our FIN is queued or sent, and not acknowledged.
    fn has_fin_outstanding(self) -> bool;
    /// Our FIN is acknowledged.
    fn has_fin_acknowledged(self) -> bool;
    /// The peer's FIN has come, with all before it.
    fn peer_has_closed(self) -> bool;
}

impl Allows for TcpState {
    fn opens(self) -> bool {
        matches!(self, TcpState::SynSent | TcpState::SynReceived)
    }
    fn expects_data(self) -> bool {
        matches!(self, TcpState::Established | TcpState::FinWait1 | TcpState::FinWait2)
    }
    fn may_send(self) -> bool {
        matches!(
            self,
            TcpState::SynSent | TcpState::SynReceived | TcpState::Established | TcpState::CloseWait
        )
    }
    fn has_fin_outstanding(self) -> bool {
        matches!(self, TcpState::FinWait1 | TcpState::Closing | TcpState::LastAck)
    }
    fn has_fin_acknowledged(self) -> bool {
        matches!(self, TcpState::FinWait2 | TcpState::TimeWait | TcpState::Closed)
    }
    fn peer_has_closed(self) -> bool {
        matches!(self, TcpState::CloseWait | TcpState::Closing | TcpState::LastAck | TcpState::TimeWait)
    }
}
