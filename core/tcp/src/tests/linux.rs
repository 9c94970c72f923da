//! Individual choices of the `linux` profile.

use super::rfc8985::{measured_with, next, reports};
use super::trial::*;
use crate::{Config, ConnectionError, NetworkError, Policy, RecoveryState, SoftError, StreamError};
use inhost_base::{Duration, Sequence};
use inhost_event::TcpState;

fn refusing() -> Config {
    let user_timeout = Duration::from_secs(3);
    Config { refusal_retry: Some(Duration::from_millis(500)), user_timeout, ..plain() }
}
fn with_policy(policy: Policy) -> Config {
    Config { policy, ..plain() }
}
fn probes(trial: &Trial) -> u8 {
    trial.connection.info(trial.now).unanswered_probes
}

#[test]
fn what_the_link_refuses_is_tried_again_twice_a_second_until_the_user_timeout() {
    let mut trial = measured_with(refusing());
    trial.link_room = 0;
    trial.write(b"text");
    assert!(!trial.connection.wants_transmit(trial.now), "it waits for an occasion");
    let info = trial.connection.info(trial.now);
    assert_eq!((info.not_sent_bytes, info.in_flight_bytes, info.retransmission_backoff), (4, 0, 0));
    // A time-out of 300 ms, and then every 500 ms.
    trial.pass_ms(299);
    assert_eq!(probes(&trial), 0);
    trial.pass_ms(1);
    assert_eq!(probes(&trial), 1);
    trial.pass_ms(2500);
    assert_eq!((probes(&trial), trial.connection.info(trial.now).retransmission_backoff), (6, 0));
    trial.write(b"more");
    trial.pass_ms(499);
    assert_eq!(trial.connection.error(), None);
    trial.pass_ms(1);
    assert_eq!(trial.connection.error(), Some(ConnectionError::TimedOut));
    trial.nothing();
}

#[test]
fn what_the_link_refused_leaves_with_the_next_occasion() {
    let mut trial = measured_with(refusing());
    let at = next(&trial);
    trial.link_room = 0;
    trial.write(b"text");
    trial.link_room = usize::MAX;
    trial.pass_ms(299);
    trial.nothing();
    trial.pass_ms(1);
    trial.expect().is_data(at, 4);
    // From here on the timer covers it like any other data.
    trial.pass_ms(299);
    trial.nothing();
    trial.give(segment(1, ACK, at + 4), b"");
    assert_eq!((probes(&trial), trial.connection.info(trial.now).in_flight_bytes), (0, 0));
    trial.link_room = 0;
    trial.write(b"te");
    trial.link_room = usize::MAX;
    trial.write(b"xt");
    trial.expect().is_data(at + 4, 4);
    trial.nothing();
}

#[test]
fn a_refusal_reduces_the_window_once_and_takes_acknowledgments_with_it() {
    let mut trial = measured_with(refusing());
    let before = trial.connection.info(trial.now).congestion_window_bytes;
    trial.link_room = 0;
    trial.give(segment(1, ACK, next(&trial)), &pattern(0, 2000));
    assert!(!trial.connection.wants_transmit(trial.now), "the acknowledgment is lost");
    trial.write(b"text");
    let info = trial.connection.info(trial.now);
    assert_eq!(info.recovery, RecoveryState::WindowReduction);
    assert!(info.slow_start_threshold_bytes < before);
    trial.link_room = usize::MAX;
    trial.pass_ms(400);
    let sent = trial.expect();
    assert_eq!((sent.acknowledges(), sent.flags()), (2001, ACK | PSH), "without ECN nobody is told of it");
    let lower = trial.connection.info(trial.now).slow_start_threshold_bytes;
    assert_eq!(lower, info.slow_start_threshold_bytes);
}

#[test]
fn a_link_that_is_full_loses_nothing_by_default() {
    let mut trial = measured_with(plain());
    let at = next(&trial);
    trial.link_room = 0;
    trial.write(b"text");
    assert!(trial.connection.wants_transmit(trial.now));
    assert_eq!(trial.connection.info(trial.now).recovery, RecoveryState::Open);
    trial.pass_ms(10_000);
    trial.link_room = usize::MAX;
    trial.round();
    trial.expect().is_data(at, 4);
    trial.nothing();
}

