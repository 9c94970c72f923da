//! Data in the SYN (RFC 7413), from both sides.

use super::trial::{ACK, FIN, MSS, OURS, SYN, Sent, THEIRS, Trial, lend, open, plain, segment};
use crate::{Changes, Connection, FastOpenState, Header, Open, SendHow};
use inhost_base::{Duration, Sequence};
use inhost_event::TcpState;
use inhost_wire::tcp::FastOpenCookie;
use std::sync::Arc;

fn cookie() -> FastOpenCookie {
    FastOpenCookie::from_slice(&[7; 8]).unwrap()
}
/// An active open with `cookie` and `text` queued; the SYN was sent.
fn calling(cookie: FastOpenCookie, text: &[u8]) -> (Trial, Sent) {
    let mut trial = Trial::around(|env| {
        let syn_data_mss = if cookie.is_empty() { 0 } else { MSS as u16 };
        let open = Open { fast_open: Some((cookie, false)), syn_data_mss, ..open() };
        let mut connection = Connection::connect(&Arc::new(plain()), open, env);
        assert_eq!(connection.send(text, SendHow::default(), env), Ok(text.len()));
        connection
    });
    trial.round();
    let syn = trial.expect();
    trial.nothing();
    (trial, syn)
}
fn answer(acknowledges: u32) -> Header {
    let mut answer = segment(0, SYN | ACK, acknowledges);
    answer.options.mss = Some(MSS as u16);
    answer.window = 50_000;
    answer
}
fn state(trial: &Trial) -> FastOpenState {
    trial.connection.info(trial.now).fast_open
}

#[test]
fn the_first_call_asks_for_a_cookie_and_bears_no_data() {
    // RFC 7413 §4.1.2
    let (mut trial, syn) = calling(FastOpenCookie::new(), b"hello");
    assert_eq!((syn.flags(), syn.len()), (SYN, 0));
    assert_eq!(syn.header.options.fast_open, Some(FastOpenCookie::new()));
    let mut granted = answer(1);
    granted.options.fast_open = Some(cookie());
    trial.give(granted, b"");
    trial.expect().is_data(1, 5);
    trial.nothing();
    let learned = trial.connection.take_fast_open_answer().unwrap();
    assert_eq!((learned.cookie, learned.peer_mss), (Some(cookie()), MSS as u16));
    assert_eq!((learned.state, learned.syn_repeated), (FastOpenState::Requested, false));
    assert_eq!(trial.connection.take_fast_open_answer(), None, "once");
}

#[test]
fn a_known_cookie_takes_data_along() {
    let (mut trial, syn) = calling(cookie(), &[1; 1960]);
    // The space that SYN options leave is for data.
    syn.is_data(0, MSS as usize - 40);
    assert_eq!(syn.header.options.fast_open, Some(cookie()));
    assert_eq!(state(&trial), FastOpenState::DataSent);
    trial.give(answer(961), b"first answer");
    assert_eq!(trial.connection.state(), TcpState::Established);
    assert_eq!(state(&trial), FastOpenState::DataAcknowledged);
    trial.expect().is_data(961, 1000);
    trial.nothing();
    assert_eq!(trial.read(100), b"first answer");
    trial.give(segment(13, ACK, 1961), b"");
    trial.nothing();
    assert_eq!(trial.connection.info(trial.now).sent_bytes, 1960);
}

#[test]
fn data_that_was_not_taken_goes_after_the_handshake() {
    // RFC 7413 §4.2.2: the server may take none of it, or a part.
    for taken in [0, 100] {
        let (mut trial, _) = calling(cookie(), &[1; 300]);
        trial.give(answer(1 + taken), b"");
        assert_eq!(state(&trial), FastOpenState::DataRefused);
        trial.expect().is_data(1 + taken, 300 - taken as usize);
        trial.nothing();
        trial.give(segment(1, ACK, 301), b"");
        let info = trial.connection.info(trial.now);
        assert_eq!((info.sent_bytes, info.retransmitted_segments), (300, 1));
    }
}

