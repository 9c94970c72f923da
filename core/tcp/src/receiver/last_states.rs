//! What is left of a connection once nobody holds it: FIN-WAIT-2 after the application has let go, and TIME-WAIT, where
//! Linux keeps a small entry with rules of its own (tcp_timewait_state_process).

use super::Receiver;
use crate::common::Common;
use crate::marks::Marks;
use crate::receive::Arrival;

impl Receiver {
    pub fn is_older_than_known(&self, common: &Common, arrival: &Arrival<'_>) -> bool {
        let stamp = arrival.header.options.timestamps;
        common.marks.has(Marks::TIMESTAMPS)
            && !arrival.header.flags.rst()
            && stamp.is_some_and(|(value, _)| (value.wrapping_sub(self.timestamp_recent) as i32) < 0)
    }
}
