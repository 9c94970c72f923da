//! Each algorithm against its RFC, without a connection.

mod cubic;
mod cubic_in_segments;
mod fairness;
mod hystart;
mod pacing;
mod rates;
mod reductions;

use super::*;
use alloc::sync::Arc;
use inhost_base::{Duration, Instant};

const SEGMENT: u32 = 1000;

/// A sender without TCP: what was sent and acknowledged, and the clock.
struct Sender {
    congestion: Congestion,
    acknowledged_bytes: u64,
    sent_bytes: u64,
    /// That of the path with its queue empty, where it is not what is measured.
    least_round_trip: Option<Duration>,
    now: Instant,
}

impl Sender {
    fn opened(choice: &CongestionChoice) -> Self {
        let mut congestion = Congestion::new(choice);
        congestion.open(10, SEGMENT);
        Sender {
            congestion,
            acknowledged_bytes: 0,
            sent_bytes: 0,
            least_round_trip: None,
            now: Instant::from_millis(1000),
        }
    }
    /// One that has left slow start with so many segments, its threshold there.
    fn avoiding(choice: &CongestionChoice, segments: u32) -> Self {
        let mut sender = Sender::opened(choice);
        sender.congestion.window_mut().window_bytes = segments * SEGMENT;
        sender.congestion.window_mut().threshold_bytes = segments * SEGMENT;
        sender
    }
    fn window(&self) -> u32 {
        self.congestion.window().window_bytes
    }
    fn threshold(&self) -> u32 {
        self.congestion.window().threshold_bytes
    }
    fn in_flight(&self) -> u32 {
        (self.sent_bytes - self.acknowledged_bytes) as u32
    }
    /// Sends what the window allows.
    fn fill(&mut self) {
        let room = self.window().saturating_sub(self.in_flight()) / SEGMENT * SEGMENT;
        self.sent_bytes += u64::from(room);
        self.transmitted(true);
    }
    /// Sends `segments`, and has no more.
    fn send(&mut self, segments: u32) {
        self.sent_bytes += u64::from(segments * SEGMENT);
        self.transmitted(false);
    }
    fn transmitted(&mut self, limited: bool) {
        self.congestion.transmitted(self.in_flight(), limited, self.acknowledged_bytes, self.sent_bytes);
    }
    /// So many bytes are acknowledged, now, after `round_trip`.
    fn acknowledge(&mut self, bytes: u32, round_trip: Duration) {
        let in_flight_before_bytes = self.in_flight();
        self.acknowledged_bytes += u64::from(bytes);
        self.congestion.acknowledged(&Acknowledged {
            bytes,
            acknowledged_bytes: self.acknowledged_bytes,
            sent_bytes: self.sent_bytes,
            latest_round_trip: Some(round_trip),
            smoothed_round_trip: round_trip,
            least_round_trip: self.least_round_trip.unwrap_or(round_trip),
            in_flight_before_bytes,
            recovering: false,
            rate: None,
            now: self.now,
        });
    }
    /// A round trip with the window in use, acknowledged two segments at a time, evenly over it.
    fn round(&mut self, round_trip: Duration) {
        self.fill();
        let segments = self.in_flight() / SEGMENT;
        let pairs = segments.div_ceil(2);
        for pair in 0..pairs {
            self.now += round_trip.divided_by(u64::from(pairs));
            let bytes = if pair + 1 == pairs { (segments - 2 * pair) * SEGMENT } else { 2 * SEGMENT };
            self.acknowledge(bytes, round_trip);
            self.fill();
        }
    }
    /// A loss, and its repair at once.
    fn lose(&mut self) {
        self.congestion.lost(self.window(), self.now);
        self.congestion.recovered(self.now);
    }
}

#[test]
fn the_state_is_small() {
    // Window 12, use of the window 8, algorithm 16.
    assert!(size_of::<Congestion>() <= 40, "{}", size_of::<Congestion>());
    assert_eq!(size_of::<RateMark>(), 12);
    assert_eq!(size_of::<Pacer>(), 32);
}

#[test]
fn a_request_and_its_answer_make_no_box_and_no_growth() {
    let mut sender = Sender::opened(&CongestionChoice::Cubic);
    for _ in 0..100 {
        sender.send(3);
        sender.now += Duration::from_millis(20);
        sender.acknowledge(3 * SEGMENT, Duration::from_millis(20));
    }
    assert_eq!(sender.window(), 10 * SEGMENT);
    assert!(format!("{:?}", sender.congestion).contains("CubicNew"));
}

