//! Every knob of a connection.

use inhost_base::Duration;
use inhost_congestion::CongestionChoice;

/// How connections behave. Shared among connections; one that is changed takes a copy of its own, of some 250 bytes.
#[derive(Clone, Debug)]
pub struct Config {
    /// Bytes that may wait to be sent or acknowledged. Default 256 KiB. Costs that much memory while full.
    pub send_buffer_limit_bytes: usize,
    /// Memory that received data may pin, in order or not. Default 1 MiB. The window offered is half of it, because
    /// a buffer may be half empty; the window scale is chosen from it (RFC 7323 §2.2).
    pub receive_buffer_limit_bytes: usize,
    /// Pieces that may wait out of order. Default 1,024. Beyond it a segment is dropped and comes again.
    pub reassembly_limit_pieces: usize,
    /// Hold a small segment while data is unacknowledged (RFC 9293 §3.7.4). Default true. Costs a round trip of
    /// delay where small writes follow each other.
    pub nagle: bool,
    /// Longest wait before data is acknowledged. Default 40 ms; above 500 ms reads as that (RFC 9293 §3.8.6.3).
    /// Zero acknowledges at the end of each round. Longer saves segments and delays the peer's window.
    pub acknowledgment_delay: Duration,
    /// Longest time for which bytes without push are held back to fill a segment. Default 200 ms.
    pub aggregation_delay: Duration,
    /// Probe an idle peer. Default none, which is off (RFC 9293 §3.8.4).
    pub keep_alive: Option<KeepAlive>,
    /// Data unacknowledged, or a probe unanswered, for so long ends the connection: R2 of RFC 9293 §3.8.3.
    /// Default 5 min.
    pub user_timeout: Duration,
    /// The same for the handshake. Default 180 s (RFC 9293 §3.8.3 asks for at least 3 min).
    pub connect_timeout: Duration,
    /// Retransmissions of one segment after which routing is told and a soft error is set: R1 of RFC 9293 §3.8.3.
    /// Default 3.
    pub suspect_after_retransmissions: u8,
    /// How long TIME-WAIT lasts: twice the maximum segment lifetime. Default 60 s. Costs one idle entry.
    pub time_wait: Duration,
    /// How long FIN-WAIT-2 lasts once the application has let go of the socket. Default 60 s.
    pub fin_wait_2: Duration,
    /// Least time-out above the smoothed round trip. Default 200 ms, room for a peer's delayed acknowledgment
    /// (RFC 6298 §2.4 says 1 s in all and allows less). Shorter finds losses sooner and errs more often.
    pub min_retransmission_timeout: Duration,
    /// Largest time-out between retransmissions or probes. Default 60 s (RFC 6298 §2.5).
    pub max_retransmission_timeout: Duration,
    /// Time-out before the first measurement. Default 1 s (RFC 6298 §2.1).
    pub initial_retransmission_timeout: Duration,
    /// Segments of the initial congestion window. Default 10 (RFC 6928).
    pub initial_window_segments: u8,
    /// Go back to the initial window after an idle time-out (RFC 5681 §4.1). Default true.
    pub restart_after_idle: bool,
    /// Largest payload that we ask for or send in a segment. Default 65,495, no limit but the path's.
    pub mss_limit_bytes: u16,
    /// Offer timestamps (RFC 7323). Default true. Costs 12 bytes a segment; gives PAWS and more measurements.
    pub timestamps: bool,
    /// Offer window scaling (RFC 7323). Default true.
    pub window_scaling: bool,
    /// Congestion control. Default CUBIC (RFC 9438).
    pub congestion: CongestionChoice,
    /// Challenge acknowledgments that one connection sends in a second (RFC 5961 §7). Default 10.
    pub challenge_limit_per_second: u8,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            send_buffer_limit_bytes: 256 << 10,
            receive_buffer_limit_bytes: 1 << 20,
            reassembly_limit_pieces: 1024,
            nagle: true,
            acknowledgment_delay: Duration::from_millis(40),
            aggregation_delay: Duration::from_millis(200),
            // spec: RFC9293 MUST-25 (keep-alive is off unless asked for)
            keep_alive: None,
            user_timeout: Duration::from_secs(300),
            // spec: RFC9293 MUST-23 (a SYN is tried for three minutes at least)
            connect_timeout: Duration::from_secs(180),
            suspect_after_retransmissions: 3,
            time_wait: Duration::from_secs(60),
            fin_wait_2: Duration::from_secs(60),
            min_retransmission_timeout: Duration::from_millis(200),
            max_retransmission_timeout: Duration::from_secs(60),
            initial_retransmission_timeout: Duration::from_secs(1),
            initial_window_segments: 10,
            restart_after_idle: true,
            mss_limit_bytes: 65_495,
            timestamps: true,
            window_scaling: true,
            congestion: CongestionChoice::Cubic,
            challenge_limit_per_second: 10,
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
