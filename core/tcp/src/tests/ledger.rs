//! The ledgers: scripted situations in which at least 95 % of the time must have the right cause, and exact sums. (After
//! every round, each trial asserts that they sum to the connection's age.)

use super::trial::*;
use crate::{Config, Policy, SendHow};
use inhost_base::{Duration, Instant, Sequence};
use inhost_event::{ReceiveCause, SendCause};

/// Runs `during` and checks that 95 % of the time it took went to these causes.
#[track_caller]
fn mostly(trial: &mut Trial, send: SendCause, receive: ReceiveCause, during: impl FnOnce(&mut Trial)) {
    let (start, before) = (trial.now, trial.connection.ledgers(trial.now));
    during(trial);
    let after = trial.connection.ledgers(trial.now);
    let took = trial.now.since(start).as_nanos();
    let sent = (after.send.of(send) - before.send.of(send)).as_nanos();
    let received = (after.receive.of(receive) - before.receive.of(receive)).as_nanos();
    assert!(took > 0);
    assert!(sent * 100 >= took * 95, "{send}: {sent} of {took} ns\n{:?}", after.send);
    assert!(received * 100 >= took * 95, "{receive}: {received} of {took} ns\n{:?}", after.receive);
}

#[test]
fn opening_without_an_answer() {
    let mut trial = Trial::calling(plain());
    mostly(&mut trial, SendCause::Opening, ReceiveCause::Opening, |trial| trial.pass_ms(30_000));
}

#[test]
fn an_idle_application_and_an_idle_peer() {
    let mut trial = Trial::established(plain());
    mostly(&mut trial, SendCause::ApplicationIdle, ReceiveCause::AwaitingData, |trial| {
        for _ in 0..10 {
            trial.pass_ms(5_000);
            trial.write(b"keystroke");
            trial.pass_ms(20);
            let at = trial.connection.info(trial.now).send_next.since(Sequence(OURS));
            trial.give(segment(1, ACK, at), b"");
        }
    });
}

#[test]
fn waiting_for_the_acknowledgment_of_everything() {
    let mut trial = Trial::established(plain());
    trial.pass_ms(1);
    mostly(&mut trial, SendCause::AwaitingAcknowledgment, ReceiveCause::AwaitingData, |trial| {
        let mut at = 1;
        for _ in 0..20 {
            trial.write(b"question");
            trial.pass_ms(150);
            at += 8;
            trial.give(segment(1, ACK, at), b"");
        }
    });
}

/// A bulk sender against a peer that acknowledges all after each round trip of 100 ms, with this window.
fn bulk(trial: &mut Trial, window: u16, rounds: usize) {
    for _ in 0..rounds {
        trial.connection.send(&[1; 100_000], SendHow::default(), lend!(trial)).ok();
        trial.round();
        trial.pass_ms(100);
        let at = trial.connection.info(trial.now).send_next.since(Sequence(OURS));
        trial.sent.clear();
        trial.give(with_window(segment(1, ACK, at), window), b"");
    }
}

#[test]
fn a_small_window() {
    let mut trial = Trial::established_with(plain(), 4000);
    mostly(&mut trial, SendCause::ReceiverWindow, ReceiveCause::AwaitingData, |trial| bulk(trial, 4000, 50));
}

#[test]
fn a_small_congestion_window() {
    let mut trial = Trial::established(plain());
    mostly(&mut trial, SendCause::CongestionWindow, ReceiveCause::AwaitingData, |trial| {
        trial.connection.send(&[1; 200_000], SendHow::default(), lend!(trial)).unwrap();
        trial.round();
        let mut at = 1;
        for _ in 0..20 {
            trial.pass_ms(100);
            at += 1000;
            trial.give(segment(1, ACK, at), b"");
        }
    });
}

#[test]
fn of_two_full_windows_each_profile_names_one() {
    for (first, cause) in [(false, SendCause::ReceiverWindow), (true, SendCause::CongestionWindow)] {
        let policy = Policy { congestion_window_is_blamed_first: first, ..Policy::rfc() };
        let mut trial = Trial::established(Config { policy, ..plain() });
        let window = trial.connection.info(trial.now).congestion_window_bytes;
        trial.give(with_window(segment(1, ACK, 1), window as u16), b"");
        mostly(&mut trial, cause, ReceiveCause::AwaitingData, |trial| {
            trial.connection.send(&[1; 100_000], SendHow::default(), lend!(trial)).unwrap();
            trial.round();
            trial.pass_ms(150);
        });
    }
}

#[test]
fn a_closed_window() {
    let mut trial = Trial::established(plain());
    trial.give(with_window(segment(1, ACK, 1), 0), b"");
    mostly(&mut trial, SendCause::ClosedWindow, ReceiveCause::AwaitingData, |trial| {
        trial.write(&[1; 5000]);
        for _ in 0..100 {
            trial.pass_ms(1000);
            trial.give(with_window(segment(1, ACK, 1), 0), b"");
        }
    });
}

