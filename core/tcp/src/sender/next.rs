//! What to send next, and why not more: one decision, asked until it says why not. The answer that ends the asking is the
//! cause in the send ledger.

use super::Sender;
use crate::common::Common;
use crate::flags::{ConnectionFlags, SenderFlags};
use crate::policy::PushPlacement;
use crate::sender::buffers::SendBuffers;
use crate::state::Allows;
use crate::{Ecn, Environment, RecoveryState};
use inhost_base::{Instant, Sequence};
use inhost_event::{Event, Mask, Retransmitted, RetransmittedWhy, SendCause, TcpState};

/// From this length on a payload is shared, where the device shares: to copy less costs less.
pub(crate) const SHARED_FROM_BYTES: u32 = 4096;

/// The next segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Next {
    /// SYN, or SYN and ACK.
    Synchronise,
    /// Part of the stream.
    Data(Data),
    /// No part of the stream.
    Acknowledge,
    /// A number that the peer has, so that it answers.
    KeepAlive,
}

/// A part of the stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Data {
    pub start: Sequence,
    pub length: u32,
    pub fin: bool,
    /// Payload of each segment but the last, where it leaves as a run of several; 0 of one segment.
    pub step: u32,
    pub again: Option<RetransmittedWhy>,
}

impl Data {
    /// After the first segment's payload.
    pub fn first_end(&self) -> Sequence {
        self.start + if self.step > 0 { self.step.min(self.length) } else { self.length }
    }
    pub fn end(&self) -> Sequence {
        self.start + self.length + u32::from(self.fin)
    }
}

impl Next {
    /// Whether its payload is shared, where the device shares.
    pub fn is_shareable(&self) -> bool {
        matches!(self, Next::Data(data) if data.length >= SHARED_FROM_BYTES)
    }
    /// How many segments it is.
    pub fn segments(&self) -> u32 {
        match self {
            Next::Data(data) if data.step > 0 => data.length.div_ceil(data.step).max(1),
            _ => 1,
        }
    }
}

impl Sender {
    /// Payload of a full segment that leaves now: what the SACK option takes is not there for data (RFC 9293 §3.7.1).
    #[inline]
    pub fn payload_limit(&self, sack_bytes: u32) -> u32 {
        let segment = self.segment_bytes();
        if sack_bytes == 0 { segment } else { segment.saturating_sub(sack_bytes).max(1) }
    }

    // spec: RFC6675 4-5
    pub fn next_data(&self, common: &Common, sack_bytes: u32) -> Result<Data, SendCause> {
        if common.state.has_fin_acknowledged() {
            return Err(SendCause::Closed);
        }
        if self.flags.has(SenderFlags::REFUSED) {
            return Err(SendCause::Link);
        }
        let (send, end) = (&self.space, self.stream_end());
        if self.flags.has(SenderFlags::PROBE) && send.window == 0 {
            return self.probe(common, end).ok_or(SendCause::ClosedWindow);
        }
        if let Some(buffers) = &self.buffers
            && buffers.flight.lost_bytes() > 0
        {
            return self.next_repair(common, sack_bytes, buffers, end);
        }
        if self.flags.has(SenderFlags::TAIL_PROBE)
            && let Some(data) = self.tail_probe(common, sack_bytes, end)
        {
            return Ok(data);
        }
        self.new_data(common, sack_bytes)
    }
    /// What was never sent.
    pub fn new_data(&self, common: &Common, sack_bytes: u32) -> Result<Data, SendCause> {
        let (send, end) = (&self.space, self.stream_end());
        if self.flags.has(SenderFlags::REPAIRS_ONLY) {
            return Err(self.repair_cause_or(SendCause::AwaitingAcknowledgment));
        }
        if end.precedes(send.next) {
            // The FIN is out, and all before it.
            return Err(self.repair_cause_or(SendCause::AwaitingAcknowledgment));
        }
        let unsent = end.since(send.next);
        if unsent == 0 {
            return match () {
                () if common.state.has_fin_outstanding() && self.is_window_shut(common) => {
                    Err(self.repair_cause_or(SendCause::ClosedWindow))
                }
                () if common.state.has_fin_outstanding() && self.is_full_of_segments(common) => {
                    Err(self.repair_cause_or(SendCause::CongestionWindow))
                }
                () if common.state.has_fin_outstanding() => self.data_from_next(0, true),
                () if !self.has_outstanding() => Err(SendCause::ApplicationIdle),
                () if self.flags.has(SenderFlags::WRITER_WAITS) => {
                    Err(self.repair_cause_or(SendCause::SendBuffer))
                }
                () => Err(self.repair_cause_or(SendCause::AwaitingAcknowledgment)),
            };
        }
        let length = self.sendable_bytes(common, sack_bytes, unsent)?;
        if length == unsent
            && common.state.has_fin_outstanding()
            && common.config.policy.window_probes_are_empty
            && send.next + length == self.send_edge()
        {
            // The FIN that goes with it takes a number, too.
            return Err(self.repair_cause_or(SendCause::ReceiverWindow));
        }
        self.data_from_next(length, length == unsent && common.state.has_fin_outstanding())
    }

