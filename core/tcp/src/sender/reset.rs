//! RST and SYN within the window: what RFC 9293 §3.10.7.4 says with the defences of RFC 5961.

use super::Sender;
use crate::Header;
use crate::common::Common;
use crate::marks::Marks;

impl Sender {
    /// Whether the timestamp that comes back, if one does, is that of our SYN and ACK.
    pub fn echoes_answer(&self, common: &Common, header: &Header) -> bool {
        let Some((_, echo)) = header.options.timestamps.filter(|_| common.marks.has(Marks::TIMESTAMPS))
        else {
            return true;
        };
        // When an answer left that was sent again, or by a cookie, is not known.
        echo == 0 || !common.marks.has(Marks::SYN_TIMED) || echo == common.timestamp(self.sent_at)
    }
}
