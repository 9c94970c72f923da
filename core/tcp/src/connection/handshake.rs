//! The handshake as it stands (RFC 9293 §3.5): our SYN, with its options and data, and what answers it.

use crate::common::Common;
use crate::flags::ConnectionFlags;
use crate::offset::Offset;
use crate::receiver::Receiver;
use crate::receiver::window::scale_for;
use crate::sender::Sender;
use crate::sender::handshake::FastOpen;
use crate::{Connection, EcnMode, Header};
use inhost_base::{Instant, Sequence};
use inhost_event::TcpState;
use inhost_wire::tcp::{FastOpenCookie, Flags, TcpOptions};

/// How far beyond the numbers of a connection in TIME-WAIT Linux begins the next one.
const SMALL_STATE_DISTANCE: u32 = 65_537;

/// A view of the handshake: what our SYN carries, and which data it covers. From [`Connection::handshake`].
#[derive(Clone, Copy)]
pub struct Handshake<'a> {
    common: &'a Common,
    sender: &'a Sender,
    receiver: &'a Receiver,
}

impl Connection {
    /// The handshake as it stands.
    #[inline(always)]
    pub fn handshake(&self) -> Handshake<'_> {
        Handshake::of(&self.common, &self.sender, &self.receiver)
    }
}

impl<'a> Handshake<'a> {
    #[inline(always)]
    pub(super) fn of(common: &'a Common, sender: &'a Sender, receiver: &'a Receiver) -> Self {
        Handshake { common, sender, receiver }
    }
    /// The header of our SYN, or SYN and ACK.
    // spec: RFC7323 2.2-4
    pub(crate) fn syn_header(&self, now: Instant) -> Header {
        let (flags, acknowledgment) = match self.common.state {
            TcpState::SynSent => (Flags::SYN, Sequence(0)),
            _ => (Flags::SYN | Flags::ACK, self.receiver.space.sequence(self.receiver.space.next())),
        };
        Header {
            sequence: self.sender.space.initial,
            acknowledgment,
            flags: flags | self.syn_ecn_flags(),
            // The field of a SYN is never scaled (RFC 7323 §2.2).
            window: self.receiver.window_space(self.common).min(0xffff) as u16,
            options: self.syn_options(now),
            ..Header::default()
        }
    }
    /// The options of our SYN. In answer to a SYN only what that offered is offered (RFC 7323 §2.2, §3.2).
    // spec: RFC7323 2.2-1, 2.3-1, 3.2-1; RFC2018 2-1; RFC9293 SHLD-5, MAY-3
    pub(crate) fn syn_options(&self, now: Instant) -> TcpOptions {
        let crossed = self.common.flags.has(ConnectionFlags::ACTIVE_OPEN)
            && self.common.config.policy.answers_crossing_syn;
        let answering = self.common.state == TcpState::SynReceived && !crossed;
        let timestamps = if answering {
            self.common.flags.has(ConnectionFlags::TIMESTAMPS)
        } else {
            self.common.config.timestamps
        };
        let (fast_open, fast_open_experimental) = self.fast_open_option();
        let scaling = if answering {
            self.common.flags.has(ConnectionFlags::SCALING)
        } else {
            self.common.config.window_scaling
        };
        TcpOptions {
            // spec: RFC9293 MUST-14 (the option is sent)
            // spec: RFC9293 MUST-65 (on SYNs only)
            // spec: RFC9293 MUST-67 (what IP can take in, less the 20 bytes of our header)
            mss: Some(self.common.path_mss),
            window_scale: scaling
                .then(|| if crossed { scale_for(&self.common.config) } else { self.receiver.space.scale }),
            // RFC 2018 §2
            sack_permitted: if answering {
                self.common.flags.has(ConnectionFlags::SACK)
            } else {
                self.common.config.sack
            },
            timestamps: timestamps.then(|| (self.common.timestamp(now), self.receiver.timestamp_recent)),
            fast_open,
            fast_open_experimental,
            ..TcpOptions::NONE
        }
    }
    /// The congestion bits of our SYN, or SYN and ACK.
    pub(crate) fn syn_ecn_flags(&self) -> Flags {
        match self.common.state {
            TcpState::SynSent if self.asks_for_ecn() => Flags::ECE | Flags::CWR,
            TcpState::SynReceived if self.common.flags.has(ConnectionFlags::ECN) => Flags::ECE,
            _ => Flags::NONE,
        }
    }
    /// Whether our SYN asks for it. One that had to be repeated does not: something on the path may drop those that
    /// do (RFC 3168 §6.1.1.1).
    fn asks_for_ecn(&self) -> bool {
        self.common.config.ecn == EcnMode::Request && self.sender.space.next() == Offset::SYN
    }
    /// The Fast Open option of the first SYN. A retransmitted SYN omits it, because it may be the cause of the loss (RFC
    /// 7413 §4.1.3.1).
    pub(crate) fn fast_open_option(&self) -> (Option<FastOpenCookie>, bool) {
        match self.fast_open() {
            Some(open) if self.sender.space.next() == Offset::SYN => (open.option, open.experimental),
            _ => (None, false),
        }
    }
    /// Queued bytes that go with the first SYN.
    pub(crate) fn syn_data_bytes(&self) -> u32 {
        match self.fast_open() {
            Some(open)
                if self.common.state == TcpState::SynSent && self.sender.space.next() == Offset::SYN =>
            {
                self.sender.queued_bytes().min(u32::from(open.most_data))
            }
            _ => 0,
        }
    }
    /// Bytes of queued data that the SYN, which was not sent yet, will bear.
    pub fn syn_data_room(&self) -> usize {
        let is_first = self.common.state == TcpState::SynSent && self.sender.space.next() == Offset::SYN;
        self.fast_open().filter(|_| is_first).map_or(0, |open| usize::from(open.most_data))
    }
    /// Whether a SYN was sent as often as it may be.
    pub(crate) fn syn_is_given_up(&self) -> bool {
        let most = match self.common.state {
            TcpState::SynSent => {
                self.common.config.syn_retries.saturating_add(self.common.config.syn_linear_timeouts)
            }
            TcpState::SynReceived => self.common.config.syn_answer_retries,
            _ => return false,
        };
        self.sender.timer.round_trip.backoff >= most
    }
    /// Whether the SYN and ACK waits for [`Opening::release`](crate::Opening::release).
    pub fn is_held(&self) -> bool {
        self.common.flags.has(ConnectionFlags::SYN_HELD)
    }
    /// Whether an answer to our SYN echoes a timestamp that no SYN of ours bore: it answers somebody else's, or is old.
    pub(crate) fn echo_is_foreign(&self, header: &Header, now: Instant) -> bool {
        let Some((_, echo)) = header.options.timestamps.filter(|_| self.common.config.timestamps) else {
            return false;
        };
        let (first, last) =
            (self.common.timestamp(self.sender.timer.progress_at), self.common.timestamp(now));
        echo != 0 && echo.wrapping_sub(first) > last.wrapping_sub(first)
    }
    /// Whether the echoed timestamp, if there is one, is that of our SYN-ACK.
    pub(crate) fn echoes_answer(&self, header: &Header) -> bool {
        let Some((_, echo)) =
            header.options.timestamps.filter(|_| self.common.flags.has(ConnectionFlags::TIMESTAMPS))
        else {
            return true;
        };
        // The transmission time of a retransmitted SYN-ACK, or of a SYN cookie, is not known.
        echo == 0
            || !self.common.flags.has(ConnectionFlags::SYN_TIMED)
            || echo == self.common.timestamp(self.sender.sent_at)
    }
    /// Whether, in a simultaneous open, the FIN is sent although our SYN is not acknowledged: no data is queued before it
    /// (RFC 9293 §3.10.4). In Linux only if the application has closed the socket, and our SYN, which counts as a segment
    /// of the window, was not retransmitted.
    pub(crate) fn ends_before_open(&self) -> bool {
        let reads = !self.common.flags.has(ConnectionFlags::RECEIVE_CLOSED);
        let is_full = self.common.config.policy.congestion_window_counts_segments
            && self.common.flags.has(ConnectionFlags::SYN_REPEATED);
        let waits = is_full || (reads && self.common.config.policy.answers_crossing_syn);
        self.may_end_before_open()
            && !waits
            && self.sender.space.next() == Offset::SYN + 1
            && !self.sender.planner(self.common, 0).is_window_shut()
    }
    /// Whether that FIN was sent.
    pub(crate) fn ended_before_open(&self) -> bool {
        self.may_end_before_open() && self.sender.space.next() == Offset::SYN + 2
    }
    fn may_end_before_open(&self) -> bool {
        let closed = self.common.flags.has(ConnectionFlags::ACTIVE_OPEN)
            && self.common.flags.has(ConnectionFlags::CLOSE_AFTER_OPEN);
        self.common.state == TcpState::SynReceived && closed && self.sender.queued_bytes() == 0
    }
    fn fast_open(&self) -> Option<&FastOpen> {
        self.sender.buffers.as_deref()?.fast_open.as_deref()
    }
    /// Whether it is half-open, of a listener, and ends without a word when the listener does.
    pub fn ends_in_silence(&self) -> bool {
        self.common.config.policy.half_open_ends_in_silence
            && self.common.is_handshake_of_a_listener()
            && !self.is_early()
    }
    /// Whether the application may write although the handshake is not done.
    pub fn is_early(&self) -> bool {
        self.common.is_early()
    }
    /// Whether `header`, a SYN for a connection in TIME-WAIT, may begin a new one in its place (RFC 9293 §3.10.7.4,
    /// RFC 6191): the least initial sequence number that the new connection must choose.
    // spec: RFC9293 SHLD-4
    pub fn yields_to(&self, header: &Header) -> Option<Sequence> {
        let flags = header.flags & (Flags::SYN | Flags::ACK | Flags::RST | Flags::FIN);
        if self.common.state != TcpState::TimeWait || flags != Flags::SYN {
            return None;
        }
        let newer_number = self.receiver.space.next() < self.receiver.space.offset(header.sequence);
        let newer = match header.options.timestamps {
            Some((value, _)) if self.common.flags.has(ConnectionFlags::TIMESTAMPS) => {
                let ahead = value.wrapping_sub(self.receiver.timestamp_recent) as i32;
                ahead > 0 || (ahead == 0 && newer_number)
            }
            _ => newer_number,
        };
        // A distance that no earlier segment of ours can bridge.
        let distance = match self.common.config.policy.minimal_last_states {
            true => SMALL_STATE_DISTANCE,
            false => self.sender.space.largest_window.max(0xffff),
        };
        newer.then(|| self.sender.space.sequence(self.sender.space.next() + distance))
    }
}
