//! Whether a segment's numbers are ours to look at: the first check of RFC 9293 §3.10.7.4, and PAWS before it
//! (RFC 7323 §5.3).

use crate::arrival::Arrival;
use crate::connection::open::is_repeated_syn;
use crate::flags::{ConnectionFlags, ReceiverFlags};
use crate::outcome::Outcome;
use crate::state::Allows;
use crate::{Connection, Environment};
use inhost_event::{Drop, TcpState};

/// A timestamp older than this says nothing any more (RFC 7323 §5.5): 24 days.
// spec: RFC7323 5.5-1
const TIMESTAMP_LIFE_SECONDS: u32 = 24 * 24 * 3600;

impl Connection {
    /// Checks the segment and cuts it to what lies in the window. When false, what the peer is owed is marked.
    // spec: RFC7323 5.3-2, 5.3-3; RFC5961 3.2-3
    pub(super) fn is_acceptable(
        &mut self,
        arrival: &mut Arrival<'_>,
        env: &mut Environment<'_>,
        outcome: &mut Outcome,
    ) -> bool {
        if let Some(why) = self.fails_paws(arrival, env) {
            outcome.dropped = Some(why);
            let is_silent = self.common.config.policy.pure_acks_pass_paws
                && arrival.is_pure()
                && arrival.header.sequence.precedes(self.receiver.space.next);
            if !is_silent {
                self.receiver.note_old(&self.common, arrival);
                self.answer_unacceptable(arrival, env);
            }
            return false;
        }
        if self.common.state == TcpState::SynReceived
            && is_repeated_syn(arrival.header, self.receiver.space.initial)
            && !(self.common.flags.has(ConnectionFlags::ACTIVE)
                && self.common.config.policy.answers_crossing_syn)
        {
            outcome.dropped = Some(Drop::OutOfWindow);
            // Our SYN and ACK may be lost; the peer's own timer paces this, and on Linux the limit of challenges. What it
            // bears beside comes again.
            let limited = self.common.config.policy.challenge_interval.is_some() && !self.may_challenge(env);
            if self.sender.space.next != self.sender.syn_sequence(&self.common)
                && !self.common.flags.has(ConnectionFlags::HELD)
                && !limited
            {
                self.common.flags.set(ConnectionFlags::SYNCHRONISE);
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
            return self.receiver.repeats_fin(&self.common, header);
        }
        if !self.common.state.opens() {
            self.receiver.note_old(&self.common, arrival);
        }
        if self.common.state == TcpState::TimeWait && header.flags.fin() {
            // The last acknowledgment was lost: TIME-WAIT begins anew.
            self.linger_at = env.now + self.common.config.time_wait;
        }
        self.answer_unacceptable(arrival, env);
        false
    }
    /// An old duplicate by its timestamp (RFC 7323 §5.3), or one without the timestamp that was agreed on (§3.2).
    // spec: RFC7323 3.2-5, 5.2-4, 5.3-1
    fn fails_paws(&self, arrival: &Arrival<'_>, env: &Environment<'_>) -> Option<Drop> {
        if !self.common.flags.has(ConnectionFlags::TIMESTAMPS) || arrival.header.flags.rst() {
            return None;
        }
        let Some((value, _)) = arrival.header.options.timestamps else {
            return self.common.config.timestamps_required.then_some(Drop::OldTimestamp);
        };
        let age = self.receiver.timestamp_recent.wrapping_sub(value) as i32;
        if age <= 0 {
            return None;
        }
        let second = (env.now.as_nanos() / 1_000_000_000) as u32;
        let stale = second.wrapping_sub(self.receiver.timestamp_second) > TIMESTAMP_LIFE_SECONDS;
        let most = i32::from(self.common.config.policy.pure_acks_pass_paws && !self.common.state.opens());
        (age > most && !stale && !self.may_overtake(arrival, age)).then_some(Drop::OldTimestamp)
    }
    /// Whether a segment with an old timestamp is an acknowledgment that changes nothing, overtaken within a time-out.
    fn may_overtake(&self, arrival: &Arrival<'_>, age: i32) -> bool {
        let header = arrival.header;
        let timeout = self.sender.round_trip.base_timeout(&self.common.config).as_millis() as i64;
        let window = u32::from(header.window) << self.sender.scale;
        self.common.config.policy.pure_acks_pass_paws
            && arrival.is_pure()
            && header.sequence == self.receiver.space.next
            && header.acknowledgment == self.sender.space.unacknowledged
            && !self.sender.space.window_sequence.precedes(header.sequence)
            && window <= self.sender.space.window
            && i64::from(age) <= timeout * 12 / 10
    }
    /// An acknowledgment tells the peer where we are. One without data may be the answer to ours, so such answers
    /// are counted, lest two ends answer each other for ever; and so is the answer to a SYN, whatever it bears
    /// (RFC 5961 §4.2, §7).
    fn answer_unacceptable(&mut self, arrival: &Arrival<'_>, env: &mut Environment<'_>) {
        if arrival.bears_stream() || self.may_challenge(env) {
            self.receiver.flags.set(ReceiverFlags::ACKNOWLEDGE);
        }
    }
}
