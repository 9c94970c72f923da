//! Urgent data, both ways (RFC 9293 §3.8.5, RFC 6093). The pointer names the byte after the last urgent one, and
//! urgent bytes stay in the stream.

use crate::outcome::{Changes, Outcome};
use crate::phase::Allows;
use crate::receive::Arrival;
use crate::{Connection, Header};
use inhost_base::Sequence;
use inhost_wire::tcp::Flags;

impl Connection {
    /// Sets URG and the pointer while urgent data lies ahead of the segment's first byte.
    // spec: RFC9293 MUST-30 (the mechanism is there)
    // spec: RFC9293 MUST-31 (urgent data of any length: what the pointer cannot reach, later segments tell)
    // spec: RFC9293 MUST-62 (to the first byte that is not urgent)
    pub(crate) fn announce_urgent(&self, header: &mut Header) {
        if let Some(pointer) = self.urgent_pointer_from(header.sequence) {
            header.flags |= Flags::URG;
            header.urgent_pointer = pointer;
        }
    }
    /// The urgent pointer of a segment that begins at `sequence`, while urgent data lies ahead of that.
    pub(crate) fn urgent_pointer_from(&self, sequence: Sequence) -> Option<u16> {
        let urgent = self.sender.space.urgent;
        let outstanding = self.sender.space.unacknowledged.precedes(urgent) && !self.common.phase.opens();
        (outstanding && sequence.precedes(urgent)).then(|| urgent.since(sequence).min(0xffff) as u16)
    }
    /// Takes note of the peer's mark.
    // spec: RFC9293 MUST-32 (the application hears of it at once, ahead of the data)
    pub(crate) fn take_urgent(&mut self, arrival: &Arrival<'_>, outcome: &mut Outcome) {
        let header = arrival.header;
        if !header.flags.urg() || !self.common.phase.expects_data() {
            return;
        }
        let first = header.sequence + u32::from(header.flags.syn());
        let least = u16::from(self.common.config.policy.zero_urgent_pointer_counts);
        let mark = first + u32::from(header.urgent_pointer.max(least));
        if self.receiver.space.urgent.precedes(mark) && self.read_position().precedes(mark) {
            self.receiver.space.urgent = mark;
            outcome.changes |= Changes::URGENT;
        }
    }
    /// `RCV.UP` never lies behind what is read, or is discarded unread.
    #[inline]
    pub(crate) fn urgent_follows_reading(&mut self) {
        self.receiver.space.urgent = self.receiver.space.urgent.later(self.read_position());
    }
    /// The number of the next byte that the application will read.
    #[inline]
    pub(crate) fn read_position(&self) -> Sequence {
        let waiting = self.receiver.buffers.as_ref().map_or(0, |buffers| buffers.receive.len() as u32);
        self.receiver.space.next.back(waiting + u32::from(self.fin_is_counted()))
    }
    /// Whether `RCV.NXT` counts the peer's FIN.
    fn fin_is_counted(&self) -> bool {
        self.common.phase.peer_has_closed()
    }
    /// Bytes of the stream that are still to be read up to and with the last urgent one, arrived or not; `None` when
    /// nothing is urgent. A read stops there.
    // spec: RFC9293 MUST-33 (the application learns how much)
    #[inline]
    pub fn urgent_ahead(&self) -> Option<usize> {
        let position = self.read_position();
        position
            .precedes(self.receiver.space.urgent)
            .then(|| self.receiver.space.urgent.since(position) as usize)
    }
    /// Whether something is urgent, and its last byte is here, be it ahead of a gap.
    pub(crate) fn urgent_has_come(&self) -> bool {
        let Some(buffers) = self.receiver.buffers.as_ref().filter(|_| self.urgent_ahead().is_some()) else {
            return false;
        };
        let last = self.receiver.space.urgent.back(1);
        last.precedes(self.receiver.space.next) || buffers.reassembly.holds(last)
    }
}
