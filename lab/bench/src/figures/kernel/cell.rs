//! The cells of the comparison: a rate, a round-trip time, a loss.

use inhost_base::Duration;

/// Payload of one segment at MTU 1500 with timestamps.
const SEGMENT_BYTES: f64 = 1448.0;
/// The queue holds a bandwidth-delay product, and no fewer packets of 1500 bytes than these: with fewer the emulator's
/// own wake-ups would decide what is lost.
const LEAST_QUEUE_BYTES: u64 = 64 * 1500;
/// How long a transfer lasts at the rate that is expected, beside its round trips.
const TRANSFER_S: f64 = 8.0;
/// Round trips that are added to it, so that the start weighs the same on long paths.
const TRANSFER_ROUND_TRIPS: f64 = 20.0;

/// Losses of a transfer, so that its start is not all of it; and how long it may last for their sake, in seconds.
const TRANSFER_LOSSES: f64 = 15.0;
/// See above.
const LONGEST_S: f64 = 60.0;

/// What is lost on the wire, besides what its queue has no room for.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Loss {
    /// Nothing.
    None,
    /// Each packet with this probability.
    Random(f64),
    /// The same share of packets, in bursts.
    Bursty(f64),
}

impl Loss {
    /// The share of packets that is lost.
    pub fn probability(self) -> f64 {
        match self {
            Loss::None => 0.0,
            Loss::Random(p) | Loss::Bursty(p) => p,
        }
    }
    fn name(self) -> String {
        match self {
            Loss::None => "0".into(),
            Loss::Random(p) => format!("{}r", p * 100.0),
            Loss::Bursty(p) => format!("{}b", p * 100.0),
        }
    }
}

/// One cell.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cell {
    /// Of the bottleneck.
    pub rate_mbit: u64,
    /// There and back, without queues.
    pub round_trip: Duration,
    /// On the way of the data. Acknowledgments are not lost.
    pub loss: Loss,
}

/// All cells, in the order of the table.
pub fn all() -> Vec<Cell> {
    let losses =
        [Loss::None, Loss::Random(0.001), Loss::Bursty(0.001), Loss::Random(0.01), Loss::Bursty(0.01)];
    let mut cells = Vec::new();
    for rate_mbit in [10, 100] {
        for round_trip_ms in [2, 20, 100, 300] {
            let round_trip = Duration::from_millis(round_trip_ms);
            cells.extend(losses.map(|loss| Cell { rate_mbit, round_trip, loss }));
        }
    }
    cells
}

impl Cell {
    /// Its name on the command line, in the rows and in the tables: `10M-20ms-0.1r`.
    pub fn name(&self) -> String {
        format!("{}M-{}ms-{}", self.rate_mbit, self.round_trip.as_millis(), self.loss.name())
    }
    /// Whether one of `patterns` names it; a part that is `*` fits all, and so do parts left out at the end.
    pub fn is_chosen(&self, patterns: &[String]) -> bool {
        let name = self.name();
        let fits = |pattern: &String| {
            let mut parts = name.split('-');
            pattern.split('-').all(|wanted| parts.next().is_some_and(|part| wanted == "*" || wanted == part))
        };
        patterns.is_empty() || patterns.iter().any(fits)
    }
    /// Bits a second of the bottleneck.
    pub fn rate_bits_per_second(&self) -> u64 {
        self.rate_mbit * 1_000_000
    }
    /// Room at the bottleneck.
    pub fn queue_bytes(&self) -> u64 {
        let product = self.rate_bits_per_second() * self.round_trip.as_millis() / 8_000;
        product.max(LEAST_QUEUE_BYTES)
    }
    /// Bits a second that a sender may be expected to reach: what the link carries, or what RFC 9438's response
    /// function (§5.1, eq. 6) and that of Reno (RFC 5681's, by Mathis) give at this loss. It sets how much is
    /// transferred and how many runs share the machine; nothing is judged by it.
    pub fn expected_bits_per_second(&self) -> f64 {
        let link = 0.95 * self.rate_bits_per_second() as f64;
        let Some(loss) = self.events_a_packet() else { return link };
        let round_trip_s = self.round_trip.as_secs_f64();
        let cubic = 1.054 * (round_trip_s / loss).powf(0.75);
        let reno = (1.5 / loss).sqrt();
        link.min(cubic.max(reno) * SEGMENT_BYTES * 8.0 / round_trip_s)
    }
    /// Losses that TCP has to answer, of each packet. A burst is one.
    fn events_a_packet(&self) -> Option<f64> {
        match self.loss {
            Loss::None => None,
            Loss::Random(p) => Some(p),
            Loss::Bursty(p) => Some(p / super::drops::LOST_A_BURST),
        }
    }
    /// How long a transfer is expected to last.
    pub fn expected_s(&self) -> f64 {
        let least = TRANSFER_S + TRANSFER_ROUND_TRIPS * self.round_trip.as_secs_f64();
        let packets = self.events_a_packet().map_or(0.0, |events| TRANSFER_LOSSES / events);
        least.max((packets * SEGMENT_BYTES * 8.0 / self.expected_bits_per_second()).min(LONGEST_S))
    }
    /// Bytes of each transfer.
    pub fn transfer_bytes(&self) -> u64 {
        (self.expected_bits_per_second() / 8.0 * self.expected_s()) as u64
    }
    /// The seed of what is lost in pair `pair`, the same for each sender.
    pub fn seed(&self, pair: u32) -> u64 {
        let key = inhost_base::SipKey::from_halves(0x6c6f_7373, u64::from(pair));
        key.hash(self.name().as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_forty_and_each_can_be_chosen() {
        let cells = all();
        assert_eq!(cells.len(), 40);
        for cell in &cells {
            assert_eq!(cells.iter().filter(|c| c.is_chosen(&[cell.name()])).count(), 1, "{}", cell.name());
        }
        let chosen = |pattern: &str| cells.iter().filter(|c| c.is_chosen(&[pattern.to_owned()])).count();
        assert_eq!([chosen("10M"), chosen("*-300ms-1b"), chosen("100M-2ms-0")], [20, 2, 1]);
    }

    #[test]
    fn a_transfer_fits_its_loss() {
        let cell = |rate_mbit, round_trip_ms, loss| Cell {
            rate_mbit,
            round_trip: Duration::from_millis(round_trip_ms),
            loss,
        };
        assert_eq!(cell(10, 20, Loss::None).transfer_bytes(), 9_975_000);
        let lossy = cell(100, 300, Loss::Random(0.01)).transfer_bytes();
        assert!((2_000_000..4_000_000).contains(&lossy), "{lossy}");
    }
}
