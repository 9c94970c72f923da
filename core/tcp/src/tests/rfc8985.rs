//! Requirements of RFC 8985, and some of RFC 6675, that no other test covers.

use super::trial::*;
use crate::Config;
use inhost_base::{Duration, Sequence};
use inhost_wire::tcp::SackBlocks;

/// With SACK, and a round trip of 100 ms measured; all sent data is acknowledged.
pub(super) fn measured() -> Trial {
    measured_with(plain())
}
pub(super) fn measured_with(config: Config) -> Trial {
    let mut trial = Trial::calling(config);
    trial.expect();
    trial.pass_ms(100);
    let mut answer = segment(0, SYN | ACK, 1);
    answer.options.mss = Some(MSS as u16);
    answer.options.sack_permitted = true;
    trial.give(answer, b"");
    trial.expect();
    exchange(&mut trial, 100);
    trial
}
/// The next sequence number to be sent, counted from our SYN.
pub(super) fn next(trial: &Trial) -> u32 {
    trial.connection.info(trial.now).send_next.since(Sequence(OURS))
}
/// One byte is sent, and acknowledged `ms` later.
fn exchange(trial: &mut Trial, ms: u64) {
    trial.write(b"x");
    trial.pass_ms(ms);
    acknowledge_all(trial);
}
pub(super) fn acknowledge_all(trial: &mut Trial) {
    let at = next(trial);
    trial.give(segment(1, ACK, at), b"");
    trial.sent.clear();
}
/// An acknowledgment that reports other ranges as well, counted from our SYN.
pub(super) fn reports(acknowledges: u32, ranges: &[(u32, u32)]) -> crate::Header {
    let mut header = segment(1, ACK, acknowledges);
    let blocks: Vec<_> =
        ranges.iter().map(|(from, to)| (Sequence(OURS) + *from, Sequence(OURS) + *to)).collect();
    header.options.sack = SackBlocks::from_slice(&blocks).unwrap();
    header
}
/// Sends three segments, of which the peer reports the last two after 100 ms. The time from then until the first is
/// retransmitted.
fn wait_ms(trial: &mut Trial) -> u64 {
    let at = next(trial);
    trial.write(&[1; 3000]);
    trial.sent.clear();
    trial.pass_ms(100);
    trial.give(reports(at, &[(at + 1000, at + 3000)]), b"");
    for waited_ms in 0..400 {
        if let Some(sent) = trial.sent.pop_front() {
            sent.is_data(at, 1000);
            return waited_ms;
        }
        trial.pass_ms(1);
    }
    panic!("it never went again");
}

// spec: RFC8985 3.3.2-3, 3.3.2-4, 4-3
#[test]
fn what_came_twice_widens_the_reordering_window_up_to_the_round_trip() {
    let mut trial = measured();
    let mut waits_ms = Vec::new();
    for _ in 0..8 {
        let at = next(&trial);
        waits_ms.push(wait_ms(&mut trial));
        trial.pass_ms(50);
        acknowledge_all(&mut trial);
        // The retransmission was spurious.
        let all = next(&trial);
        trial.give(reports(all, &[(at, at + 1000)]), b"");
        trial.pass_ms(500);
        acknowledge_all(&mut trial);
    }
    let smoothed_ms = trial.connection.info(trial.now).smoothed_round_trip.unwrap().as_millis();
    assert!((24..=26).contains(&waits_ms[0]), "a quarter of the round trip: {waits_ms:?}");
    assert!((49..=51).contains(&waits_ms[1]), "{waits_ms:?}");
    assert!(waits_ms.iter().all(|&ms| ms <= smoothed_ms + 1), "{waits_ms:?} beyond {smoothed_ms}");
    assert!(waits_ms[7] > 80, "{waits_ms:?}");
}

// spec: RFC8985 6.2-1
#[test]
fn the_handshake_counts_for_the_least_round_trip() {
    let mut trial = measured();
    assert_eq!(trial.connection.info(trial.now).min_round_trip.map(|least| least.as_millis()), Some(100));
    let mut slower = Trial::calling(plain());
    slower.expect();
    slower.pass_ms(60);
    let mut answer = segment(0, SYN | ACK, 1);
    (answer.options.mss, answer.options.sack_permitted) = (Some(MSS as u16), true);
    slower.give(answer, b"");
    slower.expect();
    exchange(&mut slower, 150);
    assert_eq!(slower.connection.info(slower.now).min_round_trip.map(|least| least.as_millis()), Some(60));
    exchange(&mut trial, 30);
    assert_eq!(trial.connection.info(trial.now).min_round_trip.map(|least| least.as_millis()), Some(30));
}

