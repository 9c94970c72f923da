//! The acknowledgment, the window, and what both say about loss (RFC 9293 §3.10.7.4, fifth step; RFC 5681, RFC 6582).

use crate::arrival::Arrival;
use crate::flags::{ConnectionFlags, SenderFlags};
use crate::{Connection, Environment, ResetReply};
use inhost_event::{Drop, TcpState};

impl Connection {
    /// The fifth step of RFC 9293 §3.10.7.4. False if the processing of the segment ends here.
    // spec: RFC5961 5.2-1, 5.2-2
    pub(super) fn take_acknowledgment(&mut self, arrival: &Arrival<'_>, env: &mut Environment<'_>) -> bool {
        let (header, acknowledgment) = (arrival.header, arrival.acknowledgment);
        let (unacknowledged, next) = (self.sender.space().unacknowledged(), self.sender.space().next());
        let is_new = unacknowledged < acknowledgment && acknowledgment <= next;
        if self.common.state() == TcpState::SynReceived {
            let early = self.common.has(ConnectionFlags::EARLY_DATA) && acknowledgment == unacknowledged;
            if !is_new && self.sender.ended_before_open(&self.common) {
                // The FIN was sent in SYN-RECEIVED: except for the retransmission of the SYN, the state behaves as
                // FIN-WAIT-1.
                if acknowledgment == unacknowledged {
                    env.discarded(Drop::OutOfWindow);
                    if self.common.has(ConnectionFlags::RECEIVE_CLOSED) && !arrival.payload.is_empty() {
                        self.refuse_data(arrival, env);
                    }
                } else {
                    self.receiver.challenge(&mut self.common, env);
                }
                return false;
            }
            if !is_new && !early {
                env.discarded(Drop::OutOfWindow);
                env.reply(ResetReply::to(header, 0));
                return false;
            }
            self.open_by(arrival, env);
        } else if is_new {
            self.sender.take_acknowledgment(&mut self.common, arrival, false, env);
        } else if acknowledgment != unacknowledged && !self.sender.is_recent(&self.common, acknowledgment) {
            // RFC 5961 §5.2: neither new nor from the last window's worth.
            self.receiver.challenge(&mut self.common, env);
            return false;
        } else if acknowledgment == unacknowledged || !header.options.sack.is_empty() {
            let duplicate =
                acknowledgment == unacknowledged && self.sender.is_duplicate(&self.common, arrival);
            if duplicate || !header.options.sack.is_empty() || header.flags.ece() {
                self.sender.take_acknowledgment(&mut self.common, arrival, duplicate, env);
            }
        }
        if self.sender.has(SenderFlags::FIN_ACKNOWLEDGED) {
            match self.common.state() {
                TcpState::FinWait1 => self.common.enter_fin_wait_2(env),
                TcpState::Closing => self.enter_time_wait(env),
                TcpState::LastAck => self.finish(None, env),
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
