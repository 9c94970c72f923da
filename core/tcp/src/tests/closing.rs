//! The ways in which a connection ends.

use super::trial::*;
use crate::{Changes, Config, ConnectionError, ConnectionOption, ResetReply, SendHow, StreamError};
use bytes::Bytes;
use inhost_base::{Duration, Instant, Sequence};
use inhost_event::TcpState;

#[test]
fn we_close_first() {
    let mut trial = Trial::established(plain());
    trial.write(b"last words");
    trial.expect();
    trial.close();
    let fin = trial.expect();
    assert_eq!((fin.at(), fin.flags(), fin.len()), (11, FIN | ACK, 0));
    assert_eq!(trial.connection.state(), TcpState::FinWait1);
    assert_eq!(trial.connection.send(b"x", SendHow::default(), lend!(trial)), Err(StreamError::Closed));
    trial.give(segment(1, ACK, 12), b"");
    assert_eq!(trial.connection.state(), TcpState::FinWait2);
    // Half-closed: the peer still sends.
    trial.give(segment(1, ACK | PSH, 12), b"and another thing");
    assert_eq!(trial.read(100), b"and another thing");
    trial.pass(Duration::from_secs(3600));
    assert_eq!(trial.connection.state(), TcpState::FinWait2, "for as long as somebody reads");
    trial.sent.clear();
    let outcome = trial.give(segment(18, ACK | FIN, 12), b"");
    assert!(outcome.changes.contains(Changes::PEER_CLOSED));
    trial.expect().is_ack(19);
    assert_eq!(trial.connection.state(), TcpState::TimeWait);
    assert_eq!(trial.read(10), b"");
    // spec: RFC9293 MUST-13
    trial.pass(Duration::from_millis(59_999));
    assert_eq!(trial.connection.state(), TcpState::TimeWait);
    trial.pass_ms(1);
    assert_eq!(trial.connection.state(), TcpState::Closed);
    assert_eq!((trial.connection.error(), trial.connection.deadline()), (None, Instant::FAR_FUTURE));
    assert!(trial.changed().contains(Changes::CLOSED));
    trial.nothing();
}

#[test]
fn the_fin_follows_data_that_lies_in_many_buffers() {
    for (buffers, buffer_bytes) in [(6, 100), (12, 250), (9, 900)] {
        let mut trial = Trial::established(plain());
        trial.link_room = 0;
        let stream = pattern(0, buffers * buffer_bytes);
        for piece in stream.chunks(buffer_bytes) {
            let mut piece = Bytes::copy_from_slice(piece);
            trial.connection.lend(&mut piece, SendHow::default(), lend!(trial)).unwrap();
            assert!(piece.is_empty());
        }
        trial.close();
        trial.link_room = usize::MAX;
        trial.round();
        let mut came: Vec<u8> = Vec::new();
        while let Some(sent) = trial.sent.pop_front() {
            assert_eq!(sent.at() as usize, 1 + came.len());
            came.extend(&sent.payload);
            assert_eq!(sent.flags().fin(), came.len() == stream.len());
        }
        assert!(came == stream);
    }
}

#[test]
fn the_peer_closes_first() {
    let mut trial = Trial::established(plain());
    trial.give(segment(1, ACK | FIN, 1), b"bye");
    trial.expect().is_ack(5);
    assert_eq!(trial.connection.state(), TcpState::CloseWait);
    assert_eq!(trial.read(100), b"bye");
    assert_eq!(trial.read(100), b"");
    trial.write(b"wait");
    trial.expect().is_data(1, 4);
    trial.close();
    let fin = trial.expect();
    assert_eq!((fin.at(), fin.flags()), (5, FIN | ACK));
    assert_eq!(trial.connection.state(), TcpState::LastAck);
    trial.give(segment(5, ACK, 6), b"");
    assert_eq!((trial.connection.state(), trial.connection.error()), (TcpState::Closed, None));
    trial.nothing();
}

#[test]
fn both_close_at_once() {
    let mut trial = Trial::established(plain());
    trial.close();
    trial.expect();
    trial.give(segment(1, ACK | FIN, 1), b"");
    trial.expect().is_ack(2);
    assert_eq!(trial.connection.state(), TcpState::Closing);
    trial.give(segment(2, ACK, 2), b"");
    assert_eq!(trial.connection.state(), TcpState::TimeWait);
}

