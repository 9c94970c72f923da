//! Congestion collapse, and the mechanisms that prevent it.

use inhost_base::Duration;
use inhost_congestion::CongestionChoice;
use inhost_sim::QueueConfig;
use inhost_socket::Host;
use inhost_stack::{SendHow, TcpConfig};
use serde::{Deserialize, Serialize};

use crate::common::{FRAME_BYTES, FixedWindow, line, mbps, milliseconds, percent, tcp_of_1988, wire};
use crate::star::{Star, text};
use crate::{Measured, measured};
use inhost_sim::setup::{SetupError, within};

/// Payload of a full segment without timestamps.
const SEGMENT_BYTES: usize = 1460;
/// Duplicate acknowledgments that never come: fast retransmit is off.
const NEVER_SEGMENTS: u8 = u8::MAX;

/// Goodput against offered load at a bottleneck with tail drop, with the mechanisms of 1988 and without each of them
/// (J. Nagle, RFC 896; V. Jacobson, "Congestion Avoidance and Control", SIGCOMM 1988; RFC 2914 §5; RFC 5681; RFC 6298 §5.5).
/// Senders have TCP of 1988 and 1990: NewReno without SACK, timestamps and all that came later.
///
/// Each sender's program writes a segment at a time at an even pace, and drops what TCP does not take: the offered load
/// does not fall when the network is slow. A sender has at most `window_segments` in flight.
///
/// What the switches do to the stack:
/// - without `congestion_window`, the window is `window_segments`, by a congestion control of this crate;
/// - without `adaptive_timer`, the timer is `fixed_timer_ms` (`max_retransmission_timeout`): it follows neither round trip
///   nor variance, and never backs off. The stack has no switch for the variance alone;
/// - without `back_off`, the timer is at most the longest round trip of the network and the stack's margin of 200 ms
///   (`max_retransmission_timeout`): it follows the round trip, and has no room to double once the queue is full;
/// - without `fast_retransmit`, 255 duplicate acknowledgments are needed (`reordering_segments`).
///
/// After a timeout the stack retransmits one segment and waits for its acknowledgment, in every setting.
///
/// Gives `goodput_mbps`, `goodput_percent` of the bottleneck, `offered_mbps`, `offered_percent`, `sent_mbps` with
/// retransmissions, `retransmitted_percent` of segments sent, `duplicate_percent` of the data that arrived, `dropped_percent`
/// of the frames that came to the bottleneck, `timeouts`, `round_trip_ms` (smoothed, mean of the senders).
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Mechanisms {
    /// Senders; 1 to 100. Default: 10.
    pub senders: u32,
    /// Load that all programs offer together, in percent of the bottleneck; 1 to 1,000. Default: 200.
    pub offered_percent: f64,
    /// Segments of 1,460 bytes that each sender may have in flight; 2 to 500. Default: 24.
    pub window_segments: u32,
    /// Rate of the bottleneck, in Mbit/s; 0.1 to 100. Default: 1.5.
    pub bottleneck_mbps: f64,
    /// Packets that may wait at the bottleneck; 1 to 10,000. Default: 150.
    pub buffer_packets: u32,
    /// Round trip without a queue, in milliseconds; 1 to 1,000. Default: 100.
    pub round_trip_ms: f64,
    /// Slow start, congestion avoidance and the reduction at a loss. Default: on.
    pub congestion_window: bool,
    /// A retransmission timer by mean and variance of the round trip. Default: on.
    pub adaptive_timer: bool,
    /// Doubling of the timer at each timeout; without `adaptive_timer` there is none. Default: on.
    pub back_off: bool,
    /// The timer without `adaptive_timer`, in milliseconds; 10 to 60,000. Default: 500.
    pub fixed_timer_ms: f64,
    /// Retransmission after three duplicate acknowledgments. Default: on.
    pub fast_retransmit: bool,
    /// Time that is measured, in seconds; 1 to 600. Default: 60.
    pub duration_s: u32,
}

impl Default for Mechanisms {
    fn default() -> Self {
        Mechanisms {
            senders: 10,
            offered_percent: 200.0,
            window_segments: 24,
            bottleneck_mbps: 1.5,
            buffer_packets: 150,
            round_trip_ms: 100.0,
            congestion_window: true,
            adaptive_timer: true,
            back_off: true,
            fixed_timer_ms: 500.0,
            fast_retransmit: true,
            duration_s: 60,
        }
    }
}

