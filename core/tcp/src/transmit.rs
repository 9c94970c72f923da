//! What leaves: one decision, asked until it says why not. The answer that ends the asking is the cause in the
//! send ledger.

use crate::buffers::SendBuffers;
use crate::marks::{Marks, ReceiveMarks, SendMarks};
use crate::outcome::{Blocked, SegmentOutput};
use crate::phase::Allows;
use crate::policy::PushPlacement;
use crate::run::lend_run;
use crate::{Connection, Ecn, Environment, Header, RecoveryState};
use inhost_base::{Instant, Sequence};
use inhost_buf::{Pool, Slices};
use inhost_event::{Event, Mask, Retransmitted, RetransmittedWhy, SegmentSent, SendCause, TcpPhase};
use inhost_wire::tcp::{Flags, TcpOptions};

/// From this length on a payload is shared, where the device shares: to copy less costs less.
const SHARED_FROM_BYTES: u32 = 4096;

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
    fn first_end(&self) -> Sequence {
        self.start + if self.step > 0 { self.step.min(self.length) } else { self.length }
    }
    pub fn end(&self) -> Sequence {
        self.start + self.length + u32::from(self.fin)
    }
}

impl Connection {
    pub(crate) fn next_in_general(&self) -> Result<Next, SendCause> {
        if self.common.phase.opens()
            && (!self.common.marks.has(Marks::EARLY) || self.common.marks.has(Marks::SYNCHRONISE))
        {
            return match () {
                () if self.common.marks.has(Marks::HELD) => Err(SendCause::Opening),
                () if self.common.marks.has(Marks::SYNCHRONISE) => Ok(Next::Synchronise),
                () if self.ends_before_open() => self.data_from_next(0, true).map(Next::Data),
                () if self.receiver.marks.has(ReceiveMarks::ACKNOWLEDGE)
                    && self.common.phase == TcpPhase::SynReceived =>
                {
                    Ok(Next::Acknowledge)
                }
                () => Err(SendCause::Opening),
            };
        }
        if (self.sender.marks.has(SendMarks::PROBE) || self.common.marks.has(Marks::APART))
            && let Some(next) = self.goes_first()
        {
            return Ok(next);
        }
        match self.next_data() {
            Ok(data) => Ok(Next::Data(data)),
            // Data carries whatever else is due; only without any does that travel alone.
            Err(_) if self.sender.marks.has(SendMarks::KEEP_ALIVE) => Ok(Next::KeepAlive),
            Err(_)
                if self.receiver.marks.has(ReceiveMarks::ACKNOWLEDGE)
                    || self.sender.marks.has(SendMarks::ANNOUNCE_URGENT) =>
            {
                Ok(Next::Acknowledge)
            }
            Err(cause) => Err(cause),
        }
    }
    /// What leaves before any part of the stream.
    #[cold]
    fn goes_first(&self) -> Option<Next> {
        if self.probes_empty() {
            // Urgent data is announced before the probe.
            let announces = self.sender.marks.has(SendMarks::ANNOUNCE_URGENT);
            return Some(if announces { Next::Acknowledge } else { Next::KeepAlive });
        }
        if self.common.marks.has(Marks::APART) { self.goes_apart() } else { None }
    }

