//! Requirements of RFC 4821 on the search that no other test covers.

use super::search::{segment_bytes, through, wide, wide_from};
use super::trial::*;
use crate::{Config, Connection, Open, PathMtuProbing, RecoveryState};
use inhost_base::{Duration, Sequence};
use inhost_wire::tcp::SackBlocks;
use std::sync::Arc;

fn always() -> Config {
    Config { path_mtu_probing: PathMtuProbing::Always, ..plain() }
}
/// Established over a path of 1,460 bytes of payload to a peer that knows all our options.
fn wide_with_options(config: Config, path_mtu_mss: u16) -> Trial {
    let mut trial =
        Trial::around(|env| Connection::connect(&Arc::new(config), Open { path_mtu_mss, ..open() }, env));
    trial.round();
    let syn = trial.expect();
    let mut answer = segment(0, SYN | ACK, 1);
    answer.options = syn.header.options;
    answer.options.mss = Some(1460);
    answer.options.timestamps = syn.header.options.timestamps.map(|(value, _)| (1, value));
    trial.pass_ms(50);
    trial.give(answer, b"");
    trial.expect();
    trial
}
/// An acknowledgment up to `at` that also reports `start..end`.
fn telling(at: u32, start: u32, end: u32) -> crate::Header {
    let mut header = segment(1, ACK, at);
    let mut blocks = SackBlocks::new();
    blocks.push((Sequence(OURS) + start, Sequence(OURS) + end));
    header.options.sack = blocks;
    header
}
fn lengths(trial: &mut Trial) -> Vec<usize> {
    trial.sent.drain(..).map(|sent| sent.len()).collect()
}
fn window_bytes(trial: &Trial) -> u32 {
    trial.connection.info(trial.now).congestion_window_bytes
}
/// Number of segments of 60,000 bytes that exceeded a path of `most` bytes.
fn too_long_for(most: usize, trial: &mut Trial) -> usize {
    trial.write(&[1; 60_000]);
    through(trial, most)
}

// spec: RFC4821 7.1-1, 7.1-2, 7.2-1, 7.2-2, 7.4-1
#[test]
fn one_segment_is_the_probe_and_all_others_are_of_the_size_that_passes() {
    let mut trial = wide(always());
    trial.write(&[1; 20_000]);
    let lengths = lengths(&mut trial);
    assert_eq!(lengths[0], 1460, "the largest that the peer and the path take");
    assert!(lengths.len() > 4 && lengths[1..].iter().all(|&length| length == 1024), "{lengths:?}");
}

// spec: RFC4821 7.4-1, 7.4-2
#[test]
fn without_enough_behind_it_no_probe_leaves() {
    for (bytes, probes) in [(1460 + 3 * 1024 - 1, false), (1460 + 3 * 1024, true)] {
        let mut trial = wide(always());
        trial.write(&vec![1; bytes]);
        let lengths = lengths(&mut trial);
        assert_eq!(lengths[0] == 1460, probes, "{lengths:?}");
        assert!(lengths.len() >= 4, "a probe lost makes three duplicates: {lengths:?}");
    }
}

// spec: RFC4821 5.1-1, 8-1
#[test]
fn a_probe_with_its_headers_is_no_longer_than_the_path_is_said_to_take() {
    for path_mtu_mss in [1200, 1460] {
        for timestamps in [false, true] {
            let mut trial = wide_with_options(Config { timestamps, ..always() }, path_mtu_mss);
            trial.write(&[1; 20_000]);
            let options = if timestamps { 12 } else { 0 };
            let longest = trial.sent.iter().map(Sent::len).max().unwrap();
            assert_eq!(longest + options, usize::from(path_mtu_mss));
        }
    }
}

// spec: RFC4821 4-3, 4-4, 6.1-1, 7.6.2-1
#[test]
fn a_probe_lost_alone_goes_again_in_smaller_segments_and_costs_no_window() {
    let mut trial = wide(always());
    trial.write(&[1; 20_000]);
    let before = window_bytes(&trial);
    trial.sent.clear();
    trial.pass_ms(50);
    // As many duplicates as segments followed.
    for _ in 0..7 {
        trial.give(segment(1, ACK, 1), b"");
    }
    let again = trial.sent.iter().find(|sent| sent.at() == 1).expect("found by duplicates, not by the timer");
    again.is_data(1, 1024);
    let info = trial.connection.info(trial.now);
    assert_eq!((info.timeouts, info.recovery), (0, RecoveryState::Disorder));
    assert!(window_bytes(&trial) >= before);
    assert!(trial.sent.iter().all(|sent| sent.len() <= 1024), "and meanwhile none is out");
}

