//! The three-way handshake, from either side and from both (RFC 9293 §3.5).

use crate::common::Common;
use crate::ledger::Accounts;
use crate::marks::Marks;
use crate::outcome::{Changes, Outcome, ResetReply};
use crate::phase::Allows;
use crate::receive::Arrival;
use crate::receive::reset::CHALLENGED_AS_CONNECTION;
use crate::receiver::Receiver;
use crate::recovery::Recovery;
use crate::search::IPV6_LEAST_MSS;
use crate::sender::Sender;
use crate::window::scale_for;
use crate::{Config, Connection, ConnectionError, EcnMode, Environment, FastOpenState, Header, Open};
use inhost_base::{Instant, Sequence};
use inhost_event::{Drop, TcpPhase};
use inhost_wire::tcp::{Flags, TcpOptions};
use std::sync::Arc;

/// Largest shift of a window (RFC 7323 §2.3).
const MAX_SCALE: u8 = 14;
/// Bytes that the timestamps option takes in every segment, padding included.
pub(crate) const TIMESTAMPS_BYTES: u16 = 12;
/// Least payload of a segment that we send, whatever the peer or the path says: RFC 791's least MTU less headers.
const LEAST_MSS: u16 = 28;
/// A window up to this is not halved (Linux's TCP_MSS_DEFAULT).
const SMALL_WINDOW_BYTES: u32 = 536;
/// Least payload and options that a halved window leaves: IPv4's least MTU of 68 less 20 bytes of header.
const LEAST_HALVED_BYTES: u16 = 48;

impl Connection {
    /// An active open: the SYN leaves with the next [`Connection::transmit`].
    #[inline]
    pub fn connect(config: &Arc<Config>, open: Open, env: &mut Environment<'_>) -> Connection {
        let mut connection = Connection::new(config, open, TcpPhase::SynSent, env.now);
        connection.common.marks.set(Marks::ACTIVE);
        connection.common.marks.set(Marks::SYNCHRONISE);
        connection.settle(env);
        connection
    }
    /// A passive open, from a SYN that the stack found acceptable. The SYN and ACK leaves with the next
    /// [`Connection::transmit`], or when `hold` with the first after [`Connection::release`]. Data in the SYN is not
    /// taken; it comes again.
    #[inline]
    pub fn accept(
        config: &Arc<Config>,
        open: Open,
        syn: &Header,
        hold: bool,
        env: &mut Environment<'_>,
    ) -> Connection {
        let mut connection = Connection::new(config, open, TcpPhase::SynReceived, env.now);
        connection.common.marks.set(Marks::SYNCHRONISE);
        connection.common.marks.put(Marks::HELD, hold);
        connection.learn_from_syn(syn, env.now);
        connection.settle(env);
        connection
    }
    /// Lets a held SYN and ACK go.
    pub fn release(&mut self, env: &mut Environment<'_>) {
        self.common.marks.clear(Marks::HELD);
        self.sender.progress_at = env.now;
        self.settle(env);
    }
    /// Whether the SYN and ACK waits for [`Connection::release`].
    pub fn is_held(&self) -> bool {
        self.common.marks.has(Marks::HELD)
    }