#[test]
fn another_algorithm_and_idleness_keep_window_and_threshold() {
    let mut sender = Sender::avoiding(&CongestionChoice::Cubic, 100);
    sender.fill();
    sender.lose();
    sender.round(Duration::from_millis(50));
    let before = *sender.congestion.window();
    sender.congestion.tidy();
    assert!(format!("{:?}", sender.congestion).contains("CubicNew"));
    sender.congestion.choose(&CongestionChoice::NewReno);
    assert_eq!((*sender.congestion.window(), sender.congestion.name()), (before, "newreno"));
    sender.round(Duration::from_millis(50));
    sender.round(Duration::from_millis(50));
    let grown = sender.window() - before.window_bytes;
    assert!((SEGMENT..=2 * SEGMENT).contains(&grown), "{grown}");
}

#[derive(Debug)]
struct Fixed;

impl CongestionController for Fixed {
    fn name(&self) -> &'static str {
        "fixed"
    }
    fn acknowledged(&mut self, window: &mut CongestionWindow, _: &Acknowledged, limited: bool) {
        window.window_bytes = if limited { 5000 } else { 4500 };
    }
    fn lost(&mut self, window: &mut CongestionWindow, _: u32, _: Instant) {
        window.threshold_bytes = 4000;
    }
    fn pacing_rate_bytes_per_s(&self) -> Option<u64> {
        Some(123_456)
    }
}

#[test]
fn somebodys_own_control_moves_the_window_alone() {
    let mut sender = Sender::opened(&CongestionChoice::custom(|| Fixed));
    assert_eq!(sender.congestion.name(), "fixed");
    sender.send(1);
    sender.acknowledge(1000, Duration::from_millis(1));
    assert_eq!(sender.window(), 4500);
    sender.fill();
    sender.acknowledge(1000, Duration::from_millis(1));
    assert_eq!(sender.window(), 5000);
    let gains = PacingGains::default();
    assert_eq!(sender.congestion.pace(&gains, 0, Duration::from_millis(1)), Pace::of(123_456));
    sender.congestion.timed_out(10_000, false, sender.now);
    assert_eq!((sender.window(), sender.threshold()), (1000, 4000));
    assert!(sender.congestion.undo(sender.now));
    assert_eq!((sender.window(), sender.threshold()), (5000, 1 << 30));
}

/// A control with a parameter, for all connections, and a count, for each.
#[derive(Debug)]
struct Steps {
    step_bytes: u32,
}

#[derive(Debug)]
struct Step {
    bytes: u32,
    taken: u32,
}

impl CongestionAlgorithm for Steps {
    fn start(&self) -> Box<dyn CongestionController> {
        Box::new(Step { bytes: self.step_bytes, taken: 0 })
    }
}

impl CongestionController for Step {
    fn name(&self) -> &'static str {
        "step"
    }
    fn opened(&mut self, window: &mut CongestionWindow) {
        window.window_bytes = self.bytes;
    }
    fn acknowledged(&mut self, window: &mut CongestionWindow, _: &Acknowledged, _: bool) {
        self.taken += 1;
        window.window_bytes = (1 + self.taken) * self.bytes;
    }
    fn lost(&mut self, window: &mut CongestionWindow, _: u32, _: Instant) {
        window.threshold_bytes = self.bytes;
    }
    fn restarted(&mut self, window: &mut CongestionWindow) {
        self.taken = 0;
        window.window_bytes = self.bytes;
    }
}

#[test]
fn a_control_has_parameters_and_a_state_for_each_connection() {
    let choice = CongestionChoice::Custom(Arc::new(Steps { step_bytes: 20_000 }));
    let (mut one, mut other) = (Sender::opened(&choice), Sender::opened(&choice.clone()));
    assert_eq!((one.window(), other.window()), (20_000, 20_000), "it sets the first window");
    one.send(3);
    one.acknowledge(1000, Duration::from_millis(1));
    one.acknowledge(1000, Duration::from_millis(1));
    other.send(1);
    other.acknowledge(1000, Duration::from_millis(1));
    assert_eq!((one.window(), other.window()), (60_000, 40_000));
    let second = Duration::from_secs(1);
    one.congestion.restart(10, second, second);
    assert_eq!(one.window(), 20_000, "it sets the window after idleness");
    other.congestion.choose(&CongestionChoice::custom(|| Step { bytes: 7000, taken: 0 }));
    assert_eq!(other.window(), 7000, "it sets the window of a connection that goes on by it");
    assert!(format!("{choice:?} {:?}", CongestionChoice::custom(|| Fixed)).contains("step_bytes: 20000"));
}

#[test]
fn a_control_cannot_close_the_window_or_open_it_beyond_the_largest() {
    for (bytes, opened) in [(0, SEGMENT), (u32::MAX, 1 << 30)] {
        let sender = Sender::opened(&CongestionChoice::custom(move || Step { bytes, taken: 0 }));
        assert_eq!(sender.window(), opened);
    }
}
