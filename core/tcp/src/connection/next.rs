//! What a connection sends next, and why not more: data, as the sender decides ([`crate::sender::next`]), or a segment
//! without data. Usually all data was sent, or a single small segment is sent while nothing is in flight (DEC §4): the fast
//! path decides these two cases by the same rules.

use super::Connection;
use crate::common::Common;
use crate::flags::{ConnectionFlags, ReceiverFlags, SenderFlags};
use crate::outcome::ResetReply;
use crate::policy::PushPlacement;
use crate::receiver::Receiver;
use crate::sender::Sender;
use crate::sender::next::{Data, Next};
use crate::{Environment, Header, RecoveryState};
use inhost_base::Instant;
use inhost_event::{SendCause, TcpState};
use inhost_wire::tcp::Flags;

impl Connection {
    /// The next segment to send, or what keeps it from being sent.
    #[inline(always)]
    pub(crate) fn next_segment(&self) -> Result<Next, SendCause> {
        match self.next_on_fast_path() {
            Some(next) => {
                debug_assert_eq!(next, next_on_slow_path(&self.common, &self.sender, &self.receiver));
                next
            }
            None => next_on_slow_path(&self.common, &self.sender, &self.receiver),
        }
    }
    /// The fast path: the same result as [`next_on_slow_path`], if either all queued data was sent, or nothing is in
    /// flight and all of it fits a single segment. `None` in other cases.
    #[inline(always)]
    fn next_on_fast_path(&self) -> Option<Result<Next, SendCause>> {
        if self.common.state != TcpState::Established
            || self.sender.has(SenderFlags::SLOW_PATH)
            || self.sender.recovery_state() != RecoveryState::Open
        {
            return None;
        }
        let (queued, lost) =
            self.sender.buffers().map_or((0, 0), |b| (b.send.len() as u32, b.flight.lost_bytes()));
        if lost > 0 {
            return None;
        }
        if self.sender.space().unacknowledged() + queued != self.sender.space().next() {
            return self.next_single(queued).map(|data| Ok(Next::Data(data)));
        }
        Some(match () {
            () if self.receiver.has(ReceiverFlags::ACKNOWLEDGE) => Ok(Next::Acknowledge),
            () if queued == 0 => Err(SendCause::ApplicationIdle),
            () if self.sender.has(SenderFlags::WRITER_WAITS) => Err(SendCause::SendBuffer),
            () => Err(SendCause::AwaitingAcknowledgment),
        })
    }
    /// The single segment that takes all `queued` bytes, if one does. Nothing is in flight, so that neither the congestion
    /// window nor Nagle's algorithm applies; the bytes are pushed, and fit the peer's window. A limit of another kind is
    /// asked for here too, or sets a flag of [`SenderFlags::NO_SINGLE_SEGMENT`].
    #[inline(always)]
    fn next_single(&self, queued: u32) -> Option<Data> {
        let (send, start) = (self.sender.space(), self.sender.space().next());
        let end = start + queued;
        let goes = !self.sender.has(SenderFlags::NO_SINGLE_SEGMENT)
            && !self.receiver.has(ReceiverFlags::ECHO_CONGESTION)
            && send.unacknowledged() == start
            && end <= self.sender.space().edge()
            && end <= send.push()
            && send.urgent() <= start
            && queued <= self.sender.segment_bytes()
            && self.sender.buffers().is_some_and(|buffers| buffers.boundaries.is_empty())
            && !self.receiver.has_sack_news(&self.common);
        goes.then_some(Data { start, length: queued, fin: false, gso_size: 0, retransmission: None })
    }
    /// Whether `next`, without SACK blocks, is a single segment with a plain header: sequence, acknowledgment, window and
    /// timestamps.
    #[inline]
    pub(super) fn is_plain(&self, next: Next) -> bool {
        let is_ordinary = match next {
            Next::Data(data) => {
                let bears_no_more = !data.fin && !self.sender.has(SenderFlags::WINDOW_REDUCED);
                data.gso_size == 0 && data.retransmission.is_none() && bears_no_more
            }
            Next::Acknowledge => true,
            Next::Synchronise | Next::KeepAlive => false,
        };
        is_ordinary
            && !self.common.opens()
            && !self.receiver.has(ReceiverFlags::ECHO_CONGESTION)
            && self.sender.space().urgent() <= self.sender.space().unacknowledged()
    }
    // spec: RFC7323 3.2-2, 3.2-4; RFC9293 SHLD-12
    pub(super) fn header_of(&self, next: Next, env: &Environment<'_>) -> Header {
        if next == Next::Synchronise {
            return self.syn_header(env.now);
        }
        // Beyond the peer's right edge, as after a window probe, even an acknowledgment would not be acceptable.
        let sequence = self.sender.space().sequence(next.first(self.sender.space()));
        let mut header = self.receiver.plain_header(&self.common, sequence, env).full();
        match next {
            Next::Data(data) => {
                let end = data.start + data.length;
                let pushed = match data.retransmission {
                    Some(_) if self.common.config.policy.push == PushPlacement::WritesAndBursts => {
                        self.sender.pushes_retransmission(self.full_bytes(), data.start, end)
                    }
                    _ => {
                        self.sender.pushes(&self.common, self.full_bytes(), data.start, data.first_end(), end)
                    }
                };
                if data.length > 0 && pushed {
                    header.flags |= Flags::PSH;
                }
                if data.fin {
                    header.flags |= Flags::FIN;
                }
                if data.retransmission.is_none()
                    && data.length > 0
                    && self.sender.has(SenderFlags::WINDOW_REDUCED)
                {
                    header.flags |= Flags::CWR;
                }
            }
            Next::Synchronise | Next::Acknowledge | Next::KeepAlive => {}
        }
        if self.receiver.has(ReceiverFlags::ECHO_CONGESTION) {
            header.flags |= Flags::ECE;
        }
        self.receiver.add_sack(&self.common, &mut header);
        self.sender.announce_urgent(&self.common, next.first(self.sender.space()), &mut header);
        header
    }
    /// The reset by which our side ends the connection.
    // spec: RFC7323 5.2-3
    pub(crate) fn active_reset(&self, now: Instant) -> ResetReply {
        // After a window probe `SND.NXT` lies beyond the peer's right edge, where a reset is not accepted.
        let first = self.sender.space().first_without_data();
        ResetReply {
            sequence: self.sender.space().sequence(first),
            acknowledgment: Some(self.receiver.space().next_sequence()),
            timestamps: self.receiver.timestamps_to_send(&self.common, now),
        }
    }
    /// Payload of a full segment sent now.
    #[inline]
    pub(super) fn full_bytes(&self) -> u32 {
        self.sender.payload_limit(self.receiver.sack_bytes(&self.common))
    }
}

