//! The handshake.

use super::trial::*;
use crate::{Changes, Config, ConnectionError, ResetReply, SendHow, SoftError};
use inhost_base::Sequence;
use inhost_event::{Drop, TcpState};

// spec: RFC9293 MUST-14
// spec: RFC9293 MUST-65
// spec: RFC9293 MUST-67
#[test]
fn we_call_and_the_peer_answers() {
    let mut trial = Trial::calling(Config::default());
    let syn = trial.expect();
    trial.nothing();
    assert_eq!((syn.at(), syn.flags(), syn.len()), (0, SYN, 0));
    assert_eq!(syn.header.options.mss, Some(MSS as u16));
    assert_eq!(syn.header.options.window_scale, Some(13), "256 MiB take thirteen bits");
    assert_eq!(syn.header.options.timestamps, Some((1077, 0)));
    let mut answer = segment(0, SYN | ACK, 1);
    answer.options.mss = Some(700);
    answer.options.timestamps = Some((9, 1077));
    answer.options.window_scale = Some(2);
    let outcome = trial.give(answer, b"");
    assert!(outcome.changes.contains(Changes::CONNECTED | Changes::WRITABLE));
    let ack = trial.expect();
    ack.is_ack(1);
    assert_eq!((ack.header.options.mss, ack.header.options.window_scale), (None, None));
    assert_eq!(ack.header.options.timestamps, Some((1077, 9)));
    assert_eq!(ack.header.window, 16, "128 KiB to begin with, in units of 8 KiB");
    trial.nothing();
    let info = trial.connection.info(trial.now);
    // spec: RFC9293 MUST-16
    assert_eq!((info.send_segment_bytes, info.send_window_bytes), (688, 50_000));
    assert_eq!(trial.connection.state(), TcpState::Established);
}

// spec: RFC9293 MUST-15
#[test]
fn a_peer_that_names_no_maximum_gets_the_default() {
    let mut trial = Trial::calling(plain());
    trial.expect();
    trial.give(segment(0, SYN | ACK, 1), b"");
    trial.expect();
    assert_eq!(trial.connection.info(trial.now).send_segment_bytes, 536);
}

// spec: RFC9293 MUST-22
// spec: RFC9293 MUST-23
#[test]
fn an_unanswered_syn_is_repeated_ever_more_slowly_for_three_minutes() {
    let mut trial = Trial::calling(plain());
    let start = trial.now;
    trial.expect();
    let mut at_s = Vec::new();
    for _ in 0..2000 {
        trial.pass_ms(100);
        while let Some(again) = trial.sent.pop_front() {
            assert_eq!((again.at(), again.flags()), (0, SYN));
            at_s.push(trial.now.since(start).as_secs());
        }
    }
    assert_eq!(at_s, [1, 3, 7, 15, 31, 63, 123]);
    assert_eq!(trial.connection.error(), Some(ConnectionError::TimedOut));
    assert_eq!(trial.connection.state(), TcpState::Closed);
    assert!(trial.changed().contains(Changes::CLOSED | Changes::ERROR | Changes::SUSPECT));
}

// spec: RFC5681 3.1-4
#[test]
fn one_lost_syn_may_be_a_mistake_and_more_cost_the_initial_window() {
    for (wait_ms, window) in [(1500, 10 * MSS), (3500, MSS)] {
        let mut trial = Trial::calling(plain());
        trial.pass_ms(wait_ms);
        trial.sent.clear();
        let mut answer = segment(0, SYN | ACK, 1);
        answer.options.mss = Some(MSS as u16);
        trial.give(answer, b"");
        trial.expect();
        assert_eq!(trial.connection.info(trial.now).congestion_window_bytes, window, "RFC 6928 §2");
    }
}

#[test]
fn a_reset_refuses_only_when_it_acknowledges_our_syn() {
    let mut trial = Trial::calling(plain());
    trial.expect();
    let outcome = trial.give(segment(0, RST | ACK, 7), b"");
    assert_eq!(outcome.dropped, Some(Drop::OutOfWindow));
    let outcome = trial.give(segment(0, RST, 0), b"");
    assert_eq!(outcome.dropped, Some(Drop::OutOfWindow));
    assert_eq!(trial.connection.state(), TcpState::SynSent);
    let outcome = trial.give(segment(0, RST | ACK, 1), b"");
    assert!(outcome.changes.contains(Changes::CLOSED | Changes::ERROR));
    assert_eq!(trial.connection.error(), Some(ConnectionError::Refused));
    trial.nothing();
}

#[test]
fn a_half_open_peer_is_reset() {
    let mut trial = Trial::calling(plain());
    trial.expect();
    let outcome = trial.give(segment(300, ACK, 900), b"");
    assert_eq!(outcome.reset, Some(ResetReply { sequence: Sequence(OURS) + 900, ..ResetReply::default() }));
    trial.nothing();
    assert_eq!(trial.connection.state(), TcpState::SynSent);
}

#[test]
fn the_peer_calls() {
    let mut syn = segment(0, SYN, 0);
    syn.options.window_scale = Some(3);
    syn.options.timestamps = Some((5, 0));
    let mut trial = Trial::called_by(Config::default(), &syn, false);
    let answer = trial.expect();
    assert_eq!((answer.at(), answer.flags(), answer.acknowledges()), (0, SYN | ACK, 1));
    assert_eq!(answer.header.options.timestamps, Some((1077, 5)));
    trial.nothing();
    // The SYN is repeated: our SYN-ACK was lost.
    trial.give(syn, b"");
    assert_eq!(trial.expect().flags(), SYN | ACK);
    // An acknowledgment of another number.
    let stray = with_timestamps(segment(1, ACK, 44), 6, 1077);
    let outcome = trial.give(stray, b"");
    assert_eq!(outcome.reset.unwrap().sequence, Sequence(OURS) + 44);
    trial.nothing();
    let outcome = trial.give(with_timestamps(segment(1, ACK, 1), 6, 1077), b"");
    assert!(outcome.changes.contains(Changes::CONNECTED));
    assert_eq!(trial.connection.info(trial.now).send_window_bytes, 400_000);
    trial.nothing();
}