// spec: RFC8985 6.2-1
#[test]
fn a_path_that_becomes_longer_is_believed_after_a_while() {
    let mut trial = measured();
    assert_eq!(trial.connection.info(trial.now).min_round_trip.map(|least| least.as_millis()), Some(100));
    for _ in 0..20 {
        trial.pass_ms(30_000);
        exchange(&mut trial, 180);
    }
    assert_eq!(trial.connection.info(trial.now).min_round_trip.map(|least| least.as_millis()), Some(180));
}

// spec: RFC8985 7.2-1
#[test]
fn nothing_is_probed_while_reports_tell_of_a_hole() {
    let mut trial = measured();
    let at = next(&trial);
    trial.write(&[1; 3000]);
    trial.sent.clear();
    trial.pass_ms(100);
    trial.give(reports(at, &[(at + 1000, at + 2000)]), b"");
    trial.pass_ms(10);
    trial.nothing();
    trial.pass_ms(40);
    // The hole is retransmitted by time, and the tail is not probed as well.
    trial.expect().is_data(at, 1000);
    trial.pass_ms(90);
    trial.nothing();
}

// spec: RFC6675 5.1-1
#[test]
fn what_was_reported_is_not_sent_again_after_a_time_out() {
    let mut trial = measured();
    let at = next(&trial);
    trial.write(&[1; 5000]);
    trial.sent.clear();
    trial.pass_ms(100);
    // The hole is retransmitted, and that is lost repeatedly until the timer expires.
    trial.give(reports(at, &[(at + 1000, at + 3000), (at + 4000, at + 5000)]), b"");
    trial.pass_ms(3000);
    assert!(trial.connection.info(trial.now).timeouts >= 1);
    let again = trial.sent.iter().map(|sent| sent.at()).collect::<Vec<_>>();
    assert!(again.iter().all(|&start| start == at || start == at + 3000), "{again:?}");
    trial.sent.clear();
    trial.give(segment(1, ACK, at + 3000), b"");
    trial.pass_ms(100);
    let again = trial.sent.iter().map(|sent| sent.at()).collect::<Vec<_>>();
    assert!(again.iter().all(|&start| start == at + 3000), "{again:?}");
}

/// Sends `bytes`, of which the peer acknowledges only the first segment, 100 ms later. Where the data begins. Too many
/// segments are in flight for the timer to count from the oldest (RFC 7765).
fn goes_silent_after_one(trial: &mut Trial, bytes: usize) -> u32 {
    let at = next(trial);
    trial.write(&vec![1; bytes]);
    trial.pass_ms(100);
    trial.give(segment(1, ACK, at + 1000), b"");
    trial.sent.clear();
    at
}

// spec: RFC8985 7.3-4
#[test]
fn what_a_probe_brings_back_tells_of_all_that_left_before_it() {
    let mut trial = measured();
    let at = goes_silent_after_one(&mut trial, 6000);
    trial.pass_ms(200);
    trial.expect().is_data(at + 5000, 1000);
    trial.pass_ms(100);
    trial.give(reports(at + 1000, &[(at + 5000, at + 6000)]), b"");
    // All four holes are known: none waits for the timer, or for three reports.
    assert_eq!(trial.connection.info(trial.now).lost_bytes, 3000, "and one on its way again");
    let mut again = Vec::new();
    while let Some(last) = trial.sent.back().map(|sent| sent.at() + 1000) {
        again.extend(trial.sent.drain(..).map(|sent| sent.at() - at));
        trial.pass_ms(100);
        trial.give(reports(last, &[(at + 5000, at + 6000)]), b"");
    }
    assert_eq!(again, [1000, 2000, 3000, 4000]);
    assert_eq!(trial.connection.info(trial.now).timeouts, 0);
}

// spec: RFC8985 7.3-1, 7.3-5
#[test]
fn one_probe_is_out_at_a_time_and_then_the_timer_has_its_whole_time() {
    let mut trial = measured();
    let at = goes_silent_after_one(&mut trial, 6000);
    trial.pass_ms(200);
    trial.expect().is_data(at + 5000, 1000);
    let timeout = trial.connection.info(trial.now).retransmission_timeout;
    trial.pass(timeout - Duration::from_millis(1));
    trial.nothing();
    trial.pass_ms(1);
    trial.expect().is_data(at + 1000, 1000);
    assert_eq!(trial.connection.info(trial.now).timeouts, 1);
}

