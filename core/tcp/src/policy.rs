//! Choices among the behaviours that the RFCs allow, or where common practice differs from the RFCs.

use inhost_base::Duration;

/// Choices of protocol behaviour, each named for the rule that it decides. Quantities and features are in [`crate::Config`].
///
/// In [`Policy::rfc`], the default, each is off; in [`Policy::linux`] all are on. They are
/// independent: a connection may use any of them alone.
///
/// ```
/// use inhost_tcp::{Config, Policy};
/// let mut config = Config::default();
/// config.policy.received_data_survives_reset = true;
/// assert_ne!(config.policy, Policy::rfc());
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[allow(clippy::struct_excessive_bools)]
#[non_exhaustive]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct Policy {
    // Sending.
    /// PSH ends each write as far as it was sent, and each burst of several segments; writes share no segment. Otherwise PSH
    /// is on the last segment of the queued data (RFC 9293 §3.9.1.2).
    pub pushes_writes_and_bursts: bool,
    /// On a path known to reorder more than usual, selectively acknowledged data also grows the congestion window. Otherwise
    /// only cumulative acknowledgments do (RFC 5681 §3.1).
    pub congestion_window_grows_on_sack: bool,
    /// When an acknowledgment ends within a segment, the rest of its burst is divided into segments anew from there; timers
    /// and round-trip samples take part only if fewer segments remain. Otherwise segment boundaries are fixed, and all newly
    /// acknowledged data counts (RFC 6298 §5.3).
    pub partial_acks_recut_segments: bool,
    /// Where both windows are full, the ledger names the congestion window. Otherwise the peer's.
    pub congestion_window_is_blamed_first: bool,
    /// A segment cut short by the peer's window is sent behind full segments, if Nagle's algorithm permits, and never by
    /// itself. Otherwise it is sent while nothing is in flight, if it is at least half of the largest window (RFC 9293
    /// §3.8.6.2.1).
    pub fills_window_behind_full_segments: bool,
    /// A window probe has an old sequence number and no data, or retransmits the oldest segment in flight; a FIN waits for
    /// the window as data does. Otherwise a window probe is the next byte, or the FIN, which every receiver answers.
    pub window_probes_are_empty: bool,

    // Round trip, timeouts, ICMP.
    /// Every acknowledgment yields a round-trip sample. Otherwise one in each flight does, which suffices (RFC 6298 §3) and
    /// costs less.
    pub rtt_sample_for_each_ack: bool,
    /// A connection that times out after a soft ICMP error fails with that error. Otherwise it fails with the timeout, and
    /// the soft error can be queried.
    pub soft_errors_name_timeouts: bool,
    /// "Host unreachable" for the oldest segment in flight reverts one doubling of the RTO. Otherwise the RTO is kept (RFC
    /// 6069 is experimental).
    pub icmp_reverts_back_off: bool,

    // Receiving.
    /// Acknowledgments adapt to the arrival rate, as in Linux: they are sent at once at the beginning, while the window grows and
    /// after an idle period (quick-ACK mode). Later they wait as long as the time between segments, or for the application's
    /// answer (interactive mode). Otherwise every second full segment is acknowledged, and all after `acknowledgment_delay` (RFC
    /// 9293 §3.8.6.3).
    pub adaptive_delayed_acks: bool,
    /// Of two segments with the same sequence and acknowledgment numbers, only a larger window or a closed one counts: a
    /// smaller one is taken for the older. Otherwise the window of the later segment counts (RFC 9293 §3.10.7.4).
    pub same_sequence_only_widens_window: bool,
    /// ECE counts only while data is in flight. Otherwise always (RFC 3168 §6.1.2).
    pub ece_needs_data_in_flight: bool,
    /// An urgent pointer of zero marks the first byte as urgent. Otherwise the pointer names the byte after the urgent data,
    /// so that zero means none (RFC 6093 §3.1).
    pub zero_urgent_pointer_counts: bool,

    // What is acceptable.
    /// A segment without ACK, RST and SYN is dropped, inside the window or not, except during a listener's handshake.
    /// Otherwise one outside the window is acknowledged (RFC 9293 §3.10.7.4).
    pub segments_need_ack_flag: bool,
    /// A segment that ends between the last acknowledgment sent and the window is acceptable, because it may acknowledge new
    /// data. Otherwise it lies before the window (RFC 9293 §3.10.7.4).
    pub unacknowledged_range_is_acceptable: bool,
    /// PAWS accepts an acknowledgment that changes nothing if its timestamp is older by less than an RTO, and any segment
    /// whose timestamp is older by one tick; it drops an older acknowledgment without an answer. Otherwise all are dropped
    /// and acknowledged (RFC 7323 §5.3).
    pub pure_acks_pass_paws: bool,
    /// Minimum time between two challenge ACKs of a connection. If `None`, `challenge_limit_per_second` limits them (RFC 5961
    /// §7).
    pub challenge_interval: Option<Duration>,

    // Handshakes.
    /// In a simultaneous open, the peer's SYN and ACK is acknowledged, and its SYN reported as a duplicate (RFC 2883).
    /// Otherwise that segment ends the handshake (RFC 9293 §3.5, figure 8).
    pub acknowledges_crossing_answer: bool,
    /// Data and FIN in a SYN-ACK are dropped, except with Fast Open; the peer retransmits them. Otherwise they are accepted
    /// (RFC 9293 §3.10.7.3).
    pub syn_ack_data_is_dropped: bool,
    /// A SYN-ACK with a wrong acknowledgment number makes the SYN be retransmitted once after this time. If `None`, only the
    /// RTO retransmits it (RFC 6298 §5.5).
    pub bad_syn_ack_retry: Option<Duration>,
    /// An ICMP error for our SYN-ACK ends the handshake: over IPv4 a soft error, unless it says "prohibited"; over IPv6 a hard
    /// error, "prohibited" or "parameter problem". Otherwise only a hard error does, because the path may recover before the
    /// handshake times out (RFC 5461 §2).
    pub soft_errors_end_handshakes: bool,

    // Closing and resets.
    /// Data received before a reset can still be read. Otherwise the reset discards it (RFC 9293 §3.10.7.4).
    pub received_data_survives_reset: bool,
    /// A reset with the sequence number of the peer's received FIN is valid: some systems send one when a program is killed.
    /// Otherwise it lies before the window (RFC 9293 §3.10.7.4).
    pub reset_at_fin_is_valid: bool,
    /// Data for a socket that is closed for reading is answered as if there were no connection. Otherwise by a reset of the
    /// connection (RFC 9293 §3.6.1).
    pub unread_data_has_no_connection: bool,
}