// spec: RFC7323 2.2-2, 3.2-6
#[test]
fn what_the_peer_does_not_offer_is_not_used() {
    let mut trial = Trial::called_by(Config::default(), &segment(0, SYN, 0), false);
    let answer = trial.expect();
    assert_eq!((answer.header.options.timestamps, answer.header.options.window_scale), (None, None));
    trial.give(segment(1, ACK, 1), b"");
    trial.give(segment(1, ACK, 1), &[1; 2000]);
    let ack = trial.expect();
    assert!(ack.header.options.timestamps.is_none());
    assert!(ack.header.window > 60_000, "not scaled");
}

#[test]
fn a_held_connection_says_nothing_until_it_is_released() {
    let mut trial = Trial::called_by(plain(), &segment(0, SYN, 0), true);
    trial.pass_ms(30_000);
    trial.give(segment(0, SYN, 0), b"");
    trial.nothing();
    trial.connection.release_syn(lend!(trial));
    trial.round();
    assert_eq!(trial.expect().flags(), SYN | ACK);
    trial.give(segment(1, ACK, 1), b"");
    assert_eq!(trial.connection.state(), TcpState::Established);
}

#[test]
fn a_held_connection_can_be_refused() {
    let mut trial = Trial::called_by(plain(), &segment(0, SYN, 0), true);
    let outcome = trial.connection.abort(lend!(trial));
    let reset = outcome.reset.unwrap();
    assert_eq!((reset.sequence, reset.acknowledgment), (Sequence(0), Some(Sequence(THEIRS) + 1)));
    assert_eq!(trial.connection.state(), TcpState::Closed);
}

// spec: RFC9293 MUST-10
// spec: RFC9293 MUST-11
#[test]
fn both_call_at_once() {
    let mut trial = Trial::calling(plain());
    trial.expect();
    let mut theirs = segment(0, SYN, 0);
    theirs.options.mss = Some(900);
    trial.give(theirs, b"");
    let answer = trial.expect();
    assert_eq!((answer.at(), answer.flags(), answer.acknowledges()), (0, SYN | ACK, 1));
    assert_eq!(trial.connection.state(), TcpState::SynReceived);
    let outcome = trial.give(segment(0, SYN | ACK, 1), b"");
    assert!(outcome.changes.contains(Changes::CONNECTED));
    trial.nothing();
    // The active open is remembered: otherwise a reset would be reported as a refusal.
    let mut trial = Trial::calling(plain());
    trial.give(segment(0, SYN, 0), b"");
    trial.give(segment(1, RST, 0), b"");
    assert_eq!(trial.connection.error(), Some(ConnectionError::Refused));
}

#[test]
fn what_is_written_before_the_answer_follows_it() {
    let mut trial = Trial::calling(plain());
    trial.expect();
    trial.connection.send(b"early", SendHow::default(), lend!(trial)).unwrap();
    trial.round();
    trial.nothing();
    trial.give(segment(0, SYN | ACK, 1), b"");
    let data = trial.expect();
    data.is_data(1, 5);
    assert_eq!((data.flags(), data.acknowledges()), (ACK | PSH, 1), "the acknowledgment rides along");
    trial.nothing();
}

#[test]
fn the_answer_may_bring_data_and_even_the_end() {
    let mut trial = Trial::calling(plain());
    trial.expect();
    trial.give(segment(0, SYN | ACK | FIN, 1), b"all there is");
    trial.expect().is_ack(14);
    assert_eq!(trial.read(100), b"all there is");
    assert_eq!(trial.read(100), b"");
    assert_eq!(trial.connection.state(), TcpState::CloseWait);
}

#[test]
fn a_reset_in_syn_received_ends_a_passive_open() {
    let mut trial = Trial::called_by(plain(), &segment(0, SYN, 0), false);
    trial.give(segment(1, RST, 0), b"");
    assert_eq!(trial.connection.error(), Some(ConnectionError::Reset));
}

#[test]
fn a_close_before_the_handshake_is_done_follows_it() {
    let mut trial = Trial::called_by(plain(), &segment(0, SYN, 0), false);
    trial.expect();
    trial.write(b"bye");
    trial.close();
    trial.nothing();
    trial.give(segment(1, ACK, 1), b"");
    let last = trial.expect();
    last.is_data(1, 3);
    assert!(last.flags().fin());
    assert_eq!(trial.connection.state(), TcpState::FinWait1);
}

#[test]
fn an_answer_that_cannot_leave_is_given_up_in_time_and_not_at_once() {
    let mut trial = Trial::called_by(plain(), &segment(0, SYN, 0), true);
    trial.link_room = 0;
    trial.connection.release_syn(lend!(trial));
    let outcome = trial.connection.cannot_leave(SoftError::Unreachable, lend!(trial));
    assert!(!outcome.changes.contains(Changes::CLOSED));
    assert_eq!(trial.connection.state(), TcpState::SynReceived);
    trial.pass(Config::default().connect_timeout + inhost_base::Duration::from_secs(1));
    assert_eq!(trial.connection.state(), TcpState::Closed);
    assert_eq!(trial.connection.error(), Some(ConnectionError::TimedOut));
}
