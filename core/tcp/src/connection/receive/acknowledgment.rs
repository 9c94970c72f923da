//! The acknowledgment, the window, and what both say about loss (RFC 9293 §3.10.7.4, fifth step; RFC 5681, RFC 6582).

use crate::arrival::Arrival;
use crate::flags::{ConnectionFlags, SenderFlags};
use crate::outcome::{Outcome, ResetReply};
use crate::{Connection, Environment};
use inhost_event::{Drop, Layer, TcpState};

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
        if self.common.state == TcpState::SynReceived {
            let early =
                self.common.flags.contains(ConnectionFlags::EARLY_DATA) && acknowledgment == unacknowledged;
            if !is_new && self.sender.ended_before_open(&self.common) {
                // The FIN was sent in SYN-RECEIVED: except for the retransmission of the SYN, the state behaves as
                // FIN-WAIT-1.
                if acknowledgment == unacknowledged {
                    outcome.dropped = Some(Drop::OutOfWindow);
                    if self.common.flags.contains(ConnectionFlags::RECEIVE_CLOSED)
                        && !arrival.payload.is_empty()
                    {
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
            self.advance(arrival, false, env, outcome);
        } else if acknowledgment != unacknowledged && !self.sender.is_recent(&self.common, acknowledgment) {
            // RFC 5961 §5.2: neither new nor from the last window's worth.
            self.receiver.challenge(&mut self.common, env, outcome);
            return false;
        } else if acknowledgment == unacknowledged || !header.options.sack.is_empty() {
            let duplicate =
                acknowledgment == unacknowledged && self.sender.is_duplicate(&self.common, arrival);
            if duplicate || !header.options.sack.is_empty() || header.flags.ece() {
                self.advance(arrival, duplicate, env, outcome);
            }
        }
        if self.common.state == TcpState::Closed {
            return false;
        }
        // After the acknowledgment: how far the window reaches is counted from there.
        self.sender.take_window(&mut self.common, (arrival.first, acknowledgment, header.window), env.now);
        true
    }
    /// Takes an acknowledgment, new or duplicate, with its SACK blocks.
    pub(super) fn advance(
        &mut self,
        arrival: &Arrival<'_>,
        duplicate: bool,
        env: &mut Environment<'_>,
        outcome: &mut Outcome,
    ) {
        let header = arrival.header;
        let echo = self.common.echo_of(header.options.timestamps);
        let mut sample = self.sender.ack_sample(arrival.acknowledgment, header.window, echo);
        sample.is_duplicate = duplicate;
        sample.congestion = self.sender.tells_of_mark(&self.common, header.flags);
        let sack = Some(&header.options.sack)
            .filter(|blocks| !blocks.is_empty() && self.common.flags.contains(ConnectionFlags::SACK));
        env.begin_layer(Layer::Timers);
        outcome.changes |= self.sender.acknowledge(&mut self.common, sample, sack, env);
        env.end_layer();
        if self.sender.has(SenderFlags::FIN_ACKNOWLEDGED) {
            self.fin_acknowledged(env, outcome);
        }
    }
    /// Our FIN is acknowledged.
    fn fin_acknowledged(&mut self, env: &mut Environment<'_>, outcome: &mut Outcome) {
        match self.common.state {
            TcpState::FinWait1 => {
                self.common.enter(TcpState::FinWait2, env);
                if self.common.flags.contains(ConnectionFlags::RECEIVE_CLOSED) {
                    self.common.linger_at = env.now + self.common.config.fin_wait_2;
                }
            }
            TcpState::Closing => self.enter_time_wait(env, outcome),
            TcpState::LastAck => self.finish(None, env, outcome),
            _ => {}
        }
    }
}
