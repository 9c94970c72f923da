//! What to send next, and why not more: one decision, asked until it says why not. The answer that ends the asking is the
//! cause in the send ledger. Usually all data was sent, or a single small segment is sent while nothing is in flight (DEC §4):
//! a fast path decides these two cases by the same rules.

use super::{SendBuffers, Sender};
use crate::common::Common;
use crate::flags::{ConnectionFlags, SenderFlags};
use crate::sender::space::SendSpace;
use crate::{Ecn, RecoveryState};
use inhost_base::{Instant, Offset};
use inhost_event::{RetransmittedWhy, SendCause, TcpState};

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
    pub start: Offset,
    pub length: u32,
    pub fin: bool,
    /// GSO size: the payload of each segment but the last where several leave together; 0 for a single segment.
    pub gso_size: u32,
    /// Why it is retransmitted; `None` for new data.
    pub retransmission: Option<RetransmittedWhy>,
}

impl Data {
    /// After the first segment's payload.
    pub fn first_end(&self) -> Offset {
        self.start + if self.gso_size > 0 { self.gso_size.min(self.length) } else { self.length }
    }
    pub fn end(&self) -> Offset {
        self.start + self.length + u32::from(self.fin)
    }
}

impl Next {
    /// Where the segment begins.
    #[inline]
    pub fn first(self, space: &SendSpace) -> Offset {
        match self {
            Next::Data(data) => data.start,
            Next::KeepAlive => space.unacknowledged().back(1),
            Next::Synchronise | Next::Acknowledge => space.first_without_data(),
        }
    }
    /// Whether its payload is shared, where the device shares.
    pub fn is_shareable(&self) -> bool {
        matches!(self, Next::Data(data) if data.length >= SHARED_FROM_BYTES)
    }
    /// How many segments it is.
    pub fn segments(&self) -> u32 {
        match self {
            Next::Data(data) if data.gso_size > 0 => data.length.div_ceil(data.gso_size).max(1),
            _ => 1,
        }
    }
}

