//! Slow start, what a loss, a mark, a time-out and idleness cost, and how that is taken back.

use super::*;
use crate::window::initial_window_bytes;

const ROUND_TRIP: Duration = Duration::from_millis(100);
const BOTH: [CongestionChoice; 2] = [CongestionChoice::Cubic, CongestionChoice::NewReno];

// spec: RFC6928 2-1
#[test]
fn the_initial_window_is_that_of_rfc_6928() {
    assert_eq!(initial_window_bytes(10, 1460), 14_600);
    assert_eq!(initial_window_bytes(10, 536), 5_360);
    assert_eq!(initial_window_bytes(10, 9000), 18_000);
    assert_eq!(initial_window_bytes(1, 1460), 1460);
}

// spec: RFC9293 MUST-19 (slow start and congestion avoidance); RFC5681 3.1-1, 3.1-10
#[test]
fn slow_start_doubles_and_avoidance_adds_one_segment_a_round_trip() {
    let mut sender = Sender::opened(&CongestionChoice::NewReno);
    sender.round(ROUND_TRIP);
    assert_eq!(sender.window(), 20_000);
    sender.congestion.lost(20_000, sender.now);
    assert_eq!(sender.threshold(), 10_000, "RFC 5681 §3.1: half of what is in flight");
    sender.congestion.recovered(sender.now);
    sender.fill();
    for _ in 0..10 {
        sender.acknowledge(1000, ROUND_TRIP);
        sender.fill();
    }
    assert_eq!(sender.window(), 11_000);
}

#[test]
fn slow_start_ends_at_the_threshold_and_what_is_left_counts_for_avoidance() {
    for choice in &BOTH {
        let mut sender = Sender::opened(choice);
        sender.congestion.window_mut().threshold_bytes = 12_000;
        sender.fill();
        sender.acknowledge(10_000, ROUND_TRIP);
        assert_eq!(sender.window(), 12_000, "{choice:?}");
    }
}

// spec: RFC9438 4.6-3, 5.8-1
#[test]
fn a_window_that_is_not_in_use_does_not_grow() {
    for choice in &[CongestionChoice::Cubic, CongestionChoice::NewReno, CongestionChoice::CubicInSegments] {
        let mut sender = Sender::opened(choice);
        sender.send(5);
        sender.acknowledge(5000, ROUND_TRIP);
        assert_eq!(sender.window(), 10_000, "{choice:?}: half of it was used");
        sender.send(6);
        sender.acknowledge(6000, ROUND_TRIP);
        assert_eq!(sender.window(), 16_000, "{choice:?}: doubling needs more than half");
        sender.congestion.window_mut().threshold_bytes = 16_000;
        for _ in 0..50 {
            sender.send(15);
            sender.acknowledge(15_000, ROUND_TRIP);
            sender.now += ROUND_TRIP;
        }
        assert_eq!(sender.window(), 16_000, "{choice:?}: avoidance needs all of it");
        sender.round(ROUND_TRIP);
        sender.round(ROUND_TRIP);
        assert!(sender.window() > 16_000, "{choice:?}");
    }
}

#[test]
fn nothing_grows_while_fast_recovery_moves_the_window() {
    for choice in &[CongestionChoice::Cubic, CongestionChoice::NewReno, CongestionChoice::CubicInSegments] {
        let mut sender = Sender::avoiding(choice, 20);
        sender.fill();
        sender.congestion.lost(20_000, sender.now);
        let before = *sender.congestion.window();
        sender.congestion.acknowledged(&Acknowledged {
            bytes: 10_000,
            acknowledged_bytes: 10_000,
            sent_bytes: 20_000,
            latest_round_trip: Some(ROUND_TRIP),
            smoothed_round_trip: ROUND_TRIP,
            least_round_trip: ROUND_TRIP,
            in_flight_before_bytes: 20_000,
            recovering: true,
            rate: None,
            now: sender.now,
        });
        assert_eq!(*sender.congestion.window(), before, "{choice:?}");
    }
}

