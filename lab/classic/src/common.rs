//! What several setups name: congestion control, queues, percentages, times.

use inhost_base::Duration;
use inhost_base::Instant;
use inhost_congestion::{Acknowledged, CongestionChoice, CongestionController, CongestionWindow};
use inhost_sim::{CodelConfig, Discipline, FqCodelConfig, LinkConfig, QueueConfig, QueueLimit, WhenFull};
use inhost_stack::TcpConfig;
use inhost_tcp::EcnMode;
use serde::{Deserialize, Serialize};

/// Bytes of a packet on the simulated links.
pub(crate) const MTU_BYTES: u16 = 1500;
/// Payload of a full segment with timestamps: the packet less 20 bytes of IP, 20 of TCP and 12 of options.
pub(crate) const SEGMENT_BYTES: u32 = 1448;
/// Bytes of a full frame: the packet and the Ethernet header.
pub(crate) const FRAME_BYTES: u64 = MTU_BYTES as u64 + 14;

/// A congestion control.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum CongestionControl {
    /// Reno's window with NewReno's recovery (RFC 5681, RFC 6582).
    NewReno,
    /// CUBIC (RFC 9438).
    Cubic,
}

impl CongestionControl {
    pub(crate) fn choice(self) -> CongestionChoice {
        match self {
            CongestionControl::NewReno => CongestionChoice::NewReno,
            CongestionControl::Cubic => CongestionChoice::Cubic,
        }
    }
}

/// The discipline of a bottleneck's queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum QueueDiscipline {
    /// In order; what finds no room is lost.
    TailDrop,
    /// CoDel (RFC 8289); marks in place of drops where hosts use ECN.
    Codel,
    /// FQ-CoDel (RFC 8290); marks in place of drops where hosts use ECN.
    FqCodel,
}

impl QueueDiscipline {
    /// A queue of so many packets with CoDel's defaults: 5 ms and 100 ms.
    pub(crate) fn queue(self, packets: u32) -> QueueConfig {
        self.queue_of(packets, CodelConfig::default())
    }
    /// A queue of so many packets.
    pub(crate) fn queue_of(self, packets: u32, codel: CodelConfig) -> QueueConfig {
        let codel = CodelConfig { marks: true, ..codel };
        let discipline = match self {
            QueueDiscipline::TailDrop => Discipline::TailDrop,
            QueueDiscipline::Codel => Discipline::Codel(codel),
            QueueDiscipline::FqCodel => {
                Discipline::FqCodel(FqCodelConfig { codel, ..FqCodelConfig::default() })
            }
        };
        QueueConfig {
            limit: QueueLimit::Packets(packets as usize),
            when_full: WhenFull::Drop,
            discipline,
            mark_from: None,
        }
    }
}

/// A congestion window of one size, whatever happens: what hosts had before 1988. After a timeout the stack begins with
/// one segment; the first acknowledgment brings the whole window back.
#[derive(Debug)]
pub(crate) struct FixedWindow {
    pub(crate) bytes: u32,
}

impl CongestionController for FixedWindow {
    fn name(&self) -> &'static str {
        "fixed"
    }
    fn opened(&mut self, window: &mut CongestionWindow) {
        window.window_bytes = self.bytes;
    }
    fn acknowledged(&mut self, window: &mut CongestionWindow, _: &Acknowledged, _window_limited: bool) {
        window.window_bytes = self.bytes;
    }
    fn lost(&mut self, window: &mut CongestionWindow, _in_flight_bytes: u32, _: Instant) {
        window.threshold_bytes = self.bytes;
    }
    fn restarted(&mut self, window: &mut CongestionWindow) {
        window.window_bytes = self.bytes;
    }
}

/// The stack's defaults, with buffers that limit nothing.
pub(crate) fn tcp_of_today(congestion: CongestionControl) -> TcpConfig {
    let mut tcp = TcpConfig::default();
    tcp.congestion = congestion.choice();
    tcp.receive_buffer_limit_bytes = 16 << 20;
    tcp.receive_buffer_initial_bytes = 16 << 20;
    tcp.send_buffer_limit_bytes = 8 << 20;
    tcp
}

/// TCP of 1988 and 1990: slow start, congestion avoidance, fast retransmit and NewReno's recovery, and nothing of what came
/// later: no SACK, timestamps, RACK, tail loss probes, F-RTO, pacing or ECN.
pub(crate) fn tcp_of_1988() -> TcpConfig {
    let mut tcp = tcp_of_today(CongestionControl::NewReno);
    tcp.sack = false;
    tcp.timestamps = false;
    tcp.rack = false;
    tcp.tail_loss_probe = false;
    tcp.proportional_rate_reduction = false;
    tcp.forward_rto = false;
    tcp.undo = false;
    tcp.rto_restart = false;
    tcp.pacing = false;
    tcp.ecn = EcnMode::Off;
    tcp.initial_window_segments = 1;
    tcp
}

/// A link of a delay whose sender never waits.
pub(crate) fn wire(delay: Duration) -> LinkConfig {
    LinkConfig { delay, ..LinkConfig::default() }
}

/// A link of a rate and a delay.
pub(crate) fn line(megabits_per_second: f64, delay: Duration) -> LinkConfig {
    LinkConfig { rate_bits_per_second: Some((megabits_per_second * 1e6) as u64), ..wire(delay) }
}

/// Milliseconds as a duration.
pub(crate) fn milliseconds(value: f64) -> Duration {
    Duration::from_nanos((value.max(0.0) * 1e6) as u64)
}

/// A percentage in parts of a million.
pub(crate) fn per_million(percent: f64) -> u32 {
    (percent * 10_000.0).round() as u32
}

/// A part of a whole in percent; 0 of nothing.
pub(crate) fn percent(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { 100.0 * part / whole } else { 0.0 }
}

/// Bytes in a time as megabits a second.
pub(crate) fn mbps(bytes: u64, time: Duration) -> f64 {
    bytes as f64 * 8.0 / 1e6 / time.as_secs_f64()
}

/// The value below which `percent` of the sorted values are (nearest rank); 0 of none.
pub(crate) fn percentile(sorted: &[f64], percent: f64) -> f64 {
    let rank = (sorted.len() as f64 * percent / 100.0).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied().unwrap_or(0.0)
}
