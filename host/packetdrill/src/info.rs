//! `TCP_INFO` and `SO_MEMINFO` in Linux's layout.

use crate::socket::{Socket, State};
use inhost_base::{Duration, Instant};
use inhost_event::TcpState;
use inhost_tcp::{Info, RecoveryState};

/// What TCP_MAXSEG says before there is a connection (RFC 9293 §3.7.1).
pub(crate) const DEFAULT_MSS: i32 = 536;
/// `struct tcp_info` with everything that a current kernel has.
const INFO_BYTES: usize = 280;
/// What Linux says of the delay of acknowledgments.
const ACKNOWLEDGMENT_TIMEOUT_US: u32 = 40_000;
/// A threshold that no window reaches, as congestion control begins with.
const NEVER_REACHED_BYTES: u32 = 1 << 30;
/// TCP_INFINITE_SSTHRESH.
const NO_THRESHOLD: u32 = 0x7fff_ffff;

const OPTION_TIMESTAMPS: u8 = 1;
const OPTION_SACK: u8 = 2;
const OPTION_SCALE: u8 = 4;
const OPTION_ECN: u8 = 8;
const OPTION_SYN_DATA: u8 = 32;

/// The number Linux gives a state.
fn state(state: TcpState) -> u8 {
    match state {
        TcpState::Established => 1,
        TcpState::SynSent => 2,
        TcpState::SynReceived => 3,
        TcpState::FinWait1 => 4,
        TcpState::FinWait2 => 5,
        TcpState::TimeWait => 6,
        TcpState::Closed => 7,
        TcpState::CloseWait => 8,
        TcpState::LastAck => 9,
        TcpState::Closing => 11,
        #[allow(unreachable_patterns)] // A state to come is none that Linux has a number for.
        _ => 7,
    }
}
const LISTENING: u8 = 10;

/// A structure being filled in.
struct Image {
    bytes: [u8; INFO_BYTES],
}

impl Image {
    fn byte(&mut self, offset: usize, value: u8) {
        self.bytes[offset] = value;
    }
    fn word(&mut self, offset: usize, value: u32) {
        self.bytes[offset..offset + 4].copy_from_slice(&value.to_ne_bytes());
    }
    fn long(&mut self, offset: usize, value: u64) {
        self.bytes[offset..offset + 8].copy_from_slice(&value.to_ne_bytes());
    }
}

fn micros(time: Duration) -> u32 {
    u32::try_from(time.as_micros()).unwrap_or(u32::MAX)
}
fn millis(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX)
}

/// `struct tcp_info`.
pub(crate) fn connection(socket: &Socket, tcp: Option<&Info>, now: Instant) -> Vec<u8> {
    let mut image = Image { bytes: [0; INFO_BYTES] };
    let Some(info) = tcp else {
        let listens = matches!(socket.state, State::Listener(_));
        image.byte(0, if listens { LISTENING } else { state(TcpState::Closed) });
        return image.bytes.to_vec();
    };
    image.state(info);
    image.times(info);
    image.segments(info);
    image.totals(info);
    if let Some(buffer) = &socket.send_buffer {
        image.long(184, buffer.send_buffer_limited(now).as_micros());
    }
    image.bytes.to_vec()
}

