//! Every knob of a connection.

use crate::policy::Policy;
use inhost_base::Duration;
use inhost_congestion::CongestionChoice;

/// How connections behave. Shared among connections; one that is changed takes its own copy of some 400 bytes.
///
/// Two profiles are named: [`Config::rfc`], the default, follows the RFCs where they and practice differ;
/// [`Config::linux`] behaves as a current Linux does with default settings, for comparison.
///
/// ```
/// use inhost_tcp::{Config, EcnMode};
/// let mut config = Config::default();
/// config.nagle = false;
/// config.ecn = EcnMode::Request;
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// Which way each rule goes where there is a choice. Default [`Policy::rfc`].
    pub policy: Policy,
    /// The most bytes that may wait to be sent or acknowledged. Default 256 MiB. Costs that much memory while full;
    /// it is reached only where rate times round trip asks for it, and not under memory pressure.
    pub send_buffer_limit_bytes: usize,
    /// What the send buffer begins with. Default 64 KiB. From there it grows to twice the congestion window.
    pub send_buffer_initial_bytes: usize,
    /// The most memory that received data may pin, in order or not. Default 512 MiB. The window offered is half of
    /// it, because a buffer may be half empty; the window scale is chosen from it (RFC 7323 §2.2).
    pub receive_buffer_limit_bytes: usize,
    /// What the receive buffer begins with. Default 256 KiB. From there it grows to four times what the application
    /// takes in a round trip, so that the window is twice that.
    pub receive_buffer_initial_bytes: usize,
    /// Stretches of data that may wait out of order. Default 4,096. Beyond it a segment is dropped and comes again.
    pub reassembly_limit_pieces: usize,
    /// Hold a small segment while data is unacknowledged (RFC 9293 §3.7.4). Default true. Costs a round trip of
    /// delay where small writes follow each other.
    pub nagle: bool,
    /// Longest wait before data is acknowledged. Default 40 ms; above 500 ms reads as that (RFC 9293 §3.8.6.3).
    /// Zero acknowledges at the end of each round. Longer saves segments and delays the peer's window.
    pub acknowledgment_delay: Duration,
    /// With [`DelayedAck::Adaptive`](crate::DelayedAck): segments at the beginning of a connection, or after a silence of
    /// the peer's, that are acknowledged at once, because the peer is in slow start. Default 0; `linux` 16.
    pub quick_acknowledgments: u8,
    /// The same, as long as the window has grown by less than this: each segment with which it grows (one of 128 bytes in
    /// order, or any ahead of a hole where there is SACK) is acknowledged at once, so that the peer learns of the window.
    /// Default 0; `linux` 1,296, what a buffer of 128 KiB leaves beside the first window, of 44 segments.
    pub window_growth_bytes: u32,
    /// Longest time for which bytes without push are held back to fill a segment. Default 200 ms (Linux's cork).
    pub aggregation_delay: Duration,
    /// With [`PushPlacement::WritesAndHalfWindows`](crate::PushPlacement): segments of one burst at least. Default 2
    /// (Linux's tcp_min_tso_segs).
    pub least_burst_segments: u16,
    /// WRITABLE is told only while fewer bytes than this are queued and not sent. Default 1 MiB, so that what is written
    /// is still in the cache when it leaves; `usize::MAX` for no limit. Less keeps data that may become stale with the
    /// application, and asks for it more often.
    pub not_sent_low_water_bytes: usize,
    /// Probe an idle peer. Default none, which is off (RFC 9293 §3.8.4).
    pub keep_alive: Option<KeepAlive>,
    /// Data unacknowledged, or a probe unanswered, for so long ends the connection: R2 of RFC 9293 §3.8.3.
    /// Default 5 min.
    pub user_timeout: Duration,
    /// The same for the handshake. Default 180 s (RFC 9293 §3.8.3 asks for at least 3 min).
    pub connect_timeout: Duration,
    /// Retransmissions of a SYN, or of a SYN and ACK, before the attempt is given up, however much of
    /// `connect_timeout` is left. Default 255, which is no limit of its own; Linux 6.
    pub syn_retries: u8,
    /// The same for a SYN and ACK; Linux 5.
    pub syn_answer_retries: u8,
    /// The first so many time-outs of a SYN are not doubled. Default 0 (RFC 6298 §5.5); Linux 4.
    pub syn_linear_timeouts: u8,
    /// What the link refuses is lost within the host, as on Linux where its queue is full: an acknowledgment or a SYN is
    /// gone, the window is reduced, and data counts as not sent and is tried so much later at the latest (there 500 ms,
    /// TCP_RESOURCE_PROBE_INTERVAL). Default none in both profiles: a device that is full loses nothing and says when it
    /// has room. For links that drop.
    pub refusal_retry: Option<Duration>,
    /// Added to the timers of reordering and of the tail probe. Default zero; Linux 2 ms (TCP_TIMEOUT_MIN), so that its
    /// clock's coarse ticks fire none of them early.
    pub recovery_timer_slack: Duration,
    /// Retransmissions of one segment after which routing is told and a soft error is set: R1 of RFC 9293 §3.8.3.
    /// Default 3.
    // spec: RFC9293 SHLD-10
    pub suspect_after_retransmissions: u8,
    /// How long TIME-WAIT lasts: twice the maximum segment lifetime. Default 60 s. Costs one idle entry.
    pub time_wait: Duration,
    /// How long FIN-WAIT-2 lasts once the application has let go of the socket. Default 60 s.
    pub fin_wait_2: Duration,
    /// Once the application has let go of the socket, a peer that is there and takes, in so long, less than a segment of
    /// what is left, or less than a thirty-second part of it, gets a reset. Default 3 min; Linux ends connections behind
    /// a closed window after about as long. A peer that is not heard is given up by `user_timeout`.
    pub orphan_timeout: Duration,
    /// Least time-out above the smoothed round trip. Default 200 ms, room for a peer's delayed acknowledgment
    /// (RFC 6298 §2.4 says 1 s in all and allows less). Shorter finds losses sooner and errs more often.
    pub min_retransmission_timeout: Duration,
    /// Largest time-out between retransmissions or probes. Default 60 s (RFC 6298 §2.5).
    pub max_retransmission_timeout: Duration,
    /// Time-out before the first measurement. Default 1 s (RFC 6298 §2.1).
    pub initial_retransmission_timeout: Duration,
    /// Segments of the initial congestion window. Default 10 (RFC 6928).
    // spec: RFC6928 12-3
    pub initial_window_segments: u8,
    /// Go back to the initial window after an idle time-out (RFC 5681 §4.1). Default true.
    pub restart_after_idle: bool,
    /// Largest payload that we ask for or send in a segment. Default 65,495, no limit but the path's.
    pub mss_limit_bytes: u16,
    /// Offer timestamps (RFC 7323). Default true. Costs 12 bytes a segment; gives PAWS and more measurements.
    pub timestamps: bool,
    /// Drop segments without the timestamp that was agreed on (RFC 7323 §3.2). Default true; Linux takes them.
    pub timestamps_required: bool,
    /// Offer window scaling (RFC 7323). Default true.
    pub window_scaling: bool,
    /// Offer selective acknowledgments (RFC 2018). Default true. Without them losses are found as in RFC 6582.
    pub sack: bool,
    /// AckInfo segments that came twice (RFC 2883). Default true.
    pub duplicate_sack: bool,
    /// Explicit congestion notification (RFC 3168). Default [`EcnMode::Accept`].
    pub ecn: EcnMode,
    /// Find losses by time (RFC 8985), where there is SACK. Default true; else by RFC 6675's count alone.
    pub rack: bool,
    /// Probe the tail of a flight before the retransmission timer (RFC 8985 §7). Default true.
    pub tail_loss_probe: bool,
    /// Spread a reduction of the window over a round trip (RFC 6937, RFC 9937). Default true; else the window is at
    /// its threshold at once.
    pub proportional_rate_reduction: bool,
    /// Find out whether a time-out was spurious (RFC 5682). Default true.
    pub forward_rto: bool,
    /// Take back a reduction that proves wrong (RFC 3522, RFC 4015, RFC 3708). Default true.
    pub undo: bool,
    /// Start the retransmission timer at the oldest segment when few are out (RFC 7765). Default true.
    pub rto_restart: bool,
    /// Segments that may overtake another before that counts as lost. Default 3 (RFC 5681 §3.2); it adapts upward.
    pub reordering_segments: u8,
    /// Congestion control. Default CUBIC (RFC 9438).
    pub congestion: CongestionChoice,
    /// Space segments over the round trip. Default true. Smooths bursts; costs a timer while data flows.
    pub pacing: bool,
    /// No segment leaves faster than this many bytes a second, whatever the window allows. Default no limit.
    pub max_pacing_rate_bytes_per_second: Option<u64>,
    /// Search for the path's MTU with segments of our own (RFC 4821, RFC 8899). Default
    /// [`PathMtuProbing::BlackHoles`].
    pub path_mtu_probing: PathMtuProbing,
    /// Challenge acknowledgments that one connection sends in a second (RFC 5961 §7). Default 10.
    pub challenge_limit_per_second: u8,
}