#[test]
fn a_syn_that_is_lost_goes_again_without_data_and_option() {
    // RFC 7413 §4.1.3.1
    let (mut trial, _) = calling(cookie(), b"hello");
    trial.pass(Duration::from_secs(1));
    let again = trial.expect();
    assert_eq!((again.flags(), again.len(), again.header.options.fast_open), (SYN, 0, None));
    // The first one may have arrived nevertheless.
    trial.give(answer(6), b"");
    assert_eq!(state(&trial), FastOpenState::DataAcknowledged);
    trial.expect().is_ack(1);
    trial.nothing();
    assert!(trial.connection.take_fast_open_answer().unwrap().syn_repeated);
    let (mut trial, _) = calling(cookie(), b"hello");
    trial.pass(Duration::from_secs(1));
    trial.expect();
    trial.give(answer(1), b"");
    trial.expect().is_data(1, 5);
    trial.nothing();
}

#[test]
fn an_acknowledgment_beyond_the_data_is_none() {
    let (mut trial, _) = calling(cookie(), b"hello");
    let outcome = trial.give(answer(7), b"");
    assert!(outcome.reset.is_some());
    assert_eq!(trial.connection.state(), TcpState::SynSent);
    trial.nothing();
}

#[test]
fn both_may_call_at_once() {
    let (mut trial, _) = calling(cookie(), b"hello");
    let mut syn = segment(0, SYN, 0);
    syn.options.mss = Some(MSS as u16);
    trial.give(syn, b"");
    let both = trial.expect();
    assert_eq!((both.flags(), both.len(), both.at()), (SYN | ACK, 0, 0));
    trial.give(segment(1, ACK, 1), b"");
    trial.expect().is_data(1, 5);
    trial.nothing();
}

#[test]
fn a_held_syn_waits_for_data() {
    let mut trial = Trial::around(|env| {
        let fast_open = Some((cookie(), true));
        let open = Open { fast_open, syn_data_mss: MSS as u16, hold_syn: true, ..open() };
        Connection::connect(&Arc::new(plain()), open, env)
    });
    trial.round();
    trial.pass(Duration::from_secs(10));
    trial.nothing();
    trial.connection.send(b"hello", SendHow::default(), lend!(trial)).unwrap();
    trial.connection.release_syn(lend!(trial));
    trial.round();
    let syn = trial.expect();
    syn.is_data(0, 5);
    assert!(syn.header.options.fast_open_experimental);
}

/// The peer opens with `text` and a valid cookie; the SYN-ACK was sent.
fn called_with(text: &[u8]) -> Trial {
    let mut syn = segment(0, SYN, 0);
    syn.options.mss = Some(MSS as u16);
    let mut changes = Changes::empty();
    let mut trial = Trial::around(|env| {
        let mut connection = Connection::accept(&Arc::new(plain()), open(), &syn, env);
        let mut packet = env.pool().take(text.len()).unwrap();
        packet.append(text);
        changes = connection.take_syn_data(&syn, &mut packet, env).changes;
        env.pool().give(packet);
        connection
    });
    trial.changes |= changes;
    trial.round();
    trial
}

#[test]
fn a_server_reads_and_answers_before_the_handshake_is_done() {
    // RFC 7413 §4.2.1
    let mut trial = called_with(b"question");
    let both = trial.expect();
    assert_eq!((both.flags(), both.acknowledges(), both.at()), (SYN | ACK, 9, 0));
    assert!(trial.connection.sender().is_early());
    assert_eq!(trial.read(100), b"question");
    trial.write(&[2; 2000]);
    trial.expect().is_data(1, 1000);
    trial.expect().is_data(1001, 1000);
    trial.nothing();
    // Its SYN-ACK is lost and retransmitted, with its own sequence number.
    trial.pass(Duration::from_secs(1));
    let again = trial.expect();
    assert_eq!((again.flags(), again.acknowledges(), again.at()), (SYN | ACK, 9, 0));
    trial.nothing();
    trial.give(segment(9, ACK, 1), b"");
    assert_eq!(trial.connection.state(), TcpState::Established);
    assert!(trial.changes.contains(Changes::CONNECTED));
    assert_eq!(state(&trial), FastOpenState::Accepted);
    trial.give(segment(9, ACK, 2001), b"");
    assert_eq!(trial.connection.info(trial.now).sent_bytes, 2000);
    trial.nothing();
    assert!(trial.connection.deadline() > trial.now + Duration::from_millis(900));
}

