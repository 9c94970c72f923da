//! Nagle's algorithm and delayed acknowledgments.

use super::measure;

#[test]
fn a_transaction_takes_one_round_trip_or_two_or_a_delayed_acknowledgment_more() {
    for nagle in [false, true] {
        for (delayed_ack_ms, round_trip_ms) in [(0, 10), (40, 10), (200, 10), (500, 10), (200, 100)] {
            let measured = measure(
                &format!(
                    "kind = \"nagle\"\nnagle = {nagle}\ndelayed_ack_ms = {delayed_ack_ms}\nround_trip_ms = {round_trip_ms}"
                ),
                1,
            );
            let (ours, law) = (measured["transaction_p50_ms"], measured["law_ms"]);
            assert!(
                (ours - law).abs() < 1.0,
                "{nagle} {delayed_ack_ms} {round_trip_ms}: {ours} beside {law}"
            );
            assert!((1.9..=2.1).contains(&measured["segments"]));
        }
    }
}

#[test]
fn one_write_needs_neither() {
    let measured = measure("kind = \"nagle\"\none_write = true", 1);
    assert!((measured["transaction_max_ms"] - 10.0).abs() < 1.0);
    assert!((0.9..=1.1).contains(&measured["segments"]));
}