#[test]
fn a_slow_reader() {
    let config = Config { receive_buffer_limit_bytes: 20_000, ..plain() };
    let mut trial = Trial::established(config);
    mostly(&mut trial, SendCause::ApplicationIdle, ReceiveCause::ApplicationSlow, |trial| {
        trial.give(segment(1, ACK, 1), b"one thing");
        trial.pass_ms(5_000);
    });
    let mut at = 10;
    while trial.connection.info(trial.now).receive_window_bytes > 0 {
        let length = trial.connection.info(trial.now).receive_window_bytes.min(1000);
        trial.give(segment(at, ACK, 1), &vec![1; length as usize]);
        at += length;
        trial.pass_ms(50);
    }
    mostly(&mut trial, SendCause::ApplicationIdle, ReceiveCause::WindowClosed, |trial| trial.pass_ms(5_000));
}

#[test]
fn a_lost_segment_of_theirs() {
    let mut trial = Trial::established(plain());
    mostly(&mut trial, SendCause::ApplicationIdle, ReceiveCause::Hole, |trial| {
        trial.give(segment(1001, ACK, 1), &[1; 1000]);
        trial.pass_ms(3_000);
        trial.give(segment(1, ACK, 1), &[1; 1000]);
        trial.read(2000);
    });
}

#[test]
fn a_lost_segment_of_ours() {
    let mut trial = Trial::established(plain());
    let mut at = 1;
    for _ in 0..3 {
        trial.write(b"measure");
        trial.pass_ms(100);
        at += 7;
        trial.give(segment(1, ACK, at), b"");
    }
    trial.write(&[1; 10_000]);
    mostly(&mut trial, SendCause::LossRecovery, ReceiveCause::AwaitingData, |trial| {
        for _ in 0..3 {
            trial.give(segment(1, ACK, at), b"");
        }
        for hole in 1..3 {
            trial.pass_ms(100);
            trial.give(segment(1, ACK, at + hole * 2000), b"");
        }
        trial.pass_ms(100);
    });
}

#[test]
fn a_peer_that_is_gone() {
    let mut trial = Trial::established(plain());
    trial.pass_ms(1);
    mostly(&mut trial, SendCause::Timeout, ReceiveCause::AwaitingData, |trial| {
        trial.write(b"anybody there?");
        trial.pass_ms(60_000);
    });
}

#[test]
fn small_data_held_back_by_nagle() {
    let mut trial =
        Trial::established(Config { min_retransmission_timeout: Duration::from_secs(10), ..plain() });
    mostly(&mut trial, SendCause::SmallData, ReceiveCause::AwaitingData, |trial| {
        let mut at = 1;
        for _ in 0..10 {
            trial.write(b"k");
            trial.write(b"e");
            trial.pass_ms(500);
            at = at.max(trial.connection.info(trial.now).send_next.since(Sequence(OURS)));
            trial.give(segment(1, ACK, at), b"");
        }
    });
}

#[test]
fn waiting_for_the_link() {
    let mut trial = Trial::established(plain());
    trial.link_room = 0;
    mostly(&mut trial, SendCause::Link, ReceiveCause::AwaitingData, |trial| {
        trial.write(b"stuck");
        trial.pass_ms(10_000);
    });
}

#[test]
fn an_acknowledgment_that_waits_for_the_link_holds_no_data_up() {
    let mut trial = Trial::established(plain());
    trial.link_room = 0;
    mostly(&mut trial, SendCause::ApplicationIdle, ReceiveCause::ApplicationSlow, |trial| {
        trial.give(segment(1, ACK, 1), &[7; 1460]);
        trial.give(segment(1461, ACK, 1), &[7; 1460]);
        trial.pass_ms(10_000);
    });
}

#[test]
fn a_send_buffer_too_small_for_the_path() {
    let config = Config { send_buffer_limit_bytes: 3000, ..plain() };
    let mut trial = Trial::established(config);
    mostly(&mut trial, SendCause::SendBuffer, ReceiveCause::AwaitingData, |trial| bulk(trial, 50_000, 50));
}

#[test]
fn both_sides_closed() {
    let mut trial = Trial::established(plain());
    trial.close();
    trial.give(segment(1, ACK | FIN, 2), b"");
    mostly(&mut trial, SendCause::Closed, ReceiveCause::Closed, |trial| trial.pass_ms(50_000));
    trial.pass_ms(50_000);
    let ledgers = trial.connection.ledgers(trial.now);
    assert_eq!(ledgers.send.total(), trial.now.since(Instant::from_millis(1000)));
}

#[test]
fn a_clock_that_goes_back_takes_nothing_away() {
    let mut trial = Trial::established(plain());
    trial.pass_ms(10);
    let total = trial.connection.ledgers(trial.now).send.total();
    trial.connection.send(b"x", SendHow::default(), lend!(trial)).unwrap();
    trial.now = Instant::from_millis(5);
    trial.connection.timeout(lend!(trial));
    trial.now = Instant::from_millis(1010);
    assert_eq!(trial.connection.ledgers(trial.now).send.total(), total);
}
