//! The configuration of a connection.

use crate::policy::Policy;
use inhost_base::Duration;
use inhost_congestion::CongestionChoice;

/// Configuration of connections. Connections share it; a change for one connection makes a copy of some 400 bytes.
///
/// Two profiles are named: [`Config::rfc`], the default, follows the RFCs where they and practice differ;
/// [`Config::linux`] behaves like a current Linux with default settings, for comparison.
///
/// ```
/// use inhost_tcp::{Config, EcnMode};
/// let mut config = Config::default();
/// config.nagle = false;
/// config.ecn = EcnMode::Request;
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct Config {
    /// The choices where the RFCs allow several behaviours. Default [`Policy::rfc`].
    pub policy: Policy,
    /// Maximum size of the send buffer: bytes not sent or not acknowledged. Default 256 MiB. A full buffer takes that much
    /// memory. The buffer grows to this size only if the bandwidth-delay product requires it, and not under memory pressure.
    pub send_buffer_limit_bytes: usize,
    /// Initial size of the send buffer. Default 64 KiB. It grows to twice the congestion window.
    pub send_buffer_initial_bytes: usize,
    /// Maximum memory for received data, in order or not. Default 512 MiB. The advertised window is at most half of it,
    /// because a packet buffer may be half empty. The window scale is chosen from it (RFC 7323 §2.2).
    pub receive_buffer_limit_bytes: usize,
    /// Initial size of the receive buffer. Default 256 KiB. It grows to four times the bytes that the application reads in a
    /// round trip, so that the window is twice that.
    pub receive_buffer_initial_bytes: usize,
    /// Maximum number of out-of-order blocks in the reassembly queue. Default 4,096. A segment that would add another is
    /// dropped; the peer retransmits it.
    pub reassembly_limit_pieces: usize,
    /// Nagle's algorithm: hold a small segment back while data is unacknowledged (RFC 9293 §3.7.4). Default true. Delays the
    /// second of two small writes by a round trip.
    pub nagle: bool,
    /// Delayed-ACK timeout. Default 40 ms; values over 500 ms count as 500 ms (RFC 9293 §3.8.6.3). With zero, data is
    /// acknowledged at the end of each round. A longer delay saves segments and slows the growth of the peer's window.
    pub acknowledgment_delay: Duration,
    /// With [`Policy::adaptive_delayed_acks`]: number of segments that are acknowledged at once at the beginning
    /// of a connection, or after an idle period of the peer, because the peer is in slow start. Default 0; `linux` 16.
    pub quick_acknowledgments: u8,
    /// With [`Policy::adaptive_delayed_acks`]: bytes of window growth during which each segment that lets the
    /// window grow (128 bytes or more in order, or any out-of-order segment with SACK) is acknowledged at once, so that the
    /// peer learns of the larger window. Default 0; `linux` 1,296: the window of 64 KiB that a buffer of 128 KiB allows, less an
    /// initial 44 segments.
    pub window_growth_bytes: u32,
    /// Maximum time for which bytes without push are held back to fill a segment. Default 200 ms, as TCP_CORK in Linux.
    pub aggregation_delay: Duration,
    /// With [`Policy::pushes_writes_and_bursts`]: minimum number of segments in a burst.
    /// Default 2 (Linux's tcp_min_tso_segs).
    pub least_burst_segments: u16,
    /// WRITABLE is reported only while fewer unsent bytes than this are queued (TCP_NOTSENT_LOWAT). Default 1 MiB, so that
    /// written data is still in the CPU cache when it is sent; `usize::MAX` for no limit. A smaller value keeps data that may
    /// become stale in the application, and wakes the application more often.
    pub not_sent_low_water_bytes: usize,
    /// Probe an idle peer. Default none, which is off (RFC 9293 §3.8.4).
    pub keep_alive: Option<KeepAlive>,
    /// User timeout: the connection ends if data stays unacknowledged, or probes unanswered, for this long (R2 of RFC 9293
    /// §3.8.3). Default 5 min.
    pub user_timeout: Duration,
    /// User timeout of the handshake. Default 180 s (RFC 9293 §3.8.3 requires at least 3 min).
    pub connect_timeout: Duration,
    /// Retransmissions of a SYN, or of a SYN and ACK, before the attempt fails, even if
    /// `connect_timeout` has not passed. Default 255, which leaves the limit to `connect_timeout`; Linux 6.
    pub syn_retries: u8,
    /// Retransmissions of a SYN-ACK before the half-open connection is dropped. Default 255; Linux 5.
    pub syn_answer_retries: u8,
    /// Number of SYN timeouts before exponential back-off begins. Default 0 (RFC 6298 §5.5); Linux 4.
    pub syn_linear_timeouts: u8,
    /// For links that drop: a segment that the link refuses is lost within the host, as in Linux when its queue is full. An
    /// acknowledgment or a SYN is lost, the congestion window is reduced, and data counts as not sent and is retried after this
    /// time at the latest (in Linux 500 ms, TCP_RESOURCE_PROBE_INTERVAL). Default none in both profiles: a full device loses
    /// nothing and reports when it has room.
    pub refusal_retry: Option<Duration>,
    /// Added to the reordering timer and the tail loss probe timer. Default zero; Linux 2 ms (TCP_TIMEOUT_MIN), because its
    /// coarse ticks might fire them early.
    pub recovery_timer_slack: Duration,
    /// Retransmissions of one segment after which routing is notified and a soft error is set (R1 of RFC 9293 §3.8.3).
    /// Default 3.
    // spec: RFC9293 SHLD-10
    pub suspect_after_retransmissions: u8,
    /// Duration of TIME-WAIT: twice the maximum segment lifetime. Default 60 s. Keeps one idle entry in the socket table.
    pub time_wait: Duration,
    /// Duration of FIN-WAIT-2 after the application has closed the socket. Default 60 s.
    pub fin_wait_2: Duration,
    /// After the application has closed the socket, a peer that answers but accepts less than a segment, or less than a
    /// thirty-second part, of the remaining data within this time gets a reset. Default 3 min; Linux ends connections behind a
    /// closed window after about as long. `user_timeout` covers a peer that does not answer.
    pub orphan_timeout: Duration,
    /// Minimum margin of the RTO above the smoothed round trip. Default 200 ms, which leaves room for a delayed acknowledgment
    /// (RFC 6298 §2.4 sets the whole RTO to at least 1 s and allows less). A shorter margin finds losses sooner and causes
    /// more spurious timeouts.
    pub min_retransmission_timeout: Duration,
    /// Maximum RTO, and maximum interval between window probes. Default 60 s (RFC 6298 §2.5).
    pub max_retransmission_timeout: Duration,
    /// RTO before the first round-trip sample. Default 1 s (RFC 6298 §2.1).
    pub initial_retransmission_timeout: Duration,
    /// Segments of the initial congestion window. Default 10 (RFC 6928).
    // spec: RFC6928 12-3
    pub initial_window_segments: u8,
    /// Return to the initial window after the connection was idle for an RTO (RFC 5681 §4.1). Default true.
    pub restart_after_idle: bool,
    /// Maximum segment size that is announced and sent. Default 65,495: the path alone limits it.
    pub mss_limit_bytes: u16,
    /// Offer timestamps (RFC 7323). Default true. Costs 12 bytes a segment; provides PAWS and more round-trip samples.
    pub timestamps: bool,
    /// Drop segments without a timestamp where timestamps were negotiated (RFC 7323 §3.2). Default true; Linux accepts them.
    pub timestamps_required: bool,
    /// Offer window scaling (RFC 7323). Default true.
    pub window_scaling: bool,
    /// Offer selective acknowledgments (RFC 2018). Default true. Without SACK, loss recovery follows RFC 6582 (NewReno).
    pub sack: bool,
    /// Report duplicate segments by SACK (D-SACK, RFC 2883). Default true.
    pub duplicate_sack: bool,
    /// Explicit congestion notification (RFC 3168). Default [`EcnMode::Accept`].
    pub ecn: EcnMode,
    /// RACK: detect losses by time where SACK is in use (RFC 8985). Default true; otherwise by count alone (RFC 6675).
    pub rack: bool,
    /// Send a tail loss probe before the retransmission timer expires (RFC 8985 §7). Default true.
    pub tail_loss_probe: bool,
    /// Spread a reduction of the window over a round trip (RFC 6937, RFC 9937). Default true; otherwise the window
    /// falls to ssthresh at once.
    pub proportional_rate_reduction: bool,
    /// F-RTO: detect spurious retransmission timeouts (RFC 5682). Default true.
    pub forward_rto: bool,
    /// Undo a spurious reduction of the congestion window (RFC 3522, RFC 4015, RFC 3708). Default true.
    pub undo: bool,
    /// Restart the retransmission timer from the oldest segment when few are in flight (RFC 7765). Default true.
    pub rto_restart: bool,
    /// DupThresh: a segment counts as lost when this many later ones have arrived. Default 3 (RFC 5681 §3.2); it rises on
    /// paths that reorder.
    pub reordering_segments: u8,
    /// Congestion control. Default CUBIC (RFC 9438).
    pub congestion: CongestionChoice,
    /// Pacing: spread segments over the round trip. Default true. Smooths bursts; costs a timer while data flows.
    pub pacing: bool,
    /// Maximum sending rate in bytes per second (SO_MAX_PACING_RATE). Default no limit.
    pub max_pacing_rate_bytes_per_second: Option<u64>,
    /// Packetization-layer path MTU discovery (RFC 4821, RFC 8899). Default
    /// [`PathMtuProbing::BlackHoles`].
    pub path_mtu_probing: PathMtuProbing,
    /// Challenge acknowledgments that one connection sends in a second (RFC 5961 §7). Default 10.
    pub challenge_limit_per_second: u8,
}

