//! Loss detection and recovery.

use super::trial::*;
use crate::{Changes, Config, ConnectionError, ConnectionOption, NetworkError, SoftError};
use inhost_base::{Duration, Sequence};
use inhost_event::{Drop, TcpState};

/// Established, with a round trip measured at 100 ms: the time-out is 300 ms.
fn measured(config: Config) -> Trial {
    let mut trial = Trial::established(config);
    trial.write(b"x");
    trial.expect();
    trial.pass_ms(100);
    trial.give(segment(1, ACK, 2), b"");
    trial
}

// spec: RFC9293 MUST-19
// spec: RFC9293 MUST-20
// spec: RFC9293 MUST-21; RFC6298 2.5-1
#[test]
fn a_lost_segment_is_sent_again_with_doubling_time_outs_until_the_user_gives_up() {
    let config = Config { user_timeout: Duration::from_secs(20), ..plain() };
    let mut trial = measured(config);
    trial.write(b"lost");
    let start = trial.now;
    trial.expect();
    let mut at_ms = Vec::new();
    let mut suspected_ms = 0;
    while trial.connection.state() != TcpState::Closed {
        trial.pass_ms(10);
        while let Some(again) = trial.sent.pop_front() {
            again.is_data(2, 4);
            at_ms.push(trial.now.since(start).as_millis());
        }
        if trial.changed().contains(Changes::SUSPECT) {
            suspected_ms = trial.now.since(start).as_millis();
            assert_eq!(trial.connection.soft_error(), Some(SoftError::NotResponding));
        }
    }
    // The first sample of 100 ms was smoothed with the handshake's, which took no time.
    assert!(at_ms.len() >= 5, "{at_ms:?}");
    for pair in at_ms.windows(3) {
        let ratio = (pair[2] - pair[1]) as f64 / (pair[1] - pair[0]) as f64;
        assert!((1.85..2.15).contains(&ratio), "{at_ms:?}");
    }
    assert_eq!(suspected_ms, at_ms[2], "R1: at the third");
    assert_eq!(trial.now.since(start), Duration::from_secs(20), "R2");
    assert_eq!(trial.connection.error(), Some(ConnectionError::TimedOut));
}

#[test]
fn three_duplicates_bring_the_segment_back_at_once() {
    let mut trial = measured(plain());
    trial.write(&pattern(0, 12_000));
    assert_eq!(trial.sent.len(), 10);
    trial.sent.clear();
    // RFC 3042: the first two let new data be sent.
    trial.give(segment(1, ACK, 2), b"");
    trial.expect().is_data(10_002, 1000);
    trial.give(segment(1, ACK, 2), b"");
    trial.expect().is_data(11_002, 1000);
    trial.give(segment(1, ACK, 2), b"");
    let again = trial.expect();
    again.is_data(2, 1000);
    assert_eq!(again.payload, pattern(0, 1000));
    trial.nothing();
    let info = trial.connection.info(trial.now);
    assert_eq!(info.slow_start_threshold_bytes, 7000, "0.7 of 10,000, without what limited transmit added");
    trial.give(segment(1, ACK, 2), b"");
    trial.nothing();
    // The whole window is acknowledged: recovery ends at the threshold.
    trial.give(segment(1, ACK, 12_002), b"");
    let info = trial.connection.info(trial.now);
    assert_eq!((info.congestion_window_bytes, info.timeouts), (7000, 0));
}

#[test]
fn a_partial_acknowledgment_tells_the_next_hole() {
    let mut trial = measured(plain());
    trial.write(&[1; 10_000]);
    trial.sent.clear();
    for _ in 0..3 {
        trial.give(segment(1, ACK, 2), b"");
    }
    trial.expect().is_data(2, 1000);
    trial.give(segment(1, ACK, 4002), b"");
    trial.expect().is_data(4002, 1000);
    trial.nothing();
    trial.give(segment(1, ACK, 7002), b"");
    trial.expect().is_data(7002, 1000);
    trial.nothing();
    trial.give(segment(1, ACK, 10_002), b"");
    trial.pass_ms(2000);
    trial.nothing();
}

