//! RST and SYN within the window: what RFC 9293 §3.10.7.4 says with the defences of RFC 5961.

use super::Receiver;
use crate::Header;
use crate::common::Common;
use inhost_event::TcpPhase;

impl Receiver {
    /// Whether a reset has the number of the peer's FIN, which is what a peer that was killed may send.
    pub fn repeats_fin(&self, common: &Common, header: &Header) -> bool {
        common.config.policy.reset_at_fin_is_valid
            && header.sequence + 1 == self.space.next
            && matches!(common.phase, TcpPhase::CloseWait | TcpPhase::LastAck | TcpPhase::Closing)
    }
}
