//! The sender during the handshake: the options of our SYN, the size of segments, and data with the SYN (RFC 7413).

use super::Sender;
use crate::common::{Common, TIMESTAMPS_BYTES};
use crate::state::Allows;
use alloc::boxed::Box;
use inhost_wire::tcp::FastOpenCookie;

/// Minimum payload of our segments, regardless of what the peer or the path announces: RFC 791's minimum MTU less
/// headers.
pub(crate) const LEAST_MSS: u16 = 28;
/// Minimum payload and options when the window is halved: IPv4's minimum MTU of 68 less 20 bytes of header.
pub(crate) const LEAST_HALVED_BYTES: u16 = 48;
/// Kept while a connection opens, beside its queues.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct FastOpen {
    /// The option of our first SYN, or SYN and ACK.
    pub option: Option<FastOpenCookie>,
    pub experimental: bool,
    /// Payload that our SYN may bear; 0 for none.
    pub most_data: u16,
    /// Payload that it bore.
    pub sent: u32,
    /// The data of the peer's SYN was taken: we may answer before the handshake is done.
    pub accepted: bool,
    /// From the answer to our SYN.
    pub learned: Option<(FastOpenCookie, bool)>,
}

impl Sender {
    /// What a segment of ours can carry (RFC 9293 §3.7.1).
    // spec: RFC9293 MUST-16 (the least of what peer and path allow, less the options)
    // spec: RFC4821 7.1-1, 8-1
    pub fn effective_mss(&self, common: &Common) -> u32 {
        let most = common.peer_mss.min(common.path_mss).min(self.searched_mss()).max(LEAST_MSS);
        let options = common.options_bytes();
        let size = u32::from(most.saturating_sub(options).max(LEAST_MSS - TIMESTAMPS_BYTES));
        if common.config.policy.mss_at_most_half_window {
            // As by Linux's tcp_bound_to_half_wnd: half of the largest window that the peer has offered, or a small one whole.
            let most = self.space.window_bound();
            if common.state.opens() || most == 0 || size <= most {
                return size;
            }
            most.max(u32::from(LEAST_HALVED_BYTES - options))
        } else {
            size
        }
    }
    pub fn fast_open_box(&mut self) -> &mut FastOpen {
        self.buffers_mut().fast_open.get_or_insert_with(|| {
            Box::new(FastOpen {
                option: None,
                experimental: false,
                most_data: 0,
                sent: 0,
                accepted: false,
                learned: None,
            })
        })
    }
}
