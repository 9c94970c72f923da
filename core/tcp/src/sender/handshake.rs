//! The sender during the handshake: the options of our SYN, the size of segments, and data with the SYN (RFC 7413).

use super::Sender;
use crate::common::{Common, TIMESTAMPS_BYTES};
use crate::flags::ConnectionFlags;
use crate::numbers::Visit;
use crate::state::Allows;
use crate::{EcnMode, Header};
use inhost_base::{Instant, Sequence};
use inhost_event::TcpState;
use inhost_wire::tcp::{FastOpenCookie, Flags};

/// Least payload of a segment that we send, whatever the peer or the path says: RFC 791's least MTU less headers.
pub(crate) const LEAST_MSS: u16 = 28;
/// Least payload and options that a halved window leaves: IPv4's least MTU of 68 less 20 bytes of header.
pub(crate) const LEAST_HALVED_BYTES: u16 = 48;
/// Kept while a connection opens, beside its queues.
#[derive(Debug)]
pub(crate) struct FastOpen {
    /// The number of our SYN.
    pub initial: Sequence,
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

impl FastOpen {
    /// See [`crate::numbers`].
    pub fn numbers(&mut self, visit: Visit<'_>) {
        let FastOpen { initial, option: _, experimental: _, most_data: _, sent: _, accepted: _, learned: _ } =
            self;
        visit("the number of our SYN", initial);
    }
}

impl Sender {
    /// Whether an answer to our SYN echoes a timestamp that no SYN of ours bore: it answers somebody else's, or is old.
    pub fn echo_is_foreign(&self, common: &Common, header: &Header, now: Instant) -> bool {
        let Some((_, echo)) = header.options.timestamps.filter(|_| common.config.timestamps) else {
            return false;
        };
        let (first, last) = (common.timestamp(self.timer.progress_at), common.timestamp(now));
        echo != 0 && echo.wrapping_sub(first) > last.wrapping_sub(first)
    }
    /// Whether our SYN asks for it. One that had to be repeated does not: something on the path may drop those that
    /// do (RFC 3168 §6.1.1.1).
    fn asks_for_ecn(&self, common: &Common) -> bool {
        common.config.ecn == EcnMode::Request && self.space.next == self.syn_sequence(common)
    }
    /// The congestion bits of our SYN, or SYN and ACK.
    pub fn syn_ecn_flags(&self, common: &Common) -> Flags {
        match common.state {
            TcpState::SynSent if self.asks_for_ecn(common) => Flags::ECE | Flags::CWR,
            TcpState::SynReceived if common.flags.has(ConnectionFlags::ECN) => Flags::ECE,
            _ => Flags::NONE,
        }
    }
    /// What a segment of ours can carry (RFC 9293 §3.7.1).
    // spec: RFC9293 MUST-16 (the least of what peer and path allow, less the options)
    // spec: RFC4821 7.1-1, 8-1
    pub fn effective_mss(&self, common: &Common) -> u32 {
        let most = common.peer_mss.min(common.path_mss).min(self.searched_mss()).max(LEAST_MSS);
        let options = common.options_bytes();
        let size = u32::from(most.saturating_sub(options).max(LEAST_MSS - TIMESTAMPS_BYTES));
        if common.config.policy.mss_at_most_half_window {
            self.halved_by_window(common, size, options)
        } else {
            size
        }
    }

    /// `size` bounded by half of the largest window that the peer has offered, or by a small one whole, as by Linux's
    /// tcp_bound_to_half_wnd.
    fn halved_by_window(&self, common: &Common, size: u32, options: u16) -> u32 {
        let most = self.space.window_bound();
        if common.state.opens() || most == 0 || size <= most {
            return size;
        }
        most.max(u32::from(LEAST_HALVED_BYTES - options))
    }
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
        if common.flags.has(ConnectionFlags::EARLY) { unacknowledged.back(1) } else { unacknowledged }
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
            Some(open) if common.state == TcpState::SynSent && self.space.next == open.initial => {
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
    /// Whether the FIN of a call that crossed another goes though our SYN is not acknowledged: nothing is queued before it
    /// (RFC 9293 §3.10.4). On Linux only where the application has let go of the socket, and our SYN, which is a segment
    /// of the window, was not repeated.
    pub fn ends_before_open(&self, common: &Common) -> bool {
        let reads = !common.flags.has(ConnectionFlags::RECEIVE_CLOSED);
        let is_full = common.config.policy.congestion_window_counts_segments
            && common.flags.has(ConnectionFlags::SYN_REPEATED);
        let waits = is_full || (reads && common.config.policy.answers_crossing_syn);
        self.may_end_before_open(common)
            && !waits
            && self.space.next == self.syn_sequence(common) + 1
            && !self.is_window_shut(common)
    }
    /// Whether that FIN has left.
    pub fn ended_before_open(&self, common: &Common) -> bool {
        self.may_end_before_open(common) && self.space.next == self.syn_sequence(common) + 2
    }
    fn may_end_before_open(&self, common: &Common) -> bool {
        let closed =
            common.flags.has(ConnectionFlags::ACTIVE) && common.flags.has(ConnectionFlags::CLOSE_AFTER_OPEN);
        common.state == TcpState::SynReceived && closed && self.queued_bytes() == 0
    }
}
