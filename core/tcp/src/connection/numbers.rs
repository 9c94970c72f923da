//! For tests: jumps of a connection's numbers, and whether one has become stale.

use super::Connection;
use crate::common::Common;
use crate::numbers::{LAG_BYTES, LARGEST_WINDOW_BYTES, STEP_BYTES, STEP_SHIFT, URGENT_REACH_BYTES, Visit};
use crate::receiver::Receiver;
use crate::sender::Sender;
use crate::state::Allows;
use inhost_base::Sequence;
use inhost_event::TcpState;

/// The sequence numbers that a connection keeps, for tests. From [`Connection::numbers`].
#[doc(hidden)]
pub struct KeptNumbers<'a> {
    common: &'a Common,
    sender: &'a mut Sender,
    receiver: &'a mut Receiver,
}

impl Connection {
    /// For tests: the sequence numbers that are kept.
    #[doc(hidden)]
    pub fn numbers(&mut self) -> KeptNumbers<'_> {
        KeptNumbers { common: &self.common, sender: &mut self.sender, receiver: &mut self.receiver }
    }
}

impl KeptNumbers<'_> {
    /// The end of the send space in use: data sent, or queued, and the FIN.
    fn send_space_end(&self) -> Sequence {
        self.sender.space.next.later(self.sender.stream_end() + 2)
    }
    /// Whether both sides agree on numbers that a jump can move.
    fn may_jump(&self) -> bool {
        !self.common.state.opens() && self.common.state != TcpState::Closed
    }
    /// Visits every number of the receive space that means something now.
    fn visit_receive_space(&mut self, visit: Visit<'_>) {
        self.receiver.space.numbers(visit);
        visit("SND.WL1", &mut self.sender.space.window_sequence);
        if let Some(buffers) = &mut self.receiver.buffers {
            buffers.reassembly.numbers(visit);
        }
    }
    /// For tests of the whole host: moves the send space on as though `by` bytes had been sent and acknowledged, with no
    /// event since. False, and no change, during the handshake and after the end.
    ///
    /// The numbers from `SND.UNA` to the end of what is sent or queued move by `by`. Bytes, buffers, timers and counts
    /// stay. A number that the stream has left behind moves only as far as the connection brings it along, so that a
    /// number which nothing brings along is wrong after 2^31, as it is after 2 GiB of data.
    ///
    /// The peer knows nothing of it: the caller translates what passes between the two from now on. In segments
    /// that this end sends, and in datagrams quoted in ICMP errors that it gets, the sequence number is `by` too
    /// high for the peer. The acknowledgment number and the SACK blocks of the peer's segments are `by` too low for this
    /// end, and so are the numbers of a quoted segment. Jumps add up, modulo 2^32.
    #[doc(hidden)]
    pub fn jump_send(&mut self, by: u64) -> bool {
        if !self.may_jump() {
            return false;
        }
        for step in steps(by) {
            let first = self.sender.space.unacknowledged;
            let length = self.send_space_end().since(first);
            self.sender.visit_send_space(&mut |_, number| {
                if number.since(first) <= length {
                    *number += step;
                }
            });
            self.sender.pull_numbers_along();
        }
        true
    }
    /// Moves the receive space on, as though `by` bytes had been received, read or discarded, and acknowledged. The
    /// sequence number of the peer's segments is `by` too low for this end; the acknowledgment number and the SACK
    /// blocks of what this end sends are `by` too high for the peer.
    #[doc(hidden)]
    pub fn jump_receive(&mut self, by: u64) -> bool {
        let holds_news = self.receiver.buffers.as_ref().is_some_and(|buffers| buffers.reassembly.has_news());
        // After the peer's FIN, data that is still to be reported by SACK does not move.
        if !self.may_jump() || (holds_news && self.common.state.peer_has_closed()) {
            return false;
        }
        for step in steps(by) {
            // These follow the latest segment: each segment received advances one, each acknowledgment sent the other,
            // and the acknowledgment that is due reports the duplicate.
            let followed = |number: Sequence| {
                let is_near = self.receiver.space.next.since(number) <= LARGEST_WINDOW_BYTES;
                is_near.then(|| number + step)
            };
            let acknowledged = followed(self.receiver.space.acknowledged);
            let window_sequence = followed(self.sender.space.window_sequence);
            let duplicate = self.receiver.buffers.as_ref().and_then(|buffers| buffers.reassembly.duplicate);
            let duplicate = duplicate.map(|(start, end)| (start + step, end + step));
            let first = self.receiver.read_position(self.common);
            let length = (self.receiver.space.edge + URGENT_REACH_BYTES).since(first);
            self.visit_receive_space(&mut |_, number| {
                if number.since(first) <= length {
                    *number += step;
                }
            });
            if let Some(buffers) = &mut self.receiver.buffers {
                buffers.reassembly.duplicate = duplicate;
            }
            self.receiver.space.acknowledged = acknowledged.unwrap_or(self.receiver.space.acknowledged);
            self.sender.space.window_sequence = window_sequence.unwrap_or(self.sender.space.window_sequence);
        }
        true
    }
    /// For tests of the whole host: the name of a kept number that has fallen so far from its window that comparisons
    /// will go wrong.
    #[doc(hidden)]
    pub fn stale(&mut self) -> Option<&'static str> {
        if self.common.state == TcpState::Closed {
            return None;
        }
        let mut stale = None;
        let first = self.sender.space.unacknowledged.back(LAG_BYTES + STEP_BYTES);
        let length = self.send_space_end().since(first);
        let is_wide = length >= 1 << 31;
        self.sender.visit_send_space(&mut |name, number| {
            if is_wide || number.since(first) > length {
                stale = stale.or(Some(name));
            }
        });
        if self.common.state == TcpState::SynSent {
            // Nothing is known of the peer's numbers.
            return stale;
        }
        let first = self.receiver.space.next.back(LARGEST_WINDOW_BYTES);
        let length = (self.receiver.space.edge + URGENT_REACH_BYTES).since(first);
        self.visit_receive_space(&mut |name, number| {
            if number.since(first) > length {
                stale = stale.or(Some(name));
            }
        });
        stale
    }
}

/// `by` in steps that are no longer than those after which numbers are brought along.
fn steps(by: u64) -> impl Iterator<Item = u32> {
    let whole = (by >> STEP_SHIFT) as usize;
    let rest = by as u32 & (STEP_BYTES - 1);
    core::iter::repeat_n(STEP_BYTES, whole).chain((rest > 0).then_some(rest))
}