impl Policy {
    /// The choices of the RFCs: each off.
    pub fn rfc() -> Self {
        Policy::default()
    }
    /// The choices of a current Linux with default settings.
    pub fn linux() -> Self {
        Policy {
            pushes_writes_and_bursts: true,
            adaptive_delayed_acks: true,
            // tcp_invalid_ratelimit.
            challenge_interval: Some(Duration::from_millis(500)),
            // TCP_TIMEOUT_MIN, two ticks.
            bad_syn_ack_retry: Some(Duration::from_millis(10)),
            congestion_window_grows_on_sack: true,
            partial_acks_recut_segments: true,
            congestion_window_is_blamed_first: true,
            fills_window_behind_full_segments: true,
            window_probes_are_empty: true,
            rtt_sample_for_each_ack: true,
            soft_errors_name_timeouts: true,
            icmp_reverts_back_off: true,
            same_sequence_only_widens_window: true,
            ece_needs_data_in_flight: true,
            zero_urgent_pointer_counts: true,
            segments_need_ack_flag: true,
            unacknowledged_range_is_acceptable: true,
            pure_acks_pass_paws: true,
            acknowledges_crossing_answer: true,
            syn_ack_data_is_dropped: true,
            soft_errors_end_handshakes: true,
            received_data_survives_reset: true,
            reset_at_fin_is_valid: true,
            unread_data_has_no_connection: true,
        }
    }
}
