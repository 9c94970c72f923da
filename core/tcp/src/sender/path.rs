//! The path allows smaller segments only (RFC 1191 §6.5).

use super::Sender;
use crate::Environment;
use crate::common::Common;
use crate::sender::handshake::LEAST_MSS;

impl Sender {
    /// Uses smaller segments from now on, and retransmits the data in flight in them (RFC 1191 §6.5), without a
    /// congestion response.
    pub fn path_shrank(&mut self, common: &mut Common, path_mtu_mss: u16, env: &mut Environment<'_>) {
        if path_mtu_mss >= common.path_mss {
            return;
        }
        common.path_mss = path_mtu_mss.max(LEAST_MSS);
        if common.opens() {
            self.congestion.window.segment_bytes = self.effective_mss(common);
            return;
        }
        self.congestion.resize(self.effective_mss(common));
        if self.space.has_outstanding() {
            self.retransmit_longer_than(self.segment_bytes());
            self.timer.arm(common, env.now);
        }
    }
}
