//! Emission of segments, and the accounting of those that were accepted.

use crate::flags::{ConnectionFlags, ReceiverFlags, SenderFlags};
use crate::outcome::{Changes, SegmentOutput};
use crate::receiver::sack::sack_option_bytes;
use crate::sender::next::{Data, Next, SHARED_FROM_BYTES};
use crate::{Connection, Environment};
use inhost_base::Duration;
use inhost_buf::Full;
use inhost_event::{Event, Mask, SegmentSent, SendCause};
use inhost_wire::tcp::Flags;

impl Connection {
    /// Gives up to `budget_segments` segments to `out`, in the order in which they are to be sent, and stops where `out`
    /// refuses one, or nothing more may be sent. What has changed.
    pub fn transmit<O: SegmentOutput + ?Sized>(
        &mut self,
        env: &mut Environment<'_>,
        budget_segments: usize,
        out: &mut O,
    ) -> Changes {
        let waits = self.sender.has(SenderFlags::WRITER_WAITS)
            && self.common.config().not_sent_low_water_bytes != usize::MAX;
        let not_sent_bytes = if waits { self.sender().not_sent_bytes() } else { 0 };
        self.sender.restart_after_idle(&self.common, env.now());
        let first = self.sender.space().next();
        let mut remaining = budget_segments as u32;
        let wants_sums = out.wants_sums();
        self.common.set(ConnectionFlags::CHECKSUM_OFFLOAD, !wants_sums);
        // Shared payloads are not cut, and their checksums are not computed beforehand.
        let shares = out.shares()
            && self.sender.payload_limit(self.receiver.sack_bytes(&self.common)) >= SHARED_FROM_BYTES;
        // What keeps the next segment from being sent: nothing at the end of the budget, or of the link's room.
        let why = loop {
            if remaining == 0 {
                break None;
            }
            let emitted = match self.next_on_fast_path() {
                Some(Err(cause)) => break Some(cause),
                Some(Ok(next))
                    if !self.receiver.has(ReceiverFlags::ECHO_CONGESTION)
                        && self.sender.is_plain(&self.common, next, shares) =>
                {
                    remaining -= 1;
                    let emitted = self.emit_plain(next, false, wants_sums, out, env);
                    // All was sent, and nothing else is due: it need not be asked for.
                    if emitted
                        && matches!(next, Next::Data(_))
                        && self.sender.space().next() == self.sender.stream_end()
                        && !self.sender.has(SenderFlags::SLOW_PATH | SenderFlags::WRITER_WAITS)
                        && !self.receiver.has(ReceiverFlags::ACKNOWLEDGE)
                    {
                        break Some(SendCause::AwaitingAcknowledgment);
                    }
                    emitted
                }
                next => {
                    let next = next.unwrap_or_else(|| {
                        let acknowledges = self.receiver.has(ReceiverFlags::ACKNOWLEDGE);
                        let sack_bytes = self.receiver.sack_bytes(&self.common);
                        self.sender.next_on_slow_path(&self.common, acknowledges, sack_bytes)
                    });
                    match next {
                        Ok(next) => self.emit(next, &mut remaining, (wants_sums, shares), out, env),
                        Err(cause) => break Some(cause),
                    }
                }
            };
            if !emitted {
                break None;
            }
        };
        self.sender.nothing_more(&self.common, why.unwrap_or(SendCause::Link), first, env.now());
        // A pass that sent nothing makes no room. Otherwise a writer that lacks memory would be woken, in vain, in each
        // pass of a full device.
        let has_room = waits
            && self.sender().not_sent_bytes() < not_sent_bytes
            && self.sender.wakes_writer(&self.common);
        match why {
            // It was asked for just now, and nothing that it depends on has changed since.
            Some(cause) if !has_room => {
                debug_assert_eq!(self.next_segment(), Err(cause));
                self.common.set(ConnectionFlags::WANTS_TRANSMIT, false);
                self.update_with(Err(cause), env);
            }
            _ => self.update(env),
        }
        if has_room { Changes::WRITABLE } else { Changes::empty() }
    }
    /// Gives a single segment with a plain header to `out`; false when that refuses it. `fin`: as `next` says, told apart
    /// since the fast path knows that it is none.
    // spec: RFC7323 3.2-2
    #[inline(always)]
    fn emit_plain<O: SegmentOutput + ?Sized>(
        &mut self,
        next: Next,
        fin: bool,
        wants_sums: bool,
        out: &mut O,
        env: &mut Environment<'_>,
    ) -> bool {
        let sequence = self.sender.space().sequence(next.first(self.sender.space()));
        let mut header = self.receiver.plain_header(&self.common, sequence, env);
        if let Next::Data(data) = next {
            let end = data.start + data.length;
            let pushes = data.length > 0
                && self.sender.pushes(&self.common, self.sender.segment_bytes(), data.start, end, end);
            header.flags.set(Flags::PSH, pushes);
        }
        let ecn = self.sender.ecn_of(&self.common, next);
        let payload = self.sender.payload(next, wants_sums);
        header.flags.set(Flags::FIN, fin);
        // Lets the compiler use the properties of a plain segment below.
        let next = match next {
            Next::Data(data) => Next::Data(Data { fin, gso_size: 0, retransmission: None, ..data }),
            _ => Next::Acknowledge,
        };
        let lent = payload.len() as u32;
        let taken = out.plain(&header, payload, ecn).map(|()| lent);
        let sent = SegmentSent {
            socket: env.socket(),
            sequence: header.sequence,
            acknowledgment: Some(header.acknowledgment),
            flags: header.flags.bits(),
            payload_bytes: lent,
            window_field: header.window,
        };
        self.emitted(next, sent, 0, taken, env)
    }
    /// Gives any segment, with those of `remaining` that can go with it, to `out`; false when that refuses it.
    #[inline(never)]
    fn emit<O: SegmentOutput + ?Sized>(
        &mut self,
        next: Next,
        remaining: &mut u32,
        (wants_sums, shares): (bool, bool),
        out: &mut O,
        env: &mut Environment<'_>,
    ) -> bool {
        let sack_bytes = self.receiver.sack_bytes(&self.common);
        let full_bytes = self.sender.payload_limit(sack_bytes);
        let most_bytes = if shares { 0 } else { out.large_bytes() };
        let next = self.sender.with_gso(&self.common, full_bytes, next, *remaining, most_bytes, env.now());
        *remaining -= next.segments();
        if sack_bytes == 0
            && !self.receiver.has(ReceiverFlags::ECHO_CONGESTION)
            && self.sender.is_plain(&self.common, next, shares)
        {
            let fin = matches!(next, Next::Data(data) if data.fin);
            return self.emit_plain(next, fin, wants_sums, out, env);
        }
        let mut header = self.header_of(next, full_bytes, env);
        let ecn = self.sender.ecn_of(&self.common, next);
        let (lent, taken) =
            self.sender.lend_segment(&self.common, next, &mut header, ecn, (wants_sums, shares), out);
        let sent = SegmentSent {
            socket: env.socket(),
            sequence: header.sequence,
            acknowledgment: header.flags.ack().then_some(header.acknowledgment),
            flags: header.flags.bits(),
            payload_bytes: lent,
            window_field: header.window,
        };
        self.emitted(next, sent, sack_option_bytes(header.options.sack.len() as u32), taken, env)
    }
    /// `out` was given `next` as `sent`, with a SACK option of `sack_bytes`, and took so much of its payload.
    #[inline(always)]
    fn emitted(
        &mut self,
        next: Next,
        sent: SegmentSent,
        sack_bytes: u32,
        taken: Result<u32, Full>,
        env: &mut Environment<'_>,
    ) -> bool {
        match (taken, self.common.config().refusal_retry) {
            (Ok(payload_bytes), _) => {
                self.committed(next, SegmentSent { payload_bytes, ..sent }, sack_bytes, env);
            }
            (Err(Full), Some(retry)) => self.refused_by_link(next, sent, sack_bytes, retry, env),
            (Err(Full), None) => {}
        }
        taken.is_ok()
    }
    /// `out` took the segment: now it counts.
    #[inline(always)]
    fn committed(&mut self, next: Next, sent: SegmentSent, sack_bytes: u32, env: &mut Environment<'_>) {
        let lent = sent.payload_bytes;
        match next {
            Next::Synchronise => {
                let has_offered = self.receiver.space().window() > 0;
                self.sender.committed_syn(&mut self.common, lent, has_offered, env.now());
            }
            Next::Data(data) => {
                if data.retransmission.is_none() && lent > 0 {
                    self.receiver.note_answer(&self.common, env.now());
                }
                let full_bytes = self.sender.payload_limit(sack_bytes);
                self.sender.committed(&self.common, full_bytes, data, lent, env);
            }
            Next::Acknowledge => {}
            Next::KeepAlive => self.sender.did(SenderFlags::KEEP_ALIVE | SenderFlags::WINDOW_PROBE),
        }
        if sent.acknowledgment.is_some() {
            self.receiver.acknowledgment_sent(next, sent.window_field);
        }
        if sack_bytes > 0 {
            self.receiver.sack_sent(&self.common, env.pool());
        }
        if sent.flags & Flags::URG.bits() != 0 {
            self.sender.did(SenderFlags::ANNOUNCE_URGENT);
        }
        env.emit(Mask::SEGMENT, || Event::SegmentSent(sent));
    }
    /// The link refused `next`. A segment without data counts as sent and lost. Data counts as not sent, and is retried
    /// when a segment arrives, at a write, or by a timer.
    fn refused_by_link(
        &mut self,
        next: Next,
        sent: SegmentSent,
        sack_bytes: u32,
        retry: Duration,
        env: &mut Environment<'_>,
    ) {
        let now = env.now();
        if !self.common.opens() {
            self.sender.reduce_by_refusal(&self.common, now);
        }
        if !matches!(next, Next::Data(_)) {
            self.committed(next, sent, sack_bytes, env);
            if next == Next::KeepAlive && self.sender.space().window() == 0 {
                self.sender.retry_at(&self.common, now + retry);
            }
            return;
        }
        self.receiver.acknowledgment_sent(next, sent.window_field);
        self.sender.data_was_refused(&self.common, retry, now);
    }
}