#[test]
fn one_acknowledgment_may_end_the_handshake_and_cover_the_answer() {
    let mut trial = called_with(b"question");
    trial.expect();
    trial.read(100);
    trial.write(b"answer");
    trial.expect().is_data(1, 6);
    trial.give(segment(9, ACK | FIN, 7), b"");
    trial.expect().is_ack(10);
    assert_eq!(trial.connection.state(), TcpState::CloseWait);
    let info = trial.connection.info(trial.now);
    assert_eq!((info.sent_bytes, info.in_flight_bytes), (6, 0));
}

#[test]
fn the_callers_syn_again_is_answered_again() {
    let mut trial = called_with(b"question");
    trial.expect();
    let mut syn = segment(0, SYN, 0);
    syn.options.mss = Some(MSS as u16);
    trial.give(syn, b"");
    assert_eq!(trial.expect().acknowledges(), 9);
    trial.give(syn, b"question");
    assert_eq!(trial.expect().acknowledges(), 9);
    trial.nothing();
}

#[test]
fn letting_go_of_an_early_connection_resets_it_when_data_is_unread() {
    let mut trial = called_with(b"question");
    trial.expect();
    let outcome = trial.connection.detach(lend!(trial));
    let reset = outcome.reset.unwrap();
    assert_eq!((reset.sequence, reset.acknowledgment), (Sequence(OURS + 1), Some(Sequence(THEIRS + 9))));
    // And one that was read closes after the handshake.
    let mut trial = called_with(b"question");
    trial.expect();
    trial.read(100);
    trial.write(b"bye");
    trial.expect().is_data(1, 3);
    trial.connection.detach(lend!(trial));
    trial.round();
    trial.give(segment(9, ACK, 4), b"");
    let fin = trial.expect();
    assert_eq!((fin.at(), fin.flags().fin()), (4, true));
}

#[test]
fn a_cookie_goes_with_the_first_answer_only() {
    let mut syn = segment(0, SYN, 0);
    syn.options.mss = Some(MSS as u16);
    let mut trial = Trial::around(|env| {
        let open = Open { fast_open: Some((cookie(), true)), ..open() };
        Connection::accept(&Arc::new(plain()), open, &syn, env)
    });
    trial.round();
    let options = trial.expect().header.options;
    assert_eq!((options.fast_open, options.fast_open_experimental), (Some(cookie()), true));
    trial.pass(Duration::from_secs(1));
    assert_eq!(trial.expect().header.options.fast_open, None);
    trial.give(segment(1, ACK, 1), b"");
    trial.pass(Duration::from_secs(3));
    assert!(trial.connection.parts().1.buffers().is_none());
}

#[test]
fn data_of_calls_that_cross_may_be_taken() {
    // The peer's acknowledgment covers a part of the data; the rest is retransmitted.
    for (taken, again) in [(5, None), (2, Some(3)), (0, Some(5))] {
        let (mut trial, syn) = calling(cookie(), b"hello");
        syn.is_data(0, 5);
        trial.give(segment(0, SYN, 0), b"theirs");
        let reply = trial.expect();
        assert_eq!((reply.at(), reply.flags(), reply.len(), reply.acknowledges()), (0, SYN | ACK, 0, 1));
        trial.give(answer(1 + taken), b"");
        assert_eq!(trial.connection.state(), TcpState::Established);
        if let Some(length) = again {
            trial.expect().is_data(1 + taken, length);
        }
        trial.nothing();
        let expected = if taken == 5 { FastOpenState::DataAcknowledged } else { FastOpenState::DataRefused };
        assert_eq!(state(&trial), expected);
        trial.give(segment(1, ACK, 6), b"text");
        assert_eq!(trial.connection.info(trial.now).sent_bytes, 5, "all is acknowledged");
        assert_eq!(trial.read(10), b"text");
    }
}
