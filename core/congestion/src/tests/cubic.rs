//! RFC 9438, rule by rule, and its response function.

use super::*;

const ROUND_TRIP: Duration = Duration::from_millis(100);

/// The window after a loss from so many segments and `rounds` rounds.
fn after_loss(segments: u32, rounds: u32) -> (Sender, Vec<u32>) {
    let mut sender = Sender::avoiding(&CongestionChoice::Cubic, segments);
    sender.fill();
    sender.lose();
    let windows = (0..rounds)
        .map(|_| {
            sender.round(ROUND_TRIP);
            sender.window() / SEGMENT
        })
        .collect();
    (sender, windows)
}

/// RFC 9438 §4.2 in floating point.
fn curve(plateau: f64, start: f64, t_s: f64) -> f64 {
    let k = ((plateau - start) / 0.4).cbrt();
    plateau + 0.4 * (t_s - k).powi(3)
}

// spec: RFC9438 4.4-1, 4.5-1
#[test]
fn the_window_follows_the_curve_to_its_plateau_and_beyond() {
    let (_, windows) = after_loss(1000, 150);
    // K = cbrt(300 / 0.4), a little over 9 s.
    for (round, &window) in windows.iter().enumerate() {
        // A round's growth is aimed at the end of the next.
        let t_s = (round as f64 + 1.0) / 10.0;
        let (low, high) = (curve(1000.0, 700.0, t_s - 0.2), curve(1000.0, 700.0, t_s + 0.2));
        assert!(f64::from(window) > low - 3.0 && f64::from(window) < high + 3.0, "{round}: {window}");
    }
    let step = |at: usize| windows[at + 5] - windows[at];
    assert!(step(5) > step(85) && step(140) > step(95), "concave, then convex: {windows:?}");
}

// spec: RFC9438 4.2-2
#[test]
fn the_window_never_shrinks_and_grows_by_half_a_round_at_most() {
    // RFC 9438 §4.2: far behind the curve, the target is held to half as much again.
    let (mut sender, _) = after_loss(10, 5);
    sender.now += Duration::from_secs(30);
    for _ in 0..5 {
        let before = sender.window();
        sender.round(ROUND_TRIP);
        let after = sender.window();
        // The target moves with the window: e to the half is 1.65.
        assert!(after >= before && after < before / 100 * 170, "{before} to {after}");
    }
}

// spec: RFC9438 4.3-1, 4.3-2
#[test]
fn on_a_short_path_the_window_is_that_of_new_reno() {
    // RFC 9438 §4.3: 9/17 of a segment a round up to the window before, then one.
    let mut sender = Sender::avoiding(&CongestionChoice::Cubic, 100);
    sender.fill();
    sender.lose();
    let short = Duration::from_millis(1);
    for _ in 0..17 {
        sender.round(short);
    }
    assert!((78_000..=80_000).contains(&sender.window()), "{}", sender.window());
    while sender.window() < 100_000 {
        sender.round(short);
    }
    let before = sender.window();
    for _ in 0..20 {
        sender.round(short);
    }
    let grown = sender.window() - before;
    assert!((18_000..=21_000).contains(&grown), "{grown}");
    // Where data waits longer than it travels there is nothing left to take: 9/17 again.
    sender.least_round_trip = Some(short.divided_by(3));
    let before = sender.window();
    for _ in 0..20 {
        sender.round(short);
    }
    let grown = sender.window() - before;
    assert!((9_500..=11_500).contains(&grown), "{grown}");
}

