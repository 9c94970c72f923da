//! What both halves of a connection share: its configuration, its state, what was agreed, and how it ends.

use crate::flags::ConnectionFlags;
use crate::round_trip::RoundTrip;
use crate::{
    Config, ConnectionError, EcnMode, Environment, FastOpenState, Header, Open, Policy, SoftError,
    StreamError,
};
use alloc::sync::Arc;
use inhost_base::{Deadline, Duration, Instant};
use inhost_event::{Event, Mask, StateChanged, TcpState};

/// Bytes that the timestamps option takes in every segment, padding included.
pub(crate) const TIMESTAMPS_BYTES: u16 = 12;

/// Largest shift of a window (RFC 7323 §2.3).
pub(crate) const MAX_SCALE: u8 = 14;

/// What every path of IPv6's takes (RFC 8200 §5): 1280 bytes less headers. No search for the path MTU goes below it there.
pub(crate) const IPV6_LEAST_MSS: u16 = 1220;

/// What the sender and the receiver have in common.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Common {
    // Many connections share one: the stack writes each once, and gives it back.
    #[cfg_attr(feature = "freeze", serde(skip))]
    config: Arc<Config>,
    state: TcpState,
    flags: ConnectionFlags,
    /// Largest payload that the peer said it takes.
    peer_mss: u16,
    /// Largest payload that the path allows, options not counted.
    path_mss: u16,
    /// The same when the connection began: what the peer was offered.
    offered_mss: u16,
    /// Added to the host's time to make our timestamps (RFC 7323 §5.4).
    timestamp_offset: u32,
    round_trip: RoundTrip,
    /// How the connection opened, as far as data came with the SYNs.
    fast_open: FastOpenState,
    /// End of TIME-WAIT, of FIN-WAIT-2 without a socket, or of the wait for a peer that takes nothing of an orphan.
    linger_at: Deadline,
    /// Since when challenge acknowledgments are counted, in milliseconds of the host's time.
    challenged_at: u32,
    challenges: u8,
    error: Option<ConnectionError>,
    soft_error: Option<SoftError>,
}

impl Common {
    /// Of a connection that is born in `state`, on a path that takes segments of `path_mss`.
    pub fn new(config: &Arc<Config>, state: TcpState, open: &Open, path_mss: u16) -> Self {
        let mut flags = ConnectionFlags::default();
        flags.set(ConnectionFlags::IPV6, open.default_mss >= IPV6_LEAST_MSS);
        flags.set(ConnectionFlags::SYN_DUE, !open.syn_was_sent);
        flags.set(ConnectionFlags::SYN_HELD, open.hold_syn);
        Common {
            config: Arc::clone(config),
            state,
            flags,
            // spec: RFC9293 MUST-15 (536 or 1220 when the peer names none)
            peer_mss: open.default_mss,
            path_mss,
            offered_mss: path_mss,
            timestamp_offset: open.timestamp_offset,
            round_trip: RoundTrip::default(),
            fast_open: FastOpenState::None,
            linger_at: Deadline::NEVER,
            challenged_at: 0,
            challenges: 0,
            error: None,
            soft_error: None,
        }
    }
    /// Checks a thawed one, and gives it its configuration.
    #[cfg(feature = "freeze")]
    pub fn thaw(&mut self, config: Arc<Config>) -> Result<(), inhost_base::freeze::Invalid> {
        self.config = config;
        self.round_trip.check()
    }
    /// The configuration, shared or of its own.
    pub fn config(&self) -> &Arc<Config> {
        &self.config
    }
    /// Its choices where RFCs leave one.
    pub fn policy(&self) -> &Policy {
        &self.config.policy
    }
    /// The configuration, to be changed for this connection alone: it is shared until the first change.
    pub fn config_mut(&mut self) -> &mut Config {
        Arc::make_mut(&mut self.config)
    }
    /// Our timestamp at `now`: milliseconds from an offset.
    // spec: RFC7323 4.1-1, 5.4-1, 5.4-2, 7.1-1
    pub fn timestamp(&self, now: Instant) -> u32 {
        (now.as_millis() as u32).wrapping_add(self.timestamp_offset)
    }

