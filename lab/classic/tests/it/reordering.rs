//! Reordering.

use super::measure;

fn run(more: &str) -> inhost_classic::Measured {
    measure(&format!("kind = \"reordering\"\n{more}"), 1)
}

#[test]
fn order_kept_retransmits_only_what_the_queue_dropped() {
    for rack in [true, false] {
        let measured = run(&format!("rack = {rack}\nreordered_percent = 0.0"));
        assert!(measured["goodput_percent"] > 95.0 && measured["spurious_percent"] < 0.01);
        assert!((measured["retransmitted_percent"] - measured["lost_percent"]).abs() < 0.02);
    }
}

#[test]
fn rack_waits_for_what_is_late_and_counting_does_not() {
    for extent_ms in [9, 18, 36] {
        let mean = |rack: bool, name: &str| {
            let setup = format!("kind = \"reordering\"\nrack = {rack}\nextent_ms = {extent_ms}");
            (1..=4).map(|seed| measure(&setup, seed)[name]).sum::<f64>() / 4.0
        };
        let [rack, count] = [true, false].map(|rack| mean(rack, "spurious_percent"));
        assert!(rack < 0.3 && count > 0.2 && count > 2.5 * rack, "{extent_ms}: {rack} {count}");
        assert!(mean(true, "reorderings") > 10.0, "the sender notices");
        assert!(mean(true, "goodput_percent") > 98.0, "{extent_ms}");
    }
}

#[test]
fn without_rack_and_undo_reordering_halves_the_window_again_and_again() {
    let measured = run("rack = false\nundo = false\nextent_ms = 18");
    assert!(measured["goodput_percent"] < 70.0);
    assert!(run("rack = false\nextent_ms = 18")["goodput_percent"] > 90.0, "undoing gives it back");
}

#[test]
fn rack_still_finds_what_is_really_lost() {
    let measured = run("extent_ms = 18\nloss_percent = 0.1");
    let (retransmitted, lost) = (measured["retransmitted_percent"], measured["lost_percent"]);
    assert!(lost > 0.05 && (retransmitted - lost).abs() < 0.1, "{retransmitted} {lost}");
    assert!(measured["timeouts"] == 0.0);
}
