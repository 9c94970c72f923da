//! Memory of an idle connection.

use super::rfc8985::{measured_with, reports};
use super::trial::{ACK, Trial, lend, plain, segment};
use crate::{Config, Connection};

/// Bytes of a connection in its slab entry. An idle connection in the stack, with entry, look-up and timer, must stay
/// within 512.
const CONNECTION_BYTES: usize = 376;

#[test]
fn a_connection_is_small() {
    let bytes = size_of::<Connection>();
    println!("size_of::<Connection>() = {bytes}");
    assert!(bytes <= CONNECTION_BYTES, "{bytes}");
}

#[test]
fn an_idle_connection_holds_no_box_and_no_buffer() {
    let mut trial = Trial::established(plain());
    assert_eq!(trial.connection.held_bytes(), 0);
    trial.write(b"question");
    trial.expect();
    trial.give(segment(1, ACK, 9), b"answer");
    trial.read(100);
    trial.pass_ms(3000);
    trial.expect();
    trial.nothing();
    assert_eq!(trial.connection.held_bytes(), 0);
    assert_eq!(trial.pool.outstanding_bytes(), 0);
    assert_eq!(trial.connection.deadline(), inhost_base::Instant::FAR_FUTURE);
}

#[test]
fn clear_gives_everything_back() {
    let mut trial = Trial::established(plain());
    trial.write(&[1; 5000]);
    trial.give(segment(1, ACK, 1), b"in order");
    trial.give(segment(20, ACK, 1), b"ahead");
    assert!(trial.pool.outstanding_bytes() > 0);
    trial.connection.clear(&mut trial.pool);
    assert_eq!(trial.pool.outstanding_bytes(), 0);
    trial.connection.timeout(lend!(trial));
}

#[test]
fn what_is_held_counts_lists_and_whole_buffers() {
    let mut trial = Trial::established(plain());
    assert_eq!(trial.connection.held_bytes(), 0);
    trial.give(segment(20, ACK, 1), b"ahead");
    let info = trial.connection.info(trial.now);
    assert_eq!(info.reassembly_bytes, 5);
    let pinned = trial.pool.outstanding_bytes();
    assert!(pinned > 500 && trial.connection.held_bytes() > pinned, "{pinned}");
    trial.write(&[1; 5000]);
    assert!(trial.connection.held_bytes() > trial.pool.outstanding_bytes());
}

#[test]
fn tiny_segments_count_as_what_their_records_take() {
    let mut trial = Trial::established(Config { nagle: false, ..plain() });
    for _ in 0..5000 {
        trial.write(&[1]);
    }
    let info = trial.connection.info(trial.now);
    assert_eq!(info.congestion_window_bytes, 10_000);
    assert!((200..1000).contains(&trial.sent.len()), "{} segments left", trial.sent.len());
    assert!(trial.connection.held_bytes() - info.send_queue_capacity_bytes < 30_000);
    // The rest is sent together, once there is room.
    trial.sent.clear();
    trial.pass_ms(50);
    trial.give(segment(1, ACK, 1 + info.in_flight_bytes), b"");
    assert_eq!(trial.sent.iter().map(|sent| sent.len()).max(), Some(1000));
}

#[test]
fn what_was_sent_again_is_forgotten_once_it_is_acknowledged() {
    let mut trial = measured_with(Config { rack: false, ..plain() });
    trial.write(&vec![1; 100_000]);
    let mut at = trial.sent[0].at();
    let mut most_bytes = 0;
    // Each time the oldest of eight segments is lost, and the rest is never fully acknowledged.
    for round in 0..40 {
        for _ in 0..20 {
            at += 1000;
            trial.pass_ms(20);
            trial.give(segment(1, ACK, at), b"");
            trial.write(&[1; 1000]);
        }
        trial.sent.clear();
        trial.give(reports(at, &[(at + 1000, at + 5000)]), b"");
        trial.pass_ms(100);
        at += 5000;
        trial.give(segment(1, ACK, at), b"");
        trial.write(&[1; 5000]);
        let info = trial.connection.info(trial.now);
        assert!(info.in_flight_bytes > 0);
        let lists_bytes = trial.connection.held_bytes() - info.send_queue_capacity_bytes;
        if round < 10 {
            most_bytes = most_bytes.max(lists_bytes);
        }
        assert!(lists_bytes <= most_bytes, "round {round}");
    }
    assert!(trial.connection.info(trial.now).retransmitted_segments >= 40);
}
