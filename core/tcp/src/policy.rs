//! Choices among the behaviours that the RFCs allow, or where common practice differs from the RFCs.

use inhost_base::Duration;

/// Choices of protocol behaviour, each named for the rule that it decides. Quantities and features are in [`crate::Config`].
///
/// In [`Policy::rfc`], the default, each is off or at its first variant; in [`Policy::linux`] all are on. They are
/// independent: a connection may use any of them alone.
///
/// ```
/// use inhost_tcp::{Config, Policy};
/// let mut config = Config::default();
/// config.policy.received_data_survives_reset = true;
/// assert_ne!(config.policy, Policy::rfc());
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(clippy::struct_excessive_bools)]
#[non_exhaustive]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct Policy {
    // Sending.
    /// Which segments bear PSH, and thereby which writes may share a segment.
    pub push: PushPlacement,
    /// The congestion window counts segments of any length, and limits a FIN, too. Otherwise it counts bytes (RFC 5681 §2),
    /// and a FIN without data is sent at once.
    pub congestion_window_counts_segments: bool,
    /// On a path known to reorder more than usual, selectively acknowledged data also grows the congestion window. Otherwise
    /// only cumulative acknowledgments do (RFC 5681 §3.1).
    pub congestion_window_grows_on_sack: bool,
    /// When an acknowledgment ends within a segment, the rest of its burst is divided into segments anew from there; timers
    /// and round-trip samples take part only if fewer segments remain. Otherwise segment boundaries are fixed, and all newly
    /// acknowledged data counts (RFC 6298 §5.3).
    pub partial_acks_recut_segments: bool,
    /// A segment cut short by the peer's window is sent behind full segments, if Nagle's algorithm permits, and never by
    /// itself. Otherwise it is sent while nothing is in flight, if it is at least half of the largest window (RFC 9293
    /// §3.8.6.2.1).
    pub fills_window_behind_full_segments: bool,
    /// Segments are at most half of the largest window that the handshake offered, so that two can be in flight. Otherwise
    /// segments are full, or half of the window if that is less and nothing is in flight (RFC 9293 §3.8.6.2.1).
    pub mss_at_most_half_window: bool,
    /// Bytes without push are held back for an RTO, and the persist timer sends them. Otherwise they are held back for
    /// `aggregation_delay`.
    pub cork_lasts_rto: bool,
    /// A window probe has an old sequence number and no data, or retransmits the oldest segment in flight; a FIN waits for
    /// the window as data does. Otherwise a window probe is the next byte, or the FIN, which every receiver answers.
    pub window_probes_are_empty: bool,
    /// A tail loss probe sends new data only if the peer's window has room for a whole segment of it. If a second probe falls
    /// due while one is in flight, the RTO counts from the transmission of the oldest segment. Data sent by the persist timer
    /// is not probed for. Otherwise a probe sends what the window allows, and the RTO restarts (RFC 8985 §7.3).
    pub tail_probes_are_full_segments: bool,
    /// A segment without data may bear a sequence number beyond the peer's window by less than our window scale unit,
    /// because the peer's window may be rounded by as much. Otherwise its number never lies beyond the right edge, where the
    /// segment would not be acceptable.
    pub sequence_may_pass_rounded_window: bool,
    /// After the peer's FIN another one is acceptable at the right edge of the window, and so gets no answer. Otherwise its
    /// number must lie within the window, and the answer says where that is.
    pub fin_may_pass_window: bool,
    /// The half-open connections of a listener that is closed end in silence. Otherwise their peers get a reset.
    pub half_open_ends_in_silence: bool,
    /// A SYN with FIN is dropped by a listener. Otherwise the FIN is ignored.
    pub syn_with_fin_is_dropped: bool,
    /// Urgent data is announced only with data, and while some is in flight no small segment is held back. Otherwise it is
    /// announced at once, if necessary without data (RFC 9293 §3.8.5).
    pub urgent_goes_with_data: bool,
    /// With ECN, the first data of an active open whose SYN was retransmitted bears CWR. Otherwise a retransmitted SYN is
    /// not reported as a window reduction.
    pub retransmitted_syn_sets_cwr: bool,
    /// A reset bears URG and ECE like any other segment. Otherwise it bears neither.
    pub resets_carry_urg_and_ece: bool,

    // Round trip, timeouts, ICMP.
    /// Every acknowledgment yields a round-trip sample. Otherwise one in each flight does, which suffices (RFC 6298 §3) and
    /// costs less.
    pub rtt_sample_for_each_ack: bool,
    /// RTTVAR rises with the mean deviation and falls by a quarter of the difference, once a round trip; a sample shorter
    /// than expected raises the deviation by an eighth of what a longer one does. Otherwise RTTVAR is the mean deviation
    /// (RFC 6298 §2.3, which allows longer timeouts).
    pub rttvar_falls_slowly: bool,
    /// The user timeout counts from the first retransmission by timeout. Otherwise it counts from the last acknowledgment
    /// of data in flight.
    pub user_timeout_from_retransmission: bool,
    /// A connection that times out after a soft ICMP error fails with that error. Otherwise it fails with the timeout, and
    /// the soft error can be queried.
    pub soft_errors_name_timeouts: bool,
    /// An ICMP error may quote SND.NXT, and any acknowledgment that is not old clears the soft error. Otherwise it must quote
    /// a sequence number in flight (RFC 5927 §4.1), and counts until new data is acknowledged.
    pub icmp_may_quote_snd_nxt: bool,
    /// "Host unreachable" for the oldest segment in flight reverts one doubling of the RTO. Otherwise the RTO is kept (RFC
    /// 6069 is experimental).
    pub icmp_reverts_back_off: bool,
    /// When the path MTU falls, segments that are too large are retransmitted as after a timeout, by themselves, with the
    /// congestion window unchanged. Otherwise they are retransmitted together with the data that follows.
    pub smaller_mtu_is_loss: bool,

    // Receiving.
    /// When data is acknowledged.
    pub delayed_ack: DelayedAck,
    /// Of two segments with the same sequence and acknowledgment numbers, only a larger window or a closed one counts: a
    /// smaller one is taken for the older. Otherwise the window of the later segment counts (RFC 9293 §3.10.7.4).
    pub same_sequence_only_widens_window: bool,
    /// The whole window counts as advertised with the SYN-ACK, although its field holds 65,535 at most: data beyond that is
    /// accepted, and no segment is sent only to advertise it. Otherwise only the advertised window counts.
    pub syn_advertises_whole_window: bool,
    /// After a read, a window update is sent if the window has at least doubled. Otherwise it is sent if the window has grown
    /// by two segments and a quarter, so that the two sides do not move in lock step.
    pub window_updates_on_doubling: bool,
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
    /// A segment whose acknowledgment is older than the latest updates neither the timestamp nor CWR. Otherwise a segment
    /// in the window updates both (RFC 7323 §4.3).
    pub old_acks_update_nothing: bool,
    /// PAWS accepts an acknowledgment that changes nothing if its timestamp is older by less than an RTO, and any segment
    /// whose timestamp is older by one tick; it drops an older acknowledgment without an answer. Otherwise all are dropped
    /// and acknowledged (RFC 7323 §5.3).
    pub pure_acks_pass_paws: bool,
    /// Minimum time between two challenge ACKs of a connection, or two answers to a repeated SYN. If `None`,
    /// `challenge_limit_per_second` limits them (RFC 5961 §7).
    pub challenge_interval: Option<Duration>,

    // Handshakes.
    /// The final ACK of a listener's handshake must echo a timestamp of our SYN-ACK; a segment that does not is acknowledged
    /// and dropped. If off, any newer timestamp is accepted.
    pub handshake_ack_needs_echo: bool,
    /// In a listener's handshake, a segment with a wrong acknowledgment number is answered by a reset, inside the window or
    /// not, and a SYN in the window ends the handshake with a reset. Otherwise a segment outside the window is acknowledged,
    /// and a SYN gets a challenge ACK (RFC 9293 §3.10.7.4, RFC 5961 §4.2).
    pub bad_handshakes_are_reset: bool,
    /// Data and FIN in a SYN-ACK are dropped, except with Fast Open; the peer retransmits them. Otherwise they are accepted
    /// (RFC 9293 §3.10.7.3).
    pub syn_ack_data_is_dropped: bool,
    /// A SYN-ACK with a wrong acknowledgment number makes the SYN be retransmitted once after this time. If `None`, only the
    /// RTO retransmits it (RFC 6298 §5.5).
    pub bad_syn_ack_retry: Option<Duration>,
    /// In a simultaneous open:
    /// - our SYN-ACK offers the options of our SYN, regardless of the peer's SYN; otherwise only options that both offer;
    /// - the peer's SYN-ACK is acknowledged, and its SYN reported as a duplicate (RFC 2883); otherwise that segment ends the
    ///   handshake (RFC 9293 §3.5, figure 8);
    /// - a reset is reported as a reset; otherwise as a refusal (§3.10.7.4);
    /// - the FIN of an application that still reads waits until our SYN is acknowledged, and is then sent before the rest of
    ///   that segment is acknowledged; otherwise it is sent at once (§3.10.4).
    pub answers_crossing_syn: bool,
    /// An ICMP error for our SYN-ACK ends the handshake: over IPv4 a soft error, unless it says "prohibited"; over IPv6 a hard
    /// error, "prohibited" or "parameter problem". Otherwise only a hard error does, because the path may recover before the
    /// handshake times out (RFC 5461 §2).
    pub soft_errors_end_handshakes: bool,

    // Closing and resets.
    /// Data received before a reset can still be read. Otherwise the reset discards it (RFC 9293 §3.10.7.4).
    pub received_data_survives_reset: bool,
    /// After a reset in CLOSE-WAIT, a read returns the end of the stream and a write fails as on a closed connection; a reset
    /// in CLOSING or LAST-ACK is reported to a write, or on request. Otherwise after a reset in CLOSE-WAIT both fail with the
    /// reset, and one in CLOSING or LAST-ACK only ends the connection.
    pub reset_after_fin_is_closed: bool,
    /// A reset with the sequence number of the peer's received FIN is valid: some systems send one when a program is killed.
    /// Otherwise it lies before the window (RFC 9293 §3.10.7.4).
    pub reset_at_fin_is_valid: bool,
    /// Data for a socket that is closed for reading, and data beyond a FIN, is answered as if there were no connection; in
    /// TIME-WAIT it is acknowledged. Otherwise unread data is answered by a reset of the connection (RFC 9293 §3.6.1), and data
    /// beyond a FIN is ignored.
    pub unread_data_has_no_connection: bool,
    /// Orphaned FIN-WAIT-2 and TIME-WAIT keep minimal state: data and a SYN in FIN-WAIT-2 are answered as if there were no
    /// connection, a reset ends both, and segments outside the window are acknowledged. Otherwise both follow RFC 9293
    /// §3.10.7.4 and RFC 1337.
    pub minimal_last_states: bool,
}

