use super::*;

use crate::window::initial_window_bytes;
use inhost_base::{Duration, Instant};

fn opened(choice: CongestionChoice) -> Congestion {
    let mut congestion = Congestion::new(choice);
    congestion.open(10, 1000);
    congestion
}

/// `bytes` acknowledged of a window that was in use.
fn acknowledge(congestion: &mut Congestion, bytes: u32, round_trip: Duration, now: Instant) {
    let in_flight_before_bytes = congestion.window.window_bytes;
    congestion.transmitted(in_flight_before_bytes, true, 0, 1);
    congestion.acknowledged(&Acknowledged {
        bytes,
        acknowledged_bytes: u64::from(bytes),
        sent_bytes: u64::from(in_flight_before_bytes),
        latest_round_trip: Some(round_trip),
        smoothed_round_trip: round_trip,
        in_flight_before_bytes,
        recovering: false,
        rate: None,
        now,
    });
}

#[test]
fn the_initial_window_is_that_of_rfc_6928() {
    assert_eq!(initial_window_bytes(10, 1460), 14_600);
    assert_eq!(initial_window_bytes(10, 536), 5_360);
    assert_eq!(initial_window_bytes(10, 9000), 18_000);
    assert_eq!(initial_window_bytes(1, 1460), 1460);
}

// spec: RFC9293 MUST-19 (slow start and congestion avoidance)
#[test]
fn slow_start_doubles_and_avoidance_adds_one_segment_a_round_trip() {
    let mut congestion = opened(CongestionChoice::NewReno);
    acknowledge(&mut congestion, 10_000, Duration::from_millis(100), Instant::ZERO);
    assert_eq!(congestion.window.window_bytes, 20_000);
    congestion.lost(20_000, Instant::ZERO);
    assert_eq!(congestion.window.threshold_bytes, 10_000);
    congestion.window.window_bytes = 10_000;
    for _ in 0..10 {
        acknowledge(&mut congestion, 1000, Duration::from_millis(100), Instant::ZERO);
    }
    assert_eq!(congestion.window.window_bytes, 11_000);
}

#[test]
fn cubic_returns_to_the_old_window_at_its_plateau_and_then_passes_it() {
    let mut congestion = opened(CongestionChoice::Cubic);
    congestion.window.window_bytes = 1_000_000;
    congestion.lost(1_000_000, Instant::ZERO);
    assert_eq!(congestion.window.threshold_bytes, 700_000);
    congestion.window.window_bytes = 700_000;
    // K = cbrt(300 / 0.4), a little over 9 s.
    let round_trip = Duration::from_millis(100);
    let mut now = Instant::ZERO;
    let mut at_plateau = 0;
    let mut steps = Vec::new();
    for round in 0..150 {
        let before = congestion.window.window_bytes;
        for _ in 0..10 {
            acknowledge(&mut congestion, before / 10, round_trip, now);
        }
        steps.push(congestion.window.window_bytes - before);
        now += round_trip;
        if round == 90 {
            at_plateau = congestion.window.window_bytes;
        }
    }
    assert!((950_000..=1_010_000).contains(&at_plateau), "{at_plateau}");
    assert!(steps[5] > steps[85] && steps[149] > steps[95], "concave, then convex: {steps:?}");
    assert!(congestion.window.window_bytes > 1_040_000);
}

#[test]
fn cubic_is_not_slower_than_new_reno_on_a_short_path() {
    let mut congestion = opened(CongestionChoice::Cubic);
    congestion.window.window_bytes = 20_000;
    congestion.lost(20_000, Instant::ZERO);
    congestion.window.window_bytes = 14_000;
    let mut now = Instant::ZERO;
    for _ in 0..100 {
        let window = congestion.window.window_bytes;
        acknowledge(&mut congestion, window, Duration::from_millis(1), now);
        now += Duration::from_millis(1);
    }
    assert!(congestion.window.window_bytes >= 90_000, "{:?}", congestion.window);
}

#[test]
fn idle_brings_the_window_back_to_the_initial_one() {
    let mut congestion = opened(CongestionChoice::Cubic);
    congestion.window.window_bytes = 500_000;
    congestion.restart(10, Duration::from_secs(1), Duration::from_millis(300));
    assert_eq!(congestion.window.window_bytes, 10_000);
}

#[derive(Debug)]
struct Fixed;

impl CongestionController for Fixed {
    fn name(&self) -> &'static str {
        "fixed"
    }
    fn acknowledged(&mut self, window: &mut CongestionWindow, _: &Acknowledged, _: bool) {
        window.window_bytes = 5000;
    }
    fn lost(&mut self, window: &mut CongestionWindow, _: u32, _: Instant) {
        window.threshold_bytes = 4000;
    }
}

#[test]
fn somebodys_own_control_moves_the_window_alone() {
    let mut congestion = opened(CongestionChoice::Custom(|| Box::new(Fixed)));
    assert_eq!(congestion.name(), "fixed");
    acknowledge(&mut congestion, 3000, Duration::ZERO, Instant::ZERO);
    assert_eq!(congestion.window.window_bytes, 5000);
    congestion.timed_out(10_000, false, Instant::ZERO);
    assert_eq!((congestion.window.window_bytes, congestion.window.threshold_bytes), (1000, 4000));
}
