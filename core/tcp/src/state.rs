//! What each state of RFC 9293 §3.3.2 allows.

use crate::common::Common;
use inhost_event::TcpState;

impl Common {
    /// The handshake is not done.
    pub fn opens(&self) -> bool {
        matches!(self.state, TcpState::SynSent | TcpState::SynReceived)
    }
    /// The peer's data and FIN are still expected.
    pub fn expects_data(&self) -> bool {
        matches!(self.state, TcpState::Established | TcpState::FinWait1 | TcpState::FinWait2)
    }
    /// The application may add to the stream.
    pub fn may_send(&self) -> bool {
        matches!(
            self.state,
            TcpState::SynSent | TcpState::SynReceived | TcpState::Established | TcpState::CloseWait
        )
    }
    /// Our FIN is queued or sent, and not acknowledged.
    pub fn has_fin_outstanding(&self) -> bool {
        matches!(self.state, TcpState::FinWait1 | TcpState::Closing | TcpState::LastAck)
    }
    /// Our FIN is acknowledged.
    pub fn has_fin_acknowledged(&self) -> bool {
        matches!(self.state, TcpState::FinWait2 | TcpState::TimeWait | TcpState::Closed)
    }
    /// The peer's FIN has come, with all before it.
    pub fn peer_has_closed(&self) -> bool {
        matches!(self.state, TcpState::CloseWait | TcpState::Closing | TcpState::LastAck | TcpState::TimeWait)
    }
}
