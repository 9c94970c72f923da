//! Flows of different round trips at one bottleneck.

use inhost_base::Duration;
use inhost_sim::{LinkConfig, QueueConfig};
use serde::{Deserialize, Serialize};

use crate::common::{
    CongestionControl, FRAME_BYTES, SEGMENT_BYTES, line, mbps, milliseconds, percent, tcp_of_today, wire,
};
use crate::star::Star;
use crate::{Measured, measured};
use inhost_sim::setup::{SetupError, within};

/// Flows begin within this time.
const STARTS: Duration = Duration::from_secs(1);

/// Flows of a short and of a long round trip share a bottleneck with tail drop. Reno's shares are as the inverse of the
/// ratio of round trips to a power: 1 where losses do not depend on a flow's rate, 2 where few flows lose together (T. V.
/// Lakshman, U. Madhow, IEEE/ACM Transactions on Networking 5(3), 1997; RFC 9438 §3.3). CUBIC's window grows by time and not
/// by round trip, so that its shares are as the inverse of the ratio itself (RFC 9438 §3.3).
///
/// Acknowledgments arrive with some jitter, so that no flow is in step with the bottleneck (phase effects; S. Floyd, V.
/// Jacobson, 1992).
///
/// Gives `short_mbps` and `long_mbps` (means of a flow), `share_ratio` of them, `round_trip_ratio` and `exponent` by the
/// round trips without a queue, `queued_round_trip_ratio` and `queued_exponent` by the smoothed round trips at the end, queue included,
/// and `used_percent` of the bottleneck.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct RttUnfairness {
    /// Congestion control of all flows. Default: `new-reno`.
    pub congestion: CongestionControl,
    /// Flows of each kind; 1 to 20. Default: 2.
    pub flows: u32,
    /// The short round trip, in milliseconds; 1 to 1,000. Default: 40.
    pub round_trip_ms: f64,
    /// The long one as a multiple of the short one; 1 to 20. Default: 4.
    pub ratio: f64,
    /// Rate of the bottleneck, in Mbit/s; 0.1 to 1,000. Default: 10.
    pub bottleneck_mbps: f64,
    /// Packets that may wait at the bottleneck; 1 to 10,000. Default: 25.
    pub buffer_packets: u32,
    /// Time that is measured, after a quarter of it, in seconds; 1 to 1,000. Default: 60.
    pub duration_s: u32,
}

impl Default for RttUnfairness {
    fn default() -> Self {
        RttUnfairness {
            congestion: CongestionControl::NewReno,
            flows: 2,
            round_trip_ms: 40.0,
            ratio: 4.0,
            bottleneck_mbps: 10.0,
            buffer_packets: 25,
            duration_s: 60,
        }
    }
}

impl RttUnfairness {
    pub(crate) fn run(&self, seed: u64) -> Result<Measured, SetupError> {
        within("flows", self.flows, 1..=20)?;
        within("round_trip_ms", self.round_trip_ms, 1.0..=1000.0)?;
        within("ratio", self.ratio, 1.0..=20.0)?;
        within("bottleneck_mbps", self.bottleneck_mbps, 0.1..=1000.0)?;
        within("buffer_packets", self.buffer_packets, 1..=10_000)?;
        within("duration_s", self.duration_s, 1..=1000)?;
        let mut star = Star::new(seed);
        let bottleneck = LinkConfig {
            queue: QueueConfig::tail_drop(self.buffer_packets as usize),
            ..line(self.bottleneck_mbps, Duration::ZERO)
        };
        let receiver = star.add(tcp_of_today(self.congestion), wire(Duration::ZERO), bottleneck)?;
        star.serve_sink(receiver)?;
        let frame_ms = FRAME_BYTES as f64 * 8.0 / 1e3 / self.bottleneck_mbps;
        let mut groups = [Vec::new(), Vec::new()];
        for (group, ratio) in groups.iter_mut().zip([1.0, self.ratio]) {
            for _ in 0..self.flows {
                let one_way = milliseconds(self.round_trip_ms * ratio / 2.0);
                let back = LinkConfig { jitter: milliseconds(frame_ms), ..wire(one_way) };
                let sender = star.add(tcp_of_today(self.congestion), wire(one_way), back)?;
                let after = star.some_time(STARTS);
                star.start_bulk(sender, receiver, after);
                group.push(sender);
            }
        }
        let time = Duration::from_secs(u64::from(self.duration_s));
        star.pass(STARTS + time.divided_by(4))?;
        let bytes =
            |star: &Star, group: &[usize]| group.iter().map(|&host| star.received().from(host)).sum::<u64>();
        let before = groups.each_ref().map(|group| bytes(&star, group));
        star.pass(time)?;
        let after = groups.each_ref().map(|group| bytes(&star, group));
        let rate = |group: usize| mbps(after[group] - before[group], time) / f64::from(self.flows);
        let (short_mbps, long_mbps) = (rate(0), rate(1));
        let round_trip_ms = |group: &[usize]| {
            let times = group
                .iter()
                .flat_map(|&host| star.connections(host))
                .filter_map(|info| info.smoothed_round_trip);
            times.map(|time| time.as_secs_f64() * 1e3).sum::<f64>() / f64::from(self.flows)
        };
        let queued_ratio = round_trip_ms(&groups[1]) / round_trip_ms(&groups[0]).max(1e-9);
        let share_ratio = short_mbps / long_mbps.max(1e-9);
        let capacity_mbps = self.bottleneck_mbps * f64::from(SEGMENT_BYTES) / FRAME_BYTES as f64;
        Ok(measured([
            ("short_mbps", short_mbps),
            ("long_mbps", long_mbps),
            ("share_ratio", share_ratio),
            ("round_trip_ratio", self.ratio),
            ("exponent", exponent(share_ratio, self.ratio)),
            ("queued_round_trip_ratio", queued_ratio),
            ("queued_exponent", exponent(share_ratio, queued_ratio)),
            ("used_percent", percent((short_mbps + long_mbps) * f64::from(self.flows), capacity_mbps)),
        ]))
    }
}

/// The power of the ratio of round trips that the shares have; 0 for equal round trips.
fn exponent(share_ratio: f64, round_trip_ratio: f64) -> f64 {
    if (round_trip_ratio - 1.0).abs() < 1e-3 { 0.0 } else { share_ratio.ln() / round_trip_ratio.ln() }
}
