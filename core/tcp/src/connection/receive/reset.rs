//! RST and SYN within the window: what RFC 9293 §3.10.7.4 says with the defences of RFC 5961.

use super::Input;
use crate::ConnectionError;
use crate::arrival::Arrival;
use crate::flags::ConnectionFlags;
use inhost_event::{Drop, TcpState};

impl Input<'_, '_> {
    /// A reset counts when it bears exactly the next number; another one in the window asks for a challenge
    /// (RFC 5961 §3.2).
    // spec: RFC5961 3.2-1, 3.2-2, 4.2-2; RFC9293 SHLD-2
    pub(super) fn take_reset(&mut self, arrival: &Arrival<'_>) {
        if self.tcb.common.state == TcpState::TimeWait {
            // RFC 1337 §3: a stray reset does not cut TIME-WAIT short.
            self.outcome.dropped = Some(Drop::NotCredible);
            return;
        }
        if arrival.first != self.tcb.receiver.space.next()
            && !self.tcb.receiver.repeats_fin(&self.tcb.common, arrival)
        {
            return self.tcb.receiver.challenge(&mut self.tcb.common, self.env, self.outcome);
        }
        let error = match self.tcb.common.state {
            TcpState::SynReceived if self.tcb.common.flags.contains(ConnectionFlags::ACTIVE_OPEN) => {
                Some(ConnectionError::Refused)
            }
            // All that was to be said was said (RFC 9293 §3.10.7.4, second step).
            TcpState::Closing | TcpState::LastAck => None,
            _ => Some(ConnectionError::Reset),
        };
        self.tcb.finish(error, self.env, self.outcome);
    }
}
