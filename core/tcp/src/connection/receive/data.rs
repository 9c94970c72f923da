//! Data and FIN (RFC 9293 §3.10.7.4, seventh and eighth step).

use super::Input;
use crate::ConnectionError;
use crate::arrival::Arrival;
use crate::flags::{ConnectionFlags, ReceiverFlags};
use crate::outcome::{Changes, ResetReply};
use crate::receiver::ack_timing::QUICK_AFTER_TROUBLE;
use crate::receiver::data::InOrder;
use crate::state::Allows;
use core::slice::from_mut;
use inhost_event::{Drop, TcpState};

impl Input<'_, '_> {
    pub(super) fn take_data(&mut self, arrival: &mut Arrival<'_>) {
        if arrival.is_repeated {
            // Nothing of it is new: its sender missed our acknowledgment.
            self.tcb.receiver.flags.insert(ReceiverFlags::ACKNOWLEDGE);
            self.tcb.receiver.flags.insert(ReceiverFlags::SCHEDULED);
            self.tcb.receiver.enter_quick_ack_mode(&self.tcb.common, QUICK_AFTER_TROUBLE);
        }
        if arrival.payload.is_empty() && !arrival.fin {
            return;
        }
        if !self.tcb.common.state.expects_data() {
            // After the peer's FIN there is nothing more to take.
            return;
        }
        if self.tcb.common.flags.contains(ConnectionFlags::ECN) {
            self.tcb.receiver.take_congestion_mark(&self.tcb.common, arrival.ecn);
        }
        if self.tcb.common.flags.contains(ConnectionFlags::RECEIVE_CLOSED) && !arrival.payload.is_empty() {
            return self.discard_data(arrival);
        }
        if !self.keeps_data && !arrival.payload.is_empty() {
            self.tcb.receiver.flags.insert(ReceiverFlags::ACKNOWLEDGE);
            self.tcb.receiver.flags.insert(ReceiverFlags::SCHEDULED);
            self.outcome.dropped = Some(Drop::NoMemory);
            return;
        }
        if arrival.start != self.tcb.receiver.space.next() {
            return self.tcb.receiver.keep_for_later(&self.tcb.common, arrival, self.env, self.outcome);
        }
        let coming = arrival.coming();
        let Arrival { header, payload, fin, .. } = arrival;
        if !payload.is_empty() {
            self.outcome.changes |= Changes::READABLE;
        }
        let (what, timestamps) = ((coming, *fin), header.options.timestamps);
        let came =
            self.tcb.receiver.take_in_order(&self.tcb.common, from_mut(*payload), what, timestamps, self.env);
        let reaches_fin = came == InOrder::ReachesFin;
        if *fin || reaches_fin {
            self.take_fin(reaches_fin);
        }
    }
    /// Data for a socket that is closed for reading. While our side may still send, it is acknowledged and discarded.
    /// When both sides are closed, a reset informs the peer that its data is lost (RFC 9293 §3.6.1).
    fn discard_data(&mut self, arrival: &mut Arrival<'_>) {
        if self.tcb.common.state != TcpState::Established {
            return self.refuse_data(arrival);
        }
        self.tcb.receiver.flags.insert(ReceiverFlags::ACKNOWLEDGE);
        if arrival.start == self.tcb.receiver.space.next() {
            self.tcb.receiver.space.receive(arrival.payload.len() as u32);
            self.tcb.receiver.urgent_follows_reading(&self.tcb.common);
            if arrival.fin {
                self.take_fin(true);
            }
        }
    }
    /// Data that no application can read ends the connection (RFC 1122 §4.2.2.13).
    #[cold]
    pub(super) fn refuse_data(&mut self, arrival: &Arrival<'_>) {
        self.outcome.reset = match self.tcb.common.config.policy.unread_data_has_no_connection {
            true => ResetReply::to(arrival.header, arrival.payload.len()),
            false => Some(self.tcb.outgoing().active_reset(self.env.now)),
        };
        self.tcb.finish(Some(ConnectionError::Aborted), self.env, self.outcome);
    }
    /// The peer's stream is complete. `at_once`: it is acknowledged without delay in any case.
    pub(super) fn take_fin(&mut self, at_once: bool) {
        self.tcb.receiver.space.receive_fin();
        if at_once || !self.tcb.common.may_delay_fin() {
            self.tcb.receiver.flags.insert(ReceiverFlags::ACKNOWLEDGE);
        }
        if self.tcb.common.may_delay_fin() {
            self.tcb.receiver.schedule_for_fin();
        }
        if let Some(buffers) = &mut self.tcb.receiver.buffers {
            buffers.reassembly.end(self.env.pool);
        }
        self.outcome.changes |= Changes::PEER_CLOSED | Changes::READABLE;
        match self.tcb.common.state {
            TcpState::Established => self.tcb.common.enter(TcpState::CloseWait, self.env),
            TcpState::FinWait1 => self.tcb.common.enter(TcpState::Closing, self.env),
            TcpState::FinWait2 => self.tcb.enter_time_wait(self.env, self.outcome),
            _ => {}
        }
    }
}
