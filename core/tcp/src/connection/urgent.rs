//! What is told of urgent data (RFC 9293 §3.8.5, RFC 6093).

use crate::Connection;

impl Connection {
    /// Bytes of the stream that are still to be read up to and with the last urgent one, arrived or not; `None` when
    /// nothing is urgent. A read stops there.
    // spec: RFC9293 MUST-33 (the application learns how much)
    #[inline]
    pub fn urgent_ahead(&self) -> Option<usize> {
        let position = self.receiver.read_position(&self.common);
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
