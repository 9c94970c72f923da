//! CUBIC as Linux reckons it.

use super::*;

const TENTH: Duration = Duration::from_millis(100);

/// A link of two segments each tenth of a second: the window after each ten acknowledgments.
fn slow_link(acknowledgments: u32) -> Vec<u32> {
    let mut sender = Sender::opened(&CongestionChoice::CubicInSegments);
    sender.fill();
    let mut sent_at: std::collections::VecDeque<Instant> = Default::default();
    let mut windows = Vec::new();
    for _ in 0..acknowledgments {
        while sent_at.len() < (sender.in_flight() / SEGMENT) as usize {
            sent_at.push_back(sender.now);
        }
        sender.now += TENTH;
        sent_at.pop_front();
        let latest = sent_at.pop_front().unwrap();
        let round_trip = sender.now.since(latest);
        sender.acknowledge(2 * SEGMENT, round_trip);
        sender.fill();
        windows.push(sender.window() / SEGMENT);
    }
    windows
}

#[test]
fn on_a_slow_link_hystart_ends_slow_start_and_the_curve_then_takes_one_for_two() {
    let windows = slow_link(80);
    // By delay: a queue makes each round trip longer. The second round begins with the sixth acknowledgment, and the
    // ninth of it tells.
    assert_eq!(windows[..13], (12..=36).step_by(2).collect::<Vec<_>>());
    assert!(windows[13..18].iter().all(|&window| window == 36), "one for twenty: {windows:?}");
    // Never more than one for two, however far the curve is ahead.
    assert!(windows[60..].windows(2).all(|pair| pair[1] == pair[0] + 1), "{:?}", &windows[60..]);
}

#[test]
fn after_a_time_out_the_window_grows_by_one_for_twenty() {
    let mut sender = Sender::opened(&CongestionChoice::CubicInSegments);
    sender.send(1);
    sender.now += TENTH;
    sender.acknowledge(SEGMENT, TENTH);
    sender.congestion.timed_out(SEGMENT, false, sender.now);
    assert_eq!(
        (sender.window(), sender.threshold()),
        (1000, 7000),
        "of the window, not of what was in flight"
    );
    for _ in 0..6 {
        sender.fill();
        sender.acknowledge(SEGMENT, TENTH);
    }
    assert_eq!(sender.window(), 7000);
    let mut acknowledged = 0;
    while sender.window() == 7000 {
        sender.fill();
        sender.now += Duration::from_millis(10);
        sender.acknowledge(SEGMENT, TENTH);
        acknowledged += 1;
    }
    assert!((7..=20).contains(&acknowledged), "{acknowledged}");
}

#[test]
fn a_train_of_acknowledgments_that_fills_half_the_round_trip_ends_slow_start() {
    let mut sender = Sender::avoiding(&CongestionChoice::CubicInSegments, 40);
    sender.congestion.window_mut().threshold_bytes = 1 << 30;
    sender.fill();
    // The first begins the round; each millisecond another, all with the same round trip.
    for _ in 0..19 {
        sender.acknowledge(SEGMENT, Duration::from_millis(40));
        sender.now += Duration::from_millis(1);
    }
    assert!(sender.congestion.window().is_unexplored());
    for _ in 0..4 {
        sender.acknowledge(SEGMENT, Duration::from_millis(40));
        sender.now += Duration::from_millis(1);
    }
    assert!(!sender.congestion.window().is_unexplored(), "{:?}", sender.congestion);
}

#[test]
fn idleness_halves_the_window_for_each_time_out() {
    let mut sender = Sender::avoiding(&CongestionChoice::CubicInSegments, 100);
    sender.congestion.restart(10, Duration::from_millis(700), Duration::from_millis(300));
    assert_eq!(sender.window(), 25_000);
    let mut sender = Sender::avoiding(&CongestionChoice::CubicInSegments, 36);
    sender.congestion.restart(10, Duration::from_secs(2), Duration::from_millis(300));
    assert_eq!(sender.window(), 10_000);
}
