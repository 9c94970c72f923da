//! Every knob of a connection.

use inhost_base::Duration;
use inhost_congestion::CongestionChoice;

/// How connections behave. Shared among connections; one that is changed takes a copy of its own, of some 400 bytes.
///
/// Two profiles are named: [`Config::rfc`], the default, follows the RFCs where they and practice differ;
/// [`Config::linux`] behaves as a current Linux does with default settings, for who compares the two.
#[derive(Clone, Debug)]
pub struct Config {
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
    /// Segments at the beginning of a connection, or after a silence of the peer's, that are acknowledged without
    /// that wait, because the peer is in slow start. Default 0; Linux up to 16.
    pub quick_acknowledgments: u8,
    /// As long as the window has grown by less than this, each segment with which it grows (one of 128 bytes in order, or
    /// any ahead of a hole where there is SACK) is acknowledged at once, as on Linux: the peer learns of the window.
    /// Default 0. In the `linux` profile 1,296: what a buffer of 128 KiB leaves beside the first window, of 44 segments.
    pub window_growth_bytes: u32,
    /// Longest time for which bytes without push are held back to fill a segment. Default 200 ms (Linux's cork).
    pub aggregation_delay: Duration,
    /// Where PSH is set. Default at the end of what is queued.
    pub push: PushPlacement,
    /// Where PSH is placed as Linux does: segments of one burst at least. Default 2 (Linux's tcp_min_tso_segs).
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
    /// Probe a closed window by an old number without data, as Linux does, instead of by the next byte, and by the oldest
    /// segment again where something is out; a FIN waits behind it as data does. Default false: a probe with a byte, or the
    /// FIN, is worth an answer to every receiver.
    pub empty_window_probes: bool,
    /// The congestion window counts segments, however short each is, and a FIN waits for it, too, as on Linux. Default
    /// false: it counts bytes (RFC 5681 §2), and a FIN without data goes at once.
    pub window_counts_segments: bool,
    /// What left in one go is cut anew from where an acknowledgment ends within a segment of it, and timers and round trip
    /// take note only where that leaves fewer segments, as on Linux. Default false: what left is cut once, and whatever is
    /// new counts (RFC 6298 §5.3).
    pub acknowledgments_move_cuts: bool,
    /// A probe of the tail takes new data only where the peer's window has room for a whole segment of it; while one is
    /// out, a second that falls due leaves the time-out to count from when the oldest segment left; and what the persist
    /// timer sent is not probed for, as on Linux. Default false: it takes what the window allows, and the time-out begins
    /// anew (RFC 8985 §7.3).
    pub tail_probes_are_whole: bool,
    /// What the peer's window has room for behind full segments goes with them, if Nagle's algorithm lets it, and nothing
    /// that the window cuts goes alone, as on Linux. Default false: it goes while nothing is out, if it is half of the largest
    /// window (RFC 9293 §3.8.6.2.1).
    pub fills_windows: bool,
    /// An ICMP error that quotes the number of the next byte to be sent is believed, too, and what it told is over with any
    /// acknowledgment that is not old, as on Linux. Default false: only one that quotes what is in flight (RFC 5927 §4.1),
    /// until something new is acknowledged.
    pub errors_may_quote_next: bool,
    /// What does not fit through a path that has become narrower goes again as after a time-out, by itself, with the
    /// window as it is, as on Linux. Default false: together with what follows it.
    pub narrow_path_is_loss: bool,
    /// A router's word that there is no way, about the oldest that is out, takes back a doubling of the time-out, as on Linux.
    /// Default false: the time-out stays (RFC 6069 is an experiment).
    pub errors_revert_back_off: bool,
    /// A call whose SYN was repeated tells with its first data that the window was reduced, where ECN is in use, as on
    /// Linux. Default false: the initial window is no reduction.
    pub repeated_syn_is_reduction: bool,
    /// A reset of ours tells of urgent data and of congestion marks as any other segment does, as on Linux. Default false.
    pub resets_tell_marks: bool,
    /// The peer's news of a congestion mark counts only while something is out, as on Linux. Default false: always
    /// (RFC 3168 §6.1.2).
    pub marks_need_data_out: bool,
    /// An urgent pointer of zero marks the first byte, as on Linux. Default false: it points to the byte after the urgent
    /// ones, so that nothing is urgent (RFC 6093 §3.1).
    pub zero_urgent_pointer_counts: bool,
    /// What arrived before a reset can still be read, as on Linux. Default false (RFC 9293 §3.10.7.4).
    pub keeps_received_after_reset: bool,
    /// A reset that comes in CLOSE-WAIT reads as the end of the stream, which it follows, and a write fails as on a
    /// connection that is closed; one that comes in CLOSING or LAST-ACK is told to whoever writes, or asks, as on Linux.
    /// Default false: both fail because of the reset; and the other just ends the connection.
    pub reset_after_end_is_closed: bool,
    /// What a time-out ends after an ICMP error that had not ended it, fails with that error, as on Linux. Default false:
    /// with the time-out; the error can be asked for.
    pub soft_errors_name_timeouts: bool,
    /// A caller is forgotten when an ICMP error comes about our answer to it that says so on Linux, and stays whatever any
    /// other says. Default false: the way may come back before the answer is given up (RFC 5461 §2).
    pub soft_errors_end_handshakes: bool,
    /// Data for which nobody is left to read it is answered as if there were no connection, as on Linux, and so is data
    /// that goes on behind a FIN; in TIME-WAIT it is acknowledged. Default false: by a reset of the connection's own
    /// (RFC 9293 §3.6.1), and not at all.
    pub unread_is_unknown: bool,
    /// FIN-WAIT-2 that nobody holds any more, and TIME-WAIT, as on Linux: data and a SYN in FIN-WAIT-2 are answered as if
    /// there were no connection, a reset ends both, and what is out of place is acknowledged. Default false: as RFC 9293
    /// §3.10.7.4 and RFC 1337 have it.
    pub small_last_states: bool,
    /// A reset with the number of the peer's FIN, which was taken, ends the connection, as on Linux: some systems send such
    /// when a program is killed. Default false: it lies before the window (RFC 9293 §3.10.7.4).
    pub believes_resets_at_fin: bool,
    /// The last step of a handshake with a listener must echo a timestamp of our SYN and ACK, as on Linux; else it is
    /// acknowledged, and dropped. Default false: what is newer than we know of is believed.
    pub answer_must_be_echoed: bool,
    /// A segment without data may bear a number beyond the peer's window by less than our unit of windows, as on Linux,
    /// which takes the peer's for as large. Default false: never beyond the edge, where it would not be acceptable.
    pub numbers_pass_rounded_edges: bool,
    /// A segment whose acknowledgment is older than the latest leaves no timestamp, and no CWR, behind, as on Linux.
    /// Default false: it is in the window, and is believed (RFC 7323 §4.3).
    pub old_acknowledgments_tell_nothing: bool,
    /// An old timestamp is no reason to drop an acknowledgment that changes nothing, within a time-out's worth, nor is one
    /// that is older by a tick; and an older acknowledgment is dropped without an answer, as on Linux. Default false: all
    /// are dropped and answered (RFC 7323 §5.3).
    pub pure_acknowledgments_pass_paws: bool,
    /// Where both called at once, as on Linux: our SYN and ACK offers what our SYN did, whatever the other's SYN says;
    /// the other's SYN and ACK is acknowledged, and its SYN told as one that came twice (RFC 2883); a reset is told as
    /// one; and the FIN of an application that still reads waits until our SYN is acknowledged, and then leaves before what
    /// came with that is. Default false: only what
    /// both offer is offered again, that segment was the handshake's last (RFC 9293 §3.5, figure 8), a reset is a refusal
    /// (§3.10.7.4), and the FIN goes at once (§3.10.4).
    pub answers_crossing_syn: bool,
    /// An answer to our SYN that acknowledges something else has it sent again after so long, once, as on Linux.
    /// Default none: the timer paces it (RFC 6298 §5.5).
    pub crossed_syn_retry: Option<Duration>,
    /// Data and FIN that come with the answer to our SYN are dropped and come again, but for Fast Open, as on Linux.
    /// Default false: they are taken (RFC 9293 §3.10.7.3).
    pub drops_data_of_syn_answers: bool,
    /// A segment without ACK, RST and SYN is dropped wherever it lies, as on Linux, but for a handshake that a listener
    /// began. Default false: outside the window it is
    /// answered (RFC 9293 §3.10.7.4).
    pub needs_acknowledgment_flag: bool,
    /// A segment for a handshake that a listener began is answered by a reset where it acknowledges something else,
    /// wherever it lies, and a SYN in the window ends the handshake by one, as on Linux. Default false: what lies outside
    /// the window is acknowledged, and a SYN challenged (RFC 9293 §3.10.7.4, RFC 5961 §4.2).
    pub resets_bad_handshakes: bool,
    /// A segment that ends where the latest acknowledgment stood, or between there and the window, is looked at, as on
    /// Linux: it may acknowledge something. Default false: it lies before the window (RFC 9293 §3.10.7.4).
    pub accepts_what_is_not_acknowledged: bool,
    /// Urgent data is announced only by the data that may leave, and while some is out no small segment is held back, as
    /// on Linux. Default false: it is announced at once, if need be without data (RFC 9293 §3.8.5).
    pub urgent_goes_with_data: bool,
    /// R2 counts from the first retransmission by time-out, as on Linux. Default false: from when the peer was last heard
    /// of what is out.
    pub patience_from_retransmission: bool,
    /// Segments are at most half of the largest window that the handshake offered, so that two are on their way, as on
    /// Linux. Default false: a full segment, or half the window where that is less and nothing is out (RFC 9293
    /// §3.8.6.2.1).
    pub halves_small_windows: bool,
    /// Between two segments with the same numbers the larger window counts, and a closed one, as on Linux: the smaller
    /// is taken for the older. Default false: the later counts (RFC 9293 §3.10.7.4).
    pub same_numbers_widen_windows: bool,
    /// Bytes without push are held back for a retransmission time-out, as on Linux, whose window probe is what sends them.
    /// Default false: for `aggregation_delay`.
    pub aggregates_for_timeout: bool,
    /// Least time between two challenge acknowledgments of a connection, or answers to one SYN that comes again, as on
    /// Linux (tcp_invalid_ratelimit, 500 ms), in place of `challenge_limit_per_second`. Default none.
    pub challenge_interval: Option<Duration>,
    /// The window counts as told with the SYN and ACK, though its field has room for 65,535 bytes only, as on Linux: more
    /// is taken, and nothing is sent just to tell it. Default false: what was not told is not offered.
    pub syn_tells_whole_window: bool,
    /// After a read the peer is told of a window that has at least doubled, as on Linux. Default false: by two segments
    /// and a quarter, so that the two do not move in lock step.
    pub doubled_window_updates: bool,
    /// Every acknowledgment measures the round trip, as on Linux. Default false: one for each flight is enough (RFC 6298
    /// §3) and cheaper.
    pub measures_every_acknowledgment: bool,
    /// The variation of the round trip rises with the mean deviation and falls by a quarter of the difference, once a
    /// round, as on Linux; a round trip that is shorter than expected raises the deviation by an eighth of what a longer
    /// one does. Default false: it is the mean deviation (RFC 6298 §2.3, which allows time-outs that are longer).
    pub variation_falls_slowly: bool,
    /// What the link refuses is lost within the host, as on Linux where its queue is full: an acknowledgment or a SYN is
    /// gone, the window is reduced, and data counts as not sent and is tried so much later at the latest (there 500 ms,
    /// TCP_RESOURCE_PROBE_INTERVAL). Default none in both profiles: a device that is full loses nothing and says when it
    /// has room. For links that drop.
    pub refusal_retry: Option<Duration>,
    /// Added to the timers of reordering and of the tail probe. Default zero; Linux 2 ms (TCP_TIMEOUT_MIN), so that its
    /// clock's coarse ticks fire none of them early.
    pub recovery_timer_slack: Duration,
    /// Once the path is known to reorder more than usual, what arrives out of order lets the window grow, too, as on
    /// Linux. Default false: only what is acknowledged in order does (RFC 5681 §3.1).
    pub grows_out_of_order: bool,
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
    /// Report segments that came twice (RFC 2883). Default true.
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
pub enum EcnMode {
    /// Never.
    Off,
    /// When the peer asks for it.
    Accept,
    /// Our calls ask for it too.
    Request,
}

/// Which segments bear PSH.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PushPlacement {
    /// The last of what is queued (RFC 9293 §3.9.1.2).
    QueueEnd,
    /// As Linux: the last of each write as far as it was sent, and after each half of the largest window seen.
    Linux,
}

