//! What a connection sends next, and why not more: what the sender says ([`crate::sender::next`]), and what goes with
//! nothing of the stream. Most often all is out, or one small segment leaves while nothing else is (DEC §4): that is
//! told at a glance, by the same rules.

use crate::flags::{ConnectionFlags, ReceiverFlags, SenderFlags};
use crate::sender::next::{Data, Next};
use crate::state::Allows;
use crate::{Connection, RecoveryState};
use inhost_event::{SendCause, TcpState};

impl Connection {
    /// The next segment to send, or what keeps it from being sent.
    #[inline]
    pub(crate) fn next_segment(&self) -> Result<Next, SendCause> {
        match self.next_plainly() {
            Some(next) => {
                debug_assert_eq!(next, self.next_in_general());
                next
            }
            None => self.next_in_general(),
        }
    }
    /// The answer of [`Self::next_in_general`] where nothing is out of the ordinary, and either all that was queued is
    /// out, or nothing is and all goes in one segment.
    #[inline(always)]
    fn next_plainly(&self) -> Option<Result<Next, SendCause>> {
        if self.common.state != TcpState::Established
            || self.sender.flags.has(SenderFlags::STIRS)
            || self.sender.recovery.state != RecoveryState::Open
        {
            return None;
        }
        let (queued, lost) =
            self.sender.buffers.as_ref().map_or((0, 0), |b| (b.send.len() as u32, b.flight.lost_bytes()));
        if lost > 0 {
            return None;
        }
        if self.sender.space.unacknowledged + queued != self.sender.space.next {
            return self.lone(queued).map(|data| Ok(Next::Data(data)));
        }
        Some(match () {
            () if self.receiver.flags.has(ReceiverFlags::ACKNOWLEDGE) => Ok(Next::Acknowledge),
            () if queued == 0 => Err(SendCause::ApplicationIdle),
            () if self.sender.flags.has(SenderFlags::WRITER_WAITS) => Err(SendCause::SendBuffer),
            () => Err(SendCause::AwaitingAcknowledgment),
        })
    }
    /// The one segment that all `queued` bytes leave in, if they do: nothing is out, so that neither the congestion
    /// window nor Nagle's algorithm has a say, they are pushed, and the peer's window takes them.
    #[inline]
    fn lone(&self, queued: u32) -> Option<Data> {
        let (send, start) = (&self.sender.space, self.sender.space.next);
        let end = start + queued;
        let goes = !self.sender.flags.has(SenderFlags::RARE)
            && !self.receiver.flags.has(ReceiverFlags::ECHO_CONGESTION)
            && send.unacknowledged == start
            && end.at_or_before(self.sender.space.edge())
            && end.at_or_before(send.push)
            && send.urgent.at_or_before(start)
            && queued <= self.sender.segment_bytes()
            && self.sender.buffers.as_ref().is_some_and(|buffers| buffers.boundaries.is_empty())
            && !self.receiver.has_sack_news(&self.common);
        goes.then_some(Data { start, length: queued, fin: false, step: 0, again: None })
    }
    /// The same, whatever is out of the ordinary.
    fn next_in_general(&self) -> Result<Next, SendCause> {
        if self.common.state.opens()
            && (!self.common.flags.has(ConnectionFlags::EARLY)
                || self.common.flags.has(ConnectionFlags::SYNCHRONISE))
        {
            return match () {
                () if self.common.flags.has(ConnectionFlags::HELD) => Err(SendCause::Opening),
                () if self.common.flags.has(ConnectionFlags::SYNCHRONISE) => Ok(Next::Synchronise),
                () if self.handshake().ends_before_open() => {
                    self.sender.planner(&self.common, 0).data_from_next(0, true).map(Next::Data)
                }
                () if self.receiver.flags.has(ReceiverFlags::ACKNOWLEDGE)
                    && self.common.state == TcpState::SynReceived =>
                {
                    Ok(Next::Acknowledge)
                }
                () => Err(SendCause::Opening),
            };
        }
        if (self.sender.flags.has(SenderFlags::PROBE) || self.common.flags.has(ConnectionFlags::APART))
            && let Some(next) = self.goes_first()
        {
            return Ok(next);
        }
        match self.sender.planner(&self.common, self.receiver.sack_bytes(&self.common)).next_data() {
            Ok(data) => Ok(Next::Data(data)),
            // Data carries whatever else is due; only without any does that travel alone.
            Err(_) if self.sender.flags.has(SenderFlags::KEEP_ALIVE) => Ok(Next::KeepAlive),
            Err(_)
                if self.receiver.flags.has(ReceiverFlags::ACKNOWLEDGE)
                    || self.sender.flags.has(SenderFlags::ANNOUNCE_URGENT) =>
            {
                Ok(Next::Acknowledge)
            }
            Err(cause) => Err(cause),
        }
    }
    /// What leaves before any part of the stream.
    #[cold]
    fn goes_first(&self) -> Option<Next> {
        if self.sender.probes_empty(&self.common) {
            // Urgent data is announced before the probe.
            let announces = self.sender.flags.has(SenderFlags::ANNOUNCE_URGENT);
            return Some(if announces { Next::Acknowledge } else { Next::KeepAlive });
        }
        if self.common.flags.has(ConnectionFlags::APART) { self.goes_apart() } else { None }
    }
}
