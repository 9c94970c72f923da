//! Emission of segments, and the accounting of those that were accepted: [`Connection::transmit`]'s pass.

use crate::connection::run::lend_run;
use crate::flags::{ConnectionFlags, ReceiverFlags, SenderFlags};
use crate::offset::Offset;
use crate::outcome::{Blocked, SegmentOutput};
use crate::receiver::sack::sack_option_bytes;
use crate::sender::next::{Data, Next, SHARED_FROM_BYTES};
use crate::state::Allows;
use crate::{Connection, Environment, FastOpenState, Header, PlainHeader};
use inhost_base::{Instant, Sequence};
use inhost_buf::Slices;
use inhost_event::{Event, Mask, SegmentSent, SendCause, TcpState};
use inhost_wire::tcp::Flags;

/// Header fields of a segment that was sent.
pub(crate) struct EmittedSegment {
    sequence: Sequence,
    acknowledgment: Sequence,
    flags: Flags,
    pub window: u16,
    /// What its SACK option took.
    sack_bytes: u32,
}

impl From<&Header> for EmittedSegment {
    fn from(header: &Header) -> Self {
        EmittedSegment {
            sequence: header.sequence,
            acknowledgment: header.acknowledgment,
            flags: header.flags,
            window: header.window,
            sack_bytes: match header.options.sack.len() as u32 {
                0 => 0,
                blocks => sack_option_bytes(blocks),
            },
        }
    }
}

impl From<&PlainHeader> for EmittedSegment {
    #[inline]
    fn from(header: &PlainHeader) -> Self {
        EmittedSegment {
            sequence: header.sequence,
            acknowledgment: header.acknowledgment,
            flags: header.flags(),
            window: header.window,
            sack_bytes: 0,
        }
    }
}

/// A segment, or run of segments, that was given to the device: what follows from its being taken or refused.
pub(super) struct Departure<'a, 'e> {
    pub tcb: &'a mut Connection,
    pub env: &'a mut Environment<'e>,
    pub next: Next,
    pub segment: &'a EmittedSegment,
}