    // spec: RFC6675 4-5
    fn next_data(&self) -> Result<Data, SendCause> {
        if self.common.phase.has_fin_acknowledged() {
            return Err(SendCause::Closed);
        }
        if self.sender.marks.has(SendMarks::REFUSED) {
            return Err(SendCause::Link);
        }
        let (send, end) = (&self.sender.space, self.stream_end());
        if self.sender.marks.has(SendMarks::PROBE) && send.window == 0 {
            return self.probe(end).ok_or(SendCause::ClosedWindow);
        }
        if let Some(buffers) = &self.sender.buffers
            && buffers.flight.lost_bytes() > 0
        {
            return self.next_repair(buffers, end);
        }
        if self.sender.marks.has(SendMarks::TAIL_PROBE)
            && let Some(data) = self.tail_probe(end)
        {
            return Ok(data);
        }
        self.new_data()
    }
    /// What was never sent.
    pub(crate) fn new_data(&self) -> Result<Data, SendCause> {
        let (send, end) = (&self.sender.space, self.stream_end());
        if self.sender.marks.has(SendMarks::REPAIRS_ONLY) {
            return Err(self.repair_cause_or(SendCause::AwaitingAcknowledgment));
        }
        if end.precedes(send.next) {
            // The FIN is out, and all before it.
            return Err(self.repair_cause_or(SendCause::AwaitingAcknowledgment));
        }
        let unsent = end.since(send.next);
        if unsent == 0 {
            return match () {
                () if self.common.phase.has_fin_outstanding() && self.is_window_shut() => {
                    Err(self.repair_cause_or(SendCause::ClosedWindow))
                }
                () if self.common.phase.has_fin_outstanding() && self.is_full_of_segments() => {
                    Err(self.repair_cause_or(SendCause::CongestionWindow))
                }
                () if self.common.phase.has_fin_outstanding() => self.data_from_next(0, true),
                () if !self.has_outstanding() => Err(SendCause::ApplicationIdle),
                () if self.sender.marks.has(SendMarks::WRITER_WAITS) => {
                    Err(self.repair_cause_or(SendCause::SendBuffer))
                }
                () => Err(self.repair_cause_or(SendCause::AwaitingAcknowledgment)),
            };
        }
        let length = self.sendable_bytes(unsent)?;
        if length == unsent
            && self.common.phase.has_fin_outstanding()
            && self.common.config.policy.window_probes_are_empty
            && send.next + length == self.send_edge()
        {
            // The FIN that goes with it takes a number, too.
            return Err(self.repair_cause_or(SendCause::ReceiverWindow));
        }
        self.data_from_next(length, length == unsent && self.common.phase.has_fin_outstanding())
    }
    /// Whether the FIN of a call that crossed another goes though our SYN is not acknowledged: nothing is queued before it
    /// (RFC 9293 §3.10.4). On Linux only where the application has let go of the socket, and our SYN, which is a segment
    /// of the window, was not repeated.
    fn ends_before_open(&self) -> bool {
        let reads = !self.common.marks.has(Marks::RECEIVE_CLOSED);
        let is_full = self.common.config.policy.congestion_window_counts_segments
            && self.common.marks.has(Marks::SYN_REPEATED);
        let waits = is_full || (reads && self.common.config.policy.answers_crossing_syn);
        self.may_end_before_open()
            && !waits
            && self.sender.space.next == self.syn_sequence() + 1
            && !self.is_window_shut()
    }
    /// Whether that FIN has left.
    pub(crate) fn ended_before_open(&self) -> bool {
        self.may_end_before_open() && self.sender.space.next == self.syn_sequence() + 2
    }
    fn may_end_before_open(&self) -> bool {
        let closed = self.common.marks.has(Marks::ACTIVE) && self.common.marks.has(Marks::CLOSE_AFTER_OPEN);
        self.common.phase == TcpPhase::SynReceived && closed && self.queued_bytes() == 0
    }
    /// Whether a FIN, which takes a number, waits for the peer's window.
    pub(crate) fn is_window_shut(&self) -> bool {
        self.common.config.policy.window_probes_are_empty
            && !self.sender.space.next.precedes(self.send_edge())
    }
    fn data_from_next(&self, length: u32, fin: bool) -> Result<Data, SendCause> {
        Ok(Data { start: self.sender.space.next, length, fin, step: 0, again: None })
    }