impl Sender {
    /// The next segment, or what keeps it from being sent, by the fast path: the same result as that of
    /// [`Self::next_on_slow_path`] without a SACK option, if either all queued data was sent, or nothing is in flight and all
    /// of it fits a single segment. `None` in other cases. The receiver `acknowledges` something.
    #[inline(always)]
    pub fn next_on_fast_path(&self, common: &Common, acknowledges: bool) -> Option<Result<Next, SendCause>> {
        if common.state() != TcpState::Established
            || self.has(SenderFlags::SLOW_PATH)
            || self.recovery.state != RecoveryState::Open
        {
            return None;
        }
        let (queued, lost) =
            self.buffers().map_or((0, 0), |b| (b.send.len() as u32, b.flight.sums().lost_bytes));
        if lost > 0 {
            return None;
        }
        if self.space.unacknowledged() + queued != self.space.next() {
            return self.single_segment(queued).map(|data| Ok(Next::Data(data)));
        }
        Some(match () {
            () if acknowledges => Ok(Next::Acknowledge),
            () if queued == 0 => Err(SendCause::ApplicationIdle),
            () if self.has(SenderFlags::WRITER_WAITS) => Err(SendCause::SendBuffer),
            () => Err(SendCause::AwaitingAcknowledgment),
        })
    }
    /// The single segment without SACK blocks that takes all `queued` bytes, if one does. Nothing is in flight, so that
    /// neither the congestion window nor Nagle's algorithm applies; the bytes are pushed, and fit the peer's window. A limit
    /// of another kind is asked for here too, or sets a flag of [`SenderFlags::NO_SINGLE_SEGMENT`].
    #[inline(always)]
    fn single_segment(&self, queued: u32) -> Option<Data> {
        let (send, start) = (&self.space, self.space.next());
        let end = start + queued;
        let goes = !self.has(SenderFlags::NO_SINGLE_SEGMENT)
            && send.unacknowledged() == start
            && end <= send.edge()
            && end <= send.push()
            && send.urgent() <= start
            && queued <= self.segment_bytes()
            && self.buffers().is_some_and(|buffers| buffers.boundaries.is_empty());
        goes.then_some(Data { start, length: queued, fin: false, gso_size: 0, retransmission: None })
    }
    /// The slow path: decides in every case. The receiver has a SACK option of `sack_bytes` to send.
    #[inline(never)]
    pub fn next_on_slow_path(
        &self,
        common: &Common,
        acknowledges: bool,
        sack_bytes: u32,
    ) -> Result<Next, SendCause> {
        if common.opens()
            && (!common.has(ConnectionFlags::EARLY_DATA) || common.has(ConnectionFlags::SYN_DUE))
        {
            return match () {
                () if common.has(ConnectionFlags::SYN_HELD) => Err(SendCause::Opening),
                () if common.has(ConnectionFlags::SYN_DUE) => Ok(Next::Synchronise),
                () if self.ends_before_open(common) => self.data_from_next(0, true).map(Next::Data),
                () if acknowledges && common.state() == TcpState::SynReceived => Ok(Next::Acknowledge),
                () => Err(SendCause::Opening),
            };
        }
        if self.probes_empty(common) {
            // Urgent data is announced before the probe.
            let announces = self.has(SenderFlags::ANNOUNCE_URGENT);
            return Ok(if announces { Next::Acknowledge } else { Next::KeepAlive });
        }
        match self.next_data(common, self.payload_limit(sack_bytes)) {
            Ok(data) => Ok(Next::Data(data)),
            // Data carries all else that is due. Only without data is that sent in a segment of its own.
            Err(_) if self.has(SenderFlags::KEEP_ALIVE) => Ok(Next::KeepAlive),
            Err(_) if acknowledges || self.has(SenderFlags::ANNOUNCE_URGENT) => Ok(Next::Acknowledge),
            Err(cause) => Err(cause),
        }
    }
    /// Whether `next`, without SACK blocks and without an echo of congestion, is a single segment with a plain header:
    /// sequence, acknowledgment, window, timestamps, and a FIN without data. `shares`: a long payload is shared, and so not plain.
    #[inline]
    pub fn is_plain(&self, common: &Common, next: Next, shares: bool) -> bool {
        let is_ordinary = match next {
            Next::Data(data) => {
                let bears_no_more = (!data.fin || data.length == 0) && !self.has(SenderFlags::WINDOW_REDUCED);
                data.gso_size == 0 && data.retransmission.is_none() && bears_no_more
            }
            Next::Acknowledge => true,
            Next::Synchronise | Next::KeepAlive => false,
        };
        is_ordinary
            && !(shares && next.is_shareable())
            && !common.opens()
            && self.space.urgent() <= self.space.unacknowledged()
    }
    // spec: RFC6675 4-5
    fn next_data(&self, common: &Common, full_bytes: u32) -> Result<Data, SendCause> {
        if common.has_fin_acknowledged() {
            return Err(SendCause::Closed);
        }
        if self.flags.contains(SenderFlags::LINK_REFUSED) {
            return Err(SendCause::Link);
        }
        let (send, end) = (self.space, self.stream_end());
        if self.flags.contains(SenderFlags::WINDOW_PROBE) && send.window() == 0 {
            return self.probe(common, end).ok_or(SendCause::ClosedWindow);
        }
        if let Some(buffers) = &self.buffers
            && buffers.flight.sums().lost_bytes > 0
        {
            return self.next_repair(common, full_bytes, buffers, end);
        }
        if self.flags.contains(SenderFlags::TAIL_PROBE)
            && let Some(data) = self.tail_probe(common, full_bytes, end)
        {
            return Ok(data);
        }
        self.new_data(common, full_bytes)
    }
    /// New data that was never sent.
    pub fn new_data(&self, common: &Common, full_bytes: u32) -> Result<Data, SendCause> {
        let (send, end) = (self.space, self.stream_end());
        if end < send.next() {
            // The FIN was sent, and all data before it.
            return Err(self.recovery_cause_or(SendCause::AwaitingAcknowledgment));
        }
        let unsent = end.since(send.next());
        if unsent == 0 {
            return match () {
                () if common.has_fin_outstanding() && self.is_window_shut(common) => {
                    Err(self.recovery_cause_or(SendCause::ClosedWindow))
                }
                () if common.has_fin_outstanding() => self.data_from_next(0, true),
                () if !self.space.has_outstanding() => Err(SendCause::ApplicationIdle),
                () if self.flags.contains(SenderFlags::WRITER_WAITS) => {
                    Err(self.recovery_cause_or(SendCause::SendBuffer))
                }
                () => Err(self.recovery_cause_or(SendCause::AwaitingAcknowledgment)),
            };
        }
        let length = self.sendable_bytes(common, full_bytes, unsent)?;
        if length == unsent
            && common.has_fin_outstanding()
            && common.policy().window_probes_are_empty
            && send.next() + length == self.space.edge()
        {
            // The FIN in the same segment takes a sequence number, too.
            return Err(self.recovery_cause_or(SendCause::ReceiverWindow));
        }
        self.data_from_next(length, length == unsent && common.has_fin_outstanding())
    }

