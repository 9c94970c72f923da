//! What is asked most often, and its straight road: whether anything is to be sent while all is out, and the one small
//! segment of an exchange of messages, which leaves while nothing else is out (DEC §4). The rules are those of the
//! general road in `transmit`; what is out of the ordinary is left to it.

use crate::marks::{ReceiveMarks, SendMarks};
use crate::sender::next::{Data, Next};
use crate::{Connection, RecoveryState};
use inhost_event::{SendCause, TcpPhase};

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
        if self.common.phase != TcpPhase::Established
            || self.sender.marks.has(SendMarks::STIRS)
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
            () if self.receiver.marks.has(ReceiveMarks::ACKNOWLEDGE) => Ok(Next::Acknowledge),
            () if queued == 0 => Err(SendCause::ApplicationIdle),
            () if self.sender.marks.has(SendMarks::WRITER_WAITS) => Err(SendCause::SendBuffer),
            () => Err(SendCause::AwaitingAcknowledgment),
        })
    }
    /// The one segment that all `queued` bytes leave in, if they do: nothing is out, so that neither the congestion
    /// window nor Nagle's algorithm has a say, they are pushed, and the peer's window takes them.
    #[inline]
    fn lone(&self, queued: u32) -> Option<Data> {
        let (send, start) = (&self.sender.space, self.sender.space.next);
        let end = start + queued;
        let goes = !self.sender.marks.has(SendMarks::RARE)
            && !self.receiver.marks.has(ReceiveMarks::ECHO_CONGESTION)
            && send.unacknowledged == start
            && end.at_or_before(self.sender.send_edge())
            && end.at_or_before(send.push)
            && send.urgent.at_or_before(start)
            && queued <= self.sender.segment_bytes()
            && self.sender.buffers.as_ref().is_some_and(|buffers| buffers.seals.is_empty())
            && !self.receiver.has_sack_news(&self.common);
        goes.then_some(Data { start, length: queued, fin: false, step: 0, again: None })
    }
}