// spec: RFC5681 3.1-7, 3.2-7; RFC9438 4.6-2
#[test]
fn a_loss_leaves_half_or_seven_tenths_and_a_mark_more() {
    // RFC 5681 §3.1, RFC 9438 §4.6, RFC 8511 §3; Linux makes no difference.
    for (choice, lost, marked) in [
        (CongestionChoice::NewReno, 50_000, 80_000),
        (CongestionChoice::Cubic, 70_000, 85_000),
        (CongestionChoice::CubicInSegments, 70_000, 70_000),
    ] {
        let mut sender = Sender::avoiding(&choice, 100);
        sender.congestion.lost(100_000, sender.now);
        assert_eq!(sender.threshold(), lost, "{choice:?}");
        let mut sender = Sender::avoiding(&choice, 100);
        sender.congestion.marked(100_000, sender.now);
        assert_eq!(sender.threshold(), marked, "{choice:?}");
        assert_eq!(sender.window(), 100_000, "recovery moves it");
        sender.congestion.recovered(sender.now);
        assert_eq!(sender.window(), marked);
    }
}

// spec: RFC5681 3.1-12
#[test]
fn no_reduction_goes_below_two_segments() {
    for choice in &[CongestionChoice::Cubic, CongestionChoice::NewReno, CongestionChoice::CubicInSegments] {
        let mut sender = Sender::avoiding(choice, 2);
        sender.congestion.lost(1000, sender.now);
        assert_eq!(sender.threshold(), 2000, "{choice:?}");
        sender.congestion.marked(1000, sender.now);
        assert_eq!(sender.threshold(), 2000, "{choice:?}");
    }
}

// spec: RFC5681 3.1-12, 3.1-13, 3.1-14
#[test]
fn a_time_out_leaves_one_segment_and_a_second_keeps_the_threshold() {
    for choice in &BOTH {
        let mut sender = Sender::avoiding(choice, 100);
        sender.congestion.timed_out(100_000, false, sender.now);
        let threshold = sender.threshold();
        let left = if matches!(choice, CongestionChoice::Cubic) { 70_000 } else { 50_000 };
        assert_eq!(threshold, left, "{choice:?}: RFC 5681 §3.1, RFC 9438 §4.8");
        assert_eq!(sender.window(), 1000);
        sender.congestion.timed_out(1000, true, sender.now);
        assert_eq!((sender.window(), sender.threshold()), (1000, threshold), "{choice:?}");
        sender.round(ROUND_TRIP);
        sender.round(ROUND_TRIP);
        assert_eq!(sender.window(), 4000, "{choice:?}: by slow start");
    }
}

#[test]
fn an_undone_reduction_leaves_no_trace() {
    for choice in &[CongestionChoice::Cubic, CongestionChoice::NewReno, CongestionChoice::CubicInSegments] {
        let mut sender = Sender::avoiding(choice, 100);
        let before = *sender.congestion.window();
        sender.congestion.lost(100_000, sender.now);
        sender.congestion.recovered(sender.now);
        assert!(sender.congestion.undo(sender.now));
        assert_eq!(*sender.congestion.window(), before, "{choice:?}");
        assert!(!sender.congestion.undo(sender.now), "{choice:?}: once");
        sender.congestion.timed_out(100_000, false, sender.now);
        sender.congestion.timed_out(1000, true, sender.now);
        assert!(sender.congestion.undo(sender.now));
        assert_eq!(*sender.congestion.window(), before, "{choice:?}");
    }
}

#[test]
fn an_undone_first_loss_brings_slow_start_back() {
    let mut sender = Sender::opened(&CongestionChoice::Cubic);
    sender.round(ROUND_TRIP);
    sender.congestion.lost(20_000, sender.now);
    assert!(sender.congestion.undo(sender.now));
    sender.round(ROUND_TRIP);
    assert_eq!(sender.window(), 40_000);
}

// spec: RFC5681 4.1-1
#[test]
fn idleness_brings_the_window_back_to_the_initial_one() {
    for choice in &BOTH {
        let mut sender = Sender::avoiding(choice, 500);
        sender.congestion.window_mut().threshold_bytes = 100_000;
        sender.congestion.restart(10, Duration::from_secs(1), Duration::from_millis(300));
        // RFC 5681 §4.1, RFC 7661 §4.4.3
        assert_eq!((sender.window(), sender.threshold()), (10_000, 375_000), "{choice:?}");
        assert!(!sender.congestion.undo(sender.now));
        let mut sender = Sender::avoiding(choice, 4);
        sender.congestion.restart(10, Duration::from_secs(1), Duration::from_millis(300));
        assert_eq!((sender.window(), sender.threshold()), (4000, 4000), "{choice:?}: it is small enough");
    }
}

