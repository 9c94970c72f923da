//! ICMP errors, the path MTU, and local errors about our segments (RFC 9293 §3.9.2.2, RFC 5927).

use crate::connection::receive::Input;
use crate::outcome::{Changes, Outcome};
use crate::{Connection, ConnectionError, Environment, NetworkError, SoftError};
use inhost_event::TcpState;

impl Connection {
    /// Takes an ICMP error about a segment of this connection. It counts only while that segment is in flight.
    pub fn unreachable(&mut self, error: NetworkError, env: &mut Environment<'_>) -> Outcome {
        let mut outcome = Outcome::default();
        Input { tcb: self, env, outcome: &mut outcome, keeps_data: true }.network_error(error);
        outcome
    }
    /// The host cannot send to the peer: the route is gone, or the first hop does not answer. In SYN-SENT this ends the
    /// connection. After any segment of the peer it is a soft error: the path may recover before the user timeout.
    pub fn cannot_leave(&mut self, what: SoftError, env: &mut Environment<'_>) -> Outcome {
        let mut outcome = Outcome::default();
        if self.common.state == TcpState::SynSent {
            let error = match what {
                SoftError::NetworkUnreachable => ConnectionError::NetworkUnreachable,
                _ => ConnectionError::Unreachable,
            };
            self.finish(Some(error), env, &mut outcome);
        } else if self.common.state != TcpState::Closed && self.common.soft_error != Some(what) {
            self.common.soft_error = Some(what);
            outcome.changes |= Changes::ERROR;
        }
        if self.common.state == TcpState::SynReceived && !self.sender.timer.is_running() {
            // A SYN-ACK that was never sent has no timer yet. Without one the handshake would never end.
            self.sender.timer.arm(&self.common, env.now);
        }
        self.update(env);
        outcome
    }
    /// The path's largest payload has changed, as routing knows: its MTU less the IP header and 20 bytes.
    // spec: RFC7323 5.7-1
    pub fn set_path_mtu_mss(&mut self, path_mtu_mss: u16, env: &mut Environment<'_>) {
        if path_mtu_mss < self.common.path_mss {
            self.sender.path_shrank(&mut self.common, path_mtu_mss, env);
        } else {
            self.common.path_mss = path_mtu_mss.min(self.common.config.mss_limit_bytes);
            self.sender.congestion.resize(self.sender.effective_mss(&self.common));
        }
        self.update(env);
    }
}