#[test]
fn duplicates_without_end_inflate_the_window_to_a_limit() {
    let mut trial = measured(plain());
    trial.write(&[1; 10_000]);
    trial.sent.clear();
    for _ in 0..1_200_000 {
        trial.give_early(segment(1, ACK, 2), b"");
    }
    assert!(trial.connection.info(trial.now).congestion_window_bytes <= 1 << 30);
}

#[test]
fn a_retransmission_that_is_lost_is_found_by_the_timer() {
    let mut trial = measured(plain());
    trial.write(&[1; 5000]);
    trial.sent.clear();
    for _ in 0..3 {
        trial.give(segment(1, ACK, 2), b"");
    }
    trial.expect().is_data(2, 1000);
    trial.nothing();
    trial.pass_ms(400);
    trial.expect().is_data(2, 1000);
    assert_eq!(trial.connection.info(trial.now).timeouts, 1);
}

#[test]
fn after_a_time_out_what_the_peer_has_is_not_sent_again() {
    let mut trial = measured(plain());
    trial.write(&[1; 10_000]);
    trial.sent.clear();
    trial.pass_ms(450);
    trial.expect().is_data(2, 1000);
    trial.nothing();
    assert_eq!(trial.connection.info(trial.now).congestion_window_bytes, 1000);
    // The peer had all segments but the first.
    trial.give(segment(1, ACK, 10_002), b"");
    trial.nothing();
    assert_eq!(trial.connection.info(trial.now).retransmitted_segments, 1);
}

#[test]
fn after_a_time_out_slow_start_repairs_the_rest() {
    let mut trial = measured(plain());
    trial.write(&[1; 10_000]);
    trial.sent.clear();
    trial.pass_ms(450);
    trial.expect().is_data(2, 1000);
    trial.give(segment(1, ACK, 1002), b"");
    trial.expect().is_data(1002, 1000);
    trial.expect().is_data(2002, 1000);
    trial.nothing();
    trial.give(segment(1, ACK, 3002), b"");
    for at in [3002, 4002, 5002, 6002] {
        trial.expect().is_data(at, 1000);
    }
    trial.nothing();
}

#[test]
fn duplicates_of_an_idle_connection_or_with_news_mean_nothing() {
    let mut trial = measured(plain());
    for _ in 0..5 {
        trial.give(segment(1, ACK, 2), b"");
    }
    trial.write(&[1; 3000]);
    trial.sent.clear();
    for i in 0..5 {
        trial.give(with_window(segment(1, ACK, 2), 40_000 + i), b"");
    }
    for i in 0..5 {
        trial.give(segment(1 + i, ACK, 2), b"d");
    }
    assert!(trial.sent.iter().all(|sent| sent.len() == 0), "{:?}", trial.sent);
}

/// Established with timestamps, and with 100 ms measured; acknowledged are the SYN and 20 bytes.
fn measured_with_timestamps() -> Trial {
    let mut trial = Trial::established(Config { window_scaling: false, ..Config::default() });
    for i in 0..20 {
        let stamp = our_stamp(&trial);
        trial.write(b"x");
        trial.expect();
        trial.pass_ms(100);
        trial.give(with_timestamps(segment(1, ACK, 2 + i), 2, stamp), b"");
    }
    let smoothed_ms = trial.connection.info(trial.now).smoothed_round_trip.unwrap().as_millis();
    assert!((90..=100).contains(&smoothed_ms), "{smoothed_ms}");
    trial
}
fn our_stamp(trial: &Trial) -> u32 {
    trial.now.as_millis() as u32 + open().timestamp_offset
}

