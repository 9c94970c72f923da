//! What is asked most often, and its straight road: whether anything is to be sent while all is out, and the one small
//! segment of an exchange of messages, which leaves while nothing else is out (DEC §4). The rules are those of the
//! general road in `transmit`; what is out of the ordinary is left to it.

use crate::marks::{ReceiveMarks, SendMarks};
use crate::outcome::SegmentOutput;
use crate::sender::next::{Data, Next};
use crate::{Connection, Environment, PlainHeader, RecoveryState};
use inhost_event::{Event, Mask, SegmentSent, SendCause, TcpPhase};

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
    /// The next segment, where [`Self::transmit_lone`] may send it.
    #[inline]
    pub(crate) fn lone_segment(&self) -> Option<Data> {
        match self.next_plainly() {
            Some(Ok(Next::Data(data))) => Some(data),
            _ => None,
        }
    }
    /// Sends it; false when `out` refuses it.
    // spec: RFC7323 3.2-2
    #[inline]
    pub(crate) fn transmit_lone<O: SegmentOutput + ?Sized>(
        &mut self,
        data: Data,
        wants_sums: bool,
        env: &mut Environment<'_>,
        out: &mut O,
    ) -> bool {
        let (window, _) = self.receiver.window_to_offer(&self.common, env.pool);
        let header = PlainHeader {
            sequence: data.start,
            acknowledgment: self.receiver.space.next,
            window,
            push: self.sender.pushes(
                &self.common,
                self.receiver.sack_bytes(&self.common),
                data.start,
                data.end(),
                data.end(),
            ),
            timestamps: self.receiver.timestamps_to_send(&self.common, env.now),
        };
        let next = Next::Data(data);
        let ecn = self.sender.ecn_of(&self.common, next);
        let Some(buffers) = &mut self.sender.buffers else { return false };
        let payload = buffers.send.segment(0, data.length as usize, wants_sums);
        let lent = payload.len() as u32;
        if out.plain(&header, payload, ecn).is_err() {
            if let Some(retry) = self.common.config.refusal_retry {
                self.refused_by_link(next, &header.full(), lent, retry, env);
            }
            return false;
        }
        self.committed_data(data, lent, env);
        self.receiver.acknowledgment_left(&self.common, next, window);
        let socket = env.socket;
        env.emit(Mask::SEGMENT, || {
            Event::SegmentSent(SegmentSent {
                socket,
                sequence: header.sequence,
                acknowledgment: Some(header.acknowledgment),
                flags: header.flags().bits(),
                payload_bytes: lent,
                window_field: header.window,
            })
        });
        true
    }
}
