//! What a connection sends next, as the sender decides ([`crate::sender::next`]), and its header.

use super::Connection;
use crate::flags::{ReceiverFlags, SenderFlags};
use crate::outcome::ResetReply;
use crate::sender::next::Next;
use crate::{Environment, Header};
use inhost_base::Instant;
use inhost_event::SendCause;
use inhost_wire::tcp::Flags;

impl Connection {
    /// The next segment to send, or what keeps it from being sent.
    #[inline(always)]
    pub(crate) fn next_segment(&self) -> Result<Next, SendCause> {
        self.next_on_fast_path().unwrap_or_else(|| {
            let acknowledges = self.receiver.has(ReceiverFlags::ACKNOWLEDGE);
            self.sender.next_on_slow_path(&self.common, acknowledges, self.receiver.sack_bytes(&self.common))
        })
    }
    /// The same, where the fast path decides: not with a SACK option, which takes of the room for data.
    #[inline(always)]
    pub(super) fn next_on_fast_path(&self) -> Option<Result<Next, SendCause>> {
        if self.receiver.has_sack_news(&self.common) {
            return None;
        }
        let acknowledges = self.receiver.has(ReceiverFlags::ACKNOWLEDGE);
        let next = self.sender.next_on_fast_path(&self.common, acknowledges)?;
        debug_assert_eq!(next, self.sender.next_on_slow_path(&self.common, acknowledges, 0));
        Some(next)
    }
    // spec: RFC7323 3.2-2, 3.2-4; RFC9293 SHLD-12
    pub(super) fn header_of(&self, next: Next, full_bytes: u32, env: &mut Environment<'_>) -> Header {
        if next == Next::Synchronise {
            let mut header = self.receiver.syn_header(&self.common, env.now());
            self.sender.complete_syn(&self.common, &mut header);
            return header;
        }
        // Beyond the peer's right edge, as after a window probe, even an acknowledgment would not be acceptable.
        let sequence = self.sender.space().sequence(next.first(self.sender.space()));
        let mut header = self.receiver.plain_header(&self.common, sequence, env).full();
        if let Next::Data(data) = next {
            let end = data.start + data.length;
            let pushed = match data.retransmission {
                Some(_) if self.common.policy().pushes_writes_and_bursts => {
                    self.sender.pushes_retransmission(full_bytes, data.start, end)
                }
                _ => self.sender.pushes(&self.common, full_bytes, data.start, data.first_end(), end),
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
}