    /// How many of `unsent` bytes may go in the next segment (RFC 9293 §3.7.4, §3.8.6.2.1).
    // spec: RFC5681 2-1, 3-1; RFC7323 2.4-1, 2.4-4; RFC9293 SHLD-15, SHLD-28
    fn sendable_bytes(&self, unsent: u32) -> Result<u32, SendCause> {
        let send = &self.sender.space;
        let edge = self.send_edge();
        // The peer may have taken back what it offered: then the edge lies behind.
        // spec: RFC9293 MUST-34 (a shrinking window does no harm)
        let usable = if send.next.precedes(edge) { edge.since(send.next) } else { 0 };
        if usable == 0 {
            let full = self.sender.congestion.window.window_bytes <= self.in_flight_bytes();
            let closed = if send.window == 0 {
                SendCause::ClosedWindow
            } else if full && self.common.config.policy.push == PushPlacement::WritesAndHalfWindows {
                // Where both windows are full at once, Linux names its own.
                SendCause::CongestionWindow
            } else {
                SendCause::ReceiverWindow
            };
            return Err(if send.window == 0 { closed } else { self.repair_cause_or(closed) });
        }
        let segment = self.payload_limit();
        let mut length = unsent.min(usable).min(segment);
        let record = self.sender.buffers.as_ref().and_then(|buffers| buffers.record_end_after(send.next));
        let ends_record = record.is_some_and(|end| end.since(send.next) <= length);
        if let Some(end) = record {
            length = length.min(end.since(send.next));
        }
        if self.is_congestion_window_full(length) {
            return Err(self.repair_cause_or(SendCause::CongestionWindow));
        }
        if length == segment || (ends_record && length < unsent) || self.goes_small(length, unsent) {
            if self.sender.marks.has(SendMarks::PACED) {
                return Err(SendCause::Pacing);
            }
            let probe = if record.is_none() { self.search_probe(unsent, usable) } else { None };
            return Ok(probe.unwrap_or(length));
        }
        let waits_for_data = length == unsent;
        Err(self.repair_cause_or(if waits_for_data && self.sender.marks.has(SendMarks::WRITER_WAITS) {
            SendCause::SendBuffer
        } else if waits_for_data {
            SendCause::SmallData
        } else {
            SendCause::ReceiverWindow
        }))
    }
    /// Whether the congestion window has no room for `length` bytes. What is on its way is never held up by itself.
    #[inline]
    fn is_congestion_window_full(&self, length: u32) -> bool {
        if self.common.config.policy.congestion_window_counts_segments {
            return self.is_full_of_segments();
        }
        let in_flight = self.in_flight_bytes();
        let taken = in_flight + self.excess_of_records();
        let room = self.sender.congestion.window.window_bytes.saturating_sub(taken);
        room < length && in_flight > 0
    }
    /// Whether the congestion window counts segments, and has no room for one more.
    fn is_full_of_segments(&self) -> bool {
        self.common.config.policy.congestion_window_counts_segments && self.room_in_segments() == 0
    }
    /// Segments for which the congestion window has room, where it counts them.
    #[inline(never)]
    pub(crate) fn room_in_segments(&self) -> u32 {
        let out = self.segments_on_their_way();
        let most = self.sender.congestion.window.window_bytes / self.segment_bytes().max(1);
        most.max(1).saturating_sub(out)
    }
    /// Bytes thought to be in the network, as the congestion window counts them.
    #[inline]
    pub(crate) fn counted_in_flight_bytes(&self) -> u32 {
        match self.common.config.policy.congestion_window_counts_segments {
            true => self.segments_on_their_way().saturating_mul(self.segment_bytes()),
            false => self.in_flight_bytes(),
        }
    }
    fn segments_on_their_way(&self) -> u32 {
        let out = self.sender.buffers.as_ref().map_or(0, |buffers| buffers.flight.on_their_way());
        out.saturating_sub(u32::from(self.sender.recovery.duplicates))
    }
    /// Bytes by which the records of what is out exceed the data: tiny segments count as what they take of memory, so
    /// that the congestion window bounds that too.
    #[inline]
    fn excess_of_records(&self) -> u32 {
        let outstanding = self.sender.space.next.since(self.sender.space.unacknowledged);
        let records = self.sender.buffers.as_ref().map_or(0, |buffers| buffers.flight.record_bytes());
        records.saturating_sub(outstanding)
    }
    /// Whether a segment that is not full may go.
    // spec: RFC9293 MUST-38 (the sender's silly-window avoidance), SHLD-7
    pub(crate) fn goes_small(&self, length: u32, unsent: u32) -> bool {
        let nothing_outstanding = !self.has_outstanding();
        if self.sender.marks.has(SendMarks::OVERRIDE) && (length == unsent || self.may_override_cuts()) {
            return true;
        }
        let from = if self.common.config.policy.urgent_goes_with_data {
            self.sender.space.unacknowledged
        } else {
            self.sender.space.next
        };
        let is_urgent = from.precedes(self.sender.space.urgent);
        let overrides = self.common.config.policy.urgent_goes_with_data && is_urgent;
        let holds = self.sender.marks.has(SendMarks::CORKED) && !overrides;
        if holds && length == unsent && !self.common.phase.has_fin_outstanding() {
            return false;
        }
        let end = self.sender.space.next + length;
        if length < unsent && self.common.config.policy.fills_window_behind_full_segments {
            return self
                .sender
                .buffers
                .as_ref()
                .is_some_and(|buffers| buffers.burst.ends_with(self.sender.space.next, end));
        }
        if length < unsent {
            return nothing_outstanding && length >= self.sender.space.largest_window.div_ceil(2);
        }
        let last = self.common.phase.has_fin_outstanding() || is_urgent;
        let released = self.sender.buffers.as_ref().and_then(|buffers| buffers.released);
        let pushed =
            end.at_or_before(self.sender.space.push) || released.is_some_and(|to| end.at_or_before(to));
        // spec: RFC9293 MUST-17 (Nagle's algorithm can be switched off)
        last || (pushed && self.nagle_lets_go())
    }
    /// Whether what the peer's window cuts may go, too: the persist timer's doing, not that of a hold which is lifted.
    fn may_override_cuts(&self) -> bool {
        let persists = self.sender.buffers.as_ref().is_some_and(|buffers| buffers.tail_probe.persists);
        !self.common.config.policy.fills_window_behind_full_segments || persists
    }
    /// What is to be sent again. While it is being found out whether a time-out was spurious, new data goes in its
    /// place once the oldest went again, as far as there is any (RFC 5682 §3.1).
    fn next_repair(&self, buffers: &SendBuffers, end: Sequence) -> Result<Data, SendCause> {
        let again = self.data_again(buffers, end);
        if !self.sender.recovery.forward || self.sender.recovery.state != RecoveryState::Loss {
            return again;
        }
        match again {
            Ok(data)
                if !self.sender.recovery.progressed && data.start == self.sender.space.unacknowledged =>
            {
                Ok(data)
            }
            _ if !self.sender.recovery.progressed => Err(SendCause::Timeout),
            // Two segments of new data at most, and nothing beside them (RFC 5682 §2.1, step 2b).
            _ => self
                .new_data()
                .or_else(|cause| if self.send_has_passed_recover() { Err(cause) } else { again }),
        }
    }
    /// The first of what is lost, if the congestion window allows.
    // spec: RFC6675 5-6; RFC8985 9.3-1; RFC9293 SHLD-16
    fn data_again(&self, buffers: &SendBuffers, end: Sequence) -> Result<Data, SendCause> {
        if self.sender.space.window == 0 && !self.common.config.policy.window_probes_are_empty {
            return Err(SendCause::ClosedWindow);
        }
        let segment = self.payload_limit();
        let fin_is_out = end.precedes(self.sender.space.next);
        let Some((start, to)) = buffers
            .flight
            .lost_run(segment + u32::from(fin_is_out), self.common.config.policy.partial_acks_recut_segments)
        else {
            return Err(self.repair_cause_or(SendCause::AwaitingAcknowledgment));
        };
        let mut fin = fin_is_out && end.precedes(to);
        let mut length = to.since(start) - u32::from(fin);
        if buffers.flight.refused
            && to == self.sender.space.next
            && !fin
            && !self.common.config.policy.smaller_mtu_is_loss
        {
            // What was refused, as a probe is, goes together with what follows it.
            length = end.since(start);
        }
        if fin && length == segment && self.common.config.policy.partial_acks_recut_segments {
            // A FIN that left alone is not joined to a segment that is full.
            fin = buffers.flight.last().is_some_and(|last| last.bytes() > 1);
        }
        let mut whole = length <= segment;
        length = length.min(segment);
        let probes = self.common.config.policy.window_probes_are_empty;
        if buffers.flight.refused || probes {
            // What was refused stays within what is offered now.
            let edge = self.send_edge();
            let room = match start.precedes(edge) {
                true => edge.since(start),
                // The oldest asks whether the window is still closed.
                false if probes && start == self.sender.space.unacknowledged => {
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
        let fits = match self.common.config.policy.congestion_window_counts_segments {
            true => self.room_in_segments() > 0,
            false => in_flight + length <= self.sender.congestion.window.window_bytes,
        };
        if !(buffers.force || in_flight == 0 || fits) {
            return Err(self.repair_cause_or(SendCause::CongestionWindow));
        }
        if self.sender.marks.has(SendMarks::PACED) && !buffers.force {
            return Err(SendCause::Pacing);
        }
        let why = match self.sender.recovery.state {
            RecoveryState::Loss => RetransmittedWhy::Timeout,
            _ => RetransmittedWhy::Fast,
        };
        Ok(Data { start, length, fin: fin && whole, step: 0, again: Some(why) })
    }
    /// The probe of the tail: new data if there is some that the peer's window takes, else the last segment again
    /// (RFC 8985 §7.3).
    // spec: RFC8985 7.3-3, 7.3-2
    pub(crate) fn tail_probe(&self, end: Sequence) -> Option<Data> {
        let (next, edge) = (self.sender.space.next, self.send_edge());
        if next.precedes(end) && next.precedes(edge) {
            let unsent = end.since(next);
            let whole = unsent.min(self.payload_limit());
            let length = whole.min(edge.since(next));
            let fin = length == unsent && self.common.phase.has_fin_outstanding();
            if length == whole || !self.common.config.policy.tail_probes_are_full_segments {
                return Some(Data { start: next, length, fin, step: 0, again: None });
            }
        }
        let last = self.sender.buffers.as_ref()?.flight.last()?;
        if self.common.config.policy.tail_probes_are_full_segments
            && edge.at_or_before(last.start)
            && last.start != self.sender.space.unacknowledged
        {
            // The window was taken back.
            return None;
        }
        let fin = end.precedes(last.end);
        let data_end = if fin { end } else { last.end };
        let length = data_end.since(last.start).min(self.payload_limit());
        if self.common.config.policy.tail_probes_are_full_segments
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
    /// Whether a closed window is due to be probed by an old number.
    fn probes_empty(&self) -> bool {
        self.common.config.policy.window_probes_are_empty
            && self.sender.marks.has(SendMarks::PROBE)
            && self.sender.space.window == 0
            && !self.has_outstanding()
    }
    /// One byte, or the FIN, into a closed window.
    // spec: RFC9293 MUST-36 (a closed window is probed)
    fn probe(&self, end: Sequence) -> Option<Data> {
        let start = self.sender.space.unacknowledged;
        let length = end.since(start).min(1);
        let fin = length == 0 && self.common.phase.has_fin_outstanding();
        let again = self.has_outstanding().then_some(RetransmittedWhy::Probe);
        (length > 0 || fin).then_some(Data { start, length, fin, step: 0, again })
    }

    /// Sends until nothing more may, the budget is spent, or `out` is full; gives why nothing more may.
    pub(crate) fn transmit_pass<O: SegmentOutput + ?Sized>(
        &mut self,
        env: &mut Environment<'_>,
        budget_segments: usize,
        out: &mut O,
    ) -> Option<SendCause> {
        self.restart_after_idle(env.now);
        let first = self.sender.space.next;
        let mut why = None;
        let mut left = budget_segments as u32;
        let wants_sums = out.wants_sums();
        self.common.marks.put(Marks::UNSUMMED, !wants_sums);
        // What is shared is not cut, and no sums are made of it beforehand.
        let shares = out.shares() && self.payload_limit() >= SHARED_FROM_BYTES;
        if left > 0
            && let Some(data) = self.lone_segment()
            && !(shares && data.length >= SHARED_FROM_BYTES)
        {
            let left_whole = self.transmit_lone(data, wants_sums, env, out);
            left = if left_whole { left - 1 } else { 0 };
        }
        while left > 0 {
            let next = match self.next_segment() {
                Ok(next) => next,
                Err(cause) => {
                    why = Some(cause);
                    break;
                }
            };
            let next = self.widened(next, left, if shares { 0 } else { out.large_bytes() }, env.now);
            left -= next.segments();
            let header = self.header_of(next, env.now, env.pool);
            let ecn = self.ecn_of(next);
            let syn_data_bytes = self.syn_data_bytes() as usize;
            let (mut lent, before) = (0, self.sender.space.unacknowledged);
            let taken = match (next, &mut self.sender.buffers) {
                (Next::Data(data), Some(buffers)) if data.step > 0 => {
                    let (send, offset) = (&mut buffers.send, data.start.since(before) as usize);
                    lend_run(data, &header, (send, offset), ecn, &mut lent, out)
                }
                (Next::Data(data), Some(buffers)) if shares => {
                    let offset = data.start.since(before) as usize;
                    let (payload, shareable) = buffers.send.shareable(offset, data.length as usize);
                    lent = payload.len() as u32;
                    let left = match shareable {
                        Some(shareable) => out.shared(&header, payload, shareable, ecn),
                        None => out.segment(&header, payload, ecn),
                    };
                    left.map(|()| lent)
                }
                (Next::Data(data), Some(buffers)) => {
                    let offset = data.start.since(before) as usize;
                    let payload = buffers.send.segment(offset, data.length as usize, wants_sums);
                    lent = payload.len() as u32;
                    out.segment(&header, payload, ecn).map(|()| lent)
                }
                (Next::Synchronise, Some(buffers)) => {
                    let payload = buffers.send.slices(0, syn_data_bytes);
                    lent = payload.len() as u32;
                    out.segment(&header, payload, ecn).map(|()| lent)
                }
                _ => out.segment(&header, Slices::EMPTY, ecn).map(|()| 0),
            };
            match taken {
                Ok(taken) => self.committed(next, &header, taken, env),
                Err(Blocked::Link) => {
                    if let Some(retry) = self.common.config.refusal_retry {
                        self.refused_by_link(next, &header, lent, retry, env);
                    }
                    break;
                }
            }
        }
        // Whoever comes to the end of the budget, or of the link's room, would send more.
        if self.acks_adapt() && first != self.sender.space.next && self.has_sack_news() {
            // All segments of a burst have told the same.
            self.sack_told(env.pool);
        }
        self.nothing_more(why.unwrap_or(SendCause::Link), first, env.now);
        why
    }
    /// Why nothing more leaves tells whether the window is in use. What this pass sent began at `first`.
    #[inline]
    pub(crate) fn nothing_more(&mut self, cause: SendCause, first: Sequence, now: Instant) {
        match cause {
            // Only a full window or the pace proves anything about it.
            SendCause::ApplicationIdle | SendCause::AwaitingAcknowledgment | SendCause::SmallData => {
                self.note_application_limit();
            }
            _ => {}
        }
        let window = self.sender.congestion.window;
        let limited = match cause {
            SendCause::CongestionWindow => true,
            SendCause::LossRecovery | SendCause::Timeout => {
                self.in_flight_bytes() + window.segment_bytes > window.window_bytes
            }
            _ => false,
        };
        let (acknowledged, sent) = (self.sender.acknowledged_bytes, self.sent_bytes());
        self.sender.congestion.transmitted(self.counted_in_flight_bytes(), limited, acknowledged, sent);
        let next = self.sender.space.next;
        let arms = match &self.sender.buffers {
            // A probe does not ask for another.
            Some(buffers) if self.common.config.policy.tail_probes_are_full_segments => {
                first != next && !buffers.tail_probe.ends_at(next)
            }
            Some(buffers) => first != next || buffers.tail_probe.at == Instant::FAR_FUTURE,
            None => true,
        };
        if arms {
            self.arm_tail_probe(false, now);
        }
    }
    /// The codepoint of the IP header: only new data says that it may be marked (RFC 3168 §6.1.4, §6.1.5), and no probe
    /// of a closed window (§6.1.6).
    pub(crate) fn ecn_of(&self, next: Next) -> Ecn {
        match next {
            Next::Data(data)
                if data.again.is_none()
                    && data.length > 0
                    && self.sender.space.window > 0
                    && self.common.marks.has(Marks::ECN) =>
            {
                Ecn::Capable0
            }
            _ => Ecn::NotCapable,
        }
    }
    /// After a time-out's worth of idleness the window says nothing about the path (RFC 5681 §4.1).
    // spec: RFC5681 4.1-1
    #[inline]
    fn restart_after_idle(&mut self, now: Instant) {
        if self.has_outstanding()
            || self.sender.space.window == 0
            || self.common.phase.opens()
            || self.queued_bytes() == 0
        {
            return;
        }
        let idle = now.since(self.sender.sent_at);
        self.sender.congestion.resumed(idle, now);
        let timeout = self.sender.round_trip.base_timeout(&self.common.config);
        if self.common.config.restart_after_idle && idle > timeout {
            self.sender.congestion.restart(self.common.config.initial_window_segments, idle, timeout);
        }
    }
    /// The number that a segment without data bears.
    pub(crate) fn acknowledgment_sequence(&self) -> Sequence {
        let (next, edge) = (self.sender.space.next, self.sender.space.unacknowledged.later(self.send_edge()));
        let is_beyond = edge.precedes(next);
        if is_beyond && !self.is_rounded(next.since(edge)) { edge } else { next }
    }
    /// Whether so much beyond the peer's edge may be what its window's unit rounds off.
    fn is_rounded(&self, beyond_bytes: u32) -> bool {
        let scales = self.common.config.policy.sequence_may_pass_rounded_window
            && self.common.marks.has(Marks::SCALING);
        scales && beyond_bytes < 1 << self.receiver.scale
    }
    // spec: RFC7323 3.2-2, 3.2-4; RFC9293 SHLD-12
    fn header_of(&self, next: Next, now: Instant, pool: &Pool) -> Header {
        if next == Next::Synchronise {
            return self.syn_header(now);
        }
        let (field, _) = self.window_to_offer(pool);
        let timestamps = self.timestamps_to_send(now);
        let mut header = Header {
            // Beyond the peer's edge, as after a probe, even an acknowledgment would not be acceptable there.
            sequence: self.acknowledgment_sequence(),
            acknowledgment: self.receiver.space.next,
            flags: Flags::ACK,
            window: field,
            options: TcpOptions { timestamps, ..TcpOptions::NONE },
            ..Header::default()
        };
        match next {
            Next::Data(data) => {
                header.sequence = data.start;
                let end = data.start + data.length;
                let pushed = match data.again {
                    Some(_) if self.common.config.policy.push == PushPlacement::WritesAndHalfWindows => {
                        self.pushes_again(data.start, end)
                    }
                    _ => self.pushes(data.start, data.first_end(), end),
                };
                if data.length > 0 && pushed {
                    header.flags |= Flags::PSH;
                }
                if data.fin {
                    header.flags |= Flags::FIN;
                    if self.ends_apart() {
                        header.acknowledgment = self.receiver.space.acknowledged;
                        return header;
                    }
                }
                if data.again.is_none() && data.length > 0 && self.sender.marks.has(SendMarks::WINDOW_REDUCED)
                {
                    header.flags |= Flags::CWR;
                }
            }
            Next::Acknowledge
                if self.common.phase.opens()
                    && self.sender.space.window == 0
                    && self.common.config.policy.answers_crossing_syn =>
            {
                // The window of a SYN that crossed ours counts from what is acknowledged, which is less than our SYN.
                header.sequence = self.sender.space.unacknowledged;
            }
            Next::Synchronise | Next::Acknowledge => {}
            Next::KeepAlive => header.sequence = self.sender.space.unacknowledged.back(1),
        }
        if self.receiver.marks.has(ReceiveMarks::ECHO_CONGESTION) {
            header.flags |= Flags::ECE;
        }
        self.add_sack(&mut header);
        self.announce_urgent(&mut header);
        header
    }
    /// `out` took the segment, with `lent` bytes of payload: now it counts.
    pub(crate) fn committed(&mut self, next: Next, header: &Header, lent: u32, env: &mut Environment<'_>) {
        let now = env.now;
        match next {
            Next::Synchronise => {
                let end = self.syn_sequence() + 1;
                if end.at_or_before(self.sender.space.next) {
                    // The first answer to a crossing SYN: nothing has been offered yet.
                    let answers_first = self.common.phase == TcpPhase::SynReceived
                        && self.common.marks.has(Marks::ACTIVE)
                        && self.receiver.space.edge == self.receiver.space.next;
                    self.sender.history_mut().retransmitted_segments += u32::from(!answers_first);
                    if !(answers_first
                        && self.sender.round_trip.backoff == 0
                        && self.common.config.policy.answers_crossing_syn)
                    {
                        // Otherwise what acknowledges it answers this one, not the SYN before.
                        self.common.marks.clear(Marks::SYN_TIMED);
                    }
                    self.sender.sent_at = now;
                    if self.sender.round_trip.backoff > 0 {
                        // Otherwise the path, not a loss, had it sent again.
                        self.common.marks.set(Marks::SYN_REPEATED);
                    }
                } else {
                    self.common.marks.set(Marks::SYN_TIMED);
                    self.sender.sent_at = now;
                    self.sender.progress_at = now;
                    self.sender.space.next = end + lent;
                }
                self.syn_left(lent);
                self.common.marks.clear(Marks::SYNCHRONISE);
                let running = self.sender.retransmit_at;
                self.arm_retransmission(now);
                let crossed =
                    self.common.phase == TcpPhase::SynReceived && self.common.marks.has(Marks::ACTIVE);
                if crossed && self.common.config.policy.answers_crossing_syn && running > now {
                    // The timer of our first SYN goes on.
                    self.sender.retransmit_at = self.sender.retransmit_at.min(running);
                }
            }
            Next::Data(data) => {
                let before = self.sender.sent_at;
                self.committed_data(data, lent, env);
                if data.fin {
                    self.fin_left(before);
                }
            }
            Next::Acknowledge => self.common.marks.clear(Marks::APART),
            Next::KeepAlive => {
                self.sender.marks.clear(SendMarks::KEEP_ALIVE);
                self.sender.marks.clear(SendMarks::PROBE);
            }
        }
        if header.flags.ack() {
            self.acknowledgment_left(next, header.window);
        }
        let is_burst = self.acks_adapt() && matches!(next, Next::Data(Data { again: None, .. }));
        if !header.options.sack.is_empty() && !is_burst {
            self.sack_told(env.pool);
        }
        if header.flags.urg() {
            self.sender.marks.clear(SendMarks::ANNOUNCE_URGENT);
        }
        let socket = env.socket;
        env.emit(Mask::SEGMENT, || {
            Event::SegmentSent(SegmentSent {
                socket,
                sequence: header.sequence,
                acknowledgment: header.flags.ack().then_some(header.acknowledgment),
                flags: header.flags.bits(),
                payload_bytes: lent,
                window_field: header.window,
            })
        });
    }
    /// With `next` an acknowledgment left, and a window.
    #[inline]
    pub(crate) fn acknowledgment_left(&mut self, next: Next, window_field: u16) {
        self.receiver.promptness.acknowledged(self.receiver.marks.has(ReceiveMarks::SCHEDULED));
        self.receiver.marks.clear(ReceiveMarks::SCHEDULED);
        let is_duplicate =
            next == Next::Acknowledge && self.receiver.space.acknowledged == self.receiver.space.next;
        self.receiver.promptness.duplicates_due =
            self.receiver.promptness.duplicates_due.saturating_sub(u8::from(is_duplicate));
        self.receiver.marks.put(ReceiveMarks::ACKNOWLEDGE, self.receiver.promptness.duplicates_due > 0);
        self.receiver.acknowledge_at = Instant::FAR_FUTURE;
        self.receiver.space.acknowledged = self.receiver.space.next;
        let offered = match next {
            Next::Synchronise if self.common.config.policy.syn_advertises_whole_window => self.window_space(),
            Next::Synchronise => u32::from(window_field),
            _ => u32::from(window_field) << self.receiver.scale,
        };
        self.receiver.space.edge = self.receiver.space.edge.later(self.receiver.space.next + offered);
    }
    /// The same for a part of the stream; compiled for each road by itself.
    #[inline(always)]
    pub(crate) fn committed_data(&mut self, data: Data, lent: u32, env: &mut Environment<'_>) {
        let now = env.now;
        // Where the queue lends fewer bytes than asked, what was lent is what was sent, and the FIN waits.
        let data = if lent == data.length { data } else { Data { length: lent, fin: false, ..data } };
        let end = data.end();
        if !self.has_outstanding() && self.sender.space.window > 0 {
            self.sender.progress_at = now;
            if self.common.config.refusal_retry.is_some() {
                // What ran so far was for what could not leave.
                self.sender.retransmit_at = Instant::FAR_FUTURE;
            }
        }
        let in_flight = self.in_flight_bytes();
        let probe = self.sender.marks.has(SendMarks::TAIL_PROBE);
        match data.again {
            None => {
                if data.length > 0 {
                    self.note_answer(now);
                }
                self.sender.marks.clear(SendMarks::WINDOW_REDUCED);
                self.left_first(data, in_flight, now);
            }
            Some(why) => self.committed_again(data, why, in_flight, env),
        }
        if self.sender.recovery.reduces()
            && let Some(buffers) = &mut self.sender.buffers
        {
            buffers.reduction.sent(end.since(data.start));
        }
        self.sender.space.next = self.sender.space.next.later(end);
        self.sender.sent_at = now;
        self.paced(data.length, now);
        let overrides = self.sender.marks.has(SendMarks::OVERRIDE);
        self.sender.marks.clear(SendMarks::OCCASIONS);
        if overrides && self.sender.buffers.as_ref().is_some_and(|buffers| buffers.tail_probe.persists) {
            // What the persist timer sent is data like any other.
            self.sender.round_trip.backoff = 0;
            self.sender.retransmit_at = Instant::FAR_FUTURE;
        }
        if self.sender.retransmit_at == Instant::FAR_FUTURE {
            self.arm_retransmission(now);
        }
        if probe {
            self.tail_probe_left(data.start, data.again.is_some(), now);
        }
        let all_sent = !self.sender.space.next.precedes(self.stream_end());
        if let Some(buffers) = &mut self.sender.buffers
            && (all_sent || self.common.config.policy.cork_lasts_rto)
        {
            buffers.aggregate_until = Instant::FAR_FUTURE;
            buffers.tail_probe.persists &= overrides;
        }
    }
    /// The same for what left before.
    // spec: RFC8985 7.3-4
    fn committed_again(
        &mut self,
        data: Data,
        why: RetransmittedWhy,
        in_flight: u32,
        env: &mut Environment<'_>,
    ) {
        let now = env.now;
        let stamp = self.common.timestamp(now);
        self.burst_left_again(data.start, data.start + data.length);
        self.sender.history_mut().retransmitted_segments += 1;
        self.sender.history_mut().retransmitted_bytes += u64::from(data.length);
        if data.start != self.sender.space.unacknowledged {
            // RFC 5682 §3.1: what follows is ordinary repair.
            self.sender.recovery.forward = false;
        }
        if let Some(buffers) = &mut self.sender.buffers {
            match why {
                RetransmittedWhy::Probe => buffers.flight.probed(),
                RetransmittedWhy::TailProbe => {
                    buffers.flight.sent_again(data.start, data.end(), in_flight, now)
                }
                RetransmittedWhy::Fast | RetransmittedWhy::Timeout => {
                    buffers.flight.sent_again(data.start, data.end(), in_flight, now);
                    buffers.doubt.sent_again(stamp);
                    buffers.force = false;
                }
            }
        }
        if why == RetransmittedWhy::Fast && data.start == self.sender.space.unacknowledged {
            // The timer watches over the oldest, from when it left last (RFC 6298 §5.1).
            self.arm_retransmission(now);
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
}