// spec: RFC8985 7.3-2
#[test]
fn a_probe_is_new_data_where_there_is_some() {
    let mut trial = measured();
    let at = goes_silent_after_one(&mut trial, 40_000);
    let fresh = next(&trial);
    assert!(fresh > at + 10_000);
    trial.pass_ms(200);
    trial.expect().is_data(fresh, 1000);
    trial.nothing();
    assert_eq!(trial.connection.info(trial.now).retransmitted_segments, 0);
    // One segment beyond the window, until the next acknowledgment.
    let info = trial.connection.info(trial.now);
    assert_eq!(info.in_flight_bytes, info.congestion_window_bytes + 1000);
}

/// The first of three segments is retransmitted by time, 25 ms after the others were reported; the fourth was sent before
/// that.
fn repaired_too_early(trial: &mut Trial) -> u32 {
    let at = next(trial);
    trial.write(&[1; 3000]);
    trial.sent.clear();
    trial.pass_ms(100);
    trial.give(reports(at, &[(at + 1000, at + 3000)]), b"");
    trial.pass_ms(10);
    trial.write(&[1; 1000]);
    trial.expect().is_data(at + 3000, 1000);
    trial.pass_ms(15);
    trial.expect().is_data(at, 1000);
    at
}

// spec: RFC8985 6.2-2
#[test]
fn an_answer_sooner_than_the_least_round_trip_is_that_of_the_first_copy() {
    let mut trial = measured();
    let at = repaired_too_early(&mut trial);
    trial.pass_ms(10);
    trial.give(segment(1, ACK, at + 3000), b"");
    // If it were the answer to the copy, the fourth would count as overtaken.
    trial.pass_ms(75);
    trial.nothing();
    // After a round trip it would be, and it is.
    let mut trial = measured();
    let at = repaired_too_early(&mut trial);
    trial.pass_ms(110);
    trial.give(segment(1, ACK, at + 3000), b"");
    trial.pass_ms(30);
    trial.expect().is_data(at + 3000, 1000);
}

// spec: RFC8985 6.3-1
#[test]
fn a_time_out_takes_for_lost_what_left_a_round_trip_ago_and_no_more() {
    let mut trial = measured_with(Config { tail_loss_probe: false, ..plain() });
    let at = next(&trial);
    trial.write(&[1; 1000]);
    trial.pass_ms(250);
    trial.write(&[1; 2000]);
    trial.sent.clear();
    trial.pass_ms(60);
    trial.expect().is_data(at, 1000);
    let info = trial.connection.info(trial.now);
    assert_eq!((info.timeouts, info.lost_bytes), (1, 0));
    // RFC 8985 §3.5: the answer to the original was late; data sent 50 ms before the timeout is not retransmitted for
    // it.
    trial.give(segment(1, ACK, at + 1000), b"");
    trial.pass_ms(30);
    trial.nothing();

    let mut trial = measured_with(Config { tail_loss_probe: false, ..plain() });
    trial.write(&[1; 3000]);
    trial.sent.clear();
    trial.pass_ms(310);
    assert_eq!((trial.sent.len(), trial.connection.info(trial.now).lost_bytes), (1, 2000));
}

// spec: RFC8985 7.2-1
#[test]
fn new_data_starts_the_probes_timer_and_more_starts_it_anew() {
    let mut trial = measured();
    let at = next(&trial);
    trial.write(&[1; 3000]);
    trial.pass_ms(150);
    trial.write(&[1; 3000]);
    trial.sent.clear();
    trial.pass_ms(149);
    trial.nothing();
    // No later than the RTO, which the first of the data started (RFC 8985 §7.2).
    trial.pass_ms(1);
    trial.expect().is_data(at + 5000, 1000);
    assert_eq!(trial.connection.info(trial.now).timeouts, 0);

    let mut trial = measured();
    let at = next(&trial);
    trial.write(&[1; 3000]);
    trial.pass_ms(50);
    trial.write(&[1; 3000]);
    trial.sent.clear();
    trial.pass_ms(199);
    trial.nothing();
    trial.pass_ms(1);
    trial.expect().is_data(at + 5000, 1000);
}

// spec: RFC8985 7.2-2
#[test]
fn where_no_round_trip_was_measured_the_probe_waits_a_second() {
    let mut trial = Trial::calling(plain());
    trial.pass_ms(1000);
    let mut answer = segment(0, SYN | ACK, 1);
    answer.options.mss = Some(MSS as u16);
    answer.options.sack_permitted = true;
    trial.give(answer, b"");
    assert_eq!(trial.connection.info(trial.now).smoothed_round_trip, None, "the SYN was repeated");
    trial.write(&[1; 500]);
    trial.sent.clear();
    trial.pass_ms(999);
    trial.nothing();
    trial.pass_ms(1);
    trial.expect().is_data(1, 500);
    assert_eq!(trial.connection.info(trial.now).timeouts, 0);
}

