//! Whether a segment's numbers are ours to look at, and what of it is new (RFC 9293 §3.10.7.4, first step), with PAWS before
//! that (RFC 7323 §5.3); and the answers to segments that are not acceptable (RFC 5961).

use super::Receiver;
use crate::Environment;
use crate::arrival::Arrival;
use crate::common::Common;
use crate::flags::{ConnectionFlags, ReceiverFlags};
use crate::receiver::ack_timing::QUICK_AFTER_TROUBLE;
use inhost_base::{Instant, Offset};
use inhost_event::{Drop, TcpState};

/// `TS.Recent` says nothing any more after so many hours without a newer one (RFC 7323 §5.5): 24 days.
// spec: RFC7323 5.5-1
const TIMESTAMP_LIFE_HOURS: u16 = 24 * 24;

impl Receiver {
    /// Checks the segment and trims it to the window. If false, the acknowledgment that is due is marked. It `says_nothing`
    /// to the sender if it neither acknowledges anything nor widens the window.
    // spec: RFC7323 5.3-2, 5.3-3; RFC5961 3.2-3
    pub fn is_acceptable(
        &mut self,
        common: &mut Common,
        arrival: &mut Arrival<'_>,
        says_nothing: bool,
        env: &mut Environment<'_>,
    ) -> bool {
        if self.fails_paws(common, arrival, says_nothing, env.now()) {
            env.discarded(Drop::OldTimestamp);
            let is_silent =
                common.policy().pure_acks_pass_paws && arrival.is_pure() && arrival.first < self.space.next();
            if !is_silent {
                self.note_old(common, arrival);
                self.answer_unacceptable(common, arrival, env.now());
            }
            return false;
        }
        if common.state() == TcpState::SynReceived && arrival.is_repeated_syn() {
            env.discarded(Drop::OutOfWindow);
            // Our SYN-ACK may be lost. The peer's timer limits the rate. The rest of the segment is retransmitted by the
            // peer.
            common.set(ConnectionFlags::SYN_DUE, true);
            return false;
        }
        if self.is_in_window(common, arrival) {
            self.cut_to_window(common, arrival);
            return true;
        }
        env.discarded(Drop::OutOfWindow);
        let header = arrival.header;
        if header.flags.rst() {
            return self.repeats_fin(common, arrival);
        }
        if !common.opens() {
            self.note_old(common, arrival);
        }
        if common.state() == TcpState::TimeWait && header.flags.fin() {
            // The last acknowledgment was lost: TIME-WAIT restarts.
            common.linger_until(env.now() + common.config().time_wait);
        }
        self.answer_unacceptable(common, arrival, env.now());
        false
    }
    /// The four cases of RFC 9293 §3.10.7.4, table 6, and two that it omits. A closed window accepts any segment that
    /// starts at its edge, because of its acknowledgment, reset and urgent pointer. And a segment without length may
    /// stand at the edge of any window: a sender that has filled the window has no other sequence number for an
    /// acknowledgment, and two such senders that each missed a segment would otherwise never accept each other's
    /// acknowledgments.
    fn is_in_window(&self, common: &Common, arrival: &Arrival<'_>) -> bool {
        let header = arrival.header;
        let controls = u32::from(header.flags.syn()) + u32::from(header.flags.fin());
        let length = arrival.payload.len() as u32 + controls;
        let next = self.space.next();
        let window = self.space.window();
        let (first, end) = (arrival.first, arrival.first + length);
        let touches = common.policy().unacknowledged_range_is_acceptable
            && (common.state() != TcpState::SynReceived || common.has(ConnectionFlags::ACTIVE_OPEN))
            && self.space.acknowledged() <= end
            && end <= next;
        if touches {
            return true;
        }
        if length == 0 {
            return first.within(next, window + 1);
        }
        if window == 0 {
            // spec: RFC9293 MUST-66 (resets and urgent pointers count with the window closed)
            return first == next;
        }
        // It touches the window: its first byte lies before the edge, and its last not before the window.
        first < self.space.edge() && next < end
    }
    fn cut_to_window(&mut self, common: &Common, arrival: &mut Arrival<'_>) {
        arrival.start = arrival.first + u32::from(arrival.header.flags.syn());
        if let Some(buffers) = self.buffers.as_mut().filter(|_| arrival.bears_stream()) {
            buffers.reassembly.forget_duplicate();
        }
        if arrival.start < self.space.next() {
            let old = self.space.next().since(arrival.start);
            let known = old.min(arrival.payload.len() as u32 + u32::from(arrival.fin));
            self.note_repeated(common, arrival.start, arrival.start + known);
            if old as usize > arrival.payload.len() {
                // Its FIN, too, is old.
                arrival.fin = false;
            }
            if known > 0 && known == arrival.payload.len() as u32 + u32::from(arrival.header.flags.fin()) {
                arrival.is_repeated = true;
            }
            arrival.payload.trim_front(old as usize);
            arrival.start = self.space.next();
        }
        let room = self.space.edge().since(arrival.start) as usize;
        if arrival.payload.len() > room {
            // A probe of a closed window, or a sender that did not mind it: it learns where the edge is.
            arrival.payload.truncate(room);
            arrival.fin = false;
            self.flags.insert(ReceiverFlags::ACKNOWLEDGE);
        }
    }
    /// A discarded segment began before RCV.NXT: its sender missed our acknowledgment.
    fn note_old(&mut self, common: &Common, arrival: &Arrival<'_>) {
        let start = arrival.first;
        let end = start + arrival.payload.len() as u32 + u32::from(arrival.fin);
        if !arrival.header.flags.syn() && start < self.space.next() && start < end {
            self.enter_quick_ack_mode(common, QUICK_AFTER_TROUBLE);
            self.note_repeated(common, start, end.min(self.space.next()));
        }
    }
    /// Whether a reset has the number of the peer's FIN, which is what a peer that was killed may send.
    pub fn repeats_fin(&self, common: &Common, arrival: &Arrival<'_>) -> bool {
        common.policy().reset_at_fin_is_valid
            && arrival.first + 1 == self.space.next()
            && matches!(common.state(), TcpState::CloseWait | TcpState::LastAck | TcpState::Closing)
    }
    /// An old duplicate by its timestamp (RFC 7323 §5.3), or one without the timestamp that was agreed on (§3.2). One that
    /// `says_nothing` to the sender either, an acknowledgment that changes nothing, may have been overtaken within a time-out.
    // spec: RFC7323 3.2-5, 5.2-4, 5.3-1
    fn fails_paws(&self, common: &Common, arrival: &Arrival<'_>, says_nothing: bool, now: Instant) -> bool {
        if !common.has(ConnectionFlags::TIMESTAMPS) || arrival.header.flags.rst() {
            return false;
        }
        let Some((value, _)) = arrival.header.options.timestamps else {
            return common.config().timestamps_required;
        };
        let age = self.timestamp_age(value, now);
        let spares_pure = common.policy().pure_acks_pass_paws;
        let most = i32::from(spares_pure && !common.opens());
        let is_overtaken = || {
            spares_pure
                && says_nothing
                && arrival.is_pure()
                && arrival.first == self.space.next()
                && i64::from(age) <= common.base_timeout().as_millis() as i64 * 12 / 10
        };
        age > most && !is_overtaken()
    }
    /// By how much a timestamp of the peer is older than `TS.Recent`, in its ticks. One that is not older, or that meets a
    /// `TS.Recent` which is outdated itself, has no age.
    #[inline]
    fn timestamp_age(&self, value: u32, now: Instant) -> i32 {
        let age = self.timestamp_recent.wrapping_sub(value) as i32;
        let is_outdated = || hour_of(now).wrapping_sub(self.timestamp_hour) > TIMESTAMP_LIFE_HOURS;
        if age > 0 && is_outdated() { 0 } else { age }
    }
    /// Sets `TS.Recent`.
    pub fn set_timestamp_recent(&mut self, value: u32, now: Instant) {
        (self.timestamp_recent, self.timestamp_hour) = (value, hour_of(now));
    }
    /// A segment arrived: records the time, and its timestamp for the echo (RFC 7323 §4.3).
    // spec: RFC7323 3.2-6, 4.3-1, 4.3-2, 4.3-3, 5.2-1
    #[inline]
    pub fn note_segment(
        &mut self,
        common: &Common,
        first: Offset,
        timestamps: Option<(u32, u32)>,
        now: Instant,
    ) {
        self.received_at = now;
        if let Some((value, _)) = timestamps
            && common.has(ConnectionFlags::TIMESTAMPS)
            && first <= self.space.acknowledged()
            && self.timestamp_age(value, now) <= 0
        {
            self.set_timestamp_recent(value, now);
        }
    }
    /// An acknowledgment informs the peer of our state. A segment without data may be the answer to one of ours, so
    /// answers to it are limited, to prevent an endless exchange of acknowledgments; so are answers to a SYN, with data
    /// or without (RFC 5961 §4.2, §7).
    pub(super) fn answer_unacceptable(&mut self, common: &mut Common, arrival: &Arrival<'_>, now: Instant) {
        if arrival.bears_stream() || common.may_challenge(now) {
            self.flags.insert(ReceiverFlags::ACKNOWLEDGE);
        }
    }
    /// A reset counts when it bears exactly the next number; another one in the window asks for a challenge
    /// (RFC 5961 §3.2).
    // spec: RFC5961 3.2-1, 3.2-2, 4.2-2; RFC9293 SHLD-2
    pub fn believes_reset(
        &mut self,
        common: &mut Common,
        arrival: &Arrival<'_>,
        env: &mut Environment<'_>,
    ) -> bool {
        if common.state() == TcpState::TimeWait {
            // RFC 1337 §3: a stray reset does not cut TIME-WAIT short.
            env.discarded(Drop::NotCredible);
            return false;
        }
        let is_next = arrival.first == self.space.next() || self.repeats_fin(common, arrival);
        if !is_next {
            self.challenge(common, env);
        }
        is_next
    }
    /// Drops the segment and answers it, within the limit.
    // spec: RFC5961 1.1-1
    pub fn challenge(&mut self, common: &mut Common, env: &mut Environment<'_>) {
        env.discarded(Drop::OutOfWindow);
        // A discarded segment leaves no state, not even a D-SACK report.
        self.sack_sent(common, env.pool());
        if common.may_challenge(env.now()) {
            self.flags.insert(ReceiverFlags::ACKNOWLEDGE);
        } else {
            env.discarded(Drop::RateLimited);
        }
    }
}

fn hour_of(now: Instant) -> u16 {
    (now.as_nanos() / (3600 * 1_000_000_000)) as u16
}
