//! Throughput by loss.

use inhost_base::Duration;
use inhost_sim::{LinkConfig, Loss};
use serde::{Deserialize, Serialize};

use crate::common::{
    CongestionControl, SEGMENT_BYTES, mbps, milliseconds, per_million, percent, tcp_of_today, wire,
};
use crate::star::Star;
use crate::{Measured, measured};
use inhost_sim::setup::{SetupError, within};

/// Slow start's end is not measured.
const WARM_UP_ROUND_TRIPS: u64 = 100;
/// Mathis' constant where each packet is lost by chance with the same probability, losses are one in `1/p` packets, and
/// the window grows by a segment each round trip: the square root of 3/2.
const MATHIS: f64 = 1.224_744_871;

/// Throughput of one flow on a path whose only limit is loss, beside the square-root law: segment · √(3/2) / (round trip ·
/// √p) (M. Mathis, J. Semke, J. Mahdavi, T. Ott, "The Macroscopic Behavior of the TCP Congestion Avoidance Algorithm", ACM
/// CCR 27(3), 1997), and beside the response function with timeouts (RFC 5348 §3.1, with b = 1 and t_RTO = 4 R). This host
/// counts bytes, not acknowledgments, so that its window grows by a segment each round trip with delayed acknowledgments,
/// too.
///
/// Gives `throughput_mbps`, `law_mbps`, `of_law_percent`, `law_with_timeouts_mbps`, `cubic_law_mbps` (the larger one of Reno's
/// law and of CUBIC's, RFC 9438 §5), `lost_percent` (as it came out),
/// `timeouts`, `segments`.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct LossLaw {
    /// Congestion control of the sender. The laws are of `new-reno`. Default: `new-reno`.
    pub congestion: CongestionControl,
    /// Packets lost on the way to the receiver, in percent, each by chance; 0.01 to 20. Default: 1.
    pub loss_percent: f64,
    /// Round trip, in milliseconds; 1 to 1,000. Default: 50.
    pub round_trip_ms: f64,
    /// Losses that are expected in the time that is measured; 10 to 2,000. Default: 150.
    pub losses: u32,
}

impl Default for LossLaw {
    fn default() -> Self {
        LossLaw {
            congestion: CongestionControl::NewReno,
            loss_percent: 1.0,
            round_trip_ms: 50.0,
            losses: 150,
        }
    }
}

impl LossLaw {
    pub(crate) fn run(&self, seed: u64) -> Result<Measured, SetupError> {
        within("loss_percent", self.loss_percent, 0.01..=20.0)?;
        within("round_trip_ms", self.round_trip_ms, 1.0..=1000.0)?;
        within("losses", self.losses, 10..=2000)?;
        let (round_trip, loss) = (milliseconds(self.round_trip_ms), self.loss_percent / 100.0);
        let mut star = Star::new(seed);
        let one_way = round_trip.divided_by(2);
        let lossy = LinkConfig {
            loss: Loss::Random { per_million: per_million(self.loss_percent) },
            ..wire(Duration::ZERO)
        };
        let receiver = star.add(tcp_of_today(self.congestion), wire(Duration::ZERO), lossy)?;
        let sender = star.add(tcp_of_today(self.congestion), wire(one_way), wire(one_way))?;
        star.serve_sink(receiver)?;
        star.start_bulk(sender, receiver, Duration::ZERO);
        star.pass(round_trip.times(WARM_UP_ROUND_TRIPS))?;

        let law = law_bytes_per_s(round_trip, loss);
        let expected_s = f64::from(self.losses) / loss * f64::from(SEGMENT_BYTES) / law;
        let time = milliseconds(expected_s * 1000.0);
        let (bytes, port) = (star.received().total(), star.port(receiver));
        star.pass(time)?;
        let (bytes, after) = (star.received().total() - bytes, star.port(receiver));
        let timeouts = star.connections(sender).iter().map(|info| f64::from(info.timeouts)).sum();
        let (throughput_mbps, law_mbps) = (mbps(bytes, time), law * 8.0 / 1e6);
        let sent = (after.sent - port.sent) as f64;
        Ok(measured([
            ("throughput_mbps", throughput_mbps),
            ("law_mbps", law_mbps),
            ("of_law_percent", percent(throughput_mbps, law_mbps)),
            ("law_with_timeouts_mbps", response_bytes_per_s(round_trip, loss) * 8.0 / 1e6),
            ("cubic_law_mbps", cubic_bytes_per_s(round_trip, loss).max(law) * 8.0 / 1e6),
            ("lost_percent", percent((after.lost - port.lost) as f64, sent)),
            ("timeouts", timeouts),
            ("segments", sent),
        ]))
    }
}

/// The square-root law.
fn law_bytes_per_s(round_trip: Duration, loss: f64) -> f64 {
    f64::from(SEGMENT_BYTES) * MATHIS / (round_trip.as_secs_f64() * loss.sqrt())
}

/// CUBIC's law where it is not Reno-friendly: a window of 1.054 · RTT^¾ / p^¾ segments (RFC 9438 §5, with C = 0.4 and β = 0.7).
fn cubic_bytes_per_s(round_trip: Duration, loss: f64) -> f64 {
    let round_trip_s = round_trip.as_secs_f64();
    f64::from(SEGMENT_BYTES) * 1.054 * (round_trip_s / loss).powf(0.75) / round_trip_s
}

/// RFC 5348 §3.1.
fn response_bytes_per_s(round_trip: Duration, loss: f64) -> f64 {
    let round_trip_s = round_trip.as_secs_f64();
    let recovery = round_trip_s * (2.0 * loss / 3.0).sqrt();
    let timeouts = 4.0 * round_trip_s * (3.0 * (3.0 * loss / 8.0).sqrt()) * loss * (1.0 + 32.0 * loss * loss);
    f64::from(SEGMENT_BYTES) / (recovery + timeouts)
}