    /// How many of `unsent` bytes may go in the next segment (RFC 9293 §3.7.4, §3.8.6.2.1). Each limit on new data stands
    /// here and, for the segments that follow at once, in `run_length`. The cause that it gives has an effect:
    /// [`Sender::nothing_more`](crate::sender::Sender::nothing_more) tells from it whether the congestion window is in use.
    // spec: RFC5681 2-1, 3-1; RFC7323 2.4-1, 2.4-4; RFC9293 SHLD-15, SHLD-28
    pub fn sendable_bytes(&self, common: &Common, full_bytes: u32, unsent: u32) -> Result<u32, SendCause> {
        let send = &self.space;
        let edge = self.space.edge();
        // The peer may have shrunk its window: then the right edge lies behind SND.NXT.
        // spec: RFC9293 MUST-34 (a shrinking window does no harm)
        let usable = edge.since(send.next());
        if usable == 0 {
            if send.window() == 0 {
                return Err(SendCause::ClosedWindow);
            }
            let is_blamed = common.policy().congestion_window_is_blamed_first
                && self.congestion.window().window_bytes <= self.in_flight_bytes();
            let cause = if is_blamed { SendCause::CongestionWindow } else { SendCause::ReceiverWindow };
            return Err(self.recovery_cause_or(cause));
        }
        let mut length = unsent.min(usable).min(full_bytes);
        let record = self.buffers.as_ref().and_then(|buffers| buffers.record_end_after(send.next()));
        let ends_record = record.is_some_and(|end| end.since(send.next()) <= length);
        if let Some(end) = record {
            length = length.min(end.since(send.next()));
        }
        if self.is_congestion_window_full(length) {
            return Err(self.recovery_cause_or(SendCause::CongestionWindow));
        }
        if length == full_bytes
            || (ends_record && length < unsent)
            || self.may_send_small(common, length, unsent)
        {
            if self.flags.contains(SenderFlags::PACED) {
                return Err(SendCause::Pacing);
            }
            let probe =
                if record.is_none() { self.search_probe(common, full_bytes, unsent, usable) } else { None };
            return Ok(probe.unwrap_or(length));
        }
        Err(self.recovery_cause_or(match () {
            () if length < unsent => SendCause::ReceiverWindow,
            () if self.has(SenderFlags::WRITER_WAITS) => SendCause::SendBuffer,
            () => SendCause::SmallData,
        }))
    }
    /// The next retransmission. While F-RTO decides whether a timeout was spurious, new data is sent instead once the
    /// oldest segment was retransmitted, if there is any (RFC 5682 §3.1).
    fn next_repair(
        &self,
        common: &Common,
        full_bytes: u32,
        buffers: &SendBuffers,
        end: Offset,
    ) -> Result<Data, SendCause> {
        let retransmission = self.next_retransmission(common, full_bytes, buffers, end);
        if !self.recovery.forward || self.recovery.state != RecoveryState::Loss {
            return retransmission;
        }
        match retransmission {
            Ok(data) if !self.recovery.progressed && data.start == self.space.unacknowledged() => Ok(data),
            _ if !self.recovery.progressed => Err(SendCause::Timeout),
            // Two segments of new data at most, and nothing beside them (RFC 5682 §2.1, step 2b).
            _ => self.new_data(common, full_bytes).or_else(|cause| {
                if self.recovery.recover < self.space.next() { Err(cause) } else { retransmission }
            }),
        }
    }
    /// The first lost data, if the congestion window permits.
    // spec: RFC6675 5-6; RFC8985 9.3-1; RFC9293 SHLD-16
    fn next_retransmission(
        &self,
        common: &Common,
        full_bytes: u32,
        buffers: &SendBuffers,
        end: Offset,
    ) -> Result<Data, SendCause> {
        if self.space.window() == 0 && !common.policy().window_probes_are_empty {
            return Err(SendCause::ClosedWindow);
        }
        let fin_is_out = end < self.space.next();
        let Some((start, to)) = buffers
            .flight
            .lost_run(full_bytes + u32::from(fin_is_out), common.policy().partial_acks_recut_segments)
        else {
            return Err(self.recovery_cause_or(SendCause::AwaitingAcknowledgment));
        };
        let mut fin = fin_is_out && end < to;
        let mut length = to.since(start) - u32::from(fin);
        if buffers.flight.is_refused() && to == self.space.next() && !fin {
            // Data that the peer's window refused, as it does a probe, is sent together with the data that follows.
            length = end.since(start);
        }
        if fin && length == full_bytes && common.policy().partial_acks_recut_segments {
            // A FIN that was sent alone is not joined to a full segment.
            fin = buffers.flight.records().back().is_some_and(|last| last.bytes() > 1);
        }
        let mut whole = length <= full_bytes;
        length = length.min(full_bytes);
        let probes = common.policy().window_probes_are_empty;
        if buffers.flight.is_refused() || probes {
            // Refused data stays within the current window.
            let edge = self.space.edge();
            let room = match start < edge {
                true => edge.since(start),
                // The oldest asks whether the window is still closed.
                false if probes && start == self.space.unacknowledged() => {
                    buffers.flight.records().front().map_or(full_bytes, |oldest| oldest.bytes())
                }
                false => 0,
            };
            if room == 0 && (length > 0 || probes) {
                return Err(self.recovery_cause_or(SendCause::ReceiverWindow));
            }
            whole &= length <= room;
            length = length.min(room);
        }
        let in_flight = self.in_flight_bytes();
        let fits = in_flight + length <= self.congestion.window().window_bytes;
        if !(buffers.force || in_flight == 0 || fits) {
            return Err(self.recovery_cause_or(SendCause::CongestionWindow));
        }
        if self.flags.contains(SenderFlags::PACED) && !buffers.force {
            return Err(SendCause::Pacing);
        }
        let why = match self.recovery.state {
            _ if buffers.flight.is_refused() => RetransmittedWhy::Refused,
            RecoveryState::Loss => RetransmittedWhy::Timeout,
            _ => RetransmittedWhy::Fast,
        };
        Ok(Data { start, length, fin: fin && whole, gso_size: 0, retransmission: Some(why) })
    }
    /// A tail loss probe: new data if the peer's window permits, otherwise the last segment (RFC 8985 §7.3).
    // spec: RFC8985 7.3-3, 7.3-2
    pub fn tail_probe(&self, common: &Common, full_bytes: u32, end: Offset) -> Option<Data> {
        let (next, edge) = (self.space.next(), self.space.edge());
        if next < end && next < edge {
            let unsent = end.since(next);
            let length = unsent.min(full_bytes).min(edge.since(next));
            let fin = length == unsent && common.has_fin_outstanding();
            return Some(Data { start: next, length, fin, gso_size: 0, retransmission: None });
        }
        let last = self.buffers.as_ref()?.flight.records().back()?;
        let fin = end < last.end;
        let data_end = if fin { end } else { last.end };
        let length = data_end.since(last.start).min(full_bytes);
        let retransmission = Some(RetransmittedWhy::TailProbe);
        Some(Data { start: data_end.back(length), length, fin, gso_size: 0, retransmission })
    }
    pub fn data_from_next(&self, length: u32, fin: bool) -> Result<Data, SendCause> {
        Ok(Data { start: self.space.next(), length, fin, gso_size: 0, retransmission: None })
    }
    /// Whether the congestion window has no room for `length` bytes. With nothing in flight it always has. Tiny segments
    /// count by the memory that their records take, so that the window limits it.
    #[inline]
    fn is_congestion_window_full(&self, length: u32) -> bool {
        let in_flight = self.in_flight_bytes();
        let records = self.buffers.as_ref().map_or(0, |buffers| buffers.flight.record_bytes());
        let excess_of_records = records.saturating_sub(self.space.outstanding_bytes());
        let room = self.congestion.window().window_bytes.saturating_sub(in_flight + excess_of_records);
        room < length && in_flight > 0
    }
    /// Whether a segment that is not full may go.
    // spec: RFC9293 MUST-38 (the sender's silly-window avoidance), SHLD-7
    pub fn may_send_small(&self, common: &Common, length: u32, unsent: u32) -> bool {
        let nothing_outstanding = !self.space.has_outstanding();
        if self.flags.contains(SenderFlags::OVERRIDE_SWS) {
            return true;
        }
        let is_urgent = self.space.next() < self.space.urgent();
        if self.flags.contains(SenderFlags::CORKED) && length == unsent && !common.has_fin_outstanding() {
            return false;
        }
        let end = self.space.next() + length;
        if length < unsent && common.policy().fills_window_behind_full_segments {
            return self.buffers().is_some_and(|buffers| buffers.ends_burst(self.space.next(), end));
        }
        if length < unsent {
            return nothing_outstanding && length >= self.space.largest_window().div_ceil(2);
        }
        let last = common.has_fin_outstanding() || is_urgent;
        let released = self.buffers.as_ref().and_then(|buffers| buffers.released);
        let pushed = end <= self.space.push() || released.is_some_and(|to| end <= to);
        // spec: RFC9293 MUST-17 (Nagle's algorithm can be switched off)
        last || (pushed && self.nagle_lets_go(common))
    }
    /// A zero-window probe: one byte, or the FIN, into a closed window.
    // spec: RFC9293 MUST-36 (a closed window is probed)
    pub fn probe(&self, common: &Common, end: Offset) -> Option<Data> {
        let start = self.space.unacknowledged();
        let length = end.since(start).min(1);
        let fin = length == 0 && common.has_fin_outstanding();
        let retransmission = self.space.has_outstanding().then_some(RetransmittedWhy::Probe);
        (length > 0 || fin).then_some(Data { start, length, fin, gso_size: 0, retransmission })
    }
    /// Whether an empty window probe with an old sequence number is due.
    pub fn probes_empty(&self, common: &Common) -> bool {
        common.policy().window_probes_are_empty
            && self.flags.contains(SenderFlags::WINDOW_PROBE)
            && self.space.window() == 0
            && !self.space.has_outstanding()
    }
    /// What sending waits for, with `next` to be sent and `before` as the cause so far. Starts the persist timer where the
    /// peer's window is the cause.
    #[inline]
    pub fn cause(
        &mut self,
        common: &Common,
        next: Result<Next, SendCause>,
        before: SendCause,
        now: Instant,
    ) -> SendCause {
        match next {
            // Before ESTABLISHED both ledgers stay at Opening, even while Fast Open sends data (RFC 7413).
            _ if common.opens() => SendCause::Opening,
            // An acknowledgment holds no data up: what data waits for is what it was.
            Ok(Next::Acknowledge) => match before {
                SendCause::Opening => SendCause::ApplicationIdle,
                cause => cause,
            },
            // A segment is ready and `transmit` was not called: it waits for the link, or for the end of the round.
            Ok(_) => SendCause::Link,
            Err(cause) => {
                if matches!(cause, SendCause::ClosedWindow | SendCause::ReceiverWindow)
                    && !self.space.has_outstanding()
                    && !self.timer.is_set()
                {
                    self.progress_at = now;
                    self.arm_timer(common, now);
                }
                cause
            }
        }
    }
    /// The cause of waiting while a recovery is under way, or `otherwise`.
    pub fn recovery_cause_or(&self, otherwise: SendCause) -> SendCause {
        match self.recovery.state {
            RecoveryState::Recovery => SendCause::LossRecovery,
            RecoveryState::Loss => SendCause::Timeout,
            _ if self.sums().lost_bytes > 0 => SendCause::LossRecovery,
            _ => otherwise,
        }
    }
    /// Whether a FIN, which takes a number, waits for the peer's window.
    pub fn is_window_shut(&self, common: &Common) -> bool {
        common.policy().window_probes_are_empty && self.space.next() >= self.space.edge()
    }
    /// The codepoint of the IP header: only new data says that it may be marked (RFC 3168 §6.1.4, §6.1.5), and no probe
    /// of a closed window (§6.1.6).
    pub fn ecn_of(&self, common: &Common, next: Next) -> Ecn {
        match next {
            Next::Data(data)
                if data.retransmission.is_none()
                    && data.length > 0
                    && self.space.window() > 0
                    && common.has(ConnectionFlags::ECN) =>
            {
                Ecn::Capable0
            }
            _ => Ecn::NotCapable,
        }
    }
}