impl<'e> Departure<'_, 'e> {
    /// `out` was given `next`, with `lent` bytes of payload, and took so much of it.
    #[inline(always)]
    fn emitted(mut self, lent: u32, taken: Result<u32, Blocked>) -> bool {
        match (taken, self.tcb.common.config.refusal_retry) {
            (Ok(taken), _) => self.committed(taken),
            (Err(Blocked::Link), Some(retry)) => self.refused_by_link(lent, retry),
            (Err(Blocked::Link), None) => {}
        }
        taken.is_ok()
    }
    /// The pass that it is of.
    #[inline(always)]
    fn pass(&mut self) -> Pass<'_, 'e> {
        Pass { tcb: self.tcb, env: self.env }
    }
    /// `out` took the segment, with `lent` bytes of payload: now it counts.
    #[inline(always)]
    pub(super) fn committed(&mut self, lent: u32) {
        let (next, segment) = (self.next, self.segment);
        match next {
            Next::Synchronise => self.pass().committed_syn(lent),
            Next::Data(data) => {
                let before = self.tcb.sender.sent_at;
                self.committed_data(data, lent);
                if data.fin {
                    self.pass().fin_sent(before);
                }
            }
            Next::Acknowledge => self.tcb.common.flags.clear(ConnectionFlags::SEPARATE),
            Next::KeepAlive => {
                self.tcb.sender.flags.clear(SenderFlags::KEEP_ALIVE);
                self.tcb.sender.flags.clear(SenderFlags::WINDOW_PROBE);
            }
        }
        if segment.flags.ack() {
            self.tcb.receiver.acknowledgment_sent(&self.tcb.common, next, segment.window);
        }
        let is_burst =
            self.tcb.common.acks_adapt() && matches!(next, Next::Data(Data { retransmission: None, .. }));
        if segment.sack_bytes > 0 && !is_burst {
            self.tcb.receiver.sack_sent(&self.tcb.common, self.env.pool);
        }
        if segment.flags.urg() {
            self.tcb.sender.flags.clear(SenderFlags::ANNOUNCE_URGENT);
        }
        let socket = self.env.socket;
        self.env.emit(Mask::SEGMENT, || {
            Event::SegmentSent(SegmentSent {
                socket,
                sequence: segment.sequence,
                acknowledgment: segment.flags.ack().then_some(segment.acknowledgment),
                flags: segment.flags.bits(),
                payload_bytes: lent,
                window_field: segment.window,
            })
        });
    }
    /// Data was sent. It is inlined in the fast path and in the slow path.
    #[inline(always)]
    fn committed_data(&mut self, data: Data, lent: u32) {
        let (now, sack_bytes) = (self.env.now, self.segment.sack_bytes);
        // If the queue lends fewer bytes than asked, those were sent, and the FIN waits.
        let data = if lent == data.length { data } else { Data { length: lent, fin: false, ..data } };
        let end = data.end();
        if !self.tcb.sender.space.has_outstanding() && self.tcb.sender.space.window > 0 {
            self.tcb.sender.timer.progress_at = now;
            if self.tcb.common.config.refusal_retry.is_some() {
                // The timer ran for data that the link had refused.
                self.tcb.sender.timer.stop();
            }
        }
        let in_flight = self.tcb.sender.in_flight_bytes();
        let probe = self.tcb.sender.flags.has(SenderFlags::TAIL_PROBE);
        match data.retransmission {
            None => {
                if data.length > 0 {
                    self.tcb.receiver.note_answer(&self.tcb.common, now);
                }
                self.tcb.sender.flags.clear(SenderFlags::WINDOW_REDUCED);
                self.tcb.sender.sent_first(&self.tcb.common, sack_bytes, data, in_flight, now);
            }
            Some(why) => self.tcb.sender.committed_retransmission(
                &self.tcb.common,
                sack_bytes,
                data,
                why,
                in_flight,
                self.env,
            ),
        }
        if self.tcb.sender.recovery.reduces()
            && let Some(buffers) = &mut self.tcb.sender.buffers
        {
            buffers.reduction.sent(end.since(data.start));
        }
        self.tcb.sender.space.sent_to(end);
        self.tcb.sender.sent_at = now;
        self.tcb.sender.paced(&self.tcb.common, data.length, now);
        let overrides = self.tcb.sender.flags.has(SenderFlags::OVERRIDE_SWS);
        self.tcb.sender.flags.clear(SenderFlags::SINGLE_USE);
        if overrides && self.tcb.sender.buffers.as_ref().is_some_and(|buffers| buffers.tail_probe.persists) {
            // What the persist timer sent is data like any other.
            self.tcb.sender.timer.round_trip.backoff = 0;
            self.tcb.sender.timer.stop();
        }
        if !self.tcb.sender.timer.is_running() {
            self.tcb.sender.timer.arm(&self.tcb.common, now);
        }
        if probe {
            self.tcb.sender.flags.clear(SenderFlags::TAIL_PROBE);
            let next = self.tcb.sender.space.next();
            if let Some(buffers) = &mut self.tcb.sender.buffers {
                buffers.tail_probe.sent(next, data.retransmission.map(|_| data.start));
            }
            self.tcb.sender.timer.arm(&self.tcb.common, now);
        }
        let all_sent = self.tcb.sender.space.next() >= self.tcb.sender.stream_end();
        if let Some(buffers) = &mut self.tcb.sender.buffers
            && (all_sent || self.tcb.common.config.policy.cork_lasts_rto)
        {
            buffers.aggregate_until = Instant::FAR_FUTURE;
            buffers.tail_probe.persists &= overrides;
        }
    }
}

/// A pass of transmission: it decides on and emits one segment after another, until no more may be sent.
pub(super) struct Pass<'a, 'e> {
    pub tcb: &'a mut Connection,
    pub env: &'a mut Environment<'e>,
}

