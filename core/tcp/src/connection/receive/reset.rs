//! RST and SYN within the window: what RFC 9293 §3.10.7.4 says with the defences of RFC 5961.

use crate::arrival::Arrival;
use crate::flags::ConnectionFlags;
use crate::outcome::Outcome;
use crate::{Connection, ConnectionError, Environment};
use inhost_event::{Drop, TcpState};

impl Connection {
    /// A reset counts when it bears exactly the next number; another one in the window asks for a challenge
    /// (RFC 5961 §3.2).
    // spec: RFC5961 3.2-1, 3.2-2, 4.2-2; RFC9293 SHLD-2
    pub(super) fn take_reset(
        &mut self,
        arrival: &Arrival<'_>,
        env: &mut Environment<'_>,
        outcome: &mut Outcome,
    ) {
        if self.common.state == TcpState::TimeWait {
            // RFC 1337 §3: a stray reset does not cut TIME-WAIT short.
            outcome.dropped = Some(Drop::NotCredible);
            return;
        }
        if arrival.first != self.receiver.space().next() && !self.receiver.repeats_fin(&self.common, arrival)
        {
            return self.receiver.challenge(&mut self.common, env, outcome);
        }
        let error = match self.common.state {
            TcpState::SynReceived if self.common.flags.contains(ConnectionFlags::ACTIVE_OPEN) => {
                Some(ConnectionError::Refused)
            }
            // All that was to be said was said (RFC 9293 §3.10.7.4, second step).
            TcpState::Closing | TcpState::LastAck => None,
            _ => Some(ConnectionError::Reset),
        };
        self.finish(error, env, outcome);
    }
}