#[test]
fn the_fin_rides_with_the_last_data_and_is_sent_again_with_it() {
    let mut trial = Trial::established(plain());
    trial.connection.send(b"end", SendHow::default(), lend!(trial)).unwrap();
    trial.close();
    let last = trial.expect();
    last.is_data(1, 3);
    assert!(last.flags().fin());
    trial.nothing();
    trial.pass_ms(1000);
    let again = trial.expect();
    again.is_data(1, 3);
    assert!(again.flags().fin());
    trial.sent.clear();
    // Only the data arrived.
    trial.give(segment(1, ACK, 4), b"");
    trial.pass_ms(1000);
    let fin = trial.expect();
    assert_eq!((fin.at(), fin.len(), fin.flags()), (4, 0, FIN | ACK));
    trial.give(segment(1, ACK | FIN, 5), b"");
    assert_eq!(trial.connection.state(), TcpState::TimeWait);
}

fn in_time_wait(config: Config) -> Trial {
    let mut trial = Trial::established(config);
    let stamp = |header| {
        if plain().timestamps { header } else { with_timestamps(header, 100, 0) }
    };
    let timestamps = trial.connection.info(trial.now).timestamps;
    trial.close();
    let fin = segment(1, ACK | FIN, 2);
    trial.give(if timestamps { stamp(fin) } else { fin }, b"");
    trial.sent.clear();
    assert_eq!(trial.connection.state(), TcpState::TimeWait);
    trial
}

// spec: RFC9293 MUST-13
#[test]
fn time_wait_answers_a_repeated_fin_and_starts_anew() {
    let mut trial = in_time_wait(plain());
    trial.pass(Duration::from_secs(50));
    trial.give(segment(1, ACK | FIN, 2), b"");
    trial.expect().is_ack(2);
    trial.pass(Duration::from_secs(59));
    assert_eq!(trial.connection.state(), TcpState::TimeWait);
    // RFC 1337: a reset does not assassinate it.
    trial.give(segment(2, RST, 0), b"");
    assert_eq!(trial.connection.state(), TcpState::TimeWait);
    trial.pass(Duration::from_secs(1));
    assert_eq!(trial.connection.state(), TcpState::Closed);
    trial.nothing();
}

// RFC 9293 MAY-2, RFC 6191
#[test]
fn time_wait_yields_to_a_newer_syn_only() {
    let trial = in_time_wait(plain());
    assert!(trial.connection.receiver().yields_to(&segment(3, SYN, 0)));
    assert!(Sequence(OURS + 2).precedes(trial.connection.sender().successor()));
    assert!(!trial.connection.receiver().yields_to(&segment(2, SYN, 0)));
    assert!(!trial.connection.receiver().yields_to(&segment(3, SYN | ACK, 0)));
    assert!(!trial.connection.receiver().yields_to(&segment(3, ACK, 0)));
    let trial = in_time_wait(Config { window_scaling: false, ..Config::default() });
    let older_number = segment(0, SYN, 0);
    assert!(trial.connection.receiver().yields_to(&with_timestamps(older_number, 101, 0)));
    assert!(!trial.connection.receiver().yields_to(&with_timestamps(older_number, 99, 0)));
    assert!(!Trial::established(plain()).connection.receiver().yields_to(&segment(3, SYN, 0)));
}

// RFC 9293 SHLD-3; RFC 2525 §2.17
#[test]
fn letting_go_of_unread_data_resets() {
    let mut trial = Trial::established(plain());
    trial.give(segment(1, ACK, 1), b"unread");
    let outcome = trial.connection.detach(lend!(trial));
    let expected = ResetReply {
        sequence: Sequence(OURS) + 1,
        acknowledgment: Some(Sequence(THEIRS) + 7),
        ..ResetReply::default()
    };
    assert_eq!(outcome.reset, Some(expected));
    assert_eq!(trial.connection.state(), TcpState::Closed);
}