impl Pass<'_, '_> {
    /// Sends until nothing more may, the budget is spent, or `out` is full; gives why nothing more may.
    #[inline]
    pub(super) fn run<O: SegmentOutput + ?Sized>(
        self,
        budget_segments: usize,
        out: &mut O,
    ) -> Option<SendCause> {
        self.tcb.sender.restart_after_idle(&self.tcb.common, self.env.now);
        let first = self.tcb.sender.space.next();
        let mut why = None;
        let mut remaining = budget_segments as u32;
        let wants_sums = out.wants_sums();
        self.tcb.common.flags.put(ConnectionFlags::CHECKSUM_OFFLOAD, !wants_sums);
        // Shared payloads are not cut, and their checksums are not computed beforehand.
        let shares = out.shares()
            && self
                .tcb
                .sender
                .planner(&self.tcb.common, self.tcb.receiver.sack_bytes(&self.tcb.common))
                .payload_limit()
                >= SHARED_FROM_BYTES;
        while remaining > 0 {
            let next = match self.tcb.outgoing().next_segment() {
                Ok(next) => next,
                Err(cause) => {
                    why = Some(cause);
                    break;
                }
            };
            let sack_bytes = self.tcb.receiver.sack_bytes(&self.tcb.common);
            let most_bytes = if shares { 0 } else { out.large_bytes() };
            let next = self.tcb.sender.planner(&self.tcb.common, sack_bytes).with_gso(
                next,
                remaining,
                most_bytes,
                self.env.now,
            );
            remaining -= next.segments();
            let emitted = match sack_bytes == 0
                && self.tcb.outgoing().is_plain(next)
                && !(shares && next.is_shareable())
            {
                true => Pass { tcb: self.tcb, env: self.env }.emit_plain(next, wants_sums, out),
                false => Pass { tcb: self.tcb, env: self.env }.emit(next, (wants_sums, shares), out),
            };
            if !emitted {
                break;
            }
        }
        // At the end of the budget, or of the link's room, there may be more to send.
        if self.tcb.common.acks_adapt()
            && first != self.tcb.sender.space.next()
            && self.tcb.receiver.has_sack_news(&self.tcb.common)
        {
            // All segments of a burst carried the same SACK blocks.
            self.tcb.receiver.sack_sent(&self.tcb.common, self.env.pool);
        }
        self.tcb.sender.nothing_more(&self.tcb.common, why.unwrap_or(SendCause::Link), first, self.env.now);
        why
    }
    /// Gives such a segment to `out`; false when that refuses it.
    // spec: RFC7323 3.2-2
    #[inline]
    fn emit_plain<O: SegmentOutput + ?Sized>(&mut self, next: Next, wants_sums: bool, out: &mut O) -> bool {
        let sequence = self.tcb.sender.space.sequence(self.tcb.outgoing().first_of(next));
        let mut header = self.tcb.receiver.plain_header(&self.tcb.common, sequence, self.env);
        if let Next::Data(data) = next {
            let end = data.end();
            header.push =
                data.length > 0 && self.tcb.sender.planner(&self.tcb.common, 0).pushes(data.start, end, end);
        }
        let ecn = self.tcb.outgoing().ecn_of(next);
        let payload = match (next, &mut self.tcb.sender.buffers) {
            (Next::Data(data), Some(buffers)) => {
                let offset = data.start.since(self.tcb.sender.space.unacknowledged()) as usize;
                buffers.send.segment(offset, data.length as usize, wants_sums)
            }
            _ => Slices::EMPTY,
        };
        // Lets the compiler use the properties of a plain segment below.
        let next = match next {
            Next::Data(data) => Next::Data(Data { fin: false, gso_size: 0, retransmission: None, ..data }),
            _ => Next::Acknowledge,
        };
        let lent = payload.len() as u32;
        let taken = out.plain(&header, payload, ecn).map(|()| lent);
        let segment = &EmittedSegment::from(&header);
        Departure { tcb: self.tcb, env: self.env, next, segment }.emitted(lent, taken)
    }
    /// Gives any segment, or run of segments, to `out`; false when that refuses it.
    fn emit<O: SegmentOutput + ?Sized>(
        self,
        next: Next,
        (wants_sums, shares): (bool, bool),
        out: &mut O,
    ) -> bool {
        let header = self.tcb.outgoing().header_of(next, self.env);
        let ecn = self.tcb.outgoing().ecn_of(next);
        let syn_data_bytes = if next == Next::Synchronise {
            self.tcb.sender.syn_data_bytes(&self.tcb.common) as usize
        } else {
            0
        };
        let (mut lent, before) = (0, self.tcb.sender.space.unacknowledged());
        let taken = match (next, &mut self.tcb.sender.buffers) {
            (Next::Data(data), Some(buffers)) if data.gso_size > 0 => {
                let (send, offset) = (&mut buffers.send, data.start.since(before) as usize);
                lend_run(data, &header, (send, offset), ecn, &mut lent, out)
            }
            (Next::Data(data), Some(buffers)) if shares => {
                let offset = data.start.since(before) as usize;
                let (payload, shareable) = buffers.send.shareable(offset, data.length as usize);
                lent = payload.len() as u32;
                let result = match shareable {
                    Some(shareable) => out.shared(&header, payload, shareable, ecn),
                    None => out.segment(&header, payload, ecn),
                };
                result.map(|()| lent)
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
        let segment = &EmittedSegment::from(&header);
        Departure { tcb: self.tcb, env: self.env, next, segment }.emitted(lent, taken)
    }
    /// Our SYN was sent.
    #[inline(never)]
    fn committed_syn(self, lent: u32) {
        let now = self.env.now;
        let end = Offset::SYN + 1;
        if end <= self.tcb.sender.space.next() {
            // The first answer to a crossing SYN: nothing has been offered yet.
            let answers_first = self.tcb.common.state == TcpState::SynReceived
                && self.tcb.common.flags.has(ConnectionFlags::ACTIVE_OPEN)
                && self.tcb.receiver.space.window() == 0;
            self.tcb.sender.history_mut().retransmitted_segments += u32::from(!answers_first);
            if !(answers_first
                && self.tcb.sender.timer.round_trip.backoff == 0
                && self.tcb.common.config.policy.answers_crossing_syn)
            {
                // Otherwise what acknowledges it answers this one, not the SYN before.
                self.tcb.common.flags.clear(ConnectionFlags::SYN_TIMED);
            }
            self.tcb.sender.sent_at = now;
            if self.tcb.sender.timer.round_trip.backoff > 0 {
                // Otherwise a smaller path MTU, not a loss, was the cause of the retransmission.
                self.tcb.common.flags.set(ConnectionFlags::SYN_REPEATED);
            }
        } else {
            self.tcb.common.flags.set(ConnectionFlags::SYN_TIMED);
            self.tcb.sender.sent_at = now;
            self.tcb.sender.timer.progress_at = now;
            self.tcb.sender.space.sent_to(end + lent);
        }
        if let Some(open) = self.tcb.sender.buffers.as_mut().and_then(|buffers| buffers.fast_open.as_mut()) {
            if lent > 0 {
                open.sent = lent;
                self.tcb.common.fast_open = FastOpenState::DataSent;
            }
            if open.accepted && !self.tcb.common.flags.has(ConnectionFlags::EARLY_DATA) {
                // The queue begins after the SYN, so that data sent now has its sequence number.
                self.tcb.common.flags.set(ConnectionFlags::EARLY_DATA);
                self.tcb.sender.space.acknowledge(Offset::SYN + 1);
            }
        }
        self.tcb.common.flags.clear(ConnectionFlags::SYN_DUE);
        let running = self.tcb.sender.timer.at;
        self.tcb.sender.timer.arm(&self.tcb.common, now);
        let crossed = self.tcb.common.state == TcpState::SynReceived
            && self.tcb.common.flags.has(ConnectionFlags::ACTIVE_OPEN);
        if crossed && self.tcb.common.config.policy.answers_crossing_syn && running > now {
            // The timer of our first SYN continues.
            self.tcb.sender.timer.at = self.tcb.sender.timer.at.min(running);
        }
    }
    /// Our FIN was sent; data was last sent at `before`.
    #[cold]
    fn fin_sent(self, before: Instant) {
        if self.tcb.common.state.opens() && self.tcb.common.flags.has(ConnectionFlags::ACTIVE_OPEN) {
            // In a simultaneous open the round-trip sample is still that of our SYN.
            self.tcb.sender.sent_at = before;
        }
        if self.tcb.common.flags.has(ConnectionFlags::SEPARATE)
            && (self.tcb.receiver.flags.has(ReceiverFlags::SCHEDULED)
                || self.tcb.receiver.flags.has(ReceiverFlags::ACKNOWLEDGE))
        {
            // It did not acknowledge the received data.
            self.tcb.receiver.ack_timing.duplicates_due = 1;
        }
        self.tcb.common.flags.clear(ConnectionFlags::SEPARATE);
    }
}
