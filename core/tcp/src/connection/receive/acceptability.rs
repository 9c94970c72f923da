//! Whether a segment's numbers are ours to look at: the first check of RFC 9293 §3.10.7.4, and PAWS before it
//! (RFC 7323 §5.3).

use super::Input;
use crate::arrival::Arrival;
use crate::flags::ConnectionFlags;
use crate::offset::Offset;
use crate::state::Allows;
use inhost_event::{Drop, TcpState};

impl Input<'_, '_> {
    /// Checks the segment and trims it to the window. If false, the acknowledgment that is due is marked.
    // spec: RFC7323 5.3-2, 5.3-3; RFC5961 3.2-3
    pub(super) fn is_acceptable(&mut self, arrival: &mut Arrival<'_>) -> bool {
        if let Some(why) = self.fails_paws(arrival) {
            self.outcome.dropped = Some(why);
            let is_silent = self.tcb.common.config.policy.pure_acks_pass_paws
                && arrival.is_pure()
                && arrival.first < self.tcb.receiver.space.next();
            if !is_silent {
                self.tcb.receiver.note_old(&self.tcb.common, arrival);
                self.tcb.receiver.answer_unacceptable(&mut self.tcb.common, arrival, self.env.now);
            }
            return false;
        }
        if self.tcb.common.state == TcpState::SynReceived && arrival.is_repeated_syn() {
            self.outcome.dropped = Some(Drop::OutOfWindow);
            // Our SYN-ACK may be lost. The peer's timer limits the rate. The rest of the segment is retransmitted by the
            // peer.
            if self.tcb.sender.space.next() != Offset::SYN
                && !self.tcb.common.flags.contains(ConnectionFlags::SYN_HELD)
            {
                self.tcb.common.flags.insert(ConnectionFlags::SYN_DUE);
            }
            return false;
        }
        if self.tcb.receiver.is_in_window(&self.tcb.common, arrival) {
            self.tcb.receiver.cut_to_window(&self.tcb.common, arrival);
            return true;
        }
        self.outcome.dropped = Some(Drop::OutOfWindow);
        let header = arrival.header;
        if header.flags.rst() {
            return self.tcb.receiver.repeats_fin(&self.tcb.common, arrival);
        }
        if !self.tcb.common.state.opens() {
            self.tcb.receiver.note_old(&self.tcb.common, arrival);
        }
        if self.tcb.common.state == TcpState::TimeWait && header.flags.fin() {
            // The last acknowledgment was lost: TIME-WAIT restarts.
            self.tcb.common.linger_at = self.env.now + self.tcb.common.config.time_wait;
        }
        self.tcb.receiver.answer_unacceptable(&mut self.tcb.common, arrival, self.env.now);
        false
    }
    /// An old duplicate by its timestamp (RFC 7323 §5.3), or one without the timestamp that was agreed on (§3.2).
    // spec: RFC7323 3.2-5, 5.2-4, 5.3-1
    fn fails_paws(&self, arrival: &Arrival<'_>) -> Option<Drop> {
        if !self.tcb.common.flags.contains(ConnectionFlags::TIMESTAMPS) || arrival.header.flags.rst() {
            return None;
        }
        let Some((value, _)) = arrival.header.options.timestamps else {
            return self.tcb.common.config.timestamps_required.then_some(Drop::OldTimestamp);
        };
        let age = self.tcb.receiver.timestamp_age(value, self.env.now);
        let most =
            i32::from(self.tcb.common.config.policy.pure_acks_pass_paws && !self.tcb.common.state.opens());
        (age > most && !self.may_overtake(arrival, age)).then_some(Drop::OldTimestamp)
    }
    /// Whether a segment with an old timestamp is an acknowledgment that changes nothing, overtaken within a time-out.
    fn may_overtake(&self, arrival: &Arrival<'_>, age: i32) -> bool {
        let header = arrival.header;
        let timeout = self.tcb.common.round_trip.base_timeout(&self.tcb.common.config).as_millis() as i64;
        let window = u32::from(header.window) << self.tcb.sender.scale;
        self.tcb.common.config.policy.pure_acks_pass_paws
            && arrival.is_pure()
            && arrival.first == self.tcb.receiver.space.next()
            && arrival.acknowledgment == self.tcb.sender.space.unacknowledged()
            && self.tcb.sender.space.window_sequence >= arrival.first
            && window <= self.tcb.sender.space.window
            && i64::from(age) <= timeout * 12 / 10
    }
}
