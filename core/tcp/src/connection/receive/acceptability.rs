//! Whether a segment's numbers are ours to look at: the first check of RFC 9293 §3.10.7.4, and PAWS before it
//! (RFC 7323 §5.3).

use crate::Connection;
use crate::arrival::Arrival;
use crate::flags::ConnectionFlags;
use crate::offset::Offset;
use crate::outcome::Outcome;
use inhost_base::Instant;
use inhost_event::{Drop, TcpState};

impl Connection {
    /// Checks the segment and trims it to the window. If false, the acknowledgment that is due is marked.
    // spec: RFC7323 5.3-2, 5.3-3; RFC5961 3.2-3
    pub(super) fn is_acceptable(
        &mut self,
        arrival: &mut Arrival<'_>,
        now: Instant,
        outcome: &mut Outcome,
    ) -> bool {
        if let Some(why) = self.fails_paws(arrival, now) {
            outcome.dropped = Some(why);
            let is_silent = self.common.config.policy.pure_acks_pass_paws
                && arrival.is_pure()
                && arrival.first < self.receiver.space().next();
            if !is_silent {
                self.receiver.note_old(&self.common, arrival);
                self.receiver.answer_unacceptable(&mut self.common, arrival, now);
            }
            return false;
        }
        if self.common.state == TcpState::SynReceived && arrival.is_repeated_syn() {
            outcome.dropped = Some(Drop::OutOfWindow);
            // Our SYN-ACK may be lost. The peer's timer limits the rate. The rest of the segment is retransmitted by the
            // peer.
            if self.sender.space().next() != Offset::SYN
                && !self.common.flags.contains(ConnectionFlags::SYN_HELD)
            {
                self.common.flags.insert(ConnectionFlags::SYN_DUE);
            }
            return false;
        }
        if self.receiver.is_in_window(&self.common, arrival) {
            self.receiver.cut_to_window(&self.common, arrival);
            return true;
        }
        outcome.dropped = Some(Drop::OutOfWindow);
        let header = arrival.header;
        if header.flags.rst() {
            return self.receiver.repeats_fin(&self.common, arrival);
        }
        if !self.common.opens() {
            self.receiver.note_old(&self.common, arrival);
        }
        if self.common.state == TcpState::TimeWait && header.flags.fin() {
            // The last acknowledgment was lost: TIME-WAIT restarts.
            self.common.linger_at = now + self.common.config.time_wait;
        }
        self.receiver.answer_unacceptable(&mut self.common, arrival, now);
        false
    }
    /// An old duplicate by its timestamp (RFC 7323 §5.3), or one without the timestamp that was agreed on (§3.2).
    // spec: RFC7323 3.2-5, 5.2-4, 5.3-1
    fn fails_paws(&self, arrival: &Arrival<'_>, now: Instant) -> Option<Drop> {
        if !self.common.flags.contains(ConnectionFlags::TIMESTAMPS) || arrival.header.flags.rst() {
            return None;
        }
        let Some((value, _)) = arrival.header.options.timestamps else {
            return self.common.config.timestamps_required.then_some(Drop::OldTimestamp);
        };
        let age = self.receiver.timestamp_age(value, now);
        let most = i32::from(self.common.config.policy.pure_acks_pass_paws && !self.common.opens());
        (age > most && !self.may_overtake(arrival, age)).then_some(Drop::OldTimestamp)
    }
    /// Whether a segment with an old timestamp is an acknowledgment that changes nothing, overtaken within a time-out.
    fn may_overtake(&self, arrival: &Arrival<'_>, age: i32) -> bool {
        let header = arrival.header;
        let timeout = self.common.round_trip.base_timeout(&self.common.config).as_millis() as i64;
        let window = self.sender.scaled(header.window);
        self.common.config.policy.pure_acks_pass_paws
            && arrival.is_pure()
            && arrival.first == self.receiver.space().next()
            && arrival.acknowledgment == self.sender.space().unacknowledged()
            && self.sender.space().knows_window(arrival.first, window)
            && i64::from(age) <= timeout * 12 / 10
    }
}