    /// The state of RFC 9293 §3.3.2.
    pub fn state(&self) -> TcpState {
        self.state
    }
    /// Whether all of `flags` are set.
    pub fn has(&self, flags: ConnectionFlags) -> bool {
        self.flags.contains(flags)
    }
    pub fn set(&mut self, flags: ConnectionFlags, on: bool) {
        self.flags.set(flags, on);
    }
    /// How the connection opened, as far as data came with the SYNs.
    pub fn fast_open(&self) -> FastOpenState {
        self.fast_open
    }
    pub fn set_fast_open(&mut self, state: FastOpenState) {
        self.fast_open = state;
    }
    /// End of TIME-WAIT, of FIN-WAIT-2 without a socket, or of the wait for a peer that takes nothing of an orphan.
    pub fn linger_at(&self) -> Deadline {
        self.linger_at
    }
    pub fn linger_until(&mut self, at: Instant) {
        self.linger_at.set(at);
    }
    /// Why the connection ended, when it did not end by both sides closing.
    pub fn error(&self) -> Option<ConnectionError> {
        self.error
    }
    /// The latest trouble that did not end the connection.
    pub fn soft_error(&self) -> Option<SoftError> {
        self.soft_error
    }
    pub fn set_soft_error(&mut self, error: Option<SoftError>) {
        self.soft_error = error;
    }
    /// The connection is over.
    pub fn end(&mut self, error: Option<ConnectionError>, env: &mut Environment<'_>) {
        self.linger_at.stop();
        self.flags.remove(ConnectionFlags::SYN_DUE);
        self.enter(TcpState::Closed, env);
        self.error = error;
    }

    // The path's round trip, as the sender measures it.

    pub fn round_trip(&self) -> &RoundTrip {
        &self.round_trip
    }
    /// `bytes` more are acknowledged, and `outstanding_bytes` are out: [`RoundTrip::acknowledged`].
    pub fn measured(
        &mut self,
        bytes: u32,
        outstanding_bytes: u32,
        measured: Option<Duration>,
        echoed: Option<Duration>,
    ) {
        self.round_trip.acknowledged(bytes, outstanding_bytes, measured, echoed, &self.config);
    }
    pub fn round_trip_mut(&mut self) -> &mut RoundTrip {
        &mut self.round_trip
    }
    /// The time-out before doubling.
    pub fn base_timeout(&self) -> Duration {
        self.round_trip.base_timeout(&self.config)
    }
    /// The time-out as it stands, with its back-off.
    pub fn timeout(&self) -> Duration {
        self.round_trip.timeout(&self.config)
    }

    /// Moves to `state` and says so.
    pub fn enter(&mut self, state: TcpState, env: &mut Environment<'_>) {
        let from = core::mem::replace(&mut self.state, state);
        let socket = env.socket();
        env.emit(Mask::CONNECTION, || Event::StateChanged(StateChanged { socket, from, to: state }));
    }

    /// Our FIN is acknowledged, and the peer may send on; for a time only, where nobody reads it.
    pub fn enter_fin_wait_2(&mut self, env: &mut Environment<'_>) {
        self.enter(TcpState::FinWait2, env);
        if self.flags.contains(ConnectionFlags::RECEIVE_CLOSED) {
            self.linger_at.set(env.now() + self.config.fin_wait_2);
        }
    }

    // What each state of RFC 9293 §3.3.2 allows.