/// Packetization-layer path MTU discovery (RFC 4821, RFC 8899).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
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
            push: PushPlacement::QueueEnd,
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
            empty_window_probes: false,
            window_counts_segments: false,
            acknowledgments_move_cuts: false,
            tail_probes_are_whole: false,
            fills_windows: false,
            errors_may_quote_next: false,
            narrow_path_is_loss: false,
            errors_revert_back_off: false,
            repeated_syn_is_reduction: false,
            resets_tell_marks: false,
            marks_need_data_out: false,
            zero_urgent_pointer_counts: false,
            keeps_received_after_reset: false,
            reset_after_end_is_closed: false,
            soft_errors_name_timeouts: false,
            soft_errors_end_handshakes: false,
            unread_is_unknown: false,
            small_last_states: false,
            numbers_pass_rounded_edges: false,
            believes_resets_at_fin: false,
            answer_must_be_echoed: false,
            old_acknowledgments_tell_nothing: false,
            pure_acknowledgments_pass_paws: false,
            answers_crossing_syn: false,
            crossed_syn_retry: None,
            drops_data_of_syn_answers: false,
            needs_acknowledgment_flag: false,
            resets_bad_handshakes: false,
            accepts_what_is_not_acknowledged: false,
            urgent_goes_with_data: false,
            patience_from_retransmission: false,
            halves_small_windows: false,
            same_numbers_widen_windows: false,
            aggregates_for_timeout: false,
            challenge_interval: None,
            syn_tells_whole_window: false,
            doubled_window_updates: false,
            measures_every_acknowledgment: false,
            variation_falls_slowly: false,
            refusal_retry: None,
            recovery_timer_slack: Duration::ZERO,
            grows_out_of_order: false,
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
            // tcp_wmem and tcp_rmem: 4 MiB, and 6 MiB of which half is window; the scale is chosen from 15 MiB.
            send_buffer_limit_bytes: 4 << 20,
            not_sent_low_water_bytes: usize::MAX,
            send_buffer_initial_bytes: 87_040,
            receive_buffer_limit_bytes: 30 << 20,
            receive_buffer_initial_bytes: 131_072,
            quick_acknowledgments: 16,
            window_growth_bytes: 1296,
            push: PushPlacement::Linux,
            // tcp_retries2 of 15 comes to this.
            user_timeout: Duration::from_millis(924_600),
            syn_retries: 6,
            syn_answer_retries: 5,
            syn_linear_timeouts: 4,
            max_retransmission_timeout: Duration::from_secs(120),
            empty_window_probes: true,
            window_counts_segments: true,
            acknowledgments_move_cuts: true,
            tail_probes_are_whole: true,
            fills_windows: true,
            errors_may_quote_next: true,
            narrow_path_is_loss: true,
            errors_revert_back_off: true,
            repeated_syn_is_reduction: true,
            resets_tell_marks: true,
            marks_need_data_out: true,
            zero_urgent_pointer_counts: true,
            keeps_received_after_reset: true,
            reset_after_end_is_closed: true,
            soft_errors_name_timeouts: true,
            soft_errors_end_handshakes: true,
            unread_is_unknown: true,
            small_last_states: true,
            numbers_pass_rounded_edges: true,
            believes_resets_at_fin: true,
            answer_must_be_echoed: true,
            old_acknowledgments_tell_nothing: true,
            pure_acknowledgments_pass_paws: true,
            answers_crossing_syn: true,
            // TCP_TIMEOUT_MIN, two ticks.
            crossed_syn_retry: Some(Duration::from_millis(10)),
            drops_data_of_syn_answers: true,
            needs_acknowledgment_flag: true,
            resets_bad_handshakes: true,
            accepts_what_is_not_acknowledged: true,
            urgent_goes_with_data: true,
            patience_from_retransmission: true,
            halves_small_windows: true,
            same_numbers_widen_windows: true,
            aggregates_for_timeout: true,
            challenge_interval: Some(Duration::from_millis(500)),
            syn_tells_whole_window: true,
            doubled_window_updates: true,
            measures_every_acknowledgment: true,
            variation_falls_slowly: true,
            recovery_timer_slack: Duration::from_millis(2),
            grows_out_of_order: true,
            timestamps_required: false,
            rto_restart: false,
            congestion: CongestionChoice::CubicLinux,
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