    /// How many of `unsent` bytes may go in the next segment (RFC 9293 §3.7.4, §3.8.6.2.1).
    // spec: RFC5681 2-1, 3-1; RFC7323 2.4-1, 2.4-4; RFC9293 SHLD-15, SHLD-28
    pub fn sendable_bytes(&self, common: &Common, sack_bytes: u32, unsent: u32) -> Result<u32, SendCause> {
        let send = &self.space;
        let edge = self.send_edge();
        // The peer may have taken back what it offered: then the edge lies behind.
        // spec: RFC9293 MUST-34 (a shrinking window does no harm)
        let usable = if send.next.precedes(edge) { edge.since(send.next) } else { 0 };
        if usable == 0 {
            let full = self.congestion.window.window_bytes <= self.in_flight_bytes();
            let closed = if send.window == 0 {
                SendCause::ClosedWindow
            } else if full && common.config.policy.push == PushPlacement::WritesAndHalfWindows {
                // Where both windows are full at once, Linux names its own.
                SendCause::CongestionWindow
            } else {
                SendCause::ReceiverWindow
            };
            return Err(if send.window == 0 { closed } else { self.repair_cause_or(closed) });
        }
        let segment = self.payload_limit(sack_bytes);
        let mut length = unsent.min(usable).min(segment);
        let record = self.buffers.as_ref().and_then(|buffers| buffers.record_end_after(send.next));
        let ends_record = record.is_some_and(|end| end.since(send.next) <= length);
        if let Some(end) = record {
            length = length.min(end.since(send.next));
        }
        if self.is_congestion_window_full(common, length) {
            return Err(self.repair_cause_or(SendCause::CongestionWindow));
        }
        if length == segment || (ends_record && length < unsent) || self.goes_small(common, length, unsent) {
            if self.flags.has(SenderFlags::PACED) {
                return Err(SendCause::Pacing);
            }
            let probe =
                if record.is_none() { self.search_probe(common, sack_bytes, unsent, usable) } else { None };
            return Ok(probe.unwrap_or(length));
        }
        let waits_for_data = length == unsent;
        Err(self.repair_cause_or(if waits_for_data && self.flags.has(SenderFlags::WRITER_WAITS) {
            SendCause::SendBuffer
        } else if waits_for_data {
            SendCause::SmallData
        } else {
            SendCause::ReceiverWindow
        }))
    }
    /// What is to be sent again. While it is being found out whether a time-out was spurious, new data goes in its
    /// place once the oldest went again, as far as there is any (RFC 5682 §3.1).
    fn next_repair(
        &self,
        common: &Common,
        sack_bytes: u32,
        buffers: &SendBuffers,
        end: Sequence,
    ) -> Result<Data, SendCause> {
        let again = self.data_again(common, sack_bytes, buffers, end);
        if !self.recovery.forward || self.recovery.state != RecoveryState::Loss {
            return again;
        }
        match again {
            Ok(data) if !self.recovery.progressed && data.start == self.space.unacknowledged => Ok(data),
            _ if !self.recovery.progressed => Err(SendCause::Timeout),
            // Two segments of new data at most, and nothing beside them (RFC 5682 §2.1, step 2b).
            _ => self
                .new_data(common, sack_bytes)
                .or_else(|cause| if self.send_has_passed_recover() { Err(cause) } else { again }),
        }
    }
    /// The first of what is lost, if the congestion window allows.
    // spec: RFC6675 5-6; RFC8985 9.3-1; RFC9293 SHLD-16
    fn data_again(
        &self,
        common: &Common,
        sack_bytes: u32,
        buffers: &SendBuffers,
        end: Sequence,
    ) -> Result<Data, SendCause> {
        if self.space.window == 0 && !common.config.policy.window_probes_are_empty {
            return Err(SendCause::ClosedWindow);
        }
        let segment = self.payload_limit(sack_bytes);
        let fin_is_out = end.precedes(self.space.next);
        let Some((start, to)) = buffers
            .flight
            .lost_run(segment + u32::from(fin_is_out), common.config.policy.partial_acks_recut_segments)
        else {
            return Err(self.repair_cause_or(SendCause::AwaitingAcknowledgment));
        };
        let mut fin = fin_is_out && end.precedes(to);
        let mut length = to.since(start) - u32::from(fin);
        if buffers.flight.refused
            && to == self.space.next
            && !fin
            && !common.config.policy.smaller_mtu_is_loss
        {
            // What was refused, as a probe is, goes together with what follows it.
            length = end.since(start);
        }
        if fin && length == segment && common.config.policy.partial_acks_recut_segments {
            // A FIN that left alone is not joined to a segment that is full.
            fin = buffers.flight.last().is_some_and(|last| last.bytes() > 1);
        }
        let mut whole = length <= segment;
        length = length.min(segment);
        let probes = common.config.policy.window_probes_are_empty;
        if buffers.flight.refused || probes {
            // What was refused stays within what is offered now.
            let edge = self.send_edge();
            let room = match start.precedes(edge) {
                true => edge.since(start),
                // The oldest asks whether the window is still closed.
                false if probes && start == self.space.unacknowledged => {
                    buffers.flight.first().map_or(segment, |oldest| oldest.bytes())
                }
                false => 0,
            };
            if room == 0 && (length > 0 || probes) {
                return Err(self.repair_cause_or(SendCause::ReceiverWindow));
            }
            whole &= length <= room;
            length = length.min(room);
        }
        let in_flight = self.in_flight_bytes();
        let fits = match common.config.policy.congestion_window_counts_segments {
            true => self.room_in_segments() > 0,
            false => in_flight + length <= self.congestion.window.window_bytes,
        };
        if !(buffers.force || in_flight == 0 || fits) {
            return Err(self.repair_cause_or(SendCause::CongestionWindow));
        }
        if self.flags.has(SenderFlags::PACED) && !buffers.force {
            return Err(SendCause::Pacing);
        }
        let why = match self.recovery.state {
            RecoveryState::Loss => RetransmittedWhy::Timeout,
            _ => RetransmittedWhy::Fast,
        };
        Ok(Data { start, length, fin: fin && whole, step: 0, again: Some(why) })
    }
    /// The probe of the tail: new data if there is some that the peer's window takes, else the last segment again
    /// (RFC 8985 §7.3).
    // spec: RFC8985 7.3-3, 7.3-2
    pub fn tail_probe(&self, common: &Common, sack_bytes: u32, end: Sequence) -> Option<Data> {
        let (next, edge) = (self.space.next, self.send_edge());
        if next.precedes(end) && next.precedes(edge) {
            let unsent = end.since(next);
            let whole = unsent.min(self.payload_limit(sack_bytes));
            let length = whole.min(edge.since(next));
            let fin = length == unsent && common.state.has_fin_outstanding();
            if length == whole || !common.config.policy.tail_probes_are_full_segments {
                return Some(Data { start: next, length, fin, step: 0, again: None });
            }
        }
        let last = self.buffers.as_ref()?.flight.last()?;
        if common.config.policy.tail_probes_are_full_segments
            && edge.at_or_before(last.start)
            && last.start != self.space.unacknowledged
        {
            // The window was taken back.
            return None;
        }
        let fin = end.precedes(last.end);
        let data_end = if fin { end } else { last.end };
        let length = data_end.since(last.start).min(self.payload_limit(sack_bytes));
        if common.config.policy.tail_probes_are_full_segments
            && last.start.precedes(edge)
            && edge.precedes(data_end)
        {
            // The window was taken back: as much as it takes now.
            let length = length.min(edge.since(last.start));
            let again = Some(RetransmittedWhy::TailProbe);
            return Some(Data { start: last.start, length, fin: false, step: 0, again });
        }
        let again = Some(RetransmittedWhy::TailProbe);
        Some(Data { start: data_end.back(length), length, fin, step: 0, again })
    }
    /// The same for what left before.
    // spec: RFC8985 7.3-4
    pub fn committed_again(
        &mut self,
        common: &Common,
        sack_bytes: u32,
        data: Data,
        why: RetransmittedWhy,
        in_flight: u32,
        env: &mut Environment<'_>,
    ) {
        let now = env.now;
        let stamp = common.timestamp(now);
        self.burst_left_again(common, sack_bytes, data.start, data.start + data.length);
        self.history_mut().retransmitted_segments += 1;
        self.history_mut().retransmitted_bytes += u64::from(data.length);
        if data.start != self.space.unacknowledged {
            // RFC 5682 §3.1: what follows is ordinary repair.
            self.recovery.forward = false;
        }
        if let Some(buffers) = &mut self.buffers {
            match why {
                RetransmittedWhy::Probe => buffers.flight.probed(),
                RetransmittedWhy::TailProbe => {
                    buffers.flight.sent_again(data.start, data.end(), in_flight, now)
                }
                RetransmittedWhy::Fast | RetransmittedWhy::Timeout => {
                    buffers.flight.sent_again(data.start, data.end(), in_flight, now);
                    buffers.undo.sent_again(stamp);
                    buffers.force = false;
                }
            }
        }
        if why == RetransmittedWhy::Fast && data.start == self.space.unacknowledged {
            // The timer watches over the oldest, from when it left last (RFC 6298 §5.1).
            self.arm_retransmission(common, now);
        }
        let socket = env.socket;
        env.emit(Mask::RECOVERY, || {
            Event::Retransmitted(Retransmitted {
                socket,
                sequence: data.start,
                payload_bytes: data.length,
                why,
            })
        });
    }
    /// Whether the FIN of a call that crossed another goes though our SYN is not acknowledged: nothing is queued before it
    /// (RFC 9293 §3.10.4). On Linux only where the application has let go of the socket, and our SYN, which is a segment
    /// of the window, was not repeated.
    pub fn ends_before_open(&self, common: &Common) -> bool {
        let reads = !common.flags.has(ConnectionFlags::RECEIVE_CLOSED);
        let is_full = common.config.policy.congestion_window_counts_segments
            && common.flags.has(ConnectionFlags::SYN_REPEATED);
        let waits = is_full || (reads && common.config.policy.answers_crossing_syn);
        self.may_end_before_open(common)
            && !waits
            && self.space.next == self.syn_sequence(common) + 1
            && !self.is_window_shut(common)
    }
    /// Whether that FIN has left.
    pub fn ended_before_open(&self, common: &Common) -> bool {
        self.may_end_before_open(common) && self.space.next == self.syn_sequence(common) + 2
    }
    fn may_end_before_open(&self, common: &Common) -> bool {
        let closed =
            common.flags.has(ConnectionFlags::ACTIVE) && common.flags.has(ConnectionFlags::CLOSE_AFTER_OPEN);
        common.state == TcpState::SynReceived && closed && self.queued_bytes() == 0
    }
    /// Whether a FIN, which takes a number, waits for the peer's window.
    pub fn is_window_shut(&self, common: &Common) -> bool {
        common.config.policy.window_probes_are_empty && !self.space.next.precedes(self.send_edge())
    }
    pub fn data_from_next(&self, length: u32, fin: bool) -> Result<Data, SendCause> {
        Ok(Data { start: self.space.next, length, fin, step: 0, again: None })
    }
    /// Whether the congestion window has no room for `length` bytes. What is on its way is never held up by itself.
    #[inline]
    fn is_congestion_window_full(&self, common: &Common, length: u32) -> bool {
        if common.config.policy.congestion_window_counts_segments {
            return self.is_full_of_segments(common);
        }
        let in_flight = self.in_flight_bytes();
        let taken = in_flight + self.excess_of_records();
        let room = self.congestion.window.window_bytes.saturating_sub(taken);
        room < length && in_flight > 0
    }
    /// Whether the congestion window counts segments, and has no room for one more.
    fn is_full_of_segments(&self, common: &Common) -> bool {
        common.config.policy.congestion_window_counts_segments && self.room_in_segments() == 0
    }
    /// Segments for which the congestion window has room, where it counts them.
    #[inline(never)]
    pub fn room_in_segments(&self) -> u32 {
        let out = self.segments_on_their_way();
        let most = self.congestion.window.window_bytes / self.segment_bytes().max(1);
        most.max(1).saturating_sub(out)
    }
    /// Bytes thought to be in the network, as the congestion window counts them.
    #[inline]
    pub fn counted_in_flight_bytes(&self, common: &Common) -> u32 {
        match common.config.policy.congestion_window_counts_segments {
            true => self.segments_on_their_way().saturating_mul(self.segment_bytes()),
            false => self.in_flight_bytes(),
        }
    }
    fn segments_on_their_way(&self) -> u32 {
        let out = self.buffers.as_ref().map_or(0, |buffers| buffers.flight.on_their_way());
        out.saturating_sub(u32::from(self.recovery.duplicates))
    }
    /// Bytes by which the records of what is out exceed the data: tiny segments count as what they take of memory, so
    /// that the congestion window bounds that too.
    #[inline]
    fn excess_of_records(&self) -> u32 {
        let outstanding = self.space.next.since(self.space.unacknowledged);
        let records = self.buffers.as_ref().map_or(0, |buffers| buffers.flight.record_bytes());
        records.saturating_sub(outstanding)
    }
    /// Whether a segment that is not full may go.
    // spec: RFC9293 MUST-38 (the sender's silly-window avoidance), SHLD-7
    pub fn goes_small(&self, common: &Common, length: u32, unsent: u32) -> bool {
        let nothing_outstanding = !self.has_outstanding();
        if self.flags.has(SenderFlags::OVERRIDE) && (length == unsent || self.may_override_cuts(common)) {
            return true;
        }
        let from = if common.config.policy.urgent_goes_with_data {
            self.space.unacknowledged
        } else {
            self.space.next
        };
        let is_urgent = from.precedes(self.space.urgent);
        let overrides = common.config.policy.urgent_goes_with_data && is_urgent;
        let holds = self.flags.has(SenderFlags::CORKED) && !overrides;
        if holds && length == unsent && !common.state.has_fin_outstanding() {
            return false;
        }
        let end = self.space.next + length;
        if length < unsent && common.config.policy.fills_window_behind_full_segments {
            return self
                .buffers
                .as_ref()
                .is_some_and(|buffers| buffers.burst.ends_with(self.space.next, end));
        }
        if length < unsent {
            return nothing_outstanding && length >= self.space.largest_window.div_ceil(2);
        }
        let last = common.state.has_fin_outstanding() || is_urgent;
        let released = self.buffers.as_ref().and_then(|buffers| buffers.released);
        let pushed = end.at_or_before(self.space.push) || released.is_some_and(|to| end.at_or_before(to));
        // spec: RFC9293 MUST-17 (Nagle's algorithm can be switched off)
        last || (pushed && self.nagle_lets_go(common))
    }
    /// Whether what the peer's window cuts may go, too: the persist timer's doing, not that of a hold which is lifted.
    fn may_override_cuts(&self, common: &Common) -> bool {
        let persists = self.buffers.as_ref().is_some_and(|buffers| buffers.tail_probe.persists);
        !common.config.policy.fills_window_behind_full_segments || persists
    }
    /// Whether a closed window is due to be probed by an old number.
    pub fn probes_empty(&self, common: &Common) -> bool {
        common.config.policy.window_probes_are_empty
            && self.flags.has(SenderFlags::PROBE)
            && self.space.window == 0
            && !self.has_outstanding()
    }
    /// One byte, or the FIN, into a closed window.
    // spec: RFC9293 MUST-36 (a closed window is probed)
    pub fn probe(&self, common: &Common, end: Sequence) -> Option<Data> {
        let start = self.space.unacknowledged;
        let length = end.since(start).min(1);
        let fin = length == 0 && common.state.has_fin_outstanding();
        let again = self.has_outstanding().then_some(RetransmittedWhy::Probe);
        (length > 0 || fin).then_some(Data { start, length, fin, step: 0, again })
    }
    /// Why nothing more leaves tells whether the window is in use. What this pass sent began at `first`.
    #[inline]
    pub fn nothing_more(&mut self, common: &Common, cause: SendCause, first: Sequence, now: Instant) {
        match cause {
            // Only a full window or the pace proves anything about it.
            SendCause::ApplicationIdle | SendCause::AwaitingAcknowledgment | SendCause::SmallData => {
                self.note_application_limit();
            }
            _ => {}
        }
        let window = self.congestion.window;
        let limited = match cause {
            SendCause::CongestionWindow => true,
            SendCause::LossRecovery | SendCause::Timeout => {
                self.in_flight_bytes() + window.segment_bytes > window.window_bytes
            }
            _ => false,
        };
        let (acknowledged, sent) = (self.acknowledged_bytes, self.sent_bytes());
        self.congestion.transmitted(self.counted_in_flight_bytes(common), limited, acknowledged, sent);
        let next = self.space.next;
        let arms = match &self.buffers {
            // A probe does not ask for another.
            Some(buffers) if common.config.policy.tail_probes_are_full_segments => {
                first != next && !buffers.tail_probe.ends_at(next)
            }
            Some(buffers) => first != next || buffers.tail_probe.at == Instant::FAR_FUTURE,
            None => true,
        };
        if arms {
            self.arm_tail_probe(common, false, now);
        }
    }
    /// The codepoint of the IP header: only new data says that it may be marked (RFC 3168 §6.1.4, §6.1.5), and no probe
    /// of a closed window (§6.1.6).
    pub fn ecn_of(&self, common: &Common, next: Next) -> Ecn {
        match next {
            Next::Data(data)
                if data.again.is_none()
                    && data.length > 0
                    && self.space.window > 0
                    && common.flags.has(ConnectionFlags::ECN) =>
            {
                Ecn::Capable0
            }
            _ => Ecn::NotCapable,
        }
    }
    /// After a time-out's worth of idleness the window says nothing about the path (RFC 5681 §4.1).
    // spec: RFC5681 4.1-1
    #[inline]
    pub fn restart_after_idle(&mut self, common: &Common, now: Instant) {
        if self.has_outstanding()
            || self.space.window == 0
            || common.state.opens()
            || self.queued_bytes() == 0
        {
            return;
        }
        let idle = now.since(self.sent_at);
        self.congestion.resumed(idle, now);
        let timeout = self.round_trip.base_timeout(&common.config);
        if common.config.restart_after_idle && idle > timeout {
            self.congestion.restart(common.config.initial_window_segments, idle, timeout);
        }
    }
}