    #[inline]
    fn new(config: &Arc<Config>, open: Open, phase: TcpPhase, now: Instant) -> Connection {
        let initial = open.initial_sequence;
        let path_mss = open.path_mtu_mss.min(config.mss_limit_bytes).max(LEAST_MSS);
        let mut connection = Connection {
            common: Common {
                config: Arc::clone(config),
                phase,
                marks: Marks::default(),
                // spec: RFC9293 MUST-15 (536 or 1220 when the peer names none)
                peer_mss: open.default_mss,
                path_mss,
                offered_mss: path_mss,
                timestamp_offset: open.timestamp_offset,
            },
            sender: Sender::new(config, initial, now),
            receiver: Receiver::new(config, now),
            accounts: Accounts::new(now),
            linger_at: Instant::FAR_FUTURE,
            challenged_at: 0,
            challenges: 0,
            error: None,
            soft_error: None,
            fast_open: FastOpenState::None,
        };
        connection.common.marks.put(Marks::IPV6, open.default_mss >= IPV6_LEAST_MSS);
        connection.sender.congestion.window.segment_bytes = u32::from(path_mss);
        connection.sender.congestion.set_spaced(connection.common.config.pacing);
        connection.sender.least_echo = connection.common.timestamp(now);
        connection
    }
    /// The options of our SYN. In answer to a SYN only what that offered is offered (RFC 7323 §2.2, §3.2).
    // spec: RFC7323 2.2-1, 2.3-1, 3.2-1; RFC2018 2-1; RFC9293 SHLD-5, MAY-3
    pub(crate) fn syn_options(&self, now: Instant) -> TcpOptions {
        let crossed = self.common.marks.has(Marks::ACTIVE) && self.common.config.policy.answers_crossing_syn;
        let answering = self.common.phase == TcpPhase::SynReceived && !crossed;
        let timestamps =
            if answering { self.common.marks.has(Marks::TIMESTAMPS) } else { self.common.config.timestamps };
        let (fast_open, fast_open_experimental) = self.fast_open_option();
        let scaling =
            if answering { self.common.marks.has(Marks::SCALING) } else { self.common.config.window_scaling };
        TcpOptions {
            // spec: RFC9293 MUST-14 (the option is sent)
            // spec: RFC9293 MUST-65 (on SYNs only)
            // spec: RFC9293 MUST-67 (what IP can take in, less the 20 bytes of our header)
            mss: Some(self.common.path_mss),
            window_scale: scaling
                .then(|| if crossed { scale_for(&self.common.config) } else { self.receiver.scale }),
            // RFC 2018 §2
            sack_permitted: if answering {
                self.common.marks.has(Marks::SACK)
            } else {
                self.common.config.sack
            },
            timestamps: timestamps.then(|| (self.common.timestamp(now), self.receiver.timestamp_recent)),
            fast_open,
            fast_open_experimental,
            ..TcpOptions::NONE
        }
    }
    /// Whether an answer to our SYN echoes a timestamp that no SYN of ours bore: it answers somebody else's, or is old.
    fn echo_is_foreign(&self, header: &Header, now: Instant) -> bool {
        let Some((_, echo)) = header.options.timestamps.filter(|_| self.common.config.timestamps) else {
            return false;
        };
        let (first, last) = (self.common.timestamp(self.sender.progress_at), self.common.timestamp(now));
        echo != 0 && echo.wrapping_sub(first) > last.wrapping_sub(first)
    }
    /// Takes over what the peer's SYN says.
    // spec: RFC7323 2.2-2, 2.3-4, 2.2-3
    fn learn_from_syn(&mut self, syn: &Header, now: Instant) {
        self.receiver.space.initial = syn.sequence;
        self.receiver.space.next = syn.sequence + 1;
        self.receiver.space.edge = self.receiver.space.next;
        self.receiver.space.acknowledged = syn.sequence;
        self.receiver.space.urgent = self.receiver.space.next;
        // spec: RFC9293 MUST-14 (the option is taken in)
        if let Some(mss) = syn.options.mss {
            self.common.peer_mss = mss;
        }
        match syn.options.window_scale {
            Some(scale) if self.common.config.window_scaling => {
                self.sender.scale = scale.min(MAX_SCALE);
                self.common.marks.set(Marks::SCALING);
            }
            _ => self.receiver.scale = 0,
        }
        self.common.marks.put(Marks::SACK, syn.options.sack_permitted && self.common.config.sack);
        self.learn_ecn(syn);
        if let Some((value, _)) = syn.options.timestamps
            && self.common.config.timestamps
        {
            self.common.marks.set(Marks::TIMESTAMPS);
            self.receiver.timestamp_recent = value;
            self.receiver.timestamp_second = now.as_nanos().div_euclid(1_000_000_000) as u32;
        }
        self.sender.space.window = u32::from(syn.window);
        self.sender.space.largest_window = self.sender.space.window;
        self.sender.space.window_sequence = syn.sequence;
        // The window counts from the first byte, whether or not this SYN acknowledges ours.
        self.sender.space.window_acknowledgment = self.sender.space.unacknowledged + 1;
        self.sender.congestion.window.segment_bytes = self.effective_mss();
    }
    /// Whether both sides take part in explicit congestion notification (RFC 3168 §6.1.1).
    // spec: RFC9293 SHLD-8
    fn learn_ecn(&mut self, syn: &Header) {
        let (ece, cwr) = (syn.flags.ece(), syn.flags.cwr());
        let agreed = if syn.flags.ack() {
            // An answer with both bits set is an echo of what was sent, not an agreement. And one that agrees may
            // answer the first SYN, though the latest did not ask any more.
            self.common.config.ecn == EcnMode::Request && ece && !cwr
        } else {
            let asked = !self.common.marks.has(Marks::ACTIVE)
                || !self.common.config.policy.answers_crossing_syn
                || (self.common.config.ecn == EcnMode::Request && self.sender.round_trip.backoff == 0);
            self.common.config.ecn != EcnMode::Off && ece && cwr && asked
        };
        self.common.marks.put(Marks::ECN, agreed);
    }
    /// Whether our SYN asks for it. One that had to be repeated does not: something on the path may drop those that
    /// do (RFC 3168 §6.1.1.1).
    fn asks_for_ecn(&self) -> bool {
        self.common.config.ecn == EcnMode::Request && self.sender.space.next == self.syn_sequence()
    }
    /// The congestion bits of our SYN, or SYN and ACK.
    pub(crate) fn syn_ecn_flags(&self) -> Flags {
        match self.common.phase {
            TcpPhase::SynSent if self.asks_for_ecn() => Flags::ECE | Flags::CWR,
            TcpPhase::SynReceived if self.common.marks.has(Marks::ECN) => Flags::ECE,
            _ => Flags::NONE,
        }
    }
    /// What a segment of ours can carry (RFC 9293 §3.7.1).
    // spec: RFC9293 MUST-16 (the least of what peer and path allow, less the options)
    // spec: RFC4821 7.1-1, 8-1
    pub(crate) fn effective_mss(&self) -> u32 {
        let most = self.common.peer_mss.min(self.common.path_mss).min(self.searched_mss()).max(LEAST_MSS);
        let options = if self.common.marks.has(Marks::TIMESTAMPS) { TIMESTAMPS_BYTES } else { 0 };
        let size = u32::from(most.saturating_sub(options).max(LEAST_MSS - TIMESTAMPS_BYTES));
        if self.common.config.policy.mss_at_most_half_window {
            self.halved_by_window(size, options)
        } else {
            size
        }
    }
    /// Both SYNs are acknowledged: ESTABLISHED, or past it when the application has closed already.
    // spec: RFC5681 3.1-3, 3.1-4; RFC6928 2-2
    pub(crate) fn establish(&mut self, env: &mut Environment<'_>, outcome: &mut Outcome) {
        self.enter(TcpPhase::Established, env);
        self.common.marks.clear(Marks::SYNCHRONISE);
        if !self.common.marks.has(Marks::ACTIVE)
            && let Some(buffers) = &mut self.sender.buffers
        {
            buffers.fast_open = None;
        }
        self.sender.space.push = self.sender.space.push.later(self.sender.space.unacknowledged);
        self.sender.space.urgent = self.sender.space.urgent.later(self.sender.space.unacknowledged);
        self.sender.recovery = Recovery::new(self.sender.space.unacknowledged);
        if self.common.config.policy.mss_at_most_half_window && !self.common.marks.has(Marks::ACTIVE) {
            // What the SYN said does not count there.
            self.sender.space.largest_window = self.sender.space.window;
        }
        // spec: RFC6928 2-3
        // RFC 6928 §2: one SYN sent again may be a mistake of the timer; more of them cost the window.
        let repeated = self.sender.history.as_ref().map_or(0, |history| history.retransmitted_segments);
        let segments = if repeated > 1 { 1 } else { self.common.config.initial_window_segments };
        self.sender.congestion.open(segments, self.effective_mss());
        if self.common.marks.has(Marks::SYN_REPEATED) {
            self.sender.round_trip.after_lost_syn();
            if self.common.marks.has(Marks::ACTIVE) && self.common.config.policy.retransmitted_syn_sets_cwr {
                self.tell_of_reduction();
            }
        }
        self.begin_search();
        self.sender.retransmit_at = Instant::FAR_FUTURE;
        self.sender.progress_at = env.now;
        self.receiver.receive_mss = self.receiver.receive_mss.min(self.common.path_mss);
        if self.common.config.policy.challenge_interval.is_some() && !self.common.marks.has(Marks::ACTIVE) {
            // What its handshake was answered is no business of the connection.
            self.challenges = u8::from(self.challenges == CHALLENGED_AS_CONNECTION);
        }
        if self.acks_adapt() {
            // A peer that takes little is thought to send little.
            let own = self.segment_bytes().min(u32::from(self.receiver.receive_mss)) as u16;
            self.receiver.receive_mss = own.max(LEAST_HALVED_BYTES);
        }
        outcome.changes |= Changes::CONNECTED | Changes::WRITABLE | Changes::REACHED;
        if self.common.marks.has(Marks::CLOSE_AFTER_OPEN) {
            self.common.marks.clear(Marks::CLOSE_AFTER_OPEN);
            self.enter(TcpPhase::FinWait1, env);
            if self.common.marks.has(Marks::RECEIVE_CLOSED) {
                self.orphaned(env.now);
            } else if self.common.config.policy.answers_crossing_syn {
                self.common.marks.set(Marks::APART);
            }
        }
    }