/// Which segments bear PSH.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub enum PushPlacement {
    /// The last segment of the queued data (RFC 9293 §3.9.1.2).
    QueueEnd,
    /// The last segment of each write as far as it was sent, and one after each half of the largest window seen.
    WritesAndHalfWindows,
}

/// When data is acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub enum DelayedAck {
    /// Every second full segment, and after `acknowledgment_delay` (RFC 9293 §3.8.6.3).
    EverySecondSegment,
    /// Adapted to the arrival rate, as in Linux: at once at the beginning, while the window grows and after an idle period
    /// (quick-ACK mode); otherwise after a delay that follows the time between segments, or with the application's answer
    /// (interactive mode).
    Adaptive,
}

impl Default for Policy {
    fn default() -> Self {
        Policy::rfc()
    }
}

impl Policy {
    /// The choices of the RFCs.
    pub fn rfc() -> Self {
        Policy {
            push: PushPlacement::QueueEnd,
            delayed_ack: DelayedAck::EverySecondSegment,
            challenge_interval: None,
            bad_syn_ack_retry: None,
            congestion_window_counts_segments: false,
            congestion_window_grows_on_sack: false,
            partial_acks_recut_segments: false,
            fills_window_behind_full_segments: false,
            mss_at_most_half_window: false,
            cork_lasts_rto: false,
            window_probes_are_empty: false,
            tail_probes_are_full_segments: false,
            sequence_may_pass_rounded_window: false,
            fin_may_pass_window: false,
            half_open_ends_in_silence: false,
            syn_with_fin_is_dropped: false,
            urgent_goes_with_data: false,
            retransmitted_syn_sets_cwr: false,
            resets_carry_urg_and_ece: false,
            rtt_sample_for_each_ack: false,
            rttvar_falls_slowly: false,
            user_timeout_from_retransmission: false,
            soft_errors_name_timeouts: false,
            icmp_may_quote_snd_nxt: false,
            icmp_reverts_back_off: false,
            smaller_mtu_is_loss: false,
            same_sequence_only_widens_window: false,
            syn_advertises_whole_window: false,
            window_updates_on_doubling: false,
            ece_needs_data_in_flight: false,
            zero_urgent_pointer_counts: false,
            segments_need_ack_flag: false,
            unacknowledged_range_is_acceptable: false,
            old_acks_update_nothing: false,
            pure_acks_pass_paws: false,
            handshake_ack_needs_echo: false,
            bad_handshakes_are_reset: false,
            syn_ack_data_is_dropped: false,
            answers_crossing_syn: false,
            soft_errors_end_handshakes: false,
            received_data_survives_reset: false,
            reset_after_fin_is_closed: false,
            reset_at_fin_is_valid: false,
            unread_data_has_no_connection: false,
            minimal_last_states: false,
        }
    }
    /// The choices of a current Linux with default settings.
    pub fn linux() -> Self {
        Policy {
            push: PushPlacement::WritesAndHalfWindows,
            delayed_ack: DelayedAck::Adaptive,
            // tcp_invalid_ratelimit.
            challenge_interval: Some(Duration::from_millis(500)),
            // TCP_TIMEOUT_MIN, two ticks.
            bad_syn_ack_retry: Some(Duration::from_millis(10)),
            congestion_window_counts_segments: true,
            congestion_window_grows_on_sack: true,
            partial_acks_recut_segments: true,
            fills_window_behind_full_segments: true,
            mss_at_most_half_window: true,
            cork_lasts_rto: true,
            window_probes_are_empty: true,
            tail_probes_are_full_segments: true,
            sequence_may_pass_rounded_window: true,
            fin_may_pass_window: true,
            half_open_ends_in_silence: true,
            syn_with_fin_is_dropped: true,
            urgent_goes_with_data: true,
            retransmitted_syn_sets_cwr: true,
            resets_carry_urg_and_ece: true,
            rtt_sample_for_each_ack: true,
            rttvar_falls_slowly: true,
            user_timeout_from_retransmission: true,
            soft_errors_name_timeouts: true,
            icmp_may_quote_snd_nxt: true,
            icmp_reverts_back_off: true,
            smaller_mtu_is_loss: true,
            same_sequence_only_widens_window: true,
            syn_advertises_whole_window: true,
            window_updates_on_doubling: true,
            ece_needs_data_in_flight: true,
            zero_urgent_pointer_counts: true,
            segments_need_ack_flag: true,
            unacknowledged_range_is_acceptable: true,
            old_acks_update_nothing: true,
            pure_acks_pass_paws: true,
            handshake_ack_needs_echo: true,
            bad_handshakes_are_reset: true,
            syn_ack_data_is_dropped: true,
            answers_crossing_syn: true,
            soft_errors_end_handshakes: true,
            received_data_survives_reset: true,
            reset_after_fin_is_closed: true,
            reset_at_fin_is_valid: true,
            unread_data_has_no_connection: true,
            minimal_last_states: true,
        }
    }
}