// spec: RFC9293 MUST-18
#[test]
fn an_echo_of_what_left_before_a_time_out_is_no_measure_however_often() {
    let mut trial = measured_with_timestamps();
    let mut acknowledged = 21;
    for round in 0..40 {
        // The peer gets the first copy. Its answer is lost, and so are those to the next copies. Because it takes no
        // timestamp from an old copy, the answer that arrives at last echoes the first (RFC 7323 §5.3).
        let before = trial.connection.info(trial.now);
        let stamp = our_stamp(&trial);
        trial.write(b"x");
        trial.pass_ms(1000 + 50 * round);
        assert!(trial.sent.len() > 1, "nothing was sent again");
        trial.sent.clear();
        acknowledged += 1;
        trial.give(with_timestamps(segment(1, ACK, acknowledged), 2, stamp), b"");
        let after = trial.connection.info(trial.now);
        assert_eq!(after.smoothed_round_trip, before.smoothed_round_trip);
        assert_eq!(after.round_trip_variation, before.round_trip_variation);
        assert!(after.retransmission_backoff > 0, "RFC 6298 §5.7: until something is measured");
        // Now the first copy is lost: the echo of the second measures.
        trial.write(b"y");
        trial.pass(after.retransmission_timeout);
        let stamp = our_stamp(&trial);
        trial.expect();
        trial.expect();
        trial.nothing();
        trial.pass_ms(95);
        acknowledged += 1;
        trial.give(with_timestamps(segment(1, ACK, acknowledged), 2, stamp), b"");
        let measured = trial.connection.info(trial.now);
        assert_eq!(measured.retransmission_backoff, 0);
        assert!(measured.retransmission_timeout < Duration::from_millis(310), "{measured:?}");
    }
}

// spec: RFC9293 MUST-18
#[test]
fn an_echo_from_before_the_time_out_is_no_measure_even_when_it_is_young() {
    let mut trial = measured_with_timestamps();
    trial.connection.set(ConnectionOption::Nagle(false), lend!(trial));
    trial.write(b"x");
    trial.pass_ms(250);
    let stamp = our_stamp(&trial);
    trial.write(b"y");
    trial.pass_ms(150);
    assert_eq!(trial.sent.len(), 3, "two, and the first again");
    let before = trial.connection.info(trial.now);
    trial.give(with_timestamps(segment(1, ACK, 23), 2, stamp), b"");
    let after = trial.connection.info(trial.now);
    assert_eq!(after.round_trip_variation, before.round_trip_variation);
    assert_eq!((before.retransmission_backoff, after.retransmission_backoff), (1, 1));
}

#[test]
fn a_path_that_becomes_slower_than_the_time_out_is_measured() {
    for timestamps in [false, true] {
        let mut trial = if timestamps { measured_with_timestamps() } else { measured(plain()) };
        let mut acknowledged = if timestamps { 21 } else { 2 };
        let mut copies = Vec::new();
        for _ in 0..12 {
            let stamp = our_stamp(&trial);
            trial.write(b"x");
            trial.pass_ms(2000);
            copies.push(trial.sent.len());
            trial.sent.clear();
            acknowledged += 1;
            let answer = segment(1, ACK, acknowledged);
            let answer = if timestamps { with_timestamps(answer, 2, stamp) } else { answer };
            trial.give(answer, b"");
        }
        assert!(copies[0] > 1 && copies[6..].iter().all(|&count| count == 1), "{copies:?}");
    }
}

