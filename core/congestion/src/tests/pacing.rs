//! The pacer against a clock.

use super::*;

const SECOND: u64 = 1_000_000_000;

/// What leaves within a second at `rate`, by a sender that always has more, and wakes `late` after each release.
fn sent_in_a_second(rate: u64, segment: u32, late: Duration) -> (u64, u64) {
    let mut pacer = Pacer::default();
    pacer.pace(Pace::of(rate));
    let mut start = Instant::from_millis(5000);
    // From when it is even, the first burst being out.
    while pacer.holds_until(segment, start).is_none() {
        pacer.sent(segment, segment, start);
    }
    start = pacer.holds_until(segment, start).unwrap();
    let (mut now, mut sent, mut wakes) = (start, 0, 0);
    while now < start + Duration::from_secs(1) {
        match pacer.holds_until(segment, now) {
            Some(at) => {
                assert!(at > now);
                now = at + late;
                wakes += 1;
            }
            None => {
                pacer.sent(segment, segment, now);
                sent += u64::from(segment);
            }
        }
    }
    (sent, wakes)
}

#[test]
fn a_second_sends_the_rate_within_a_burst() {
    for rate in [10_000, 125_000, 1_250_000, 12_500_000, 125_000_000, 1_250_000_000] {
        let segment = 1448;
        for late in [Duration::ZERO, Duration::from_micros(300)] {
            let (sent, wakes) = sent_in_a_second(rate, segment, late);
            let burst = (rate / 1000).max(2 * u64::from(segment)) + u64::from(segment);
            assert!(sent.abs_diff(rate) <= burst, "{rate} B/s, {late} late: {sent} by {wakes} wakes");
            assert!(wakes <= 1001, "{rate} B/s: {wakes} wakes");
        }
    }
}

#[test]
fn a_pause_gives_a_burst_and_no_more() {
    let mut pacer = Pacer::default();
    pacer.pace(Pace::of(10_000_000));
    let burst = |pacer: &mut Pacer, now| {
        let mut sent = 0;
        while pacer.holds_until(1000, now).is_none() {
            pacer.sent(1000, 1000, now);
            sent += 1;
        }
        sent
    };
    // A millisecond is ten segments: so many ahead, and so many made good.
    let start = Instant::from_millis(1000);
    assert_eq!(burst(&mut pacer, start), 20);
    assert_eq!(pacer.holds_until(1000, start), Some(start + Duration::from_millis(1)));
    assert_eq!(burst(&mut pacer, start + Duration::from_secs(100)), 20);
}

#[test]
fn without_a_pace_nothing_waits_and_a_limit_is_one() {
    let mut pacer = Pacer::default();
    for _ in 0..1000 {
        assert_eq!(pacer.holds_until(1000, Instant::ZERO), None);
        pacer.sent(1000, 1000, Instant::ZERO);
    }
    pacer.limit(1000);
    assert_eq!(pacer.rate_bytes_per_s(), 1000);
    pacer.pace(Pace::of(5000));
    assert_eq!(pacer.rate_bytes_per_s(), 1000);
    pacer.limit(u64::MAX);
    assert_eq!(pacer.rate_bytes_per_s(), 5000);
}

#[test]
fn the_pace_is_twice_the_window_a_round_trip_in_slow_start_and_a_fifth_more_after() {
    let gains = PacingGains::default();
    let mut congestion = Congestion::new(&CongestionChoice::Cubic);
    congestion.open(10, 1000);
    let round_trip = Duration::from_millis(10);
    // As much as a first window together.
    assert_eq!(congestion.pace(&gains, 0, round_trip), Pace { bytes_per_s: 2_000_000, burst_segments: 10 });
    congestion.window_mut().threshold_bytes = 20_000;
    assert_eq!(congestion.pace(&gains, 0, round_trip), Pace::of(1_200_000));
    assert_eq!(congestion.pace(&gains, 20_000, round_trip).bytes_per_s, 2_400_000);
    let knob = PacingGains { slow_start_percent: 300, avoidance_percent: 100 };
    assert_eq!(congestion.pace(&knob, 0, round_trip).bytes_per_s, 1_000_000);
    // The extremes stay within 64 bits.
    congestion.window_mut().window_bytes = 1 << 30;
    assert!(congestion.pace(&gains, 0, Duration::ZERO).bytes_per_s > SECOND);
    congestion.window_mut().window_bytes = 1;
    assert_eq!(congestion.pace(&gains, 0, Duration::MAX).bytes_per_s, 1);
}

#[test]
fn the_room_is_what_would_leave_one_by_one() {
    let mut random = inhost_base::Random::from_number(7);
    for _ in 0..2_000 {
        let mut pacer = Pacer::default();
        pacer.pace(Pace::of(1_000 + random.public_u64() % 5_000_000_000));
        let segment = 1_000 + random.public_below(9_000);
        let mut now = Instant::from_millis(5_000);
        for _ in 0..5 {
            now += Duration::from_nanos(random.public_u64() % 3_000_000);
            let room = pacer.room_bytes(segment, now).div_ceil(u64::from(segment));
            let mut count = 0;
            while pacer.holds_until(segment, now).is_none() {
                pacer.sent(segment, segment, now);
                count += 1;
            }
            // Nanoseconds are whole: over many segments their rounding may make one of difference.
            assert!(room.abs_diff(count) <= 1 + count / 100, "{room} against {count}");
        }
    }
}
