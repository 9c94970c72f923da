//! Whether a segment lies in the window, and what of it is new (RFC 9293 §3.10.7.4, first step).

use super::Receiver;
use crate::arrival::Arrival;
use crate::common::Common;
use crate::flags::{ConnectionFlags, ReceiverFlags};
use crate::offset::Offset;
use crate::receiver::ack_timing::QUICK_AFTER_TROUBLE;
use inhost_base::Instant;
use inhost_event::TcpState;

/// `TS.Recent` says nothing any more after so many hours without a newer one (RFC 7323 §5.5): 24 days.
// spec: RFC7323 5.5-1
const TIMESTAMP_LIFE_HOURS: u16 = 24 * 24;

impl Receiver {
    /// The four cases of RFC 9293 §3.10.7.4, table 6, and two that it omits. A closed window accepts any segment that
    /// starts at its edge, because of its acknowledgment, reset and urgent pointer. And a segment without length may
    /// stand at the edge of any window: a sender that has filled the window has no other sequence number for an
    /// acknowledgment, and two such senders that each missed a segment would otherwise never accept each other's
    /// acknowledgments.
    pub fn is_in_window(&self, common: &Common, arrival: &Arrival<'_>) -> bool {
        let header = arrival.header;
        let controls = u32::from(header.flags.syn()) + u32::from(header.flags.fin());
        let length = arrival.payload.len() as u32 + controls;
        let next = self.space.next();
        let window = self.space.window();
        let (first, end) = (arrival.first, arrival.first + length);
        let touches = common.config.policy.unacknowledged_range_is_acceptable
            && (common.state != TcpState::SynReceived || common.flags.contains(ConnectionFlags::ACTIVE_OPEN))
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
    pub fn cut_to_window(&mut self, common: &Common, arrival: &mut Arrival<'_>) {
        arrival.start = arrival.first + u32::from(arrival.header.flags.syn());
        if let Some(buffers) = self.buffers.as_mut().filter(|_| arrival.bears_stream()) {
            buffers.reassembly.duplicate = None;
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
    pub fn note_old(&mut self, common: &Common, arrival: &Arrival<'_>) {
        let start = arrival.first;
        let end = start + arrival.payload.len() as u32 + u32::from(arrival.fin);
        if !arrival.header.flags.syn() && start < self.space.next() && start < end {
            self.enter_quick_ack_mode(common, QUICK_AFTER_TROUBLE);
            self.note_repeated(common, start, end.min(self.space.next()));
        }
    }
    /// Whether a reset has the number of the peer's FIN, which is what a peer that was killed may send.
    pub fn repeats_fin(&self, common: &Common, arrival: &Arrival<'_>) -> bool {
        common.config.policy.reset_at_fin_is_valid
            && arrival.first + 1 == self.space.next()
            && matches!(common.state, TcpState::CloseWait | TcpState::LastAck | TcpState::Closing)
    }
    /// By how much a timestamp of the peer is older than `TS.Recent`, in its ticks. One that is not older, or that meets a
    /// `TS.Recent` which is outdated itself, has no age.
    #[inline]
    pub fn timestamp_age(&self, value: u32, now: Instant) -> i32 {
        let age = self.timestamp_recent.wrapping_sub(value) as i32;
        let is_outdated = || hour_of(now).wrapping_sub(self.timestamp_hour) > TIMESTAMP_LIFE_HOURS;
        if age > 0 && is_outdated() { 0 } else { age }
    }
    /// Sets `TS.Recent`.
    #[inline]
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
            && common.flags.contains(ConnectionFlags::TIMESTAMPS)
            && first <= self.space.acknowledged()
            && self.timestamp_age(value, now) <= 0
        {
            self.set_timestamp_recent(value, now);
        }
    }
}

#[inline]
fn hour_of(now: Instant) -> u16 {
    (now.as_nanos() / (3600 * 1_000_000_000)) as u16
}