// spec: RFC9438 4.7-1
#[test]
fn a_window_that_shrinks_makes_room() {
    // RFC 9438 §4.7: a second loss below the plateau puts the next one at 85 %.
    let mut sender = Sender::avoiding(&CongestionChoice::Cubic, 1000);
    sender.fill();
    sender.lose();
    sender.round(ROUND_TRIP);
    let second = sender.window();
    assert!(second < 1_000_000);
    sender.lose();
    let plateau = f64::from(second) * 0.85;
    let to_plateau = ((plateau - f64::from(second) * 0.7) / 1000.0 / 0.4).cbrt();
    for _ in 0..(to_plateau * 10.0) as u32 {
        sender.round(ROUND_TRIP);
    }
    let flat = f64::from(sender.window());
    assert!((flat / plateau - 1.0).abs() < 0.02, "{flat} for {plateau}");
}

// spec: RFC9438 4.8-1
#[test]
fn after_a_time_out_the_curve_begins_at_its_plateau() {
    // RFC 9438 §4.8: K is 0 where slow start ends, though the window was larger before.
    let mut sender = Sender::avoiding(&CongestionChoice::Cubic, 1000);
    sender.fill();
    sender.congestion.timed_out(1_000_000, false, sender.now);
    sender.sent_bytes = sender.acknowledged_bytes;
    while sender.window() < 700_000 {
        sender.round(ROUND_TRIP);
    }
    assert_eq!(sender.threshold(), 700_000);
    for _ in 0..30 {
        sender.round(ROUND_TRIP);
    }
    // 0.4 * 3^3 is 11 segments; the concave curve to 1000 would have gained 200. NewReno's gain is 9/17 a round.
    let gained = (sender.window() - 700_000) / SEGMENT;
    assert!((10..=20).contains(&gained), "{gained}");
}

// spec: RFC9438 4.2-1
#[test]
fn time_without_anything_to_send_does_not_count() {
    // RFC 9438 §4.2, §5.8.
    let (mut idle, _) = after_loss(1000, 20);
    let (mut trickle, _) = after_loss(1000, 20);
    let (mut busy, _) = after_loss(1000, 20);
    idle.acknowledge(idle.in_flight(), ROUND_TRIP);
    idle.now += Duration::from_secs(60);
    idle.congestion.resumed(Duration::from_secs(60), idle.now);
    trickle.acknowledge(trickle.in_flight(), ROUND_TRIP);
    for _ in 0..600 {
        trickle.send(10);
        trickle.now += ROUND_TRIP;
        trickle.acknowledge(10 * SEGMENT, ROUND_TRIP);
    }
    for _ in 0..10 {
        idle.round(ROUND_TRIP);
        trickle.round(ROUND_TRIP);
        busy.round(ROUND_TRIP);
    }
    let near = |a: &Sender| (f64::from(a.window()) / f64::from(busy.window()) - 1.0).abs() < 0.02;
    assert!(near(&idle) && near(&trickle), "{} {} {}", idle.window(), trickle.window(), busy.window());
}

// spec: RFC9438 4.9-1
#[test]
fn an_undone_loss_gives_the_curve_back() {
    // RFC 9438 §4.9.
    let (mut undone, _) = after_loss(1000, 20);
    let (mut spared, _) = after_loss(1000, 20);
    undone.lose();
    assert!(undone.congestion.undo(undone.now));
    assert_eq!(undone.window(), spared.window());
    for _ in 0..100 {
        undone.round(ROUND_TRIP);
        spared.round(ROUND_TRIP);
    }
    assert_eq!(undone.window(), spared.window());
}

// spec: RFC9438 4.9-2
#[test]
fn an_undo_that_comes_late_leaves_what_was_learned_since() {
    // RFC 9438 §4.9.2: the window is past the old one already.
    let (mut sender, windows) = after_loss(50, 200);
    assert!(*windows.last().unwrap() > 60);
    let before = *sender.congestion.window();
    assert!(sender.congestion.undo(sender.now));
    assert_eq!(*sender.congestion.window(), before, "the threshold, too");
    let before = sender.window();
    sender.round(ROUND_TRIP);
    assert!(sender.window() > before && sender.window() < before + before / 2);
}

