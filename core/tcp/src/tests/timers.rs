//! Keep-alive; and a deadline is never early, late or repeated.

use super::trial::*;
use crate::{Config, ConnectionError, ConnectionOption, KeepAlive};
use inhost_base::{Duration, Instant};

// spec: RFC9293 MUST-25
#[test]
fn nobody_is_probed_unasked() {
    let mut trial = Trial::established(plain());
    assert_eq!(trial.connection.deadline(), Instant::FAR_FUTURE);
    trial.pass(Duration::from_secs(1_000_000));
    trial.nothing();
}

// spec: RFC9293 MUST-24
// spec: RFC9293 MUST-26
// spec: RFC9293 MUST-27
// spec: RFC9293 MUST-28
#[test]
fn an_idle_peer_is_probed_after_two_hours_and_lives_on_when_it_answers() {
    assert!(KeepAlive::default().idle >= Duration::from_secs(7200));
    let mut trial = Trial::established(plain());
    trial.connection.set(ConnectionOption::KeepAlive(Some(KeepAlive::default())), lend!(trial));
    for _ in 0..5 {
        trial.pass(Duration::from_secs(7199));
        trial.nothing();
        trial.pass(Duration::from_secs(1));
        let probe = trial.expect();
        assert_eq!((probe.at(), probe.len(), probe.flags()), (0, 0, ACK), "an old number, and no data");
        trial.give(segment(1, ACK, 1), b"");
        trial.nothing();
    }
    // Data postpones it.
    trial.pass(Duration::from_secs(7000));
    trial.give(segment(1, ACK, 1), b"here");
    trial.pass(Duration::from_secs(7000));
    trial.expect().is_ack(5);
    trial.nothing();
}

// spec: RFC9293 MUST-29
#[test]
fn a_peer_that_is_gone_is_given_up_after_several_probes() {
    let keep_alive = KeepAlive { idle: Duration::from_secs(10), interval: Duration::from_secs(2), probes: 3 };
    let mut trial = Trial::established(Config { keep_alive: Some(keep_alive), ..plain() });
    trial.pass(Duration::from_secs(15));
    assert_eq!(trial.sent.len(), 3);
    assert_eq!(trial.connection.error(), None);
    trial.pass(Duration::from_secs(1));
    assert_eq!(trial.connection.error(), Some(ConnectionError::KeepAliveTimedOut));
    assert_eq!(trial.sent.len(), 3);
}

#[test]
fn probes_that_the_link_does_not_take_are_unanswered_too() {
    let keep_alive = KeepAlive { idle: Duration::from_secs(10), interval: Duration::from_secs(2), probes: 3 };
    let mut trial = Trial::established(Config { keep_alive: Some(keep_alive), ..plain() });
    // Timers run, and no round: nothing leaves.
    for seconds in [10, 2, 2] {
        trial.now += Duration::from_secs(seconds);
        assert_eq!(trial.connection.deadline(), trial.now);
        trial.connection.timeout(lend!(trial));
        assert_eq!(trial.connection.error(), None);
    }
    trial.now += Duration::from_secs(2);
    trial.connection.timeout(lend!(trial));
    assert_eq!(trial.connection.error(), Some(ConnectionError::KeepAliveTimedOut));
    trial.nothing();
}

#[test]
fn a_peers_probe_is_answered() {
    let mut trial = Trial::established(plain());
    trial.give(segment(0, ACK, 1), b"");
    trial.expect().is_ack(1);
    trial.give(segment(0, ACK, 1), b"G");
    trial.expect().is_ack(1);
}

#[test]
fn a_spurious_timeout_or_round_changes_nothing() {
    let mut trial = Trial::established(plain());
    trial.write(&[1; 3000]);
    trial.give(segment(1, ACK, 1), b"unacknowledged yet");
    trial.sent.clear();
    let deadline = trial.connection.deadline();
    for _ in 0..10 {
        trial.connection.timeout(lend!(trial));
        trial.round();
    }
    trial.nothing();
    assert_eq!(trial.connection.deadline(), deadline);
}

#[test]
fn a_leap_of_the_clock_is_survived_with_data_outstanding() {
    let config = Config { user_timeout: Duration::from_secs(60), ..plain() };
    let mut trial = Trial::established(config);
    trial.write(&[1; 3000]);
    trial.sent.clear();
    // A suspended host wakes: one time-out, not a hundred, and the peer has its chance to answer.
    leap(&mut trial, 100_000);
    trial.expect().is_data(1, 1000);
    trial.nothing();
    trial.pass_ms(100);
    leap(&mut trial, 100_000);
    trial.expect().is_data(1, 1000);
    trial.give(segment(1, ACK, 3001), b"");
    assert_eq!((trial.connection.error(), trial.connection.sender().unacknowledged_bytes()), (None, 0));
    // The user timeout still ends it: time spent waiting counts.
    trial.write(&[1; 1000]);
    trial.pass(Duration::from_secs(30));
    leap(&mut trial, 100_000);
    trial.pass(Duration::from_secs(5));
    assert_eq!(trial.connection.error(), None);
    trial.pass(Duration::from_secs(30));
    assert_eq!(trial.connection.error(), Some(ConnectionError::TimedOut));
}

#[test]
fn a_leap_of_the_clock_is_survived_by_an_idle_connection() {
    let keep_alive = KeepAlive { idle: Duration::from_secs(10), interval: Duration::from_secs(2), probes: 3 };
    let mut trial = Trial::established(Config { keep_alive: Some(keep_alive), ..plain() });
    for _ in 0..5 {
        leap(&mut trial, 100_000);
        assert_eq!(trial.expect().len(), 0, "a probe");
        trial.nothing();
        trial.pass_ms(1900);
        trial.nothing();
        trial.give(segment(1, ACK, 1), b"");
    }
    assert_eq!(trial.connection.error(), None);
    leap(&mut trial, 100_000);
    trial.pass(Duration::from_secs(10));
    assert_eq!(trial.connection.error(), Some(ConnectionError::KeepAliveTimedOut));
    assert_eq!(trial.sent.len(), 3);
}

/// The host sleeps for `seconds`.
fn leap(trial: &mut Trial, seconds: u64) {
    trial.now += Duration::from_secs(seconds);
    trial.connection.timeout(lend!(trial));
    assert!(trial.connection.deadline() > trial.now, "still due");
    trial.round();
}