/// Explicit congestion notification (RFC 3168).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub enum EcnMode {
    /// Never.
    Off,
    /// When the peer requests it.
    Accept,
    /// When the peer requests it; active opens request it, too.
    Request,
}

/// Packetization-layer path MTU discovery (RFC 4821, RFC 8899).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub enum PathMtuProbing {
    /// Only classical path MTU discovery, by routing and ICMP.
    Off,
    /// When full-sized segments are lost repeatedly (an MTU black hole): smaller segments, then probes of larger sizes.
    BlackHoles,
    /// From the beginning: start small and probe upward.
    Always,
}

impl Default for Config {
    fn default() -> Self {
        Config::rfc()
    }
}

impl Config {
    /// The default: the RFCs, with the defaults that each field documents.
    pub fn rfc() -> Self {
        Config {
            policy: Policy::rfc(),
            send_buffer_limit_bytes: 256 << 20,
            send_buffer_initial_bytes: 64 << 10,
            receive_buffer_limit_bytes: 512 << 20,
            receive_buffer_initial_bytes: 256 << 10,
            reassembly_limit_pieces: 4096,
            nagle: true,
            acknowledgment_delay: Duration::from_millis(40),
            quick_acknowledgments: 0,
            window_growth_bytes: 0,
            aggregation_delay: Duration::from_millis(200),
            least_burst_segments: 2,
            not_sent_low_water_bytes: 1 << 20,
            // spec: RFC9293 MUST-25 (keep-alive is off unless asked for)
            keep_alive: None,
            user_timeout: Duration::from_secs(300),
            // spec: RFC9293 MUST-23 (a SYN is tried for three minutes at least)
            connect_timeout: Duration::from_secs(180),
            syn_retries: u8::MAX,
            syn_answer_retries: u8::MAX,
            syn_linear_timeouts: 0,
            refusal_retry: None,
            recovery_timer_slack: Duration::ZERO,
            suspect_after_retransmissions: 3,
            time_wait: Duration::from_secs(60),
            fin_wait_2: Duration::from_secs(60),
            orphan_timeout: Duration::from_secs(180),
            min_retransmission_timeout: Duration::from_millis(200),
            max_retransmission_timeout: Duration::from_secs(60),
            initial_retransmission_timeout: Duration::from_secs(1),
            initial_window_segments: 10,
            restart_after_idle: true,
            mss_limit_bytes: 65_495,
            timestamps: true,
            timestamps_required: true,
            window_scaling: true,
            sack: true,
            duplicate_sack: true,
            ecn: EcnMode::Accept,
            rack: true,
            tail_loss_probe: true,
            proportional_rate_reduction: true,
            forward_rto: true,
            undo: true,
            rto_restart: true,
            reordering_segments: 3,
            congestion: CongestionChoice::Cubic,
            pacing: true,
            max_pacing_rate_bytes_per_second: None,
            path_mtu_probing: PathMtuProbing::BlackHoles,
            challenge_limit_per_second: 10,
        }
    }
    /// A current Linux with default settings: its buffer sizes and window scale, quick-ACK mode, SYN timeouts, placement of
    /// PSH, and no pacing, which Linux leaves to a queueing discipline.
    pub fn linux() -> Self {
        Config {
            policy: Policy::linux(),
            // tcp_wmem and tcp_rmem: 4 MiB, and 6 MiB of which half is window; the scale is chosen from 15 MiB.
            send_buffer_limit_bytes: 4 << 20,
            not_sent_low_water_bytes: usize::MAX,
            send_buffer_initial_bytes: 87_040,
            receive_buffer_limit_bytes: 30 << 20,
            receive_buffer_initial_bytes: 131_072,
            quick_acknowledgments: 16,
            window_growth_bytes: 1296,
            // tcp_retries2 of 15 comes to this.
            user_timeout: Duration::from_millis(924_600),
            syn_retries: 6,
            syn_answer_retries: 5,
            syn_linear_timeouts: 4,
            max_retransmission_timeout: Duration::from_secs(120),
            recovery_timer_slack: Duration::from_millis(2),
            timestamps_required: false,
            rto_restart: false,
            congestion: CongestionChoice::CubicInSegments,
            pacing: false,
            path_mtu_probing: PathMtuProbing::Off,
            ..Config::rfc()
        }
    }
}

/// Keep-alive: when an idle peer is probed, and when the connection ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct KeepAlive {
    /// Idle time before the first probe. Default 2 h (RFC 9293 §3.8.4).
    // spec: RFC9293 MUST-27 (the interval can be set)
    pub idle: Duration,
    /// Time between probes. Default 75 s.
    pub interval: Duration,
    /// Number of unanswered probes that end the connection. Default 9, because a single answer may be lost.
    pub probes: u8,
}

impl Default for KeepAlive {
    fn default() -> Self {
        // spec: RFC9293 MUST-28 (two hours at least by default)
        KeepAlive { idle: Duration::from_secs(7200), interval: Duration::from_secs(75), probes: 9 }
    }
}
