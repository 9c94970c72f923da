//! Data in both directions, and what shares a segment.

use super::trial::*;
use crate::{Changes, Config, ConnectionOption, SendHow, StreamError};
use inhost_base::Duration;

// MIT §3.3: acknowledgment, reply and window share one segment.
#[test]
fn the_acknowledgment_waits_for_the_reply() {
    let mut trial = Trial::established(plain());
    trial.give_early(segment(1, ACK | PSH, 1), b"question");
    trial.write(b"answer");
    let reply = trial.expect();
    reply.is_data(1, 6);
    assert_eq!(reply.acknowledges(), 9);
    trial.pass_ms(100);
    trial.nothing();
}

// spec: RFC9293 MUST-40
#[test]
fn without_a_reply_the_acknowledgment_comes_after_its_delay() {
    let mut trial = Trial::established(plain());
    trial.give(segment(1, ACK, 1), b"x");
    trial.pass_ms(39);
    trial.nothing();
    trial.pass_ms(1);
    trial.expect().is_ack(2);
    let lazy = Config { acknowledgment_delay: Duration::from_secs(10), ..plain() };
    let mut trial = Trial::established(lazy);
    trial.give(segment(1, ACK, 1), b"x");
    trial.pass_ms(500);
    trial.expect().is_ack(2);
}

// RFC 9293 SHLD-19
#[test]
fn every_second_full_segment_is_acknowledged_at_once() {
    let mut trial = Trial::established(plain());
    for i in 0..5 {
        trial.give(segment(1 + 2 * i * MSS, ACK, 1), &[1; MSS as usize]);
        trial.nothing();
        trial.give(segment(1 + (2 * i + 1) * MSS, ACK, 1), &[1; MSS as usize]);
        trial.expect().is_ack(1 + (2 * i + 2) * MSS);
        trial.nothing();
    }
}

// spec: RFC9293 MUST-58
// spec: RFC9293 MUST-59; RFC5681 4.2-3
#[test]
fn a_batch_is_acknowledged_once() {
    let mut trial = Trial::established(plain());
    for i in 0..20 {
        trial.give_early(segment(1 + i * MSS, ACK, 1), &[1; MSS as usize]);
    }
    trial.round();
    trial.expect().is_ack(1 + 20 * MSS);
    trial.nothing();
}

#[test]
fn each_segment_of_a_batch_ahead_of_a_hole_brings_a_duplicate() {
    let mut trial = Trial::established(plain());
    for i in [0, 2, 3, 4, 5] {
        trial.give_early(segment(1 + i * MSS, ACK, 1), &[1; MSS as usize]);
    }
    trial.round();
    // The first acknowledges the delayed data, too.
    for _ in 0..4 {
        trial.expect().is_ack(1 + MSS);
    }
    trial.nothing();
    // Data acknowledges the first; a segment with data is not a duplicate ACK.
    trial.give_early(segment(1 + 6 * MSS, ACK, 1), &[1; MSS as usize]);
    trial.write(b"ours");
    trial.expect().is_data(1, 4);
    trial.expect().is_ack(1 + MSS);
    trial.nothing();
    // Data that fills the hole is acknowledged once, and the duplicates that were due are cancelled.
    trial.give_early(segment(1 + 7 * MSS, ACK, 5), &[1; MSS as usize]);
    trial.give_early(segment(1 + MSS, ACK, 5), &[1; MSS as usize]);
    trial.round();
    trial.expect().is_ack(1 + 8 * MSS);
    trial.nothing();
}

// RFC 9293 SHLD-7, spec: RFC9293 MUST-17
#[test]
fn nagle_holds_a_second_small_segment_until_the_first_is_acknowledged() {
    let mut trial = Trial::established(plain());
    trial.write(b"a");
    trial.expect().is_data(1, 1);
    trial.write(b"b");
    trial.write(b"c");
    trial.nothing();
    trial.give(segment(1, ACK, 2), b"");
    trial.expect().is_data(2, 2);
    trial.write(b"d");
    trial.nothing();
    trial.connection.set(ConnectionOption::Nagle(false), lend!(trial));
    trial.round();
    trial.expect().is_data(4, 1);
    trial.write(b"e");
    trial.expect().is_data(5, 1);
}