    /// `size` bounded by half of the largest window that the peer has offered, or by a small one whole, as by Linux's
    /// tcp_bound_to_half_wnd.
    fn halved_by_window(&self, size: u32, options: u16) -> u32 {
        let most = self.window_bound();
        if self.common.phase.opens() || most == 0 || size <= most {
            return size;
        }
        most.max(u32::from(LEAST_HALVED_BYTES - options))
    }
    /// Half of the largest window that the peer has offered, or a small one whole.
    pub(crate) fn window_bound(&self) -> u32 {
        let window = self.sender.space.largest_window;
        if window > SMALL_WINDOW_BYTES { window / 2 } else { window }
    }
    /// The peer offers more than ever: segments that were bounded by half of its window grow, and the congestion window
    /// has room for as many as before.
    #[cold]
    pub(crate) fn resize_to_window(&mut self) {
        let (before, after) = (self.segment_bytes().max(1), self.effective_mss());
        if before != after {
            let window = &mut self.sender.congestion.window;
            window.window_bytes =
                (u64::from(window.window_bytes) * u64::from(after) / u64::from(before)) as u32;
            self.sender.congestion.resize(after);
        }
    }

    /// A segment in SYN-SENT (RFC 9293 §3.10.7.3).
    // spec: RFC5961 3.2-4
    pub(crate) fn arrive_in_syn_sent(
        &mut self,
        arrival: &mut Arrival<'_>,
        env: &mut Environment<'_>,
        outcome: &mut Outcome,
    ) {
        let header = arrival.header;
        let flags = header.flags;
        let acknowledges = flags.ack()
            && self.sender.space.unacknowledged.precedes(header.acknowledgment)
            && header.acknowledgment.at_or_before(self.sender.space.next);
        if flags.ack() && !acknowledges {
            outcome.dropped = Some(Drop::OutOfWindow);
            if !flags.rst() {
                outcome.reset = Some(ResetReply { sequence: header.acknowledgment, ..ResetReply::default() });
            }
            if let Some(retry) = self.common.config.policy.bad_syn_ack_retry
                && self.sender.round_trip.backoff == 0
            {
                self.sender.retransmit_at = env.now + retry;
            }
            return;
        }
        if flags.rst() {
            if acknowledges {
                self.finish(Some(ConnectionError::Refused), env, outcome);
            } else {
                outcome.dropped = Some(Drop::OutOfWindow);
            }
            return;
        }
        if !flags.syn() {
            outcome.dropped = Some(Drop::OutOfWindow);
            return;
        }
        if acknowledges && self.echo_is_foreign(header, env.now) {
            outcome.dropped = Some(Drop::OldTimestamp);
            outcome.reset = ResetReply::to(header, 0);
            return;
        }
        self.learn_from_syn(header, env.now);
        arrival.start = header.sequence + 1;
        if !acknowledges {
            // Both called at once.
            // spec: RFC9293 MUST-10 (simultaneous open)
            // spec: RFC9293 MUST-11 (that we called is remembered)
            self.syn_crossed();
            self.enter(TcpPhase::SynReceived, env);
            self.common.marks.set(Marks::SYNCHRONISE);
            return;
        }
        self.syn_answered(header, env);
        self.sender.space.unacknowledged = header.acknowledgment;
        self.sender.space.window_acknowledgment = header.acknowledgment;
        self.measure_syn(header, env.now);
        self.establish(env, outcome);
        // RFC 9293 §3.10.7.3: controls and text in the same segment are for the steps that follow.
        self.receiver.space.edge = self.receiver.space.next + self.window_space();
        self.acknowledge_handshake(env.now);
        self.take_urgent(arrival, outcome);
        let is_fast_open =
            matches!(self.fast_open, FastOpenState::Requested | FastOpenState::DataAcknowledged);
        if !self.common.config.policy.syn_ack_data_is_dropped || is_fast_open {
            self.take_data(arrival, env, outcome);
        }
    }
}

/// Whether this is the peer's SYN again.
pub(crate) fn is_repeated_syn(header: &Header, initial: Sequence) -> bool {
    header.flags & (Flags::SYN | Flags::ACK | Flags::RST) == Flags::SYN && header.sequence == initial
}
