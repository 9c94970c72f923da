//! Numbers on the wire wrap around in the middle of everything, shown by jumps of all of them.

use super::rfc8985::{acknowledge_all, measured, next, reports};
use super::trial::*;
use crate::{Changes, Config};
use inhost_base::Sequence;

const HALF: u32 = 1 << 31;
const JUMPS: [u32; 4] = [1, HALF - 77, HALF, 3 * (HALF / 2)];

/// Ten segments are in flight, of which five are acknowledged one by one, each followed by more: data is always in
/// flight.
fn stream(trial: &mut Trial) -> u32 {
    trial.write(&pattern(0, 200_000));
    let mut at = trial.sent[0].at();
    for _ in 0..5 {
        at += MSS;
        trial.pass_ms(10);
        trial.give(segment(1, ACK, at), b"");
    }
    trial.sent.clear();
    at
}

#[test]
fn a_loss_is_repaired_by_time_across_a_jump() {
    for by in JUMPS {
        let mut trial = measured();
        let at = stream(&mut trial).wrapping_add(by);
        assert!(trial.connection.renumber(by, 0));
        trial.pass_ms(50);
        trial.give(reports(at, &[(at + MSS, at + 5 * MSS)]), b"");
        trial.expect().is_data(at, MSS as usize);
        assert_eq!(trial.connection.info(trial.now).timeouts, 0, "by {by}");
    }
}

#[test]
fn without_sack_three_duplicates_count_across_a_jump() {
    for by in JUMPS {
        let mut trial = Trial::established(plain());
        let at = stream(&mut trial).wrapping_add(by);
        assert!(trial.connection.renumber(by, 0));
        for _ in 0..3 {
            trial.give(segment(1, ACK, at), b"");
        }
        let again = trial.sent.iter().any(|sent| sent.at() == at && sent.len() == MSS as usize);
        assert!(again, "by {by}: {:?}", trial.sent);
        assert_eq!(trial.connection.info(trial.now).timeouts, 0, "by {by}");
    }
}

#[test]
fn the_round_trip_is_measured_across_a_jump() {
    for by in JUMPS {
        let mut trial = measured();
        let at = stream(&mut trial).wrapping_add(by);
        trial.connection.renumber(by, 0);
        let before = trial.connection.info(trial.now).smoothed_round_trip;
        trial.pass_ms(150);
        trial.give(segment(1, ACK, at + 8 * MSS), b"");
        assert!(trial.connection.info(trial.now).smoothed_round_trip > before, "by {by}");
    }
}

#[test]
fn blocks_of_long_ago_with_the_same_numbers_hide_no_news() {
    let mut trial = measured();
    trial.write(&pattern(0, 10_000));
    let at = trial.expect().at();
    trial.give(reports(at, &[(at + MSS, at + 4 * MSS)]), b"");
    trial.pass_ms(100);
    trial.give(segment(1, ACK, at + 5 * MSS), b"");
    // The sequence numbers have wrapped around to their first values.
    trial.connection.renumber(0_u32.wrapping_sub(5 * MSS), 0);
    assert_eq!(trial.connection.info(trial.now).sacked_bytes, 0);
    trial.give(reports(at, &[(at + MSS, at + 4 * MSS)]), b"");
    assert_eq!(trial.connection.info(trial.now).sacked_bytes, 3 * MSS);
}

#[test]
fn each_report_of_a_duplicate_widens_the_reordering_window_across_a_jump() {
    let wait_ms = |jump: u32| {
        let mut trial = measured();
        for _ in 0..2 {
            let at = next(&trial);
            trial.write(b"x");
            trial.pass_ms(100);
            acknowledge_all(&mut trial);
            trial.give(reports(at + 1, &[(at, at + 1)]), b"");
            let all = next(&trial);
            trial.write(b"x");
            trial.pass_ms(100);
            trial.give(segment(1, ACK, all + 1), b"");
            trial.connection.renumber(jump, 0);
        }
        trial.sent.clear();
        let at = next(&trial);
        trial.write(&[1; 3000]);
        trial.sent.clear();
        trial.pass_ms(100);
        trial.give(reports(at, &[(at + 1000, at + 3000)]), b"");
        let lost_at = trial.now;
        while trial.sent.is_empty() {
            trial.pass_ms(1);
        }
        trial.now.since(lost_at).as_millis()
    };
    assert_eq!(wait_ms(HALF), wait_ms(0));
}

#[test]
fn what_is_out_of_order_moves_with_the_window() {
    let mut trial = measured();
    trial.give(segment(1001, ACK, next(&trial)), &pattern(1000, 1000));
    assert_eq!(trial.expect().header.options.sack.len(), 1);
    assert!(trial.connection.renumber(0, HALF));
    let moved = |at: u32| segment(at + HALF, ACK, next(&trial));
    let (hole, later) = (moved(1), moved(5001));
    trial.give(hole, &pattern(0, 1000));
    trial.expect().is_ack(2001 + HALF);
    assert_eq!(trial.read(3000), pattern(0, 2000));
    // Blocks that were filled are not reported again when the numbers wrap around.
    trial.give(later, &[1; 10]);
    let blocks = trial.expect().header.options.sack;
    let start = Sequence(THEIRS) + 5001 + HALF;
    assert_eq!(blocks.as_slice(), [(start, start + 10)]);
}

#[test]
fn a_fin_in_whose_place_the_peer_sends_data_is_none() {
    let mut trial = Trial::established(plain());
    trial.give(segment(1001, ACK | FIN, 1), b"");
    trial.give(segment(1, ACK, 1), &[0; 1200]);
    assert!(!trial.changed().contains(Changes::PEER_CLOSED));
    assert_eq!(trial.read(2000).len(), 1200);
    trial.give(segment(1201, ACK | FIN, 1), b"");
    assert!(trial.changed().contains(Changes::PEER_CLOSED));
}

#[test]
fn nothing_jumps_before_the_handshake_is_done() {
    let mut trial = Trial::calling(Config::default());
    assert!(!trial.connection.renumber(HALF, HALF));
}