// spec: RFC8985 4-4
#[test]
fn nothing_is_probed_where_losses_are_not_found_by_time() {
    let mut trial = measured_with(Config { rack: false, ..plain() });
    let at = goes_silent_after_one(&mut trial, 6000);
    trial.pass_ms(299);
    trial.nothing();
    trial.pass_ms(1);
    trial.expect().is_data(at + 1000, 1000);
    assert_eq!(trial.connection.info(trial.now).timeouts, 1);
}

// spec: RFC8985 7.3-1a
#[test]
fn after_a_probe_nothing_is_probed_before_a_round_trip_is_measured() {
    let mut trial = measured();
    let at = next(&trial);
    trial.write(&[1; 1000]);
    trial.sent.clear();
    trial.pass_ms(300);
    trial.expect().is_data(at, 1000);
    trial.pass_ms(100);
    // The acknowledged data was sent twice: no sample. Both copies arrived, which completes the probe.
    acknowledge_all(&mut trial);
    trial.give(reports(at + 1000, &[(at, at + 1000)]), b"");
    let at = next(&trial);
    trial.write(&[1; 3000]);
    trial.sent.clear();
    // When the probe would be due, the RTO restarts.
    let timeout = trial.connection.info(trial.now).retransmission_timeout;
    trial.pass(Duration::from_millis(199) + timeout);
    trial.nothing();
    trial.pass_ms(1);
    trial.expect().is_data(at, 1000);
    assert_eq!(trial.connection.info(trial.now).timeouts, 1);
}

/// A FIN out alone, `idle_ms` after the latest data.
fn fin_alone(config: Config, idle_ms: u64) -> (Trial, u32) {
    let mut trial = measured_with(config);
    trial.pass_ms(idle_ms);
    let at = next(&trial);
    trial.close();
    let fin = trial.expect();
    assert_eq!((fin.at(), fin.flags(), fin.len()), (at, FIN | ACK, 0));
    (trial, at)
}

// spec: RFC8985 7.2-3
#[test]
fn a_fin_without_a_record_is_probed_and_sent_again_like_one_with_it() {
    let config = Config { min_retransmission_timeout: Duration::from_secs(1), ..plain() };
    let came = |idle_ms, hears| {
        let (mut trial, at) = fin_alone(config.clone(), idle_ms);
        let has_record = trial.connection.held_bytes() > 0;
        trial.pass_ms(50);
        if hears {
            // A duplicate acknowledgment says nothing of the FIN.
            trial.give(segment(1, ACK, at), b"");
        }
        let mut came = Vec::new();
        for ms in 51..4000 {
            trial.pass_ms(1);
            while let Some(sent) = trial.sent.pop_front() {
                came.push((ms, sent.at() - at, sent.flags()));
            }
        }
        let info = trial.connection.info(trial.now);
        (has_record, (came, info.timeouts, info.retransmitted_segments, info.congestion_window_bytes))
    };
    for hears in [false, true] {
        let ((with, as_with), (without, as_without)) = (came(0, hears), came(5000, hears));
        assert_eq!((with, without), (true, false));
        assert_eq!(as_with, as_without);
        // The probe, and by the timer that it restarts, then twice as long.
        let expected = [400, 1500, 3700].map(|ms| (ms, 0, FIN | ACK)).to_vec();
        assert_eq!((as_without.0, as_without.1), (expected, 2));
    }
}

#[test]
fn a_fin_without_a_record_counts_as_delivered_and_measures_the_round_trip() {
    let shows = |idle_ms| {
        let (mut trial, at) = fin_alone(plain(), idle_ms);
        let before = trial.connection.info(trial.now);
        trial.pass_ms(180);
        trial.give(segment(1, ACK, at + 1), b"");
        assert_eq!(trial.connection.state(), inhost_event::TcpState::FinWait2);
        let info = trial.connection.info(trial.now);
        assert!(info.smoothed_round_trip > before.smoothed_round_trip, "{:?}", info.smoothed_round_trip);
        assert_eq!(info.delivered_segments, before.delivered_segments + 1);
        (info.smoothed_round_trip, info.retransmission_timeout, info.sent_bytes)
    };
    assert_eq!(shows(0), shows(5000));
}

#[test]
fn a_fin_without_a_record_is_not_sent_before_its_time_where_nothing_may_be_probed() {
    let config = Config { min_retransmission_timeout: Duration::from_secs(1), ..plain() };
    let (mut trial, at) = fin_alone(config, 5000);
    trial.pass_ms(50);
    trial.give(with_window(segment(1, ACK, at), 0), b"");
    trial.pass_ms(1049);
    trial.nothing();
    trial.pass_ms(1);
    assert!(trial.expect().flags().fin());
}