// UCLA §2.4: data of successive sends shares segments, and the pushes are one.
// spec: RFC9293 SHLD-27
#[test]
fn small_writes_are_aggregated_and_their_pushes_promoted() {
    let mut trial = Trial::established(plain());
    trial.write(b"first");
    trial.expect();
    for _ in 0..30 {
        trial.connection.send(&[7; 50], SendHow::default(), lend!(trial)).unwrap();
    }
    trial.round();
    // A full segment is sent at once; it ends within the writes, and has no PSH.
    let full = trial.expect();
    full.is_data(6, MSS as usize);
    assert_eq!(full.flags(), ACK);
    trial.nothing();
    trial.give(segment(1, ACK, 6 + MSS), b"");
    let rest = trial.expect();
    rest.is_data(6 + MSS, 500);
    assert_eq!(rest.flags(), ACK | PSH);
    trial.nothing();
}

// RFC 9293 appendix A.3, Minshall's form of Nagle's algorithm.
#[test]
fn the_last_bytes_of_a_long_write_do_not_wait_and_small_writes_do() {
    let mut trial = Trial::established(plain());
    trial.write(&[1; 2500]);
    trial.expect().is_data(1, MSS as usize);
    trial.expect().is_data(1 + MSS, MSS as usize);
    trial.expect().is_data(1 + 2 * MSS, 500);
    trial.nothing();
    // A small segment is in flight now, sent by either path.
    trial.write(b"small");
    trial.nothing();
    trial.give(segment(1, ACK, 1 + 2 * MSS), b"");
    trial.nothing();
    trial.give(segment(1, ACK, 2501), b"");
    trial.expect().is_data(2501, 5);
    trial.write(b"again");
    trial.nothing();
    trial.give(segment(1, ACK, 2506), b"");
    trial.expect().is_data(2506, 5);
}

// spec: RFC9293 MUST-60
// spec: RFC9293 MUST-61
#[test]
fn what_is_not_pushed_waits_for_company_but_not_for_ever() {
    let more = SendHow { more: true, ..SendHow::default() };
    let mut trial = Trial::established(plain());
    trial.write_how(&[1; 400], more);
    trial.pass_ms(100);
    trial.nothing();
    trial.write_how(&[1; 400], more);
    trial.nothing();
    trial.pass_ms(99);
    trial.nothing();
    trial.pass_ms(1);
    let data = trial.expect();
    data.is_data(1, 800);
    assert!(data.flags().psh());
    trial.give(segment(1, ACK, 801), b"");
    // A full segment does not wait, nor does a push.
    trial.write_how(&[1; 1400], more);
    trial.expect().is_data(801, 1000);
    trial.nothing();
    trial.give(segment(1, ACK, 1801), b"");
    trial.write(b"now");
    trial.expect().is_data(1801, 403);
    trial.give(segment(1, ACK, 2204), b"");
    trial.write_how(b"cork", more);
    trial.nothing();
    trial.connection.push(lend!(trial));
    trial.round();
    trial.expect().is_data(2204, 4);
}

#[test]
fn the_initial_window_is_ten_segments() {
    let mut trial = Trial::established(plain());
    trial.write(&pattern(0, 30_000));
    for i in 0..10 {
        let data = trial.expect();
        data.is_data(1 + i * MSS, MSS as usize);
        assert_eq!(data.payload, pattern((i * MSS) as usize, MSS as usize));
    }
    trial.nothing();
    trial.give(segment(1, ACK, 1 + 2 * MSS), b"");
    for _ in 0..4 {
        trial.expect();
    }
    trial.nothing();
}

#[test]
fn segments_in_any_order_come_out_in_order() {
    let mut trial = Trial::established(plain());
    trial.give(segment(11, ACK, 1), &pattern(10, 10));
    trial.expect().is_ack(1);
    trial.give(segment(31, ACK | FIN, 1), &pattern(30, 10));
    trial.expect().is_ack(1);
    let mut into = [0; 10];
    assert_eq!(trial.connection.read(&mut into, lend!(trial)), Err(StreamError::WouldBlock));
    // Overlaps on both sides.
    trial.give(segment(5, ACK, 1), &pattern(4, 14));
    trial.expect().is_ack(1);
    trial.give(segment(1, ACK, 1), &pattern(0, 8));
    trial.expect().is_ack(21);
    let outcome = trial.give(segment(15, ACK, 1), &pattern(14, 20));
    assert!(outcome.changes.contains(Changes::READABLE | Changes::PEER_CLOSED));
    trial.expect().is_ack(42);
    assert_eq!(trial.read(100), pattern(0, 40));
    assert_eq!(trial.read(100), b"");
    trial.nothing();
}

