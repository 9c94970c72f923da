//! Where the RFCs leave a choice, or practice differs from them: which way each rule goes.

use inhost_base::Duration;

/// The choices of TCP's rules, each named for what it decides; quantities and features are in [`crate::Config`].
///
/// Each is off, or at its first variant, in [`Policy::rfc`], the default, and all are on in [`Policy::linux`]. They
/// are independent of each other: a connection may have any of them alone.
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
pub struct Policy {
    // Sending.
    /// Where PSH is set, and with it where one write is kept apart from the next.
    pub push: PushPlacement,
    /// The congestion window counts segments, however short each is, and a FIN waits for it, too. Otherwise it counts
    /// bytes (RFC 5681 §2), and a FIN without data goes at once.
    pub congestion_window_counts_segments: bool,
    /// Once the path is known to reorder more than usual, what is selectively acknowledged grows the congestion window,
    /// too. Otherwise only what is acknowledged in order does (RFC 5681 §3.1).
    pub congestion_window_grows_on_sack: bool,
    /// What left in one burst is cut anew from where an acknowledgment ends within a segment of it, and timers and round
    /// trip take note only where that leaves fewer segments. Otherwise what left is cut once, and whatever is newly
    /// acknowledged counts (RFC 6298 §5.3).
    pub partial_acks_recut_segments: bool,
    /// What the peer's window has room for behind full segments goes with them, if Nagle's algorithm lets it, and nothing
    /// that the window cuts goes alone. Otherwise it goes while nothing is in flight, if it is half of the largest window
    /// (RFC 9293 §3.8.6.2.1).
    pub fills_window_behind_full_segments: bool,
    /// Segments are at most half of the largest window that the handshake offered, so that two can be in flight. Otherwise
    /// a full segment, or half the window where that is less and nothing is in flight (RFC 9293 §3.8.6.2.1).
    pub mss_at_most_half_window: bool,
    /// Bytes without push are held back for a retransmission time-out, and the window probe is what sends them. Otherwise
    /// for `aggregation_delay`.
    pub cork_lasts_rto: bool,
    /// A closed window is probed by an old sequence number without data, or by the oldest segment again where something is
    /// in flight, and a FIN waits behind it as data does. Otherwise by the next byte, or the FIN, which is worth an answer
    /// to every receiver.
    pub window_probes_are_empty: bool,
    /// A tail loss probe takes new data only where the peer's window has room for a whole segment of it; while one is
    /// in flight, a second that falls due leaves the time-out to count from when the oldest segment left; and what the
    /// persist timer sent is not probed for. Otherwise it takes what the window allows, and the time-out begins anew
    /// (RFC 8985 §7.3).
    pub tail_probes_are_full_segments: bool,
    /// A segment without data may bear a sequence number beyond the peer's window by less than our unit of windows, because
    /// the peer's may be rounded by as much. Otherwise never beyond the edge, where it would not be acceptable.
    pub sequence_may_pass_rounded_window: bool,
    /// Urgent data is announced only by data that may leave, and while some is in flight no small segment is held back.
    /// Otherwise it is announced at once, if need be without data (RFC 9293 §3.8.5).
    pub urgent_goes_with_data: bool,
    /// A call whose SYN was sent again sets CWR on its first data, where ECN is in use. Otherwise the initial window is no
    /// reduction.
    pub retransmitted_syn_sets_cwr: bool,
    /// A reset bears URG and ECE as any other segment does. Otherwise neither.
    pub resets_carry_urg_and_ece: bool,

    // Round trip, time-outs, ICMP.
    /// Every acknowledgment measures the round trip. Otherwise one for each flight, which is enough (RFC 6298 §3) and
    /// cheaper.
    pub rtt_sample_for_each_ack: bool,
    /// RTTVAR rises with the mean deviation and falls by a quarter of the difference, once a round trip; a round trip that
    /// is shorter than expected raises the deviation by an eighth of what a longer one does. Otherwise it is the mean
    /// deviation (RFC 6298 §2.3, which allows time-outs that are longer).
    pub rttvar_falls_slowly: bool,
    /// The user time-out counts from the first retransmission by time-out. Otherwise from when the peer was last heard of
    /// what is in flight.
    pub user_timeout_from_retransmission: bool,
    /// What a time-out ends after an ICMP error that had not ended it, fails with that error. Otherwise with the time-out;
    /// the error can be asked for.
    pub soft_errors_name_timeouts: bool,
    /// An ICMP error may quote SND.NXT, and what it told is over with any acknowledgment that is not old. Otherwise it must
    /// quote what is in flight (RFC 5927 §4.1), and counts until something new is acknowledged.
    pub icmp_may_quote_snd_nxt: bool,
    /// "Host unreachable" about the oldest segment in flight takes back a doubling of the time-out. Otherwise the time-out
    /// stays (RFC 6069 is experimental).
    pub icmp_reverts_back_off: bool,
    /// What does not fit through a path whose MTU has fallen is retransmitted as after a time-out, by itself, with the
    /// congestion window as it is. Otherwise together with what follows it.
    pub smaller_mtu_is_loss: bool,

    // Receiving.
    /// When data is acknowledged.
    pub delayed_ack: DelayedAck,
    /// Between two segments with the same numbers the larger window counts, and a closed one: the smaller is taken for the
    /// older. Otherwise the later counts (RFC 9293 §3.10.7.4).
    pub same_sequence_only_widens_window: bool,
    /// The window counts as advertised with the SYN and ACK, though its field has room for 65,535 bytes only: more is
    /// taken, and nothing is sent just to tell it. Otherwise what was not told is not offered.
    pub syn_advertises_whole_window: bool,
    /// After a read the peer is told of a window that has at least doubled. Otherwise by two segments and a quarter, so
    /// that the two do not move in lock step.
    pub window_updates_on_doubling: bool,
    /// ECE counts only while data is in flight. Otherwise always (RFC 3168 §6.1.2).
    pub ece_needs_data_in_flight: bool,
    /// An urgent pointer of zero marks the first byte. Otherwise it points to the byte after the urgent ones, so that
    /// nothing is urgent (RFC 6093 §3.1).
    pub zero_urgent_pointer_counts: bool,