#[test]
fn data_for_nobody_resets() {
    let mut trial = Trial::established(plain());
    trial.connection.detach(lend!(trial));
    trial.round();
    assert!(trial.expect().flags().fin());
    trial.give(segment(1, ACK, 2), b"");
    assert_eq!(trial.connection.state(), TcpState::FinWait2);
    let outcome = trial.give(segment(1, ACK, 2), b"hello?");
    assert_eq!(outcome.reset.unwrap().sequence, Sequence(OURS) + 2);
    assert!(outcome.changes.contains(Changes::CLOSED));
}

#[test]
fn fin_wait_2_ends_when_nobody_reads() {
    let mut trial = Trial::established(plain());
    trial.connection.detach(lend!(trial));
    trial.round();
    trial.give(segment(1, ACK, 2), b"");
    trial.pass(Duration::from_secs(59));
    assert_eq!(trial.connection.state(), TcpState::FinWait2);
    trial.pass(Duration::from_secs(1));
    assert_eq!(trial.connection.state(), TcpState::Closed);
}

// spec: RFC9293 MUST-12
#[test]
fn an_abort_is_not_a_close() {
    let mut trial = Trial::established(plain());
    trial.write(b"12345");
    trial.give(segment(1, ACK, 1), b"unread");
    let outcome = trial.connection.abort(lend!(trial));
    assert_eq!(outcome.reset.unwrap().sequence, Sequence(OURS) + 6);
    assert!(outcome.changes.contains(Changes::CLOSED | Changes::ERROR));
    assert_eq!(trial.connection.error(), Some(ConnectionError::Aborted));
    assert_eq!(trial.pool.outstanding_bytes(), 0);
    let mut trial = Trial::established(plain());
    trial.give(segment(1, ACK, 1), b"flushed");
    trial.give(segment(8, RST, 0), b"with a reason");
    let mut into = [0; 9];
    let read = trial.connection.read(&mut into, lend!(trial));
    assert_eq!(read, Err(StreamError::Connection(ConnectionError::Reset)));
    let sent = trial.connection.send(b"x", SendHow::default(), lend!(trial));
    assert_eq!(sent, Err(StreamError::Connection(ConnectionError::Reset)));
    // No application is left to read it.
    let outcome = trial.give(segment(8, ACK, 1), b"late");
    assert_eq!(outcome.reset.unwrap().sequence, Sequence(OURS) + 1);
}

#[test]
fn closing_before_the_answer_ends_it() {
    let mut trial = Trial::calling(plain());
    trial.close();
    assert_eq!((trial.connection.state(), trial.connection.error()), (TcpState::Closed, None));
}

#[test]
fn a_fin_into_a_closed_window_is_probed_until_taken() {
    let mut trial = Trial::established(plain());
    trial.give(with_window(segment(1, ACK, 1), 0), b"");
    trial.close();
    assert!(trial.expect().flags().fin());
    trial.pass_ms(400);
    assert!(trial.expect().flags().fin());
    trial.give(with_window(segment(1, ACK, 2), 0), b"");
    assert_eq!(trial.connection.state(), TcpState::FinWait2);
}

/// An application wrote 68 KB and closed the socket. The peer, with a closed window, answers each segment by `answer`.
/// The time until the connection ends, in seconds.
fn orphan_lasts_s(answer: impl Fn(&mut Trial, &Sent)) -> u64 {
    let mut trial = Trial::established(plain());
    trial.write(&[1; 68_000]);
    trial.sent.clear();
    trial.give(with_window(segment(1, ACK, 10_001), 0), b"");
    let outcome = trial.connection.detach(lend!(trial));
    assert!(outcome.reset.is_none());
    trial.round();
    let start = trial.now;
    while trial.connection.state() != TcpState::Closed {
        assert!(trial.now.since(start) < Duration::from_secs(30 * 86_400), "it never ends");
        trial.pass_ms(500);
        while let Some(sent) = trial.sent.pop_front() {
            answer(&mut trial, &sent);
        }
    }
    assert_eq!(trial.connection.error(), Some(ConnectionError::TimedOut));
    assert!(trial.reset.is_some(), "the peer is told");
    trial.connection.clear(&mut trial.pool);
    assert_eq!(trial.pool.outstanding_bytes(), 0);
    trial.now.since(start).as_millis() / 1000
}