    /// The handshake is not done.
    pub fn opens(&self) -> bool {
        matches!(self.state, TcpState::SynSent | TcpState::SynReceived)
    }
    /// The peer's data and FIN are still expected.
    pub fn expects_data(&self) -> bool {
        matches!(self.state, TcpState::Established | TcpState::FinWait1 | TcpState::FinWait2)
    }
    /// The application may add to the stream.
    pub fn may_send(&self) -> bool {
        matches!(
            self.state,
            TcpState::SynSent | TcpState::SynReceived | TcpState::Established | TcpState::CloseWait
        )
    }
    /// Our FIN is queued or sent, and not acknowledged.
    pub fn has_fin_outstanding(&self) -> bool {
        matches!(self.state, TcpState::FinWait1 | TcpState::Closing | TcpState::LastAck)
    }
    /// Our FIN is acknowledged.
    pub fn has_fin_acknowledged(&self) -> bool {
        matches!(self.state, TcpState::FinWait2 | TcpState::TimeWait | TcpState::Closed)
    }
    /// The peer's FIN has come, with all before it.
    pub fn peer_has_closed(&self) -> bool {
        matches!(self.state, TcpState::CloseWait | TcpState::Closing | TcpState::LastAck | TcpState::TimeWait)
    }

    /// Whether segments are spaced, by the round trip or by a limit.
    pub fn is_paced(&self) -> bool {
        self.config.pacing || self.config.max_pacing_rate_bytes_per_second.is_some()
    }

    /// Whether acknowledgments follow the peer's pace.
    pub fn acks_adapt(&self) -> bool {
        self.config.policy.adaptive_delayed_acks
    }

    /// Largest payload that the peer said it takes.
    pub fn peer_mss(&self) -> u16 {
        self.peer_mss
    }
    /// Largest payload that the path allows, options not counted.
    pub fn path_mss(&self) -> u16 {
        self.path_mss
    }
    pub fn set_path_mss(&mut self, bytes: u16) {
        self.path_mss = bytes;
    }
    /// Largest payload that we said we take.
    pub fn offered_mss(&self) -> u16 {
        self.offered_mss.min(self.config.mss_limit_bytes)
    }
    /// Largest payload that both the peer and the path allow, options included.
    pub fn largest_mss(&self) -> u16 {
        self.peer_mss.min(self.path_mss)
    }
    /// Bytes of the options of a segment without SACK blocks.
    pub fn options_bytes(&self) -> u16 {
        if self.flags.contains(ConnectionFlags::TIMESTAMPS) { TIMESTAMPS_BYTES } else { 0 }
    }
    /// The timestamp that came back, where they were agreed on.
    pub fn echo_of(&self, timestamps: Option<(u32, u32)>) -> Option<u32> {
        timestamps.filter(|_| self.flags.contains(ConnectionFlags::TIMESTAMPS)).map(|(_, echo)| echo)
    }
    /// The latest instant at which the segment can have left whose timestamp came back.
    pub fn echo_left_by(&self, echo: u32, now: Instant) -> Option<Instant> {
        let elapsed_ms = self.timestamp(now).wrapping_sub(echo);
        let at_ms = now.as_millis().checked_sub(u64::from(elapsed_ms))?;
        // Anything within that millisecond.
        Some(Instant::from_nanos((at_ms + 1) * 1_000_000 - 1))
    }

