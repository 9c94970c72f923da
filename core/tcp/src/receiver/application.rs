//! What the application does: send, read, close, abort, and set options (RFC 9293 §3.9.1).

use super::Receiver;
use crate::common::Common;

impl Receiver {
    /// What reading makes due.
    #[inline]
    pub fn was_read(&mut self, common: &Common) {
        self.urgent_follows_reading(common);
        self.acknowledge_what_was_read(common);
        self.consider_window_update(common);
    }
}
