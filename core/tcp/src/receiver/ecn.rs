//! Congestion marks that arrive, and their echo (RFC 3168 §6.1.3).

use super::Receiver;
use crate::Ecn;
use crate::arrival::Arrival;
use crate::common::Common;
use crate::flags::{ConnectionFlags, ReceiverFlags};

impl Receiver {
    /// Whether the mark of a segment's IP header says something that those before did not.
    pub fn tells_of_congestion(&self, ecn: Ecn) -> bool {
        match ecn {
            Ecn::CongestionExperienced => true,
            Ecn::NotCapable => self.flags.contains(ReceiverFlags::ECN_SEEN),
            _ => !self.flags.contains(ReceiverFlags::ECN_SEEN),
        }
    }
    /// CWR, with which the peer says that it has reduced its window (RFC 3168 §6.1.3): echoing ends.
    pub fn take_window_reduced(&mut self, common: &Common, arrival: &Arrival<'_>) {
        if arrival.header.flags.cwr() && common.has(ConnectionFlags::ECN) {
            let echoed = self.flags.contains(ReceiverFlags::ECHO_CONGESTION);
            self.flags.remove(ReceiverFlags::ECHO_CONGESTION);
            if echoed {
                self.flags.insert(ReceiverFlags::ACKNOWLEDGE);
            }
        }
    }
    /// RFC 3168 §6.1.3: a mark on data that is taken is echoed until the peer says that it has reduced its window, and the
    /// sooner it knows the better.
    // spec: RFC3168 6.1.5-1
    pub fn take_congestion_mark(&mut self, common: &Common, ecn: Ecn) {
        match ecn {
            Ecn::CongestionExperienced => {
                if !self.flags.contains(ReceiverFlags::ECHO_CONGESTION) {
                    self.flags.insert(ReceiverFlags::ECHO_CONGESTION);
                    self.enter_quick_ack_mode(common, 2);
                    self.flags.insert(ReceiverFlags::ACKNOWLEDGE);
                }
                self.flags.insert(ReceiverFlags::ECN_SEEN);
            }
            // Retransmissions are not ECN-capable.
            Ecn::NotCapable if self.flags.contains(ReceiverFlags::ECN_SEEN) => {
                self.enter_quick_ack_mode(common, 2)
            }
            Ecn::NotCapable => {}
            _ => self.flags.insert(ReceiverFlags::ECN_SEEN),
        }
    }
}
