//! Throughput by window.

use inhost_base::Duration;
use serde::{Deserialize, Serialize};

use crate::common::{CongestionControl, SEGMENT_BYTES, mbps, milliseconds, percent, tcp_of_today, wire};
use crate::star::Star;
use crate::{Measured, measured};
use inhost_sim::setup::{SetupError, within};

/// Slow start is over by then.
const WARM_UP_ROUND_TRIPS: u64 = 20;

/// Throughput of one flow whose receiver offers a fixed window, on a path without loss and without a rate: a window each
/// round trip (RFC 7323 §1.1, the window limit).
///
/// Gives `throughput_mbps`, `law_mbps`, `of_law_percent`.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct WindowLaw {
    /// The receiver's window in segments of 1,448 bytes; 2 to 1,000. Default: 16. An odd number waits for a delayed
    /// acknowledgment where its last segment comes alone.
    pub window_segments: u32,
    /// Round trip, in milliseconds; 1 to 1,000. Default: 50.
    pub round_trip_ms: f64,
    /// Round trips that are measured; 10 to 10,000. Default: 100.
    pub round_trips: u32,
}

impl Default for WindowLaw {
    fn default() -> Self {
        WindowLaw { window_segments: 16, round_trip_ms: 50.0, round_trips: 100 }
    }
}

impl WindowLaw {
    pub(crate) fn run(&self, seed: u64) -> Result<Measured, SetupError> {
        within("window_segments", self.window_segments, 2..=1000)?;
        within("round_trip_ms", self.round_trip_ms, 1.0..=1000.0)?;
        within("round_trips", self.round_trips, 10..=10_000)?;
        let round_trip = milliseconds(self.round_trip_ms);
        let one_way = round_trip.divided_by(2);
        let window_bytes = self.window_segments * SEGMENT_BYTES;
        let mut star = Star::new(seed);
        let mut tcp = tcp_of_today(CongestionControl::NewReno);
        // The window is half of the buffer.
        tcp.receive_buffer_limit_bytes = 2 * window_bytes as usize;
        tcp.receive_buffer_initial_bytes = 2 * window_bytes as usize;
        let receiver = star.add(tcp, wire(Duration::ZERO), wire(Duration::ZERO))?;
        let mut tcp = tcp_of_today(CongestionControl::NewReno);
        tcp.pacing = false;
        let sender = star.add(tcp, wire(one_way), wire(one_way))?;
        star.serve_sink(receiver)?;
        star.start_bulk(sender, receiver, Duration::ZERO);
        star.pass(round_trip.times(WARM_UP_ROUND_TRIPS))?;
        let (bytes, time) = (star.received().total(), round_trip.times(u64::from(self.round_trips)));
        star.pass(time)?;
        let throughput_mbps = mbps(star.received().total() - bytes, time);
        let law_mbps = mbps(u64::from(window_bytes), round_trip);
        Ok(measured([
            ("throughput_mbps", throughput_mbps),
            ("law_mbps", law_mbps),
            ("of_law_percent", percent(throughput_mbps, law_mbps)),
        ]))
    }
}