// spec: RFC5681 3.1-5; RFC4821 4-6, 4-7
#[test]
fn smaller_segments_are_as_many_and_larger_ones_are_no_more_bytes() {
    for choice in &[CongestionChoice::Cubic, CongestionChoice::NewReno, CongestionChoice::CubicInSegments] {
        let mut sender = Sender::avoiding(choice, 10);
        sender.congestion.resize(600);
        assert_eq!(sender.window(), 6000, "{choice:?}");
        sender.congestion.resize(1500);
        assert_eq!(sender.window(), 6000, "{choice:?}: RFC 4821 §4");
    }
}

// spec: RFC9438 4.6-4
#[test]
fn marks_lower_the_window_to_one_segment_and_the_threshold_to_two() {
    for (choice, third) in [(CongestionChoice::Cubic, 2456), (CongestionChoice::NewReno, 2048)] {
        let mut sender = Sender::avoiding(&choice, 4);
        for _ in 0..3 {
            sender.congestion.marked(sender.window(), sender.now);
            sender.congestion.recovered(sender.now);
        }
        assert_eq!(sender.window(), third, "{choice:?}");
        for _ in 0..2 {
            sender.congestion.marked(sender.window(), sender.now);
            sender.congestion.recovered(sender.now);
        }
        assert_eq!((sender.window(), sender.threshold()), (1000, 2000), "{choice:?}");
        // For a loss it is two segments still.
        sender.congestion.lost(1000, sender.now);
        sender.congestion.recovered(sender.now);
        assert_eq!(sender.window(), 2000, "{choice:?}");
    }
}

// spec: RFC5681 3.1-6
#[test]
fn the_first_threshold_is_above_any_window() {
    for choice in &[CongestionChoice::Cubic, CongestionChoice::NewReno, CongestionChoice::CubicInSegments] {
        assert_eq!(Sender::opened(choice).threshold(), 1 << 30, "{choice:?}: RFC 7323 §2.3");
    }
}

/// A sender that acknowledged so many segments of its first window, lost one and is idle: its restart window.
fn restart_after(choice: &CongestionChoice, acknowledged: u32, undone: bool) -> u32 {
    let mut sender = Sender::opened(choice);
    sender.fill();
    for _ in 0..acknowledged {
        sender.acknowledge(SEGMENT, ROUND_TRIP);
        sender.fill();
    }
    sender.congestion.lost(sender.in_flight(), sender.now);
    if undone {
        assert!(sender.congestion.undo(sender.now));
    } else {
        sender.congestion.recovered(sender.now);
    }
    sender.acknowledge(sender.in_flight(), ROUND_TRIP);
    sender.congestion.window_mut().window_bytes = 50_000;
    sender.congestion.restart(10, Duration::from_secs(1), Duration::from_millis(300));
    sender.window()
}

// spec: RFC6928 2-4
#[test]
fn a_burst_that_did_harm_is_smaller_next_time() {
    for choice in &BOTH {
        assert_eq!(restart_after(choice, 4, false), 4000, "{choice:?}: RFC 3390's");
        assert_eq!(restart_after(choice, 10, false), 10_000, "{choice:?}: not the first window's loss");
        assert_eq!(restart_after(choice, 4, true), 10_000, "{choice:?}: not a loss");
    }
    assert_eq!(crate::window::smaller_restart_bytes(1460), 4380);
    assert_eq!(crate::window::smaller_restart_bytes(9000), 18_000);
    // The burst after an idle time is watched as the first one was.
    let mut sender = Sender::avoiding(&CongestionChoice::Cubic, 100);
    let (idle, timeout) = (Duration::from_secs(1), Duration::from_millis(300));
    sender.congestion.restart(10, idle, timeout);
    sender.fill();
    sender.congestion.timed_out(10_000, false, sender.now);
    sender.congestion.window_mut().window_bytes = 50_000;
    sender.congestion.restart(10, idle, timeout);
    assert_eq!(sender.window(), 4000);
}

#[test]
fn a_new_segment_size_never_leaves_less_than_a_segment() {
    let mut sender = Sender::avoiding(&CongestionChoice::NewReno, 1);
    sender.congestion.resize(1400);
    assert_eq!(sender.window(), 1400);
    let mut sender = Sender::avoiding(&CongestionChoice::CubicInSegments, 8);
    sender.congestion.resize(500);
    assert_eq!(sender.window(), 4000, "segments count");
}