#[test]
fn a_path_that_reorders_lets_the_window_grow_out_of_order() {
    let grown = |congestion_window_grows_on_sack| {
        let mut trial =
            measured_with(with_policy(Policy { congestion_window_grows_on_sack, ..Policy::rfc() }));
        let at = next(&trial);
        trial.write(&[1; 10_000]);
        trial.pass_ms(100);
        let before = trial.connection.info(trial.now).congestion_window_bytes;
        // The last first, and then one that it overtook by six.
        trial.give(reports(at, &[(at + 9000, at + 10_000)]), b"");
        trial.give(reports(at, &[(at + 3000, at + 4000), (at + 9000, at + 10_000)]), b"");
        trial.connection.info(trial.now).congestion_window_bytes - before
    };
    assert_eq!((grown(false), grown(true)), (0, 1000));
}

#[test]
fn the_reordering_timer_has_some_slack() {
    let waited = |recovery_timer_slack| {
        let mut trial = measured_with(Config { recovery_timer_slack, ..plain() });
        let at = next(&trial);
        trial.write(&[1; 4000]);
        trial.sent.clear();
        trial.pass_ms(100);
        let before = trial.now;
        trial.give(reports(at, &[(at + 3000, at + 4000)]), b"");
        while trial.sent.is_empty() {
            trial.pass_ms(1);
        }
        trial.now.since(before).as_millis()
    };
    assert_eq!((waited(Duration::ZERO), waited(Duration::from_millis(2))), (25, 27));
}

#[test]
fn the_answer_to_crossing_calls_is_acknowledged() {
    let answered = |acknowledges_crossing_answer| {
        let mut trial = Trial::calling(with_policy(Policy { acknowledges_crossing_answer, ..Policy::rfc() }));
        trial.expect();
        let mut syn = segment(0, SYN, 0);
        syn.options.sack_permitted = true;
        trial.give(syn, b"");
        assert_eq!(trial.expect().flags(), SYN | ACK);
        trial.give(segment(0, SYN | ACK, 1), b"");
        assert_eq!(trial.connection.state(), TcpState::Established);
        trial.sent.pop_front().map(|sent| sent.header.options.sack.as_slice().to_vec())
    };
    let twice = vec![(Sequence(THEIRS), Sequence(THEIRS) + 1)];
    assert_eq!((answered(false), answered(true)), (None, Some(twice)));
}

#[test]
fn psh_ends_a_burst_that_leaves_as_one_run() {
    let mut trial = measured_with(with_policy(Policy { pushes_writes_and_bursts: true, ..Policy::rfc() }));
    trial.write(&[1; 12_000]);
    let pushed: Vec<_> = trial
        .sent
        .iter()
        .filter(|sent| sent.flags().psh())
        .map(|sent| sent.at() - trial.sent[0].at())
        .collect();
    assert_eq!((trial.sent.len(), pushed), (10, vec![1000, 3000, 5000, 7000, 9000]), "two each at this rate");
}

/// Adaptive acknowledgments with otherwise plain configuration.
fn adaptive() -> Config {
    let policy = Policy { adaptive_delayed_acks: true, ..Policy::rfc() };
    Config { policy, quick_acknowledgments: 16, ..plain() }
}
/// The delay of the acknowledgment for the last data, which ends at `at`.
fn acknowledged_after_ms(trial: &mut Trial, at: u32) -> u64 {
    for waited_ms in 0..500 {
        if let Some(sent) = trial.sent.pop_front() {
            sent.is_ack(at);
            return waited_ms;
        }
        trial.pass_ms(1);
    }
    panic!("it never was acknowledged");
}

#[test]
fn the_fin_that_brings_close_wait_is_acknowledged_as_data_is() {
    // With the last data, and after it.
    let mut trial = Trial::established(adaptive());
    trial.give(segment(1, ACK | FIN, 1), &[1; 100]);
    assert_eq!(acknowledged_after_ms(&mut trial, 102), 40);
    let mut trial = Trial::established(adaptive());
    trial.give(segment(1, ACK, 1), &[1; 100]);
    trial.expect().is_ack(101);
    trial.pass_ms(10);
    trial.give(segment(101, ACK | FIN, 1), b"");
    assert_eq!(acknowledged_after_ms(&mut trial, 102), 40);
    // Any segment sent meanwhile bears the acknowledgment.
    let mut trial = Trial::established(adaptive());
    trial.give(segment(1, ACK | FIN, 1), &[1; 100]);
    trial.nothing();
    trial.read(200);
    trial.close();
    assert_eq!(trial.expect().acknowledges(), 102);
    trial.pass_ms(100);
    assert!(trial.sent.iter().all(|sent| sent.flags().fin()), "nothing but the FIN again");
}