/// Explicit congestion notification (RFC 3168).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum EcnMode {
    /// Never.
    Off,
    /// When the peer asks for it.
    Accept,
    /// Our calls ask for it too.
    Request,
}

/// Packetization-layer path MTU discovery (RFC 4821, RFC 8899).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum PathMtuProbing {
    /// Only what routing and ICMP say.
    Off,
    /// When full-sized segments keep getting lost: smaller ones, and from there upward by probes.
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
    /// The product's default: the RFCs, with the choices of each knob's documentation.
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
    /// As a current Linux with default settings: its buffers and scale, quick acknowledgments, time-outs of SYNs,
    /// places of PSH, and no pacing without its own queueing discipline.
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

/// When an idle peer is probed, and when it is given up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeepAlive {
    /// Idle time before the first probe. Default 2 h (RFC 9293 §3.8.4).
    // spec: RFC9293 MUST-27 (the interval can be set)
    pub idle: Duration,
    /// Time between probes. Default 75 s.
    pub interval: Duration,
    /// Probes unanswered that end the connection. Default 9: one lost answer proves nothing.
    pub probes: u8,
}

impl Default for KeepAlive {
    fn default() -> Self {
        // spec: RFC9293 MUST-28 (two hours at least by default)
        KeepAlive { idle: Duration::from_secs(7200), interval: Duration::from_secs(75), probes: 9 }
    }
}