// spec: RFC4821 4-4
#[test]
fn a_probe_lost_with_other_data_is_congestion() {
    // The other missing data lies directly behind the probe, or further on.
    for gap in [0, 1024] {
        let mut trial = wide_with_options(always(), 1460);
        trial.write(&[1; 20_000]);
        let before = window_bytes(&trial);
        trial.pass_ms(50);
        let last = trial.sent.pop_back().unwrap();
        let mut header = telling(1, 1461 + gap + 1024, last.at() + last.len() as u32);
        if gap > 0 {
            header.options.sack.push((Sequence(OURS) + 1461, Sequence(OURS) + 1461 + gap));
        }
        trial.give(header, b"");
        trial.pass_ms(50);
        let info = trial.connection.info(trial.now);
        assert_eq!((info.timeouts, info.recovery), (0, RecoveryState::Recovery));
        assert!(info.slow_start_threshold_bytes < before);
    }
}

// spec: RFC4821 7.6.4-1
#[test]
fn a_size_that_was_lost_with_other_data_is_tried_again() {
    let mut trial = wide_with_options(always(), 1460);
    trial.write(&[1; 20_000]);
    // Only the largest is lost, so that the next size lies between.
    trial.pass_ms(50);
    trial.give(telling(1, 1461, trial.connection.info(trial.now).send_next.since(Sequence(OURS))), b"");
    let mut sizes = Vec::new();
    for _ in 0..2 {
        while trial.connection.sender().unacknowledged_bytes() > 0 {
            trial.pass_ms(50);
            let all = trial.connection.info(trial.now).send_next.since(Sequence(OURS));
            trial.give(segment(1, ACK, all), b"");
        }
        trial.sent.clear();
        trial.write(&[1; 20_000]);
        let probe = trial.sent.iter().find(|sent| sent.len() > 1024).unwrap().clone();
        sizes.push(probe.len());
        let end = trial.connection.info(trial.now).send_next.since(Sequence(OURS));
        trial.pass_ms(50);
        // Lost, and the data that follows it is lost, too.
        trial.give(telling(probe.at(), probe.at() + probe.len() as u32 + 1024, end), b"");
        trial.pass_ms(50);
        assert_eq!(trial.connection.info(trial.now).recovery, RecoveryState::Recovery);
    }
    assert_eq!(sizes, [1242, 1242]);
}

// spec: RFC4821 4-5, 7.3-1, 7.3-2
#[test]
fn a_search_ends_after_a_few_probes_and_begins_again_after_ten_minutes() {
    let mut trial = wide(always());
    let mut probes = 0;
    for _ in 0..20 {
        probes += too_long_for(1024, &mut trial);
    }
    // The largest once, and three times each size halfway from 1459 down to less than 16 above.
    assert_eq!(probes, 1 + 3 * 5);
    assert_eq!(segment_bytes(&trial), 1024);
    trial.pass(Duration::from_secs(301));
    assert_eq!(too_long_for(1024, &mut trial), 0, "not within five minutes");
    trial.pass(Duration::from_secs(300));
    for _ in 0..2 {
        assert_eq!(too_long_for(1460, &mut trial), 0);
    }
    assert_eq!(segment_bytes(&trial), 1460, "the path has become wider");
}

// spec: RFC4821 7.3-2a
#[test]
fn a_search_that_ended_with_a_probe_that_arrived_begins_again_after_ten_minutes_too() {
    let mut trial = wide_from(always(), Open { path_mtu_mss: 1240, ..open() });
    for _ in 0..3 {
        assert_eq!(too_long_for(1240, &mut trial), 0);
    }
    assert_eq!(segment_bytes(&trial), 1240, "all that the path was said to take");
    trial.connection.set_path_mtu_mss(1460, lend!(trial));
    trial.pass(Duration::from_secs(301));
    assert_eq!(too_long_for(1240, &mut trial), 0, "not within five minutes");
    trial.pass(Duration::from_secs(300));
    for _ in 0..3 {
        assert_eq!(too_long_for(1460, &mut trial), 0);
    }
    assert_eq!(segment_bytes(&trial), 1460, "the path has become wider");
}

// spec: RFC4821 7.7-2
#[test]
fn time_outs_that_go_on_halve_the_segment_once_more() {
    let config = Config { path_mtu_probing: PathMtuProbing::BlackHoles, ..plain() };
    let mut trial = wide(config);
    trial.write(&[1; 20_000]);
    let mut sizes = vec![segment_bytes(&trial)];
    for _ in 0..120 {
        trial.pass_ms(1_000);
        let size = segment_bytes(&trial);
        if sizes.last() != Some(&size) {
            sizes.push(size);
        }
    }
    assert_eq!(sizes, [1460, 1024, 512]);
}
