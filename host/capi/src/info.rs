//! `TCP_INFO` and `SO_MEMINFO` in Linux's layout.

use crate::descriptors::{Socket, State};
use crate::options::unsent_bytes;
use inhost_base::Duration;
use inhost_event::TcpPhase;
use inhost_tcp::Info;

/// What TCP_MAXSEG says before there is a connection (RFC 9293 §3.7.1).
pub(crate) const DEFAULT_MSS: i32 = 536;
/// `struct tcp_info` with everything that a current kernel has.
const INFO_BYTES: usize = 280;
/// TCP_INFINITE_SSTHRESH.
const NO_THRESHOLD: u32 = 0x7fff_ffff;

const OPTION_TIMESTAMPS: u8 = 1;
const OPTION_SACK: u8 = 2;
const OPTION_SCALE: u8 = 4;

/// The number Linux gives a phase.
fn state(phase: TcpPhase) -> u8 {
    match phase {
        TcpPhase::Established => 1,
        TcpPhase::SynSent => 2,
        TcpPhase::SynReceived => 3,
        TcpPhase::FinWait1 => 4,
        TcpPhase::FinWait2 => 5,
        TcpPhase::TimeWait => 6,
        TcpPhase::Closed => 7,
        TcpPhase::CloseWait => 8,
        TcpPhase::LastAck => 9,
        TcpPhase::Closing => 11,
        #[allow(unreachable_patterns)] // A phase to come is none that Linux has a number for.
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

/// `struct tcp_info`.
pub(crate) fn connection(socket: &Socket, tcp: Option<&Info>) -> Vec<u8> {
    let mut image = Image { bytes: [0; INFO_BYTES] };
    let Some(info) = tcp else {
        let listens = matches!(socket.state, State::Listener(_));
        image.byte(0, if listens { LISTENING } else { state(TcpPhase::Closed) });
        return image.bytes.to_vec();
    };
    let mss = u32::from(info.send_segment_bytes).max(1);
    image.byte(0, state(info.phase));
    image.byte(2, info.retransmission_backoff);
    image.byte(4, info.retransmission_backoff);
    let mut options = OPTION_SACK;
    if info.timestamps {
        options |= OPTION_TIMESTAMPS;
    }
    if info.send_window_scale > 0 || info.receive_window_scale > 0 {
        options |= OPTION_SCALE;
    }
    image.byte(5, options);
    image.byte(6, info.send_window_scale | info.receive_window_scale << 4);
    image.word(8, micros(info.retransmission_timeout));
    image.word(12, 40_000);
    image.word(16, mss);
    image.word(20, mss);
    image.word(24, info.in_flight_bytes.div_ceil(mss));
    image.word(60, 1500);
    image.word(68, info.smoothed_round_trip.map_or(0, micros));
    image.word(72, micros(info.round_trip_variation));
    image.word(76, threshold(info, mss));
    image.word(80, info.congestion_window_bytes / mss);
    image.word(84, 1460);
    image.word(88, 3);
    image.word(100, info.retransmitted_segments);
    image.long(120, info.sent_bytes);
    image.long(128, info.received_bytes);
    image.word(144, unsent_bytes(info) as u32);
    image.word(228, info.send_window_bytes);
    image.word(232, info.receive_window_bytes);
    image.bytes.to_vec()
}

fn threshold(info: &Info, mss: u32) -> u32 {
    match info.slow_start_threshold_bytes / mss {
        segments if info.slow_start_threshold_bytes >= u32::MAX / 2 => segments.max(NO_THRESHOLD),
        segments => segments,
    }
    .min(NO_THRESHOLD)
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
