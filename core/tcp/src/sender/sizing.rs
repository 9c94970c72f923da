//! How large the buffers are: as large as the path needs, between the limits of the configuration (VPI §4.2, dynamic
//! right-sizing).

use super::Sender;
use crate::common::Common;

impl Sender {
    /// What the send buffer takes at most now: twice the window, so that a window's worth waits while one is out.
    #[inline]
    pub fn send_buffer_bytes(&self, common: &Common) -> usize {
        let limit = common.config.send_buffer_limit_bytes;
        let wanted = 2 * self.congestion.window.window_bytes as usize;
        wanted.max(common.config.send_buffer_initial_bytes).min(limit)
    }
}
