//! Bufferbloat and its cures.

use super::measure;

fn run(more: &str) -> inhost_classic::Measured {
    measure(&format!("kind = \"bufferbloat\"\n{more}"), 1)
}

#[test]
fn a_full_buffer_delays_requests_by_its_size_over_the_rate() {
    let mut last = 0.0;
    for buffer_packets in [16, 64, 256, 512] {
        let measured = run(&format!("buffer_packets = {buffer_packets}"));
        let law = measured["round_trip_ms"] + measured["buffer_ms"];
        let worst = measured["request_max_ms"];
        assert!((0.95 * law..=1.05 * law).contains(&worst), "{buffer_packets}: {worst} beside {law}");
        assert!(measured["request_mean_ms"] > last, "more buffer, more delay");
        last = measured["request_mean_ms"];
    }
}

#[test]
fn nothing_waits_without_bulk() {
    let measured = run("bulk_flows = 0");
    assert!((40.0..41.0).contains(&measured["request_max_ms"]));
    assert!(measured["bulk_mbps"] == 0.0);
}

#[test]
fn codel_keeps_the_delay_near_its_target_and_the_line_busy() {
    for ecn in [false, true] {
        let measured = run(&format!("queue = \"codel\"\nbuffer_packets = 512\necn = {ecn}"));
        // RFC 8289 §4.4: a target of 5 ms; a standing queue of 512 packets would be 1,240 ms.
        assert!(measured["request_p95_ms"] < 40.0 + 15.0);
        assert!(measured["bulk_percent"] > 90.0);
        match ecn {
            true => assert!(measured["marked_percent"] > 0.0 && measured["dropped_percent"] == 0.0),
            false => assert!(measured["marked_percent"] == 0.0 && measured["dropped_percent"] > 0.0),
        }
    }
}

#[test]
fn under_fq_codel_a_request_waits_for_one_packet_of_bulk() {
    for ecn in [false, true] {
        let measured =
            run(&format!("queue = \"fq-codel\"\nbuffer_packets = 512\necn = {ecn}\nbulk_flows = 4"));
        // RFC 8290 §1.3 and §4.1: a flow that uses less than its share does not queue. A frame takes 2.4 ms.
        assert!(measured["request_max_ms"] < 40.0 + 3.0 * 2.5);
        assert!(measured["bulk_percent"] > 90.0);
    }
}

#[test]
fn a_paced_sender_fills_no_buffer() {
    let measured = run("pace_mbps = 4.5\nbuffer_packets = 512");
    assert!(measured["request_max_ms"] < 50.0);
    assert!((4.4..=4.51).contains(&measured["bulk_mbps"]));
    assert!(measured["dropped_percent"] == 0.0);
}
