//! The acknowledgment, the window, and what both say about loss (RFC 9293 §3.10.7.4, fifth step; RFC 5681, RFC 6582).

use crate::arrival::Arrival;
use crate::flags::{ConnectionFlags, SenderFlags};
use crate::outcome::{Outcome, ResetReply};
use crate::{Connection, Environment};
use inhost_event::{Drop, TcpState};

impl Connection {
    /// The fifth step of RFC 9293 §3.10.7.4. False if the processing of the segment ends here.
    // spec: RFC5961 5.2-1, 5.2-2
    pub(super) fn take_acknowledgment(
        &mut self,
        arrival: &Arrival<'_>,
        env: &mut Environment<'_>,
        outcome: &mut Outcome,
    ) -> bool {
        let (header, acknowledgment) = (arrival.header, arrival.acknowledgment);
        let (unacknowledged, next) = (self.sender.space().unacknowledged(), self.sender.space().next());
        let is_new = unacknowledged < acknowledgment && acknowledgment <= next;
        if self.common.state() == TcpState::SynReceived {
            let early = self.common.has(ConnectionFlags::EARLY_DATA) && acknowledgment == unacknowledged;
            if !is_new && self.sender.ended_before_open(&self.common) {
                // The FIN was sent in SYN-RECEIVED: except for the retransmission of the SYN, the state behaves as
                // FIN-WAIT-1.
                if acknowledgment == unacknowledged {
                    outcome.dropped = Some(Drop::OutOfWindow);
                    if self.common.has(ConnectionFlags::RECEIVE_CLOSED) && !arrival.payload.is_empty() {
                        self.refuse_data(arrival, env, outcome);
                    }
                } else {
                    self.receiver.challenge(&mut self.common, env, outcome);
                }
                return false;
            }
            if !is_new && !early {
                outcome.dropped = Some(Drop::OutOfWindow);
                outcome.reset = Some(ResetReply { sequence: header.acknowledgment, ..ResetReply::default() });
                return false;
            }
            self.open_by(arrival, env, outcome);
        } else if is_new {
            outcome.changes |= self.sender.take_acknowledgment(&mut self.common, arrival, false, env);
        } else if acknowledgment != unacknowledged && !self.sender.is_recent(&self.common, acknowledgment) {
            // RFC 5961 §5.2: neither new nor from the last window's worth.
            self.receiver.challenge(&mut self.common, env, outcome);
            return false;
        } else if acknowledgment == unacknowledged || !header.options.sack.is_empty() {
            let duplicate =
                acknowledgment == unacknowledged && self.sender.is_duplicate(&self.common, arrival);
            if duplicate || !header.options.sack.is_empty() || header.flags.ece() {
                outcome.changes |= self.sender.take_acknowledgment(&mut self.common, arrival, duplicate, env);
            }
        }
        if self.sender.has(SenderFlags::FIN_ACKNOWLEDGED) {
            match self.common.state() {
                TcpState::FinWait1 => self.common.enter_fin_wait_2(env),
                TcpState::Closing => self.enter_time_wait(env, outcome),
                TcpState::LastAck => self.finish(None, env, outcome),
                _ => {}
            }
        }
        if self.common.state() == TcpState::Closed {
            return false;
        }
        // After the acknowledgment: how far the window reaches is counted from there.
        self.sender.take_window(&mut self.common, (arrival.first, acknowledgment, header.window), env.now());
        true
    }
}