    /// R2, as time (RFC 9293 §3.8.3).
    // spec: RFC9293 MUST-21 (the application sets it)
    // spec: RFC9293 MUST-22 (SYNs are treated alike), SHLD-11
    pub fn user_timeout(&self) -> Duration {
        let user = self.config.user_timeout;
        if self.opens() { self.config.connect_timeout.min(user) } else { user }
    }
    /// What is agreed on with this SYN of the peer's.
    // spec: RFC7323 2.2-2
    pub fn learn_from_syn(&mut self, syn: &Header) {
        // spec: RFC9293 MUST-14 (the option is taken in)
        self.peer_mss = syn.options.mss.unwrap_or(self.peer_mss);
        let scales = syn.options.window_scale.is_some() && self.config.window_scaling;
        self.flags.set(ConnectionFlags::SCALING, scales);
        self.flags.set(ConnectionFlags::SACK, syn.options.sack_permitted && self.config.sack);
        let stamps = syn.options.timestamps.is_some() && self.config.timestamps;
        self.flags.set(ConnectionFlags::TIMESTAMPS, stamps);
        self.learn_ecn(syn);
    }
    /// Whether both sides take part in explicit congestion notification (RFC 3168 §6.1.1).
    // spec: RFC9293 SHLD-8
    fn learn_ecn(&mut self, syn: &Header) {
        let (ece, cwr) = (syn.flags.ece(), syn.flags.cwr());
        let agreed = if syn.flags.ack() {
            // A SYN-ACK with both bits set echoes our flags and is not an agreement. One that agrees may answer the first
            // SYN, although the latest did not request ECN any more.
            self.config.ecn == EcnMode::Request && ece && !cwr
        } else {
            self.config.ecn != EcnMode::Off && ece && cwr
        };
        self.flags.set(ConnectionFlags::ECN, agreed);
    }
    /// Whether the application may write although the handshake is not done.
    pub fn is_early(&self) -> bool {
        self.state == TcpState::SynReceived && self.fast_open == FastOpenState::Accepted
    }
    /// Whether a SYN of the peer's began it, and it is not done.
    pub fn is_handshake_of_a_listener(&self) -> bool {
        self.state == TcpState::SynReceived
            && !self.flags.contains(ConnectionFlags::ACTIVE_OPEN)
            && !self.is_early()
    }
    /// Why the connection ends by a reset of the peer's.
    pub fn reset_error(&self) -> Option<ConnectionError> {
        match self.state {
            TcpState::SynReceived if self.flags.contains(ConnectionFlags::ACTIVE_OPEN) => {
                Some(ConnectionError::Refused)
            }
            // All that was to be said was said (RFC 9293 §3.10.7.4, second step).
            TcpState::Closing | TcpState::LastAck => None,
            _ => Some(ConnectionError::Reset),
        }
    }
    /// Why the connection ends after `timed_out`: that, or the ICMP error before it where the policy says so.
    pub fn timed_out(&self, timed_out: ConnectionError) -> ConnectionError {
        match self.soft_error.filter(|_| self.config.policy.soft_errors_name_timeouts) {
            Some(SoftError::Unreachable | SoftError::Prohibited | SoftError::TimeExceeded) => {
                ConnectionError::Unreachable
            }
            Some(SoftError::NetworkUnreachable) => ConnectionError::NetworkUnreachable,
            Some(SoftError::ProtocolUnreachable) => ConnectionError::ProtocolUnreachable,
            Some(SoftError::Refused) => ConnectionError::Refused,
            Some(SoftError::ParameterProblem) => ConnectionError::ParameterProblem,
            Some(SoftError::NotResponding) | None => timed_out,
        }
    }
    /// Whether the application may add to the stream at all.
    #[inline]
    pub fn may_add(&self) -> Result<(), StreamError> {
        match self.error {
            Some(error) => Err(StreamError::Connection(error)),
            None if !self.may_send() || self.flags.contains(ConnectionFlags::CLOSE_AFTER_OPEN) => {
                Err(StreamError::Closed)
            }
            None => Ok(()),
        }
    }
    /// Counts a challenge acknowledgment; false when this interval's are spent.
    // spec: RFC5961 7-1
    pub fn may_challenge(&mut self, now: Instant) -> bool {
        let (limit, interval) = match self.config.policy.challenge_interval {
            Some(interval) => (1, interval),
            None => (self.config.challenge_limit_per_second, Duration::from_secs(1)),
        };
        let at = now.as_millis() as u32;
        let passed = Duration::from_millis(u64::from(at.wrapping_sub(self.challenged_at)));
        if self.challenges == 0 || passed >= interval {
            (self.challenged_at, self.challenges) = (at, 0);
        }
        let may = self.challenges < limit;
        self.challenges += u8::from(may);
        may
    }
}

/// A timer that is served later than this was not late: the clock jumped, because the host slept. In that time no segment
/// could be sent or received, so that it does not count as waiting.
const CLOCK_JUMP: Duration = Duration::from_secs(5);

/// How long the host slept, when a timer that was due at `due` is served `now`.
pub(crate) fn slept_since(due: Instant, now: Instant) -> Duration {
    let late = now.since(due);
    if late > CLOCK_JUMP { late } else { Duration::ZERO }
}