impl Mechanisms {
    pub(crate) fn run(&self, seed: u64) -> Result<Measured, SetupError> {
        self.check()?;
        let mut star = Star::new(seed);
        let one_way = milliseconds(self.round_trip_ms / 2.0);
        let bottleneck = inhost_sim::LinkConfig {
            queue: QueueConfig::tail_drop(self.buffer_packets as usize),
            ..line(self.bottleneck_mbps, Duration::ZERO)
        };
        let receiver = star.add(tcp_of_1988(), wire(Duration::ZERO), bottleneck)?;
        star.serve_sink(receiver)?;
        let capacity_mbps = self.bottleneck_mbps * SEGMENT_BYTES as f64 / FRAME_BYTES as f64;
        let offered_mbps =
            self.bottleneck_mbps * self.offered_percent / 100.0 * SEGMENT_BYTES as f64 / FRAME_BYTES as f64;
        let each_bytes_per_s = offered_mbps * 1e6 / 8.0 / f64::from(self.senders);
        let interval = milliseconds(SEGMENT_BYTES as f64 * 1000.0 / each_bytes_per_s);
        for _ in 0..self.senders {
            let sender = star.add(self.tcp(), wire(one_way), wire(one_way))?;
            let (host, to, after) = (star.host(sender), star.at(receiver), star.some_time(interval));
            star.spawn(sender, offer(host, to, after, interval));
        }
        let time = Duration::from_secs(u64::from(self.duration_s));
        star.pass(time.divided_by(4))?;
        let before = self.sums(&star, receiver);
        star.pass(time)?;
        let after = self.sums(&star, receiver);
        let of = |part: fn(&Sums) -> u64| part(&after) - part(&before);
        let goodput_mbps = mbps(of(|sums| sums.received), time);
        let delivered = of(|sums| sums.delivered) as f64;
        let port = |part: fn(&Sums) -> u64| of(part) as f64;
        let senders = 1..=self.senders as usize;
        let round_trips =
            senders.flat_map(|sender| star.connections(sender)).filter_map(|info| info.smoothed_round_trip);
        let round_trip_ms =
            round_trips.map(|time| time.as_secs_f64() * 1e3).sum::<f64>() / f64::from(self.senders);
        Ok(measured([
            ("goodput_mbps", goodput_mbps),
            ("goodput_percent", percent(goodput_mbps, capacity_mbps)),
            ("offered_mbps", offered_mbps),
            ("offered_percent", self.offered_percent),
            ("sent_mbps", mbps(of(|sums| sums.sent_bytes), time)),
            (
                "retransmitted_percent",
                percent(port(|sums| sums.retransmitted), port(|sums| sums.sent_segments)),
            ),
            ("duplicate_percent", percent((delivered - of(|sums| sums.received) as f64).max(0.0), delivered)),
            ("dropped_percent", percent(port(|sums| sums.dropped), port(|sums| sums.arrived))),
            ("timeouts", port(|sums| sums.timeouts)),
            ("round_trip_ms", round_trip_ms),
        ]))
    }
    fn check(&self) -> Result<(), SetupError> {
        within("senders", self.senders, 1..=100)?;
        within("offered_percent", self.offered_percent, 1.0..=1000.0)?;
        within("window_segments", self.window_segments, 2..=500)?;
        within("bottleneck_mbps", self.bottleneck_mbps, 0.1..=100.0)?;
        within("buffer_packets", self.buffer_packets, 1..=10_000)?;
        within("round_trip_ms", self.round_trip_ms, 1.0..=1000.0)?;
        within("fixed_timer_ms", self.fixed_timer_ms, 10.0..=60_000.0)?;
        within("duration_s", self.duration_s, 1..=600)
    }
    fn tcp(&self) -> TcpConfig {
        let mut tcp = tcp_of_1988();
        let bytes = self.window_segments * SEGMENT_BYTES as u32;
        // Neither buffer grows, so that no more is in flight with a congestion window than without one.
        tcp.send_buffer_limit_bytes = bytes as usize;
        tcp.send_buffer_initial_bytes = bytes as usize;
        tcp.initial_retransmission_timeout = Duration::from_secs(1);
        if !self.congestion_window {
            tcp.congestion = CongestionChoice::custom(move || FixedWindow { bytes });
        }
        if !self.back_off {
            let frame_ms = FRAME_BYTES as f64 * 8.0 / 1e3 / self.bottleneck_mbps;
            let longest = milliseconds(self.round_trip_ms + frame_ms * f64::from(self.buffer_packets + 1));
            tcp.max_retransmission_timeout = longest + tcp.min_retransmission_timeout;
        }
        if !self.adaptive_timer {
            tcp.max_retransmission_timeout = milliseconds(self.fixed_timer_ms);
            tcp.min_retransmission_timeout = milliseconds(self.fixed_timer_ms);
            tcp.initial_retransmission_timeout = milliseconds(self.fixed_timer_ms);
        }
        if !self.fast_retransmit {
            tcp.reordering_segments = NEVER_SEGMENTS;
        }
        tcp
    }
    fn sums(&self, star: &Star, receiver: usize) -> Sums {
        let port = star.port(receiver);
        let mut sums = Sums {
            received: star.received().total(),
            delivered: star.tally().of(receiver).delivered_bytes,
            dropped: port.overflowed,
            arrived: port.sent,
            ..Sums::default()
        };
        for sender in 1..=self.senders as usize {
            let tally = star.tally().of(sender);
            sums.sent_bytes += tally.sent_bytes;
            sums.sent_segments += tally.sent_segments;
            for info in star.connections(sender) {
                sums.retransmitted += u64::from(info.retransmitted_segments);
                sums.timeouts += u64::from(info.timeouts);
            }
        }
        sums
    }
}

/// Counters of all hosts since the beginning.
#[derive(Default)]
struct Sums {
    received: u64,
    delivered: u64,
    sent_bytes: u64,
    sent_segments: u64,
    retransmitted: u64,
    timeouts: u64,
    dropped: u64,
    arrived: u64,
}

/// Writes a segment in each interval, and drops what does not find room.
async fn offer(
    host: Host,
    to: inhost_base::Endpoint,
    after: Duration,
    interval: Duration,
) -> Result<(), String> {
    host.sleep(after).await;
    let stream = host.connect(to).await.map_err(text)?;
    let segment = [7; SEGMENT_BYTES];
    let mut next = host.now();
    loop {
        if stream.writable_bytes() >= SEGMENT_BYTES {
            stream.send(&segment, SendHow::default()).await.map_err(text)?;
        }
        next += interval;
        host.sleep_until(next).await;
    }
}
