//! What each state of RFC 9293 §3.3.2 allows.

use inhost_event::TcpPhase;

/// Questions that are asked of a phase.
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

impl Allows for TcpPhase {
    fn opens(self) -> bool {
        matches!(self, TcpPhase::SynSent | TcpPhase::SynReceived)
    }
    fn expects_data(self) -> bool {
        matches!(self, TcpPhase::Established | TcpPhase::FinWait1 | TcpPhase::FinWait2)
    }
    fn may_send(self) -> bool {
        matches!(
            self,
            TcpPhase::SynSent | TcpPhase::SynReceived | TcpPhase::Established | TcpPhase::CloseWait
        )
    }
    fn has_fin_outstanding(self) -> bool {
        matches!(self, TcpPhase::FinWait1 | TcpPhase::Closing | TcpPhase::LastAck)
    }
    fn has_fin_acknowledged(self) -> bool {
        matches!(self, TcpPhase::FinWait2 | TcpPhase::TimeWait | TcpPhase::Closed)
    }
    fn peer_has_closed(self) -> bool {
        matches!(self, TcpPhase::CloseWait | TcpPhase::Closing | TcpPhase::LastAck | TcpPhase::TimeWait)
    }
}
