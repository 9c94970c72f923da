//! A fast network before a slow line.

use super::measure;

fn run(sender: &str, queue: &str, buffers: u32) -> inhost_classic::Measured {
    measure(
        &format!("kind = \"gateway\"\nsender = \"{sender}\"\nqueue = \"{queue}\"\nbuffers = {buffers}"),
        1,
    )
}

#[test]
fn a_burst_of_twenty_loses_what_the_gateway_has_no_buffer_for() {
    for buffers in [2, 4, 8, 12] {
        let measured = run("unlimited", "tail-drop", buffers);
        // One packet is on the line, and the packet before it may have left by then.
        let least = f64::from(20 - buffers - 2);
        assert!(measured["screenful_dropped"] >= least, "{buffers}: {}", measured["screenful_dropped"]);
        assert!(measured["screenful_s"] > 1.1 * measured["line_limit_s"]);
    }
    let enough = run("unlimited", "tail-drop", 20);
    assert!(enough["screenful_dropped"] == 0.0);
    assert!(enough["screenful_s"] < 1.03 * enough["line_limit_s"]);
}

#[test]
fn a_small_window_and_pacing_lose_nothing_and_keep_the_line_busy() {
    let window = run("small-window", "tail-drop", 2);
    assert!(window["screenful_dropped"] == 0.0 && window["bulk_dropped"] == 0.0);
    assert!(window["screenful_s"] < 1.05 * window["line_limit_s"]);
    let paced = run("paced", "tail-drop", 2);
    assert!(paced["screenful_dropped"] == 0.0);
    assert!(paced["screenful_s"] < 1.06 * paced["line_limit_s"]);
}

#[test]
fn a_congestion_window_keeps_bulk_data_flowing_and_a_fixed_window_does_not() {
    let line_bps = 9600.0 * 100.0 / 140.0;
    let (unlimited, slow_start) = (run("unlimited", "tail-drop", 8), run("slow-start", "tail-drop", 8));
    assert!(unlimited["bulk_bps"] < 0.4 * line_bps);
    assert!(slow_start["bulk_bps"] > 0.9 * line_bps);
}

#[test]
fn fair_queues_keep_the_echo_short_beside_bulk() {
    for sender in ["small-window", "paced", "slow-start", "today"] {
        let [tail, fair] = ["tail-drop", "fq-codel"].map(|queue| run(sender, queue, 8));
        assert!(fair["echo_mean_ms"] < 0.6 * tail["echo_mean_ms"], "{sender}");
        // An echo without bulk takes 80 ms; a packet of bulk on the line, 117 ms.
        assert!(fair["echo_max_ms"] < 80.0 + 2.0 * 117.0, "{sender}");
        assert!(fair["bulk_bps"] > 0.85 * tail["bulk_bps"], "{sender}");
    }
    assert!(run("today", "fq-codel", 8)["bulk_marked"] > 0.0, "ECN is used");
}

#[test]
fn no_queue_helps_against_a_sender_that_heeds_nothing() {
    let measured = run("unlimited", "fq-codel", 8);
    assert!(measured["screenful_dropped"] > 0.0 && measured["bulk_bps"] < 3000.0);
}
