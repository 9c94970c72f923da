//! RFC 9406: out of slow start before the queue overflows, and back when it was jitter.

use super::*;

/// A bottleneck that sends a segment each `SPACING`, behind a path of `PATH`: 100 segments are in flight on it.
const SPACING: Duration = Duration::from_micros(500);
const PATH: Duration = Duration::from_millis(50);

/// Rounds of slow start over the bottleneck until slow start is over: the largest window, in segments.
fn overshoot(choice: &CongestionChoice, spaced: bool) -> u32 {
    let mut sender = Sender::opened(choice);
    sender.congestion.set_spaced(spaced);
    // When the bottleneck has sent what was given to it, and when each segment on the way was sent and will be
    // acknowledged.
    let mut free_at = sender.now;
    let mut path: std::collections::VecDeque<(Instant, Instant)> = Default::default();
    while sender.congestion.window().in_slow_start() && sender.window() < 5_000_000 {
        sender.fill();
        while path.len() < (sender.in_flight() / SEGMENT) as usize {
            free_at = free_at.max(sender.now) + SPACING;
            path.push_back((sender.now, free_at + PATH));
        }
        let Some((sent_at, arrives_at)) = path.pop_front() else { break };
        sender.now = arrives_at;
        sender.acknowledge(SEGMENT, arrives_at.since(sent_at));
    }
    sender.window() / SEGMENT
}

// spec: RFC9438 4.10-2
#[test]
fn slow_start_ends_soon_after_the_queue_begins() {
    // The path holds 100 segments. The round that grows from 80 to 160 makes the first queue, and eight measurements of
    // its tail tell; a round by a quarter shows that the queue grows on.
    let window = overshoot(&CongestionChoice::Cubic, true);
    println!("left slow start at {window} segments");
    assert!((110..220).contains(&window), "{window}");
    // By the least of each round it is known at the beginning of the next (to 320), and grows on from there.
    let window = overshoot(&CongestionChoice::Cubic, false);
    println!("in bursts: {window} segments");
    assert!((320..1000).contains(&window), "{window}");
    assert_eq!(overshoot(&CongestionChoice::NewReno, true), 5000, "without it, nothing ends it");
}

/// A round of the window, each acknowledgment with `round_trip`.
fn rounds(sender: &mut Sender, count: u32, round_trip_ms: u64) {
    for _ in 0..count {
        sender.fill();
        let segments = sender.in_flight() / SEGMENT;
        for _ in 0..segments {
            sender.now += Duration::from_millis(round_trip_ms).divided_by(u64::from(segments));
            sender.acknowledge(SEGMENT, Duration::from_millis(round_trip_ms));
        }
    }
}

#[test]
fn a_longer_round_trip_slows_the_growth_to_a_quarter_and_five_rounds_end_it() {
    let mut sender = Sender::opened(&CongestionChoice::Cubic);
    rounds(&mut sender, 3, 80);
    assert_eq!(sender.window(), 80_000);
    // An eighth of 80 ms more, for the whole of a round: its eighth measurement tells.
    rounds(&mut sender, 1, 90);
    assert_eq!(sender.window(), 80_000 + 8000 + 72 * 250);
    let mut last = sender.window();
    // The round in which it began counts as one of the five.
    for _ in 0..4 {
        assert!(sender.congestion.window().in_slow_start());
        rounds(&mut sender, 1, 90);
        assert!(sender.window() > last && sender.window() <= last + last / 4);
        last = sender.window();
    }
    rounds(&mut sender, 1, 90);
    assert_eq!(sender.threshold(), last, "congestion avoidance");
    assert!(sender.window() < last + 3000, "and that is slow");
}

#[test]
fn less_growth_than_an_eighth_or_four_milliseconds_tells_nothing() {
    for (base, grown) in [(80, 89), (10, 13), (400, 415)] {
        let mut sender = Sender::opened(&CongestionChoice::Cubic);
        rounds(&mut sender, 2, base);
        rounds(&mut sender, 1, grown);
        assert_eq!(sender.window(), 80_000, "{base} to {grown} ms");
    }
    for (base, grown) in [(80, 90), (10, 14), (400, 416)] {
        let mut sender = Sender::opened(&CongestionChoice::Cubic);
        rounds(&mut sender, 2, base);
        rounds(&mut sender, 1, grown);
        assert!(sender.window() < 80_000, "{base} to {grown} ms");
    }
}

#[test]
fn fewer_than_eight_measurements_tell_nothing() {
    let mut sender = Sender::opened(&CongestionChoice::Cubic);
    rounds(&mut sender, 2, 50);
    sender.fill();
    for _ in 0..7 {
        sender.acknowledge(5000, Duration::from_millis(500));
    }
    assert_eq!(sender.window(), 75_000);
}

#[test]
fn a_false_alarm_lets_slow_start_go_on() {
    let mut sender = Sender::opened(&CongestionChoice::Cubic);
    rounds(&mut sender, 2, 50);
    rounds(&mut sender, 1, 70);
    let slowed = sender.window();
    assert!(slowed < 80_000);
    // The round trip is back below what raised the alarm.
    rounds(&mut sender, 1, 50);
    let resumed = sender.window();
    assert!(resumed > slowed + slowed / 2, "{slowed} to {resumed}");
    rounds(&mut sender, 1, 50);
    assert_eq!(sender.window(), 2 * resumed);
    assert!(sender.congestion.window().is_unexplored());
}

#[test]
fn one_acknowledgment_grows_the_window_by_all_it_covers_only_where_segments_are_spaced() {
    for (spaced, grown) in [(true, 10_000), (false, 8000)] {
        let mut sender = Sender::opened(&CongestionChoice::Cubic);
        sender.congestion.set_spaced(spaced);
        sender.fill();
        sender.acknowledge(10_000, Duration::from_millis(50));
        assert_eq!(sender.window(), 10_000 + grown);
    }
}

#[test]
fn a_loss_ends_it_for_good() {
    let mut sender = Sender::opened(&CongestionChoice::Cubic);
    rounds(&mut sender, 2, 50);
    sender.congestion.timed_out(40_000, false, sender.now);
    sender.sent_bytes = sender.acknowledged_bytes;
    assert_eq!(sender.threshold(), 28_000);
    // RFC 9406 §4.3: later slow starts know their threshold, and grow by all that is acknowledged.
    rounds(&mut sender, 2, 50);
    rounds(&mut sender, 2, 90);
    assert_eq!(sender.window(), 16_000);
}
