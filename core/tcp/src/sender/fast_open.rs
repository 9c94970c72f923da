//! Data in the SYN (RFC 7413): what one connection does for it. Who gets which cookie, and whether it holds, is the
//! stack's to know.

use super::Sender;
use crate::common::Common;
use crate::fast_open::FastOpen;
use crate::marks::Marks;
use inhost_base::Sequence;
use inhost_event::TcpPhase;
use inhost_wire::tcp::FastOpenCookie;

impl Sender {
    // What the handshake asks on its way.

    pub fn fast_open_box(&mut self) -> &mut FastOpen {
        let initial = self.space.unacknowledged;
        self.buffers_mut().fast_open.get_or_insert_with(|| {
            Box::new(FastOpen {
                initial,
                option: None,
                experimental: false,
                most_data: 0,
                sent: 0,
                accepted: false,
                learned: None,
            })
        })
    }
    pub fn fast_open_ref(&self) -> Option<&FastOpen> {
        self.buffers.as_deref()?.fast_open.as_deref()
    }
    /// The number of our SYN while the handshake lasts.
    pub fn syn_sequence(&self, common: &Common) -> Sequence {
        let unacknowledged = self.space.unacknowledged;
        if common.marks.has(Marks::EARLY) { unacknowledged.back(1) } else { unacknowledged }
    }
    /// The option of the first SYN; when it has to be sent again it goes without, for it may be the reason
    /// (RFC 7413 §4.1.3.1).
    pub fn fast_open_option(&self) -> (Option<FastOpenCookie>, bool) {
        match self.fast_open_ref() {
            Some(open) if self.space.next == open.initial => (open.option, open.experimental),
            _ => (None, false),
        }
    }
    /// Queued bytes that go with the first SYN.
    pub fn syn_data_bytes(&self, common: &Common) -> u32 {
        match self.fast_open_ref() {
            Some(open) if common.phase == TcpPhase::SynSent && self.space.next == open.initial => {
                self.queued_bytes().min(u32::from(open.most_data))
            }
            _ => 0,
        }
    }
    /// Both called at once. What of our data the other takes with our SYN it says when it acknowledges that; whatever
    /// is not sent yet waits for the handshake.
    pub fn syn_crossed(&mut self) {
        if let Some(buffers) = &mut self.buffers
            && buffers.fast_open.as_ref().is_some_and(|open| open.sent == 0)
        {
            buffers.fast_open = None;
        }
    }
}