impl Image {
    fn state(&mut self, info: &Info) {
        self.byte(0, state(info.state));
        self.byte(1, recovery(info.recovery));
        self.byte(2, info.retransmission_backoff);
        self.byte(3, info.unanswered_probes);
        self.byte(4, info.retransmission_backoff);
        let options = [
            (info.timestamps, OPTION_TIMESTAMPS),
            (info.sack, OPTION_SACK),
            (info.window_scaling, OPTION_SCALE),
            (info.ecn, OPTION_ECN),
            (info.syn_data_taken, OPTION_SYN_DATA),
        ];
        let set = options.iter().filter(|(on, _)| *on).fold(0, |set, (_, bit)| set | bit);
        self.byte(5, set);
        self.byte(6, info.send_window_scale | info.receive_window_scale << 4);
        self.byte(7, u8::from(info.delivery_rate_is_application_limited));
    }
    fn times(&mut self, info: &Info) {
        self.word(8, micros(info.retransmission_timeout));
        self.word(12, ACKNOWLEDGMENT_TIMEOUT_US);
        self.word(52, millis(info.since_data_received));
        self.word(68, info.smoothed_round_trip.map_or(0, micros));
        self.word(72, micros(info.round_trip_variation));
        self.word(92, info.receive_round_trip.map_or(0, micros));
        self.word(148, info.min_round_trip.map_or(u32::MAX, micros));
        self.long(168, info.busy.as_micros());
        self.long(176, info.receive_window_limited.as_micros());
        self.long(184, info.send_buffer_limited.as_micros());
    }
    /// What Linux counts in segments.
    fn segments(&mut self, info: &Info) {
        let mss = u32::from(info.send_segment_bytes).max(1);
        let segments = |bytes: u32| bytes.div_ceil(mss);
        self.word(16, mss);
        self.word(20, u32::from(info.receive_segment_bytes));
        let opening = matches!(info.state, TcpState::SynSent | TcpState::SynReceived);
        let outstanding = info.send_next.since(info.send_unacknowledged);
        self.word(24, if opening { outstanding.min(1) } else { segments(outstanding) });
        self.word(28, segments(info.sacked_bytes));
        // To Linux what was sent again is lost until it is acknowledged.
        self.word(32, segments(info.lost_bytes + info.retransmitted_in_flight_bytes));
        self.word(36, segments(info.retransmitted_in_flight_bytes));
        self.word(60, u32::from(info.path_segment_bytes) + 40);
        self.word(76, threshold(info, mss));
        self.word(80, info.congestion_window_bytes / mss);
        self.word(84, u32::from(info.offered_segment_bytes));
        self.word(88, u32::from(info.reordering_segments));
        self.word(192, info.delivered_segments);
        self.word(196, 0);
    }
    fn totals(&mut self, info: &Info) {
        self.word(100, info.retransmitted_segments);
        self.long(104, info.pacing_rate_bytes_per_second);
        self.long(112, u64::MAX);
        self.long(120, info.sent_bytes);
        self.long(128, info.received_bytes);
        self.word(144, info.not_sent_bytes as u32);
        self.long(160, info.delivery_rate_bytes_per_second);
        self.long(208, info.retransmitted_bytes);
        self.word(216, info.duplicate_sacks);
        self.word(220, info.reorderings);
        self.word(228, info.send_window_bytes);
        self.word(232, info.receive_window_bytes);
    }
}

/// The number of Linux's congestion-avoidance state.
fn recovery(state: RecoveryState) -> u8 {
    match state {
        RecoveryState::Open => 0,
        RecoveryState::Disorder => 1,
        RecoveryState::WindowReduction => 2,
        RecoveryState::Recovery => 3,
        RecoveryState::Loss => 4,
    }
}

fn threshold(info: &Info, mss: u32) -> u32 {
    let unknown = info.slow_start_threshold_bytes >= NEVER_REACHED_BYTES;
    if unknown { NO_THRESHOLD } else { info.slow_start_threshold_bytes / mss }
}

/// The nine words of `SO_MEMINFO`.
pub(crate) fn memory(socket: &Socket, tcp: Option<&Info>) -> Vec<u8> {
    let (received, queued) = tcp.map_or((0, 0), |tcp| (tcp.receive_queue_bytes, tcp.send_queue_bytes));
    let words = [
        received,
        socket.options.receive_buffer_bytes.unwrap_or(socket.config.receive_buffer_limit_bytes),
        0,
        socket.options.send_buffer_bytes.unwrap_or(socket.config.send_buffer_limit_bytes),
        0,
        queued,
        0,
        0,
        0,
    ];
    words.iter().flat_map(|&word| (word as u32).to_ne_bytes()).collect()
}
