//! A connection's whole state at one instant, for debuggers: besides what [`Info`](crate::Info) has, the numbers of both
//! windows, the scoreboard, the blocks out of order, each timer, and what was configured.

use crate::Policy;
use crate::common::Common;
use crate::flags::ConnectionFlags;
use alloc::string::String;
use alloc::vec::Vec;
use inhost_base::Duration;
use inhost_congestion::Congestion;

/// Transmissions of the scoreboard, and blocks out of order, that are listed; their counts say how many there are.
pub const LISTED: usize = 256;

/// A connection's whole state; from [`Connection::detail`](crate::Connection::detail).
///
/// Plain values: times in nanoseconds, sizes in bytes. Positions count from the SYN of their direction, which is 0;
/// `initial` is its number on the wire.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize))]
#[allow(missing_docs)] // The names, with their units, say it.
pub struct Detail<'a> {
    /// The host's clock; the due times of timers are on it.
    pub now_ns: u64,
    pub age_ns: u64,
    /// As RFC 9293 §3.3.2 names it.
    pub state: &'static str,
    pub error: Option<String>,
    pub soft_error: Option<String>,
    pub send: SendDetail,
    pub receive: ReceiveDetail,
    pub round_trip: RoundTripDetail,
    pub congestion: CongestionDetail<'a>,
    pub recovery: RecoveryDetail,
    /// Those that run, by when they are due.
    pub timers: Vec<Timer>,
    /// Transmissions in flight, the oldest first: [`LISTED`] at most.
    pub scoreboard: Vec<Transmission>,
    pub agreed: AgreedDetail,
    pub options: OptionsDetail,
    /// Where an RFC leaves a choice, which was made.
    pub policy: &'a Policy,
    /// Time by what sending waited for, in the order of [`SendCause::ALL`](inhost_event::SendCause::ALL).
    pub send_ledger: Vec<Spent>,
    /// Time by what receiving waited for, in the order of [`ReceiveCause::ALL`](inhost_event::ReceiveCause::ALL).
    pub receive_ledger: Vec<Spent>,
}

/// The sending half: `SND.*` and the send queue.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize))]
#[allow(missing_docs)]
pub struct SendDetail {
    /// `ISS`, on the wire.
    pub initial: u32,
    /// `SND.UNA`
    pub unacknowledged: u64,
    /// `SND.NXT`
    pub next: u64,
    /// `SND.WND`
    pub window_bytes: u32,
    pub window_scale: u8,
    /// The right edge of the peer's window.
    pub window_edge: u64,
    pub largest_window_bytes: u32,
    /// `SND.UP`, while something is urgent.
    pub urgent: Option<u64>,
    /// After the last pushed byte.
    pub pushed: Option<u64>,
    pub segment_bytes: u32,
    pub queue_bytes: usize,
    pub queue_capacity_bytes: usize,
    pub buffer_bytes: usize,
    pub not_sent_bytes: u32,
    pub in_flight_bytes: u32,
    /// Since the oldest data in flight was sent, for the last time.
    pub oldest_in_flight_ns: Option<u64>,
    /// Since a segment was sent.
    pub since_sent_ns: u64,
    pub acknowledged_bytes: u64,
    pub retransmitted_segments: u32,
    pub retransmitted_bytes: u64,
    pub is_corked: bool,
    /// Why no more is sent now.
    pub cause: &'static str,
}

/// The receiving half: `RCV.*`, the receive queue and the reassembly queue.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize))]
#[allow(missing_docs)]
pub struct ReceiveDetail {
    /// `IRS`, on the wire.
    pub initial: u32,
    /// `RCV.NXT`
    pub next: u64,
    /// `RCV.WND`, as far as it was offered.
    pub window_bytes: u32,
    pub window_scale: u8,
    /// The last acknowledgment sent.
    pub acknowledged: u64,
    /// `RCV.UP`, while something is urgent.
    pub urgent: Option<u64>,
    pub segment_bytes: u16,
    pub queue_bytes: usize,
    pub queue_capacity_bytes: usize,
    pub buffer_bytes: usize,
    pub received_bytes: u64,
    /// Since a segment came.
    pub since_received_ns: u64,
    pub reassembly_bytes: usize,
    pub reassembly_pieces: usize,
    /// Blocks out of order, as numbers: [`LISTED`] at most.
    pub reassembly: Vec<(u64, u64)>,
    /// Blocks of the next SACK option, the most recent first.
    pub sack: Vec<(u64, u64)>,
    pub acknowledgment_is_due: bool,
    /// Delayed acknowledgments are off for the next segments.
    pub is_quick: bool,
    /// What receiving waits for.
    pub cause: &'static str,
}

/// The round trip and the retransmission timeout (RFC 6298).
#[derive(Clone, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize))]
#[allow(missing_docs)]
pub struct RoundTripDetail {
    pub smoothed_ns: Option<u64>,
    pub variation_ns: u64,
    pub least_ns: Option<u64>,
    /// The receiver's own estimate.
    pub receiver_ns: Option<u64>,
    /// The RTO as it stands, with its back-off.
    pub timeout_ns: u64,
    /// How often it was doubled.
    pub backoff: u8,
}