/// The slow path: decides in every case. It takes the parts as arguments, so that the fast path keeps them in registers.
#[inline(never)]
fn next_on_slow_path(common: &Common, sender: &Sender, receiver: &Receiver) -> Result<Next, SendCause> {
    if common.opens()
        && (!common.flags.contains(ConnectionFlags::EARLY_DATA)
            || common.flags.contains(ConnectionFlags::SYN_DUE))
    {
        return match () {
            () if common.flags.contains(ConnectionFlags::SYN_HELD) => Err(SendCause::Opening),
            () if common.flags.contains(ConnectionFlags::SYN_DUE) => Ok(Next::Synchronise),
            () if sender.ends_before_open(common) => sender.data_from_next(0, true).map(Next::Data),
            () if receiver.has(ReceiverFlags::ACKNOWLEDGE) && common.state == TcpState::SynReceived => {
                Ok(Next::Acknowledge)
            }
            () => Err(SendCause::Opening),
        };
    }
    if sender.probes_empty(common) {
        // Urgent data is announced before the probe.
        let announces = sender.has(SenderFlags::ANNOUNCE_URGENT);
        return Ok(if announces { Next::Acknowledge } else { Next::KeepAlive });
    }
    match sender.next_data(common, sender.payload_limit(receiver.sack_bytes(common))) {
        Ok(data) => Ok(Next::Data(data)),
        // Data carries all else that is due. Only without data is that sent in a segment of its own.
        Err(_) if sender.has(SenderFlags::KEEP_ALIVE) => Ok(Next::KeepAlive),
        Err(_) if receiver.has(ReceiverFlags::ACKNOWLEDGE) || sender.has(SenderFlags::ANNOUNCE_URGENT) => {
            Ok(Next::Acknowledge)
        }
        Err(cause) => Err(cause),
    }
}
