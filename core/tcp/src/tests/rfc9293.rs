//! SHOULDs of RFC 9293, RFC 5681 and RFC 6928 that no other test covers.

use super::trial::*;
use crate::{Config, ConnectionError};
use inhost_base::Duration;
use inhost_event::TcpState;

// spec: RFC9293 SHLD-2
#[test]
fn a_reset_may_bear_a_reason() {
    let mut trial = Trial::established(plain());
    trial.give(segment(1, RST, 0), b"out of memory");
    assert_eq!(trial.connection.error(), Some(ConnectionError::Reset));
    assert_eq!(trial.connection.receiver().readable_bytes(), 0);
    trial.nothing();
}

// spec: RFC9293 SHLD-11
#[test]
fn data_is_tried_for_a_hundred_seconds_at_least() {
    let mut trial = Trial::established(plain());
    trial.write(b"anybody there?");
    trial.pass(Duration::from_secs(100));
    assert_eq!(trial.connection.state(), TcpState::Established);
    assert!(trial.sent.len() > 3);
}

// spec: RFC9293 SHLD-16
#[test]
fn what_lies_within_a_window_that_shrank_goes_again() {
    let mut trial = Trial::established(plain());
    trial.write(&[1; 5000]);
    trial.sent.clear();
    trial.pass_ms(20);
    trial.give(with_window(segment(1, ACK, 1001), 2000), b"");
    trial.pass_ms(2000);
    trial.expect().is_data(1001, 1000);
    trial.sent.clear();
    trial.give(with_window(segment(1, ACK, 2001), 2000), b"");
    trial.expect().is_data(2001, 1000);
}

// spec: RFC5681 3.1-6
#[test]
fn the_threshold_begins_out_of_reach() {
    let trial = Trial::established(plain());
    assert!(trial.connection.info(trial.now).slow_start_threshold_bytes >= 1 << 30);
}

// spec: RFC6928 12-3
#[test]
fn the_initial_window_can_be_that_of_rfc_3390() {
    let mut trial = Trial::established(Config { initial_window_segments: 4, ..plain() });
    trial.write(&[1; 20_000]);
    assert_eq!(trial.sent.len(), 4);
}

// spec: RFC9293 SHLD-17
#[test]
fn what_lies_beyond_a_window_that_was_taken_back_does_not_end_the_connection() {
    let mut trial = Trial::established(Config { user_timeout: Duration::from_secs(20), ..plain() });
    trial.write(&[1; 5000]);
    trial.sent.clear();
    // Four segments are in flight that a smaller window does not accept any more; the peer continues to say so.
    for _ in 0..200 {
        trial.give(with_window(segment(1, ACK, 1001), 0), b"");
        trial.pass_ms(1000);
        trial.sent.clear();
    }
    assert_eq!(trial.connection.state(), TcpState::Established);
    trial.give(segment(1, ACK, 1001), b"");
    trial.pass_ms(1000);
    assert!(trial.sent.iter().any(|sent| sent.at() == 1001 && sent.len() == 1000), "{:?}", trial.sent.len());
}