// spec: RFC9438 4.10-3
#[test]
fn where_slow_start_ends_without_a_loss_the_curve_begins_at_its_plateau() {
    let mut sender = Sender::opened(&CongestionChoice::Cubic);
    for _ in 0..3 {
        sender.round(Duration::from_millis(80));
    }
    // The round trip grows: HyStart++ ends slow start.
    while sender.congestion.window().in_slow_start() {
        sender.round(ROUND_TRIP);
    }
    let start = sender.window();
    for _ in 0..30 {
        sender.round(ROUND_TRIP);
    }
    // A segment a round as Reno, for the window is where the threshold was set; 0.4 * 3^3 would be 11.
    let gained = (sender.window() - start) / SEGMENT;
    assert!((27..=32).contains(&gained), "{gained}");
}

#[test]
fn segments_of_another_size_make_no_leap() {
    for (size, before, after) in [(500, 50, 2), (1500, 50, 2), (500, 5, 4)] {
        let (mut sender, _) = after_loss(1000, before);
        let known = sender.window();
        sender.congestion.resize(size);
        for _ in 0..after {
            sender.round(ROUND_TRIP);
        }
        // Slow start as far as the threshold, where the path was not full; from there the curve, begun anew.
        let window = sender.window();
        assert!(window >= sender.threshold() && window < known + known / 20, "{size}: {known} to {window}");
    }
}

/// The mean window in segments with one loss in every `1 / p` segments (RFC 9438 §5's model).
fn response(choice: &CongestionChoice, round_trip: Duration, p: f64) -> f64 {
    let mut sender = Sender::avoiding(choice, 10);
    sender.fill();
    sender.lose();
    let (mut sent, mut rounds, mut losses) = (0.0, 0u32, 0u32);
    let mut until_loss = 1.0 / p;
    // The first losses find the level.
    while losses < 60 {
        sender.fill();
        let segments = f64::from(sender.window()) / f64::from(SEGMENT);
        let parts = 10;
        let part = sender.in_flight() / parts;
        for _ in 0..parts {
            sender.now += round_trip.divided_by(u64::from(parts));
            sender.acknowledge(part, round_trip);
            sender.fill();
        }
        if losses >= 30 {
            sent += segments;
            rounds += 1;
        }
        until_loss -= segments;
        if until_loss <= 0.0 {
            until_loss += 1.0 / p;
            sender.lose();
            losses += 1;
        }
    }
    sent / f64::from(rounds)
}

// spec: RFC9438 5.1-1
#[test]
fn the_response_function_is_that_of_rfc_9438() {
    // RFC 9438 §5.1, tables 1 and 2, the column of C = 0.4.
    let long = Duration::from_millis(100);
    let short = Duration::from_millis(10);
    let table = [
        (long, 1e-2, 12.0),
        (long, 1e-3, 38.0),
        (long, 1e-4, 187.0),
        (long, 1e-5, 1054.0),
        (long, 1e-6, 5926.0),
        (long, 1e-7, 33_325.0),
        (short, 1e-2, 12.0),
        (short, 1e-3, 38.0),
        (short, 1e-4, 120.0),
        (short, 1e-5, 379.0),
        (short, 1e-6, 1200.0),
        (short, 1e-7, 5926.0),
    ];
    for (round_trip, p, expected) in table {
        let mean = response(&CongestionChoice::Cubic, round_trip, p);
        println!("{round_trip} {p:e}: {mean:.0} segments for {expected}");
        assert!((mean / expected - 1.0).abs() < 0.15, "{round_trip} {p:e}: {mean} for {expected}");
    }
}

#[test]
fn new_reno_has_its_response_function() {
    // The mean of a saw-tooth between half and whole: sqrt(3 / 2p).
    for p in [1e-3, 1e-4, 1e-5] {
        let mean = response(&CongestionChoice::NewReno, Duration::from_millis(50), p);
        let expected = (1.5f64 / p).sqrt();
        assert!((mean / expected - 1.0).abs() < 0.1, "{p:e}: {mean} for {expected}");
    }
}
