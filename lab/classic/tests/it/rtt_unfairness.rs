//! Unfairness by round trip.

use super::measure;

/// Means of the share ratio and of the exponents over seeds.
fn run(congestion: &str, ratio: f64) -> [f64; 3] {
    let seeds = 1..=4;
    let count = seeds.clone().count() as f64;
    let sum = seeds.fold([0.0; 3], |sum, seed| {
        let setup = format!("kind = \"rtt-unfairness\"\ncongestion = \"{congestion}\"\nratio = {ratio:?}");
        let measured = measure(&setup, seed);
        assert!(measured["used_percent"] > 90.0);
        let of = ["share_ratio", "exponent", "queued_exponent"].map(|name| measured[name]);
        std::array::from_fn(|index| sum[index] + of[index])
    });
    sum.map(|sum| sum / count)
}

#[test]
fn equal_round_trips_share_equally() {
    for congestion in ["new-reno", "cubic"] {
        let [share_ratio, ..] = run(congestion, 1.0);
        assert!((0.75..=1.33).contains(&share_ratio), "{congestion}: {share_ratio}");
    }
}

#[test]
fn reno_is_unfair_by_a_power_between_one_and_two() {
    let mut last = 1.0;
    for ratio in [2.0, 4.0, 8.0] {
        let [share_ratio, exponent, queued_exponent] = run("new-reno", ratio);
        assert!((1.0..=2.1).contains(&exponent), "{ratio}: {exponent}");
        assert!((1.0..=2.1).contains(&queued_exponent), "{ratio}: {queued_exponent}");
        assert!(share_ratio > last, "the ratio of shares grows with that of round trips");
        last = share_ratio;
    }
}

#[test]
fn cubic_is_less_unfair_than_reno() {
    for ratio in [4.0, 8.0] {
        let [[reno, ..], [cubic, exponent, _]] = [run("new-reno", ratio), run("cubic", ratio)];
        assert!(cubic < 0.85 * reno, "{ratio}: {cubic} beside {reno}");
        // RFC 9438 §3.3: shares as the inverse of round trips.
        assert!((0.7..=1.5).contains(&exponent), "{ratio}: {exponent}");
    }
}
