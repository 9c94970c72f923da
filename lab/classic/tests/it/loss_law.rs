//! The laws of loss and window.

use super::measure;

#[test]
fn throughput_follows_the_square_root_law_from_a_thousandth_to_a_fiftieth() {
    for loss_percent in [0.1, 0.2, 0.5, 1.0, 2.0] {
        let measured = measure(&format!("kind = \"loss-law\"\nloss_percent = {loss_percent}"), 1);
        let of_law = measured["of_law_percent"];
        assert!((70.0..=130.0).contains(&of_law), "{loss_percent} %: {of_law} % of the law");
    }
}

#[test]
fn half_the_round_trip_is_twice_the_throughput() {
    let [short, long] = [25, 50].map(|round_trip_ms| {
        measure(&format!("kind = \"loss-law\"\nround_trip_ms = {round_trip_ms}\nlosses = 400"), 2)["throughput_mbps"]
    });
    assert!((1.7..=2.3).contains(&(short / long)), "{short} {long}");
}

#[test]
fn throughput_is_a_window_each_round_trip() {
    for (window_segments, round_trip_ms) in
        [(2, 50), (4, 50), (16, 50), (64, 50), (256, 50), (16, 5), (16, 500)]
    {
        let measured = measure(
            &format!(
                "kind = \"window-law\"\nwindow_segments = {window_segments}\nround_trip_ms = {round_trip_ms}"
            ),
            1,
        );
        let of_law = measured["of_law_percent"];
        assert!((97.0..=103.0).contains(&of_law), "{window_segments} {round_trip_ms}: {of_law}");
    }
}

#[test]
fn cubic_follows_the_larger_one_of_both_laws() {
    for (loss_percent, round_trip_ms) in [(1.0, 50), (0.2, 200), (0.1, 200)] {
        let measured = measure(
            &format!(
                "kind = \"loss-law\"\ncongestion = \"cubic\"\nloss_percent = {loss_percent:?}\nround_trip_ms = {round_trip_ms}\nlosses = 400"
            ),
            1,
        );
        let of_law = 100.0 * measured["throughput_mbps"] / measured["cubic_law_mbps"];
        assert!(
            (70.0..=130.0).contains(&of_law),
            "{loss_percent} % in {round_trip_ms} ms: {of_law} % of the law"
        );
    }
}
