//! Urgent data that is sent (RFC 9293 §3.8.5, RFC 6093).

use super::Sender;
use crate::Header;
use crate::common::Common;
use crate::state::Allows;
use inhost_base::Sequence;
use inhost_wire::tcp::Flags;

impl Sender {
    /// Sets URG and the pointer while urgent data lies ahead of the segment's first byte.
    // spec: RFC9293 MUST-30 (the mechanism is there)
    // spec: RFC9293 MUST-31 (urgent data of any length: what the pointer cannot reach, later segments tell)
    // spec: RFC9293 MUST-62 (to the first byte that is not urgent)
    pub fn announce_urgent(&self, common: &Common, header: &mut Header) {
        if let Some(pointer) = self.urgent_pointer_from(common, header.sequence) {
            header.flags |= Flags::URG;
            header.urgent_pointer = pointer;
        }
    }
    /// The urgent pointer of a segment that begins at `sequence`, while urgent data lies ahead of that.
    pub fn urgent_pointer_from(&self, common: &Common, sequence: Sequence) -> Option<u16> {
        let urgent = self.space.urgent;
        let outstanding = self.space.unacknowledged.precedes(urgent) && !common.state.opens();
        (outstanding && sequence.precedes(urgent)).then(|| urgent.since(sequence).min(0xffff) as u16)
    }
}