#[test]
fn an_orphan_behind_a_closed_window_ends_though_the_peer_answers() {
    let stays_closed = |trial: &mut Trial, _: &Sent| {
        trial.give(with_window(segment(1, ACK, 10_001), 0), b"");
    };
    assert!((180..=181).contains(&orphan_lasts_s(stays_closed)));
    // One byte for each probe is not progress either.
    let takes_a_byte = |trial: &mut Trial, sent: &Sent| {
        let next = sent.at() + sent.len() as u32;
        trial.give(with_window(segment(1, ACK, next), 0), b"");
    };
    assert!((180..=181).contains(&orphan_lasts_s(takes_a_byte)));
}

#[test]
fn an_orphan_with_nothing_but_its_fin_ends_though_the_peer_answers() {
    // The FIN is out, or the link does not take it.
    for link_room in [usize::MAX, 0] {
        let mut trial = Trial::established(plain());
        trial.write(&[1; 5000]);
        trial.give(with_window(segment(1, ACK, 5001), 0), b"");
        trial.pass_ms(5000);
        assert_eq!(trial.connection.held_bytes(), 0);
        trial.link_room = link_room;
        trial.connection.detach(lend!(trial));
        trial.round();
        assert_eq!(trial.connection.held_bytes(), 0, "the FIN has no record");
        for state in [TcpState::FinWait1, TcpState::Closed] {
            for _ in 0..100 {
                trial.pass_ms(1000);
                trial.give(with_window(segment(1, ACK, 5001), 0), b"");
            }
            assert_eq!(trial.connection.state(), state);
        }
        assert_eq!(trial.connection.error(), Some(ConnectionError::TimedOut));
    }
}

#[test]
fn an_orphan_whose_peer_reads_slowly_is_heard_out() {
    let mut trial = Trial::established(plain());
    trial.write(&[1; 20_000]);
    trial.connection.detach(lend!(trial));
    trial.round();
    let mut at = 1;
    // Two segments every two minutes.
    while at < 20_001 {
        trial.sent.clear();
        at += 2000;
        trial.give(with_window(segment(1, ACK, at), 0), b"");
        for _ in 0..12 {
            trial.pass_ms(10_000);
            trial.give(with_window(segment(1, ACK, at), 0), b"");
        }
        trial.give(with_window(segment(1, ACK, at), 2000), b"");
        assert_eq!(trial.connection.state(), TcpState::FinWait1, "at {at}");
    }
    trial.give(segment(1, ACK, 20_002), b"");
    assert_eq!(trial.connection.state(), TcpState::FinWait2);
}

#[test]
fn an_orphan_whose_peer_is_silent_is_given_as_long_as_the_user_asked_for() {
    let config = Config { user_timeout: Duration::from_secs(1000), ..plain() };
    let mut trial = Trial::established(config);
    trial.write(&[1; 5000]);
    trial.connection.detach(lend!(trial));
    trial.round();
    trial.pass_ms(990_000);
    assert_eq!(trial.connection.state(), TcpState::FinWait1);
    trial.pass_ms(11_000);
    assert_eq!(trial.connection.state(), TcpState::Closed);
}

#[test]
fn the_time_in_fin_wait_2_can_be_set_on_a_live_connection() {
    let mut trial = Trial::established(plain());
    trial.connection.set(ConnectionOption::FinWait2(Duration::from_secs(5)), lend!(trial));
    trial.connection.detach(lend!(trial));
    trial.round();
    trial.give(segment(1, ACK, 2), b"");
    assert_eq!(trial.connection.state(), TcpState::FinWait2);
    trial.pass_ms(4_990);
    assert_eq!(trial.connection.state(), TcpState::FinWait2);
    // A timer that runs is restarted.
    trial.connection.set(ConnectionOption::FinWait2(Duration::from_secs(1)), lend!(trial));
    trial.pass_ms(990);
    assert_eq!(trial.connection.state(), TcpState::FinWait2);
    trial.pass_ms(20);
    assert_eq!(trial.connection.state(), TcpState::Closed);
}
