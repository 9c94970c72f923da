//! What RFC 6675 and RFC 5681 ask of a repair and no other test shows.

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
    // What is delivered lets new data out, beyond what the repair is about.
    trial.give(reports(at, &[(at + 1000, at + 10_000)]), b"");
    assert_eq!(next(&trial), at + 14_000);
    trial.pass_ms(100);
    trial.give(reports(at, &[(at + 11_000, at + 14_000), (at + 1000, at + 10_000)]), b"");
    trial.sent.clear();
    // The end of the repair, which reports nothing.
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
        while trial.connection.unacknowledged_bytes() > 0 {
            trial.pass_ms(100);
            acknowledge_all(&mut trial);
        }
        assert_eq!(trial.connection.info(trial.now).slow_start_threshold_bytes, threshold, "once");
    }
    assert!(trial.connection.info(trial.now).congestion_window_bytes < 6000);
}
