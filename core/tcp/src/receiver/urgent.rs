//! Urgent data that arrives (RFC 9293 §3.8.5, RFC 6093). The pointer names the byte after the last urgent one, and urgent bytes
//! stay in the stream.

use super::Receiver;
use crate::arrival::Arrival;
use crate::common::Common;
use crate::offset::Offset;
use crate::{Changes, Environment};

impl Receiver {
    /// Takes note of the peer's mark.
    // spec: RFC9293 MUST-32 (the application hears of it at once, ahead of the data)
    pub fn take_urgent(&mut self, common: &Common, arrival: &Arrival<'_>, env: &mut Environment<'_>) {
        let header = arrival.header;
        if !header.flags.urg() || !common.expects_data() {
            return;
        }
        let first = arrival.first + u32::from(header.flags.syn());
        let least = u16::from(common.config().policy.zero_urgent_pointer_counts);
        let mark = first + u32::from(header.urgent_pointer.max(least));
        if self.space.urgent() < mark && self.read_position(common) < mark {
            self.space.urge_to(mark);
            env.changed(Changes::URGENT);
        }
    }
    /// The position of the next byte that the application will read.
    #[inline]
    pub fn read_position(&self, common: &Common) -> Offset {
        let waiting = self.buffers.as_ref().map_or(0, |buffers| buffers.receive.len() as u32);
        self.space.next().back(waiting + u32::from(common.peer_has_closed()))
    }
}