/// The congestion window and what moves it.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize))]
#[allow(missing_docs)]
pub struct CongestionDetail<'a> {
    pub algorithm: &'static str,
    /// `cwnd`
    pub window_bytes: u32,
    /// `ssthresh`; none before the first loss.
    pub threshold_bytes: Option<u32>,
    pub in_slow_start: bool,
    pub pacing_bytes_per_second: u64,
    pub delivery_bytes_per_second: u64,
    /// The algorithm's own state; none where it is not of this host's own.
    pub own: Option<&'a Congestion>,
}

/// Loss recovery (RFC 5681, RFC 6675, RFC 8985, RFC 5682, RFC 9937).
#[derive(Clone, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize))]
#[allow(missing_docs)]
pub struct RecoveryDetail {
    pub state: &'static str,
    /// Acknowledging this ends it.
    pub until: Option<u64>,
    pub duplicate_acknowledgments: u8,
    pub timeouts: u32,
    pub sacked_bytes: u32,
    pub lost_bytes: u32,
    pub retransmitted_in_flight_bytes: u32,
    /// DupThresh.
    pub reordering_segments: u32,
    /// RACK's reordering window.
    pub reordering_window_ns: u64,
    pub reordering_was_seen: bool,
    pub reorderings: u32,
    pub duplicate_sacks: u32,
    /// Whether the timeout was spurious is being found out (F-RTO).
    pub tests_timeout: bool,
    /// A tail loss probe is out.
    pub tail_probe_is_out: bool,
    /// PRR: `RecoverFS`, `prr_delivered`, `prr_out`.
    pub rate_reduction_bytes: Option<[u32; 3]>,
}

/// A timer that runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize))]
pub struct Timer {
    /// Its name in words.
    pub name: &'static str,
    /// On the host's clock.
    pub due_ns: u64,
}

/// Data that left in one segment, and what is thought of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize))]
pub struct Transmission {
    /// Its first number.
    pub start: u64,
    /// After its last.
    pub end: u64,
    /// `in flight`, `sacked` or `lost`.
    pub state: &'static str,
    /// When it was sent last, on the host's clock.
    pub sent_ns: u64,
    /// It was sent more than once.
    pub retransmitted: bool,
}

/// What the SYNs agreed on.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize))]
#[allow(missing_docs)]
pub struct AgreedDetail {
    pub active: bool,
    pub timestamps: bool,
    pub window_scaling: bool,
    pub sack: bool,
    pub ecn: bool,
    pub fast_open: &'static str,
    pub peer_segment_bytes: u16,
    pub path_segment_bytes: u16,
    pub offered_segment_bytes: u16,
}

/// What was configured, as far as it decides when something is sent.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize))]
#[allow(missing_docs)]
pub struct OptionsDetail {
    pub nagle: bool,
    pub pacing: bool,
    pub rack: bool,
    pub tail_loss_probe: bool,
    pub forward_rto: bool,
    pub proportional_rate_reduction: bool,
    pub undo: bool,
    pub initial_window_segments: u8,
    pub acknowledgment_delay_ns: u64,
    pub min_retransmission_timeout_ns: u64,
    pub max_retransmission_timeout_ns: u64,
    pub user_timeout_ns: u64,
    pub time_wait_ns: u64,
    pub keep_alive_idle_ns: Option<u64>,
    pub send_buffer_limit_bytes: usize,
    pub receive_buffer_limit_bytes: usize,
    pub segment_limit_bytes: u16,
}

/// Time that one cause of waiting has taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize))]
pub struct Spent {
    /// The cause in words.
    pub cause: &'static str,
    /// How long.
    pub time_ns: u64,
}

impl AgreedDetail {
    pub(crate) fn of(common: &Common) -> Self {
        let has = |flag| common.has(flag);
        AgreedDetail {
            active: has(ConnectionFlags::ACTIVE_OPEN),
            timestamps: has(ConnectionFlags::TIMESTAMPS),
            window_scaling: has(ConnectionFlags::SCALING),
            sack: has(ConnectionFlags::SACK),
            ecn: has(ConnectionFlags::ECN),
            fast_open: common.fast_open().text(),
            peer_segment_bytes: common.peer_mss(),
            path_segment_bytes: common.path_mss(),
            offered_segment_bytes: common.offered_mss(),
        }
    }
}

impl OptionsDetail {
    pub(crate) fn of(common: &Common) -> Self {
        let config = common.config();
        OptionsDetail {
            nagle: config.nagle,
            pacing: config.pacing,
            rack: config.rack,
            tail_loss_probe: config.tail_loss_probe,
            forward_rto: config.forward_rto,
            proportional_rate_reduction: config.proportional_rate_reduction,
            undo: config.undo,
            initial_window_segments: config.initial_window_segments,
            acknowledgment_delay_ns: ns(config.acknowledgment_delay),
            min_retransmission_timeout_ns: ns(config.min_retransmission_timeout),
            max_retransmission_timeout_ns: ns(config.max_retransmission_timeout),
            user_timeout_ns: ns(config.user_timeout),
            time_wait_ns: ns(config.time_wait),
            keep_alive_idle_ns: config.keep_alive.map(|keep_alive| ns(keep_alive.idle)),
            send_buffer_limit_bytes: config.send_buffer_limit_bytes,
            receive_buffer_limit_bytes: config.receive_buffer_limit_bytes,
            segment_limit_bytes: config.mss_limit_bytes,
        }
    }
}

pub(crate) fn ns(duration: Duration) -> u64 {
    duration.as_nanos()
}
