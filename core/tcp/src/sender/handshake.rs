//! The sender during the handshake: the options of our SYN, the size of segments, and data with the SYN (RFC 7413).

use super::{Recovery, Sender};
use crate::arrival::Arrival;
use crate::common::{Common, MAX_SCALE, TIMESTAMPS_BYTES};
use crate::flags::ConnectionFlags;
use crate::sender::buffers::FastOpen;
use crate::sender::burst::WriteBoundary;
use crate::{EcnMode, Environment, FastOpenState, Header};
use alloc::boxed::Box;
use inhost_base::{Instant, Offset};
use inhost_buf::Pool;
use inhost_event::TcpState;
use inhost_wire::tcp::{FastOpenCookie, Flags, MAX_OPTIONS_BYTES};

/// Minimum payload of our segments, regardless of what the peer or the path announces: IPv4's minimum MTU of 68 (RFC 791)
/// less headers.
pub(crate) const LEAST_MSS: u16 = 28;

impl Sender {
    /// What a segment of ours can carry (RFC 9293 §3.7.1).
    // spec: RFC9293 MUST-16 (the least of what peer and path allow, less the options)
    // spec: RFC4821 7.1-1, 8-1
    pub fn effective_mss(&self, common: &Common) -> u32 {
        let most = common.largest_mss().min(self.searched_mss()).max(LEAST_MSS);
        let options = common.options_bytes();
        u32::from(most.saturating_sub(options).max(LEAST_MSS - TIMESTAMPS_BYTES))
    }
    /// Uses smaller segments from now on, and retransmits the data in flight in them (RFC 1191 §6.5), without a
    /// congestion response.
    pub fn path_shrank(&mut self, common: &mut Common, path_mtu_mss: u16, env: &mut Environment<'_>) {
        if path_mtu_mss >= common.path_mss() {
            return;
        }
        common.set_path_mss(path_mtu_mss.max(LEAST_MSS));
        if common.opens() {
            self.congestion.set_segment_bytes(self.effective_mss(common));
            return;
        }
        self.congestion.resize(self.effective_mss(common));
        if self.space.has_outstanding() {
            self.retransmit_longer_than(self.segment_bytes());
            self.arm_timer(common, env.now());
        }
    }
    /// Our first SYN bears the option, and data up to `data_mss` less the options; 0 for none.
    // RFC 7413 §3, §4.1.2
    pub fn offer_fast_open(&mut self, option: Option<(FastOpenCookie, bool)>, data_mss: u16) {
        let open = self.fast_open_box();
        open.option = option;
        open.most_data = data_mss.saturating_sub(MAX_OPTIONS_BYTES as u16);
    }
    fn fast_open_box(&mut self) -> &mut FastOpen {
        self.buffers_mut().fast_open.get_or_insert_default()
    }
    /// Adds to the header of our SYN what the receiver does not know.
    pub fn complete_syn(&self, common: &Common, header: &mut Header) {
        header.sequence = self.space.sequence(Offset::SYN);
        header.flags |= self.syn_ecn_flags(common);
        // A retransmitted SYN omits it, because it may be the cause of the loss (RFC 7413 §4.1.3.1).
        if let Some((cookie, experimental)) = self.first_syn().and_then(|open| open.option) {
            header.options.fast_open = Some(cookie);
            header.options.fast_open_experimental = experimental;
        }
    }
    /// The congestion bits of our SYN, or SYN and ACK.
    fn syn_ecn_flags(&self, common: &Common) -> Flags {
        match common.state() {
            // One that had to be repeated does not ask: something on the path may drop those that do (RFC 3168 §6.1.1.1).
            TcpState::SynSent
                if common.config().ecn == EcnMode::Request && self.space.next() == Offset::SYN =>
            {
                Flags::ECE | Flags::CWR
            }
            TcpState::SynReceived if common.has(ConnectionFlags::ECN) => Flags::ECE,
            _ => Flags::empty(),
        }
    }
    /// Queued bytes that go with the first SYN.
    pub fn syn_data_bytes(&self, common: &Common) -> u32 {
        self.queued_bytes().min(self.syn_data_room(common) as u32)
    }
    /// Bytes of queued data that the SYN, which was not sent yet, will bear.
    pub fn syn_data_room(&self, common: &Common) -> usize {
        let open = self.first_syn().filter(|_| common.state() == TcpState::SynSent);
        open.map_or(0, |open| usize::from(open.most_data))
    }
    /// Whether a SYN was sent as often as it may be.
    pub fn syn_is_given_up(&self, common: &Common) -> bool {
        let most = match common.state() {
            TcpState::SynSent => {
                common.config().syn_retries.saturating_add(common.config().syn_linear_timeouts)
            }
            TcpState::SynReceived => common.config().syn_answer_retries,
            _ => return false,
        };
        common.round_trip().backoff() >= most
    }
    /// Whether an answer to our SYN echoes a timestamp that no SYN of ours bore: it answers somebody else's, or is old.
    pub fn echo_is_foreign(&self, common: &Common, header: &Header, now: Instant) -> bool {
        let Some((_, echo)) = header.options.timestamps.filter(|_| common.config().timestamps) else {
            return false;
        };
        let (first, last) = (common.timestamp(self.progress_at), common.timestamp(now));
        echo != 0 && echo.wrapping_sub(first) > last.wrapping_sub(first)
    }
    /// Whether, in a simultaneous open, the FIN is sent although our SYN is not acknowledged: no data is queued before it
    /// (RFC 9293 §3.10.4).
    pub fn ends_before_open(&self, common: &Common) -> bool {
        self.may_end_before_open(common)
            && self.space.next() == Offset::SYN + 1
            && !self.is_window_shut(common)
    }
    /// Whether that FIN was sent.
    pub fn ended_before_open(&self, common: &Common) -> bool {
        self.may_end_before_open(common) && self.space.next() == Offset::SYN + 2
    }
    fn may_end_before_open(&self, common: &Common) -> bool {
        let closed =
            common.has(ConnectionFlags::ACTIVE_OPEN) && common.has(ConnectionFlags::CLOSE_AFTER_OPEN);
        common.state() == TcpState::SynReceived && closed && self.queued_bytes() == 0
    }
    /// What goes with our first SYN, while that was not sent.
    fn first_syn(&self) -> Option<&FastOpen> {
        self.buffers.as_deref()?.fast_open.as_deref().filter(|_| self.space.next() == Offset::SYN)
    }
    /// Whether this is the SYN and ACK of a peer that called while we called (RFC 9293 §3.5, figure 8).
    pub fn answers_simultaneous_open(&self, common: &Common, arrival: &Arrival<'_>) -> bool {
        let kind = arrival.header.flags & (Flags::SYN | Flags::ACK | Flags::RST | Flags::FIN);
        common.state() == TcpState::SynReceived
            && common.has(ConnectionFlags::ACTIVE_OPEN)
            && kind == Flags::SYN | Flags::ACK
            && arrival.first == Offset::SYN
            && self.space.unacknowledged() < arrival.acknowledgment
            && arrival.acknowledgment <= self.space.next()
    }
    /// The round trip of the handshake, unless the SYN was repeated.
    // spec: RFC7323 3.2-3
    pub fn measure_syn(&mut self, common: &mut Common, arrival: &Arrival<'_>, now: Instant) {
        // After a repeated SYN the sample is ambiguous (Karn); only a profile that takes a sample from each acknowledgment
        // relies on the timestamp then.
        if common.has(ConnectionFlags::SYN_REPEATED) && !common.policy().rtt_sample_for_each_ack {
            return;
        }
        let measured = common.has(ConnectionFlags::SYN_TIMED).then(|| now.since(self.sent_at));
        let echoed = common
            .echo_of(arrival.header.options.timestamps)
            .and_then(|echo| self.echoed_round_trip(common, echo, now));
        common.measured(1, 0, measured, echoed);
    }
    /// The peer's SYN-ACK: how much of the data in our SYN it acknowledges, and the cookie for later. Data not
    /// acknowledged counts as not sent.
    pub fn syn_answered(&mut self, common: &mut Common, arrival: &Arrival<'_>, pool: &mut Pool) {
        let Some(buffers) = &mut self.buffers else { return };
        let Some(open) = &mut buffers.fast_open else { return };
        let (options, acknowledgment) = (&arrival.header.options, arrival.acknowledgment);
        open.learned = options
            .fast_open
            .filter(|cookie| !cookie.is_empty() && open.option.is_some())
            .map(|cookie| (cookie, options.fast_open_experimental));
        if open.sent == 0 {
            return;
        }
        let taken = acknowledgment.since(Offset::SYN + 1).min(open.sent);
        let is_all = taken == open.sent;
        common.set(ConnectionFlags::SYN_DATA, is_all);
        common.set_fast_open(if is_all {
            FastOpenState::DataAcknowledged
        } else {
            FastOpenState::DataRefused
        });
        let (sent_at, end) = (self.sent_at, Offset::SYN + 1 + open.sent);
        buffers.send.discard(taken as usize, pool);
        if acknowledgment < end {
            // It was sent, and is to be retransmitted.
            buffers.flight.sent(acknowledgment, end, 0, sent_at);
            buffers.flight.mark_lost_where(|_| true);
            buffers.add_boundary(end, WriteBoundary::Push, acknowledgment);
        }
    }
    /// Takes over what the peer's SYN says.
    // spec: RFC7323 2.3-4
    pub fn learn_from_syn(&mut self, common: &Common, syn: &Header) {
        let scale = syn.options.window_scale.filter(|_| common.has(ConnectionFlags::SCALING));
        self.scale = scale.unwrap_or(0).min(MAX_SCALE);
        self.space.begin_window(u32::from(syn.window));
        self.congestion.set_segment_bytes(self.effective_mss(common));
    }
    /// The window of the segment that acknowledges our SYN, in SYN-RECEIVED.
    pub fn take_first_window(&mut self, arrival: &Arrival<'_>) {
        let window = self.scaled(arrival.header.window);
        self.space.set_window(arrival.first, arrival.acknowledgment, window);
    }
    /// Our SYN is acknowledged, and what went with it.
    pub fn syn_acknowledged(&mut self, to: Offset, tells_window: bool) {
        if tells_window { self.space.acknowledge_syn(to) } else { self.space.acknowledge(to) }
    }
    /// The peer is waited for from now on.
    pub fn waits_from(&mut self, now: Instant) {
        self.progress_at = now;
    }
    /// The SYN-ACK was sent before, as a SYN cookie.
    pub fn syn_was_answered(&mut self, common: &Common, now: Instant) {
        self.space.sent_to(Offset::SYN + 1);
        self.progress_at = now;
        self.arm_timer(common, now);
    }
    /// What was said of opening fast, once.
    pub fn take_fast_open(&mut self) -> Option<Box<FastOpen>> {
        self.buffers.as_mut()?.fast_open.take()
    }
    /// Opens before the peer has acknowledged our SYN, because the data of its SYN was taken.
    pub fn open_early(&mut self, common: &Common) {
        self.fast_open_box().accepted = true;
        let segment_bytes = self.effective_mss(common);
        self.congestion.open(common.config().initial_window_segments, segment_bytes);
    }
    /// Both called at once: what of our data the peer takes with our SYN it acknowledges with that. Data that is not sent yet
    /// waits for the handshake.
    pub fn called_at_once(&mut self) {
        if self.buffers.as_ref().and_then(|b| b.fast_open.as_ref()).is_some_and(|open| open.sent == 0) {
            self.take_fast_open();
        }
    }
    /// Data may be sent for the first time.
    // spec: RFC6928 2-3
    pub fn open(&mut self, common: &mut Common) {
        self.recovery = Recovery::new(self.space.unacknowledged());
        // RFC 6928 §2: one retransmission of the SYN may be spurious; more of them reduce the initial window.
        let repeated = self.history().retransmitted_segments;
        let segments = if repeated > 1 { 1 } else { common.config().initial_window_segments };
        self.congestion.open(segments, self.effective_mss(common));
        if common.has(ConnectionFlags::SYN_REPEATED) {
            common.round_trip_mut().after_lost_syn();
        }
        self.begin_search(common);
        self.timer.stop();
    }
    /// Both SYNs are acknowledged. What the application has closed before closes now.
    pub fn established(&mut self, common: &mut Common, env: &mut Environment<'_>) {
        common.set(ConnectionFlags::EARLY_DATA, false);
        if !common.has(ConnectionFlags::ACTIVE_OPEN) {
            self.take_fast_open();
        }
        self.progress_at = env.now();
        if common.has(ConnectionFlags::CLOSE_AFTER_OPEN) {
            common.set(ConnectionFlags::CLOSE_AFTER_OPEN, false);
            common.enter(TcpState::FinWait1, env);
            if common.has(ConnectionFlags::RECEIVE_CLOSED) {
                self.orphaned(common, env.now());
            }
        }
    }
    /// The retransmission timer runs for what is outstanding, from now on.
    pub fn restart_timer(&mut self, common: &Common, now: Instant) {
        match self.space.has_outstanding() {
            true => self.arm_timer(common, now),
            false => self.timer.stop(),
        }
    }
    /// The SYN is sent again at `at`.
    pub fn retry_syn_at(&mut self, at: Instant) {
        self.timer.set(at);
    }
    /// The path takes larger segments.
    pub fn path_grew(&mut self, common: &Common) {
        self.congestion.resize(self.effective_mss(common));
    }
}