// spec: RFC9293 MUST-54
// spec: RFC9293 MUST-56
// spec: RFC9293 MUST-47
#[test]
fn the_network_can_end_an_open_but_only_hint_later() {
    let mut trial = Trial::calling(plain());
    let soft = NetworkError::Soft(SoftError::Unreachable);
    let outcome = trial.connection.unreachable(Sequence(OURS) + 5, soft, lend!(trial));
    assert_eq!(outcome.dropped, Some(Drop::NotCredible));
    trial.connection.unreachable(Sequence(OURS), soft, lend!(trial));
    assert_eq!(trial.connection.soft_error(), Some(SoftError::Unreachable));
    assert_eq!(trial.connection.state(), TcpState::SynSent);
    let hard = NetworkError::Hard(ConnectionError::Refused);
    let outcome = trial.connection.unreachable(Sequence(OURS), hard, lend!(trial));
    assert!(outcome.changes.contains(Changes::CLOSED | Changes::ERROR));
    assert_eq!(trial.connection.error(), Some(ConnectionError::Refused));

    let mut trial = Trial::established(plain());
    trial.write(b"data");
    trial.connection.unreachable(Sequence(OURS) + 1, hard, lend!(trial));
    assert_eq!(trial.connection.state(), TcpState::Established);
    assert_eq!(trial.connection.soft_error(), Some(SoftError::Refused));
    trial.give(segment(1, ACK, 5), b"");
    assert_eq!(trial.connection.soft_error(), None, "the peer is there after all");
}

#[test]
fn a_path_for_smaller_segments_gets_smaller_segments() {
    let mut trial = Trial::established(plain());
    trial.write(&pattern(0, 3000));
    trial.sent.clear();
    let smaller = NetworkError::TooBig { path_mtu_mss: 600 };
    trial.connection.unreachable(Sequence(OURS) + 1, smaller, lend!(trial));
    assert!(trial.connection.wants_transmit(trial.now));
    trial.round();
    let mut at = 1;
    for _ in 0..5 {
        trial.expect().is_data(at, 600);
        at += 600;
    }
    trial.nothing();
    let info = trial.connection.info(trial.now);
    assert_eq!(info.congestion_window_bytes, 6000, "as many segments (RFC 5681 §3.1)");
    assert_eq!(info.slow_start_threshold_bytes, 1 << 30, "nobody was congested");
    // A stale or forged claim of a tiny path is bounded.
    let tiny = NetworkError::TooBig { path_mtu_mss: 0 };
    trial.connection.unreachable(Sequence(OURS) + 1, tiny, lend!(trial));
    assert!(trial.connection.info(trial.now).send_segment_bytes >= 16);
}

#[test]
fn idle_time_closes_the_congestion_window_to_its_start() {
    let mut trial = measured(plain());
    let mut acknowledged = 2;
    for _ in 0..6 {
        let written = trial.write(&[1; 40_000]) as u32;
        trial.pass_ms(50);
        trial.sent.clear();
        while trial.connection.sender().unacknowledged_bytes() > 0 {
            let info = trial.connection.info(trial.now);
            acknowledged = info.send_next.since(Sequence(OURS));
            trial.give(segment(1, ACK, acknowledged), b"");
            trial.sent.clear();
        }
        assert_eq!(written, 40_000);
    }
    assert!(trial.connection.info(trial.now).congestion_window_bytes > 40_000);
    trial.pass_ms(10_000);
    trial.write(&[1; 40_000]);
    assert_eq!(trial.sent.len(), 10);
    assert_eq!(trial.sent[0].at(), acknowledged);
}

#[test]
fn what_left_again_is_told_while_it_is_on_its_way() {
    let mut trial = measured(plain());
    let retransmitted_in_flight_bytes =
        |trial: &Trial| trial.connection.info(trial.now).retransmitted_in_flight_bytes;
    trial.write(&pattern(0, 6000));
    assert_eq!(retransmitted_in_flight_bytes(&trial), 0, "what left once does not count");
    trial.sent.clear();
    for _ in 0..3 {
        trial.give(segment(1, ACK, 2), b"");
    }
    trial.sent.retain(|sent| sent.at() == 2);
    trial.expect().is_data(2, 1000);
    assert_eq!(retransmitted_in_flight_bytes(&trial), 1000);
    trial.give(segment(1, ACK, 1002), b"");
    assert!(trial.sent.iter().any(|sent| sent.at() == 1002), "{:?}", trial.sent);
    assert_eq!(retransmitted_in_flight_bytes(&trial), 1000, "the next hole's");
    trial.give(segment(1, ACK, 6002), b"");
    assert_eq!(retransmitted_in_flight_bytes(&trial), 0);
}