#[test]
fn a_full_link_changes_nothing() {
    let mut trial = Trial::established(plain());
    trial.link_room = 0;
    trial.write(&[5; 2500]);
    let info = trial.connection.info(trial.now);
    assert_eq!(info.send_next, info.send_unacknowledged);
    assert_eq!(trial.connection.deadline(), inhost_base::Instant::FAR_FUTURE);
    trial.pass_ms(5000);
    trial.link_room = 1;
    trial.round();
    trial.expect().is_data(1, 1000);
    assert!(trial.connection.wants_transmit(trial.now));
}

#[test]
fn a_writer_that_found_the_buffer_full_is_told() {
    let config = Config { send_buffer_limit_bytes: 6000, ..plain() };
    let mut trial = Trial::established(config);
    assert_eq!(trial.write(&[1; 10_000]), 6000);
    let refused = trial.connection.send(b"x", SendHow::default(), lend!(trial));
    assert_eq!(refused, Err(StreamError::WouldBlock));
    let outcome = trial.give(segment(1, ACK, 1001), b"");
    assert!(!outcome.changes.contains(Changes::WRITABLE));
    let outcome = trial.give(segment(1, ACK, 3001), b"");
    assert!(outcome.changes.contains(Changes::WRITABLE));
    assert_eq!(trial.connection.sender().writable_bytes(), 3000);
}

#[test]
fn peek_and_consume_leave_and_take() {
    let mut trial = Trial::established(plain());
    trial.give(segment(1, ACK, 1), b"hello");
    let mut into = [0; 3];
    assert_eq!(trial.connection.receiver().peek(&mut into), Ok(3));
    assert_eq!((&into, trial.connection.receiver().front()), (b"hel", &b"hello"[..]));
    trial.connection.consume(4, lend!(trial));
    assert_eq!(trial.read(9), b"o");
}

#[test]
fn segments_of_no_size_pin_more_than_twice_their_bytes() {
    let config = Config { receive_buffer_limit_bytes: 100_000, ..plain() };
    for size in [1, 100, 255, 256, 271, 272, 300, 513, 600, 700, 1000] {
        let mut trial = Trial::established(config.clone());
        let (mut at, mut refused) = (0, 0);
        while at < 45_000 {
            // Every third segment arrives late, so that the receive queue and reassembly are both exercised.
            for i in [0, 2, 1] {
                let payload = vec![1; size as usize];
                let outcome = trial.give(segment(1 + at + i * size, ACK, 1), &payload);
                refused += u32::from(outcome.dropped.is_some());
                trial.sent.clear();
            }
            at += 3 * size;
        }
        let info = trial.connection.info(trial.now);
        assert_eq!((info.receive_queue_bytes, refused), (at as usize, 0), "{size}");
        assert!(info.receive_queue_capacity_bytes <= 2 * at as usize + 1000, "{size}: {info:?}");
    }
}

#[test]
fn a_writer_that_lacks_memory_is_not_told_by_a_device_that_takes_nothing() {
    let mut trial = Trial::established(Config { not_sent_low_water_bytes: 1 << 20, ..plain() });
    trial.link_room = 0;
    trial.write(&[1; 5000]);
    trial.pool.set_limit_bytes(1);
    let mut write = || trial.connection.send(&[1; 1000], SendHow::default(), lend!(trial));
    // The rest of the block is still filled.
    while write().is_ok() {}
    assert_eq!(write(), Err(StreamError::WouldBlock));
    trial.changes = Changes::empty();
    trial.round();
    assert!(!trial.changes.intersects(Changes::WRITABLE), "told though nothing left");
    trial.link_room = 1;
    trial.round();
    assert!(trial.changes.intersects(Changes::WRITABLE), "not told when something left");
}
