//! Requirements of RFC 6675 and RFC 5681 on recovery that no other test covers.

use super::rfc8985::{acknowledge_all, measured, next, reports};
use super::trial::*;
use crate::RecoveryState;

// spec: RFC6675 5-5
#[test]
fn what_was_reported_beyond_a_repair_is_known_after_it() {
    let mut trial = measured();
    let at = next(&trial);
    trial.write(&[1; 14_000]);
    trial.sent.clear();
    trial.pass_ms(100);
    trial.give(reports(at, &[(at + 1000, at + 4000)]), b"");
    trial.expect().is_data(at, 1000);
    // Delivered data lets new data be sent, beyond the range of the recovery.
    trial.give(reports(at, &[(at + 1000, at + 10_000)]), b"");
    assert_eq!(next(&trial), at + 14_000);
    trial.pass_ms(100);
    trial.give(reports(at, &[(at + 11_000, at + 14_000), (at + 1000, at + 10_000)]), b"");
    trial.sent.clear();
    // The end of the recovery, without SACK blocks.
    trial.give(segment(1, ACK, at + 10_000), b"");
    let info = trial.connection.info(trial.now);
    assert_ne!(info.recovery, RecoveryState::Recovery);
    assert_eq!(info.sacked_bytes, 3000);
    trial.pass_ms(3000);
    assert!(trial.sent.iter().all(|sent| sent.at() == at + 10_000), "{:?}", trial.sent);
}

// spec: RFC5681 4.3-4
#[test]
fn losses_in_two_windows_lower_the_window_twice() {
    let mut trial = measured();
    for (flight, threshold) in [(10, 7000), (7, 4900)] {
        let at = next(&trial);
        trial.write(&[1; 10_000]);
        assert_eq!(trial.sent.len(), flight);
        trial.pass_ms(100);
        trial.give(reports(at, &[(at + 1000, at + 4000)]), b"");
        let info = trial.connection.info(trial.now);
        assert_eq!(info.slow_start_threshold_bytes, threshold);
        while trial.connection.sender().unacknowledged_bytes() > 0 {
            trial.pass_ms(100);
            acknowledge_all(&mut trial);
        }
        assert_eq!(trial.connection.info(trial.now).slow_start_threshold_bytes, threshold, "once");
    }
    assert!(trial.connection.info(trial.now).congestion_window_bytes < 6000);
}

// spec: RFC5681 3.2-6
#[test]
fn a_duplicate_that_reports_nothing_new_lets_nothing_out() {
    let mut trial = measured();
    let at = next(&trial);
    trial.write(&[1; 14_000]);
    assert_eq!(trial.sent.len(), 10);
    trial.sent.clear();
    trial.pass_ms(50);
    for _ in 0..2 {
        trial.give(segment(1, ACK, at), b"");
        trial.nothing();
    }
    trial.give(reports(at, &[(at + 1000, at + 2000)]), b"");
    trial.expect().is_data(at + 10_000, 1000);
    trial.give(reports(at, &[(at + 1000, at + 2000)]), b"");
    trial.nothing();
}

// spec: RFC6675 5.1-2, 5.1-3
#[test]
fn a_time_out_ends_a_repair_and_none_begins_before_all_that_was_out_is_acknowledged() {
    let mut trial = measured();
    let at = next(&trial);
    trial.write(&[1; 10_000]);
    trial.pass_ms(100);
    trial.give(reports(at, &[(at + 1000, at + 4000)]), b"");
    assert_eq!(trial.connection.info(trial.now).recovery, RecoveryState::Recovery);
    trial.pass_ms(400);
    let info = trial.connection.info(trial.now);
    assert_eq!((info.recovery, info.timeouts), (RecoveryState::Loss, 1));
    // Three more are reported beyond another hole: a loss, but no second recovery and no further reduction.
    trial.give(reports(at + 4000, &[(at + 5000, at + 8000)]), b"");
    let later = trial.connection.info(trial.now);
    assert_eq!(later.recovery, RecoveryState::Loss);
    assert_eq!(later.slow_start_threshold_bytes, info.slow_start_threshold_bytes);
    trial.pass_ms(100);
    trial.give(segment(1, ACK, at + 9000), b"");
    assert_eq!(trial.connection.info(trial.now).recovery, RecoveryState::Loss);
    trial.give(segment(1, ACK, at + 10_000), b"");
    assert_eq!(trial.connection.info(trial.now).recovery, RecoveryState::Open);
}

// spec: RFC5681 4.3-4a
#[test]
fn a_repair_that_is_lost_lowers_the_threshold_once_more() {
    let mut trial = measured();
    let at = next(&trial);
    trial.write(&[1; 10_000]);
    trial.pass_ms(100);
    trial.give(reports(at, &[(at + 1000, at + 4000)]), b"");
    assert_eq!(trial.connection.info(trial.now).slow_start_threshold_bytes, 7000);
    trial.pass_ms(400);
    let info = trial.connection.info(trial.now);
    assert_eq!((info.timeouts, info.congestion_window_bytes), (1, 1000));
    assert!((2000..=4900).contains(&info.slow_start_threshold_bytes), "{}", info.slow_start_threshold_bytes);
}
