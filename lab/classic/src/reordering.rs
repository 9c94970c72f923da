//! A link that changes the order of packets.

use inhost_base::Duration;
use inhost_sim::{LinkConfig, Loss, QueueConfig};
use inhost_stack::TcpConfig;
use serde::{Deserialize, Serialize};

use crate::common::{
    CongestionControl, FRAME_BYTES, SEGMENT_BYTES, line, mbps, milliseconds, per_million, percent,
    tcp_of_today, wire,
};
use crate::star::Star;
use crate::{Measured, measured};
use inhost_sim::setup::{SetupError, within};

/// The simulator holds a packet back by up to so many times the delay of its link.
const HELD_BACK_DELAYS: f64 = 9.0;
/// Slow start is over by then.
const WARM_UP: Duration = Duration::from_secs(5);

/// A flow on a path that holds some packets back while others pass. A sender that counts duplicate acknowledgments takes
/// what is late for lost; RACK gives it time (RFC 8985 §3 and §6.2), and an undone reduction gives the window back
/// (RFC 3708).
///
/// Gives `goodput_mbps`, `goodput_percent` of the bottleneck, `retransmitted_percent` of the data segments sent,
/// `spurious_percent` (data that arrived twice, of all that arrived), `reorderings` (that the sender noticed), `timeouts`,
/// `lost_percent`.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Reordering {
    /// Packets that are held back, in percent; 0 to 50. Default: 1.
    pub reordered_percent: f64,
    /// How long a packet is held back at most, in milliseconds; 0 to 4.5 round trips. Each tenth of it is equally likely,
    /// none of it, too. Default: 9.
    pub extent_ms: f64,
    /// Round trip, in milliseconds; 1 to 1,000. Default: 40.
    pub round_trip_ms: f64,
    /// Rate of the bottleneck, in Mbit/s; 0.1 to 1,000. Default: 10.
    pub bottleneck_mbps: f64,
    /// Packets that may wait at the bottleneck; 1 to 10,000. Default: 50.
    pub buffer_packets: u32,
    /// Packets that are really lost, in percent; 0 to 10. Default: 0.
    pub loss_percent: f64,
    /// Losses by time. Default: on; otherwise by count alone (RFC 6675), with a threshold that rises (`rack`).
    pub rack: bool,
    /// Undoing a reduction that proves spurious. Default: on.
    pub undo: bool,
    /// Congestion control. Default: `cubic`.
    pub congestion: CongestionControl,
    /// Time that is measured, in seconds; 1 to 600. Default: 20.
    pub duration_s: u32,
}

impl Default for Reordering {
    fn default() -> Self {
        Reordering {
            reordered_percent: 1.0,
            extent_ms: 9.0,
            round_trip_ms: 40.0,
            bottleneck_mbps: 10.0,
            buffer_packets: 50,
            loss_percent: 0.0,
            rack: true,
            undo: true,
            congestion: CongestionControl::Cubic,
            duration_s: 20,
        }
    }
}

impl Reordering {
    pub(crate) fn run(&self, seed: u64) -> Result<Measured, SetupError> {
        within("reordered_percent", self.reordered_percent, 0.0..=50.0)?;
        within("round_trip_ms", self.round_trip_ms, 1.0..=1000.0)?;
        within("extent_ms", self.extent_ms, 0.0..=HELD_BACK_DELAYS / 2.0 * self.round_trip_ms)?;
        within("bottleneck_mbps", self.bottleneck_mbps, 0.1..=1000.0)?;
        within("buffer_packets", self.buffer_packets, 1..=10_000)?;
        within("loss_percent", self.loss_percent, 0.0..=10.0)?;
        within("duration_s", self.duration_s, 1..=600)?;
        let mut star = Star::new(seed);
        let step_ms = self.extent_ms / HELD_BACK_DELAYS;
        let one_way_ms = self.round_trip_ms / 2.0;
        // The bottleneck is the sender's own line, so that what is held back does not wait in its queue again.
        let out = LinkConfig {
            queue: QueueConfig::tail_drop(self.buffer_packets as usize),
            reordered_per_million: per_million(self.reordered_percent),
            loss: Loss::Random { per_million: per_million(self.loss_percent) },
            ..line(self.bottleneck_mbps, milliseconds(step_ms))
        };
        let rest = wire(milliseconds(one_way_ms - step_ms));
        let receiver = star.add(self.tcp(), wire(Duration::ZERO), rest)?;
        let sender = star.add(self.tcp(), out, wire(milliseconds(one_way_ms)))?;
        star.serve_sink(receiver)?;
        star.start_bulk(sender, receiver, Duration::ZERO);
        star.pass(WARM_UP)?;
        let before = Sums::of(&star, sender, receiver);
        let time = Duration::from_secs(u64::from(self.duration_s));
        star.pass(time)?;
        let after = Sums::of(&star, sender, receiver);
        let of = |part: fn(&Sums) -> u64| (part(&after) - part(&before)) as f64;
        let goodput_mbps = mbps(after.received - before.received, time);
        let capacity_mbps = self.bottleneck_mbps * f64::from(SEGMENT_BYTES) / FRAME_BYTES as f64;
        let duplicates = (of(|sums| sums.delivered) - of(|sums| sums.received)).max(0.0);
        Ok(measured([
            ("goodput_mbps", goodput_mbps),
            ("goodput_percent", percent(goodput_mbps, capacity_mbps)),
            ("retransmitted_percent", percent(of(|sums| sums.retransmitted), of(|sums| sums.sent_segments))),
            ("spurious_percent", percent(duplicates, of(|sums| sums.delivered))),
            ("reorderings", of(|sums| sums.reorderings)),
            ("timeouts", of(|sums| sums.timeouts)),
            ("lost_percent", percent(of(|sums| sums.lost), of(|sums| sums.frames))),
        ]))
    }
    fn tcp(&self) -> TcpConfig {
        let mut tcp = tcp_of_today(self.congestion);
        (tcp.rack, tcp.undo) = (self.rack, self.undo);
        tcp
    }
}

/// Counters since the beginning.
struct Sums {
    received: u64,
    delivered: u64,
    sent_segments: u64,
    retransmitted: u64,
    reorderings: u64,
    timeouts: u64,
    lost: u64,
    frames: u64,
}

impl Sums {
    fn of(star: &Star, sender: usize, receiver: usize) -> Sums {
        let info = star.connections(sender);
        let sum = |part: fn(&inhost_tcp::Info) -> u32| info.iter().map(|info| u64::from(part(info))).sum();
        let line = star.network.statistics(sender, 0);
        Sums {
            received: star.received().total(),
            delivered: star.tally().of(receiver).delivered_bytes,
            sent_segments: star.tally().of(sender).sent_segments,
            retransmitted: sum(|info| info.retransmitted_segments),
            reorderings: sum(|info| info.reorderings),
            timeouts: sum(|info| info.timeouts),
            lost: line.lost + line.overflowed,
            frames: line.sent,
        }
    }
}
