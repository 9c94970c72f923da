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
        let [rack, count] = [true, false].map(|rack| run(&format!("rack = {rack}\nextent_ms = {extent_ms}")));
        assert!(rack["spurious_percent"] < 0.1, "{extent_ms}: {}", rack["spurious_percent"]);
        assert!(count["spurious_percent"] > 5.0 * rack["spurious_percent"] + 0.2, "{extent_ms}");
        assert!(rack["reorderings"] > 10.0, "the sender notices");
        assert!(rack["goodput_percent"] > 98.0, "{extent_ms}");
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
