//! The acknowledgment, the window, and what both say about loss (RFC 9293 §3.10.7.4, fifth step; RFC 5681, RFC 6582).

use super::Input;
use crate::arrival::Arrival;
use crate::flags::ConnectionFlags;
use crate::outcome::ResetReply;
use inhost_event::{Drop, Layer, TcpState};

impl Input<'_, '_> {
    /// The fifth step of RFC 9293 §3.10.7.4. False if the processing of the segment ends here.
    // spec: RFC5961 5.2-1, 5.2-2
    pub(super) fn take_acknowledgment(&mut self, arrival: &Arrival<'_>) -> bool {
        let (header, acknowledgment) = (arrival.header, arrival.acknowledgment);
        let (unacknowledged, next) = (self.tcb.sender.space.unacknowledged(), self.tcb.sender.space.next());
        let is_new = unacknowledged < acknowledgment && acknowledgment <= next;
        if self.tcb.common.state == TcpState::SynReceived {
            let early = self.tcb.common.flags.contains(ConnectionFlags::EARLY_DATA)
                && acknowledgment == unacknowledged;
            if !is_new && self.tcb.sender.ended_before_open(&self.tcb.common) {
                // The FIN was sent in SYN-RECEIVED: except for the retransmission of the SYN, the state behaves as
                // FIN-WAIT-1.
                if acknowledgment == unacknowledged {
                    self.outcome.dropped = Some(Drop::OutOfWindow);
                    if self.tcb.common.flags.contains(ConnectionFlags::RECEIVE_CLOSED)
                        && !arrival.payload.is_empty()
                    {
                        self.refuse_data(arrival);
                    }
                } else {
                    self.tcb.receiver.challenge(&mut self.tcb.common, self.env, self.outcome);
                }
                return false;
            }
            if !is_new && !early {
                self.outcome.dropped = Some(Drop::OutOfWindow);
                self.outcome.reset =
                    Some(ResetReply { sequence: header.acknowledgment, ..ResetReply::default() });
                return false;
            }
            self.open_by(arrival);
        } else if is_new {
            self.advance(arrival, false);
        } else if acknowledgment != unacknowledged
            && !self.tcb.sender.is_recent(&self.tcb.common, acknowledgment)
        {
            // RFC 5961 §5.2: neither new nor from the last window's worth.
            self.tcb.receiver.challenge(&mut self.tcb.common, self.env, self.outcome);
            return false;
        } else if acknowledgment == unacknowledged || !header.options.sack.is_empty() {
            let duplicate =
                acknowledgment == unacknowledged && self.tcb.sender.is_duplicate(&self.tcb.common, arrival);
            if duplicate || !header.options.sack.is_empty() || header.flags.ece() {
                self.advance(arrival, duplicate);
            }
        }
        if self.tcb.common.state == TcpState::Closed {
            return false;
        }
        // After the acknowledgment: how far the window reaches is counted from there.
        self.tcb.sender.take_window(
            &mut self.tcb.common,
            (arrival.first, acknowledgment, header.window),
            self.env.now,
        );
        true
    }
    /// Takes an acknowledgment, new or duplicate, with its SACK blocks.
    pub(super) fn advance(&mut self, arrival: &Arrival<'_>, duplicate: bool) {
        let info = self.tcb.sender.ack_info(&self.tcb.common, arrival);
        let tcb = &mut *self.tcb;
        self.env.begin_layer(Layer::Timers);
        let came = tcb.sender.acknowledge(&mut tcb.common, &info, duplicate, self.env);
        self.env.end_layer();
        self.outcome.changes |= self.tcb.sender.tell_acknowledged(&mut self.tcb.common, came);
        if came.fin {
            self.fin_acknowledged();
        }
    }
    /// Our FIN is acknowledged.
    fn fin_acknowledged(&mut self) {
        match self.tcb.common.state {
            TcpState::FinWait1 => {
                self.tcb.common.enter(TcpState::FinWait2, self.env);
                if self.tcb.common.flags.contains(ConnectionFlags::RECEIVE_CLOSED) {
                    self.tcb.common.linger_at = self.env.now + self.tcb.common.config.fin_wait_2;
                }
            }
            TcpState::Closing => self.tcb.enter_time_wait(self.env, self.outcome),
            TcpState::LastAck => self.tcb.finish(None, self.env, self.outcome),
            _ => {}
        }
    }
}