    // What is acceptable.
    /// A segment without ACK, RST and SYN is dropped wherever it lies, but for a handshake that a listener began. Otherwise
    /// one outside the window is answered (RFC 9293 §3.10.7.4).
    pub segments_need_ack_flag: bool,
    /// A segment that ends where the latest acknowledgment stood, or between there and the window, is acceptable: it may
    /// acknowledge something. Otherwise it lies before the window (RFC 9293 §3.10.7.4).
    pub unacknowledged_range_is_acceptable: bool,
    /// A segment whose acknowledgment is older than the latest updates neither the timestamp nor CWR. Otherwise it is in the
    /// window, and does (RFC 7323 §4.3).
    pub old_acks_update_nothing: bool,
    /// An old timestamp is no reason to drop an acknowledgment that changes nothing, within a time-out's worth, nor is one
    /// that is older by a tick; and an older acknowledgment is dropped without an answer. Otherwise all are dropped and
    /// answered (RFC 7323 §5.3).
    pub pure_acks_pass_paws: bool,
    /// Least time between two challenge acknowledgments of a connection, or answers to one SYN that comes again. Otherwise
    /// `challenge_limit_per_second` bounds them (RFC 5961 §7).
    pub challenge_interval: Option<Duration>,

    // Handshakes.
    /// The last segment of a handshake with a listener must echo a timestamp of our SYN and ACK; otherwise it is
    /// acknowledged, and dropped. Off: what is newer than we know of is believed.
    pub handshake_ack_needs_echo: bool,
    /// A segment for a handshake that a listener began is answered by a reset where it acknowledges something else,
    /// wherever it lies, and a SYN in the window ends the handshake by one. Otherwise what lies outside the window is
    /// acknowledged, and a SYN challenged (RFC 9293 §3.10.7.4, RFC 5961 §4.2).
    pub bad_handshakes_are_reset: bool,
    /// Data and FIN that come with the answer to our SYN are dropped and come again, but for Fast Open. Otherwise they are
    /// taken (RFC 9293 §3.10.7.3).
    pub syn_ack_data_is_dropped: bool,
    /// An answer to our SYN that acknowledges something else has it sent again after so long, once. Otherwise the timer
    /// paces it (RFC 6298 §5.5).
    pub bad_syn_ack_retry: Option<Duration>,
    /// Where both called at once: our SYN and ACK offers what our SYN did, whatever the other's SYN says; the other's SYN
    /// and ACK is acknowledged, and its SYN told as one that came twice (RFC 2883); a reset is told as one; and the FIN of
    /// an application that still reads waits until our SYN is acknowledged, and then leaves before what came with that is.
    /// Otherwise only what both offer is offered again, that segment was the handshake's last (RFC 9293 §3.5, figure 8), a
    /// reset is a refusal (§3.10.7.4), and the FIN goes at once (§3.10.4).
    pub answers_crossing_syn: bool,
    /// An ICMP error about our SYN and ACK that is hard ends the handshake, and no other does. Otherwise none does: the
    /// path may come back before the handshake is given up (RFC 5461 §2).
    pub soft_errors_end_handshakes: bool,

    // Closing and resets.
    /// What arrived before a reset can still be read. Otherwise not (RFC 9293 §3.10.7.4).
    pub received_data_survives_reset: bool,
    /// A reset in CLOSE-WAIT reads as the end of the stream, which it follows, and a write fails as on a connection that is
    /// closed; one in CLOSING or LAST-ACK is told to a write, or on request. Otherwise both fail because of the reset; and
    /// the other just ends the connection.
    pub reset_after_fin_is_closed: bool,
    /// A reset with the sequence number of the peer's FIN, which was received, is valid: some systems send such when a
    /// program is killed. Otherwise it lies before the window (RFC 9293 §3.10.7.4).
    pub reset_at_fin_is_valid: bool,
    /// Data that nobody is left to read is answered as if there were no connection, and so is data that goes on behind a
    /// FIN; in TIME-WAIT it is acknowledged. Otherwise by a reset of the connection's own (RFC 9293 §3.6.1), and not at all.
    pub unread_data_has_no_connection: bool,
    /// FIN-WAIT-2 that no socket holds, and TIME-WAIT, keep as little as they can: data and a SYN in FIN-WAIT-2 are answered
    /// as if there were no connection, a reset ends both, and what is out of place is acknowledged. Otherwise as RFC 9293
    /// §3.10.7.4 and RFC 1337 have it.
    pub minimal_last_states: bool,
}

/// Which segments bear PSH.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PushPlacement {
    /// The last of what is queued (RFC 9293 §3.9.1.2).
    QueueEnd,
    /// The last of each write as far as it was sent, and after each half of the largest window seen.
    WritesAndHalfWindows,
}

/// When data is acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DelayedAck {
    /// Every second full segment, and after `acknowledgment_delay` (RFC 9293 §3.8.6.3).
    EverySecondSegment,
    /// As the peer's pace asks for: at once at the beginning, as the window grows and after a silence; later after a delay
    /// that follows the time between segments, and for as long as the application answers with data.
    Adaptive,
}

impl Default for Policy {
    fn default() -> Self {
        Policy::rfc()
    }
}

impl Policy {
    /// The RFCs.
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
    /// A current Linux with default settings.
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