#[test]
fn a_fin_without_any_data_before_it_or_behind_a_gap_is_acknowledged_at_once() {
    // One tick later, so that data written meanwhile bears the acknowledgment.
    let mut trial = Trial::established(adaptive());
    trial.give(segment(1, ACK | FIN, 1), b"");
    trial.nothing();
    trial.pass_ms(1);
    trial.expect().is_ack(2);
    let mut trial = Trial::established(adaptive());
    trial.give(segment(1001, ACK | FIN, 1), &[1; 1000]);
    trial.expect().is_ack(1);
    trial.give(segment(1, ACK, 1), &[1; 1000]);
    trial.expect().is_ack(2002);
    // After our own FIN the state that follows is not CLOSE-WAIT.
    let mut trial = Trial::established(adaptive());
    trial.give(segment(1, ACK, 1), &[1; 100]);
    trial.expect();
    trial.read(100);
    trial.close();
    trial.expect();
    trial.give(segment(101, ACK | FIN, 2), b"");
    trial.expect().is_ack(102);
    // And never by default.
    let mut trial = Trial::established(plain());
    trial.give(segment(1, ACK | FIN, 1), &[1; 100]);
    trial.expect().is_ack(102);
}

#[test]
fn what_came_before_a_reset_can_be_read_where_it_survives() {
    let error = ConnectionError::Reset;
    for survives in [true, false] {
        let config = with_policy(Policy { received_data_survives_reset: survives, ..Policy::rfc() });
        let mut trial = Trial::established(config);
        trial.give(segment(1, ACK | FIN, 1), &[1; 10]);
        trial.give(segment(12, RST, 1), b"");
        assert_eq!(trial.connection.error(), Some(error));
        let write = trial.connection.send(b"x", crate::SendHow::default(), lend!(trial));
        assert_eq!(write, Err(StreamError::Connection(error)));
        let mut into = [0; 100];
        let reads: Vec<_> = (0..2).map(|_| trial.connection.read(&mut into, lend!(trial))).collect();
        let failed = Err(StreamError::Connection(error));
        assert_eq!(reads, if survives { [Ok(10), failed] } else { [failed, failed] });
    }
}

#[test]
fn a_time_out_after_a_soft_error_fails_with_that_error() {
    let ends_by = |config: &Config, said: Option<SoftError>, then_answers: bool| {
        let mut trial = Trial::established(config.clone());
        trial.write(b"text");
        if let Some(said) = said {
            trial.connection.unreachable(Sequence(OURS + 1), NetworkError::Soft(said), lend!(trial));
        }
        if then_answers {
            trial.give(segment(1, ACK, 3), b"");
        }
        trial.pass_ms(60_000);
        trial.connection.error().unwrap()
    };
    let user_timeout = Duration::from_secs(20);
    let policy = Policy { soft_errors_name_timeouts: true, ..Policy::rfc() };
    let linux = Config { policy, user_timeout, ..plain() };
    assert_eq!(ends_by(&linux, None, false), ConnectionError::TimedOut);
    assert_eq!(ends_by(&linux, Some(SoftError::Unreachable), false), ConnectionError::Unreachable);
    assert_eq!(ends_by(&linux, Some(SoftError::TimeExceeded), false), ConnectionError::Unreachable);
    assert_eq!(
        ends_by(&linux, Some(SoftError::NetworkUnreachable), false),
        ConnectionError::NetworkUnreachable
    );
    assert_eq!(
        ends_by(&linux, Some(SoftError::ProtocolUnreachable), false),
        ConnectionError::ProtocolUnreachable
    );
    assert_eq!(ends_by(&linux, Some(SoftError::Refused), false), ConnectionError::Refused);
    let problem = SoftError::ParameterProblem;
    assert_eq!(ends_by(&linux, Some(problem), false), ConnectionError::ParameterProblem);
    // An ICMP error from before the peer's next segment is cleared.
    assert_eq!(ends_by(&linux, Some(SoftError::Unreachable), true), ConnectionError::TimedOut);
    let rfc = Config { user_timeout, ..plain() };
    assert_eq!(ends_by(&rfc, Some(SoftError::Unreachable), false), ConnectionError::TimedOut);
}
