//! Windows of both sides: small, closed and shrinking ones.

use super::trial::*;
use crate::{Changes, Config, ConnectionError, SendHow};
use inhost_base::Duration;
use inhost_event::{Drop, Event, RetransmittedWhy, SendCause};

fn with_buffer(bytes: usize) -> Config {
    Config { receive_buffer_limit_bytes: bytes, ..plain() }
}

#[test]
fn the_edge_never_moves_back_and_the_window_closes_on_a_reader_that_sleeps() {
    let mut trial = Trial::established(with_buffer(40_000));
    let mut edge = 0;
    let mut at = 1;
    loop {
        trial.give(segment(at, ACK, 1), &[3; 1000]);
        at += 1000;
        trial.pass_ms(100);
        let ack = trial.expect();
        let new_edge = ack.acknowledges() + u32::from(ack.header.window);
        assert!(new_edge >= edge, "{new_edge} < {edge}");
        edge = new_edge;
        if ack.header.window < 1000 {
            break;
        }
    }
    let rest = (edge - at) as usize;
    trial.give(segment(at, ACK, 1), &vec![3; rest]);
    trial.pass_ms(100);
    let mut last = trial.sent.pop_back();
    if let Some(ack) = &last {
        assert_eq!(ack.header.window, 0);
    }
    let info = trial.connection.info(trial.now);
    assert_eq!(info.receive_window_bytes, 0);
    assert!(info.receive_queue_bytes >= 20_000 && info.receive_queue_capacity_bytes <= 42_000, "{info:?}");
    trial.sent.clear();
    // MIT §7.1: the update is sent while most of the data is unread, but not byte by byte.
    let mut read = 0;
    while trial.sent.is_empty() {
        read += trial.read(500).len();
        last = trial.sent.back().cloned();
    }
    assert!(read >= 4_000 && trial.connection.receiver().readable_bytes() >= 10_000, "{read}");
    let update = last.unwrap();
    assert!(update.header.window >= 2000, "spec: RFC9293 MUST-39");
}

// spec: RFC9293 MUST-39
#[test]
fn a_reader_of_single_bytes_does_not_offer_single_bytes() {
    let mut trial = Trial::established(with_buffer(40_000));
    let mut at = 1;
    while trial.connection.info(trial.now).receive_window_bytes > 0 {
        let length = trial.connection.info(trial.now).receive_window_bytes.min(1000);
        trial.give(segment(at, ACK, 1), &vec![3; length as usize]);
        at += length;
        trial.pass_ms(50);
    }
    trial.sent.clear();
    let unread = trial.connection.receiver().readable_bytes();
    for _ in 0..unread {
        trial.read(1);
    }
    assert!((1..12).contains(&trial.sent.len()), "{} updates", trial.sent.len());
}

// spec: RFC9293 MUST-39
#[test]
fn a_reader_of_a_few_bytes_does_not_offer_them_however_small_its_buffer() {
    for buffer in [600, 2_000, 4_000, 8_000, 40_000, 1 << 20] {
        read_slowly(buffer, with_buffer(buffer));
    }
}
/// Three bytes are read at a time, while the peer probes the closed window.
fn read_slowly(buffer: usize, config: Config) {
    let mut trial = Trial::established(config);
    let mut at = 1;
    while trial.connection.info(trial.now).receive_window_bytes > 0 {
        let length = trial.connection.info(trial.now).receive_window_bytes.min(1000);
        trial.give(segment(at, ACK, 1), &vec![3; length as usize]);
        at += length;
        trial.pass_ms(50);
    }
    trial.sent.clear();
    // The window opens by a segment or half of itself, or it stays closed, whatever the peer sends.
    let least = (buffer as u32 / 4).min(1000);
    for _ in 0..2_000 {
        trial.read(3);
        let updates = trial.sent.len();
        trial.give(segment(at, ACK, 1), b"?");
        let windows: Vec<_> = trial.sent.drain(..).map(|ack| ack.is_ack(at).header.window).collect();
        assert!(windows[..updates].iter().all(|&window| window > 0), "an update tells of room: {windows:?}");
        let window = windows.last().copied().unwrap_or_default();
        assert!(window == 0 || u32::from(window) >= least, "{window} bytes of {buffer} are offered");
        trial.give(segment(at, ACK, 1), &vec![3; usize::from(window)]);
        at += u32::from(window);
        trial.pass_ms(50);
        trial.sent.clear();
    }
}

// spec: RFC9293 MUST-66
#[test]
fn with_the_window_closed_acknowledgment_urgent_pointer_and_reset_count() {
    let mut trial = Trial::established(with_buffer(8000));
    let mut at = 1;
    while trial.connection.info(trial.now).receive_window_bytes > 0 {
        let length = trial.connection.info(trial.now).receive_window_bytes.min(1000);
        trial.give(segment(at, ACK, 1), &vec![3; length as usize]);
        at += length;
    }
    trial.write(b"four");
    trial.sent.clear();
    let mut probe = segment(at, ACK | URG, 5);
    probe.urgent_pointer = 30;
    let outcome = trial.give(probe, b"!");
    assert!(outcome.changes.contains(Changes::URGENT));
    assert_eq!(trial.connection.sender().unacknowledged_bytes(), 0);
    let ack = trial.expect();
    assert_eq!(ack.is_ack(at).header.window, 0);
    trial.nothing();
    trial.give(segment(at, RST, 0), b"");
    assert_eq!(trial.connection.error(), Some(ConnectionError::Reset));
}

// spec: RFC9293 MUST-36
// spec: RFC9293 MUST-35
// spec: RFC9293 MUST-37
#[test]
fn a_closed_window_is_probed_ever_more_slowly_for_as_long_as_the_peer_answers() {
    let mut trial = Trial::established(plain());
    trial.give(with_window(segment(1, ACK, 1), 0), b"");
    trial.write(&pattern(0, 3000));
    trial.nothing();
    let start = trial.now;
    let mut at_ms = Vec::new();
    for _ in 0..36_000 {
        trial.pass_ms(100);
        if let Some(probe) = trial.sent.pop_front() {
            probe.is_data(1, 1);
            at_ms.push(trial.now.since(start).as_millis());
            trial.give(with_window(segment(1, ACK, 1), 0), b"");
            trial.nothing();
        }
    }
    // The handshake took no time here, so the RTO is near its minimum of 200 ms.
    assert_eq!(
        at_ms[..6],
        [300, 700, 1500, 3100, 6300, 12700].map(|t: u64| t - t % 200 + 100 * (t / 100 % 2))
    );
    assert!(at_ms.windows(2).all(|pair| pair[1] - pair[0] <= 60_100));
    assert_eq!(trial.connection.error(), None, "an hour later");
    let ledger = trial.connection.ledgers(trial.now).send;
    assert!(ledger.of(SendCause::ClosedWindow) > Duration::from_secs(3599));
    let info = trial.connection.info(trial.now);
    assert_eq!((info.retransmitted_segments, info.retransmitted_bytes), (0, 0), "a probe repairs nothing");
    // The window opens: all data is sent at once, including the refused byte.
    trial.give(with_window(segment(1, ACK, 1), 5000), b"");
    let first = trial.expect();
    first.is_data(1, 1000);
    assert_eq!(first.payload, pattern(0, 1000));
    trial.expect().is_data(1001, 1000);
    trial.expect().is_data(2001, 1000);
    trial.nothing();
    let info = trial.connection.info(trial.now);
    let again = (info.retransmitted_segments, info.retransmitted_bytes);
    assert_eq!(again, (1, 1), "what follows the refused byte is new");
    let why = trial.sink.events().filter_map(|(_, event)| match event {
        Event::Retransmitted(again) if again.why != RetransmittedWhy::Probe => Some(again.why),
        _ => None,
    });
    assert_eq!(why.collect::<Vec<_>>(), [RetransmittedWhy::Refused], "nothing was lost");
}

#[test]
fn probes_without_an_answer_end_the_connection() {
    let config = Config { user_timeout: Duration::from_secs(30), ..plain() };
    let mut trial = Trial::established(config);
    trial.give(with_window(segment(1, ACK, 1), 0), b"");
    trial.write(b"data");
    trial.pass(Duration::from_millis(29_900));
    assert_eq!(trial.connection.error(), None);
    trial.pass(Duration::from_millis(200));
    assert_eq!(trial.connection.error(), Some(ConnectionError::TimedOut));
}

#[test]
fn a_probe_that_is_taken_counts() {
    let mut trial = Trial::established(plain());
    trial.give(with_window(segment(1, ACK, 1), 0), b"");
    trial.write(b"abc");
    trial.pass_ms(500);
    trial.expect().is_data(1, 1);
    trial.give(with_window(segment(1, ACK, 2), 0), b"");
    trial.pass_ms(1000);
    let probe = trial.expect();
    probe.is_data(2, 1);
    assert_eq!(probe.payload, b"b");
}

// spec: RFC9293 MUST-38
#[test]
fn a_silly_window_is_not_used_until_the_override_timer_ends() {
    let mut trial = Trial::established_with(plain(), 10_000);
    trial.give(with_window(segment(1, ACK, 1), 700), b"");
    trial.write(&[1; 3000]);
    trial.nothing();
    assert_eq!(trial.connection.info(trial.now).send_cause, SendCause::ReceiverWindow);
    trial.pass_ms(250);
    trial.expect().is_data(1, 700);
    trial.nothing();
    // Half of the largest window ever advertised is not a silly window.
    let mut trial = Trial::established_with(plain(), 800);
    trial.give(with_window(segment(1, ACK, 1), 400), b"");
    trial.write(&[1; 3000]);
    trial.expect().is_data(1, 400);
    trial.nothing();
}

// spec: RFC9293 MUST-34
#[test]
fn a_window_that_shrinks_stops_new_data_and_breaks_nothing() {
    let mut trial = Trial::established_with(plain(), 8000);
    trial.write(&[1; 12_000]);
    assert_eq!(trial.sent.len(), 8);
    trial.sent.clear();
    // All eight are in flight; the peer withdraws five.
    trial.give(with_window(segment(1, ACK, 1001), 2000), b"");
    trial.nothing();
    trial.give(with_window(segment(1, ACK, 3001), 0), b"");
    trial.nothing();
    // Our acknowledgment has a sequence number that the peer can accept.
    trial.give(with_window(segment(1, ACK, 3001), 0), &[9; 2000]);
    let ack = trial.expect();
    assert_eq!((ack.at(), ack.len()), (3001, 0));
    trial.give(with_window(segment(2001, ACK, 3001), 9000), b"");
    let again = trial.expect();
    again.is_data(3001, 1000);
}

// spec: RFC9293 MUST-1; RFC7323 2.3-3
#[test]
fn the_window_field_is_unsigned_and_scaled() {
    let mut trial = Trial::calling(Config { timestamps: false, ..Config::default() });
    trial.expect();
    let mut answer = with_window(segment(0, SYN | ACK, 1), 65_535);
    answer.options.window_scale = Some(20);
    trial.give(answer, b"");
    trial.expect();
    assert_eq!(trial.connection.info(trial.now).send_window_bytes, 65_535, "a SYN's is not scaled");
    trial.give(with_window(segment(1, ACK, 1), 65_535), b"");
    assert_eq!(trial.connection.info(trial.now).send_window_bytes, 65_535 << 14, "20 reads as 14");
}

#[test]
fn data_beyond_the_window_is_cut() {
    let mut trial = Trial::established(with_buffer(8000));
    let window = trial.connection.info(trial.now).receive_window_bytes;
    trial.give(segment(1, ACK | FIN, 1), &vec![1; window as usize + 100]);
    let info = trial.connection.info(trial.now);
    assert_eq!(info.received_bytes, u64::from(window));
    trial.expect().is_ack(1 + window);
    let outcome = trial.give(segment(1 + window + 5000, ACK, 1), b"far");
    assert_eq!(outcome.dropped, Some(Drop::OutOfWindow));
    trial.expect().is_ack(1 + window);
}

#[test]
fn an_overtaken_window_does_not_reach_further_than_it_was_meant() {
    let mut trial = Trial::established_with(plain(), 5000);
    trial.write_how(&[1; 20_000], SendHow::default());
    assert_eq!(trial.sent.len(), 5);
    trial.sent.clear();
    // Later data with the same acknowledgment arrives first; older data cannot have a higher one.
    // A possible case: a retransmitted segment, with an old number, a new acknowledgment and a new window.
    trial.give(with_window(segment(11, ACK, 1), 5000), b"x");
    trial.sent.clear();
    trial.give(with_window(segment(1, ACK, 3001), 2000), b"0123456789");
    assert!(trial.sent.iter().all(|sent| sent.len() == 0), "nothing beyond 5001: {:?}", trial.sent);
}

#[test]
fn a_window_that_opens_again_ends_the_back_off_of_its_probes() {
    let mut trial = Trial::established(plain());
    trial.give(with_window(segment(1, ACK, 1), 0), b"");
    trial.write(&pattern(0, 500));
    for _ in 0..5 {
        trial.pass_ms(20_000);
        trial.give(with_window(segment(1, ACK, 1), 0), b"");
    }
    assert!(trial.connection.info(trial.now).retransmission_backoff >= 5);
    trial.sent.clear();
    trial.give(segment(1, ACK, 1), b"");
    trial.expect().is_data(1, 500);
    assert_eq!(trial.connection.info(trial.now).unanswered_probes, 0);
    // Data sent then is lost: it is retransmitted after an RTO, not after a minute.
    trial.pass_ms(400);
    trial.expect().is_data(1, 500);
}

// spec: RFC7323 2.4-2
#[test]
fn the_edge_that_was_told_never_moves_back_by_a_part_of_the_scale() {
    for length in [1, 7, 15, 16, 17, 33, 101, 999] {
        let mut trial = Trial::established(Config { timestamps: false, ..unpaced() });
        let scale = trial.connection.info(trial.now).receive_window_scale;
        assert!(scale >= 4, "{scale}");
        let (mut at, mut edge) = (1, 0);
        for _ in 0..200 {
            trial.give(segment(at, ACK, 1), &vec![1; length]);
            at += length as u32;
            trial.read(length);
            trial.pass_ms(50);
            while let Some(sent) = trial.sent.pop_front() {
                let told = sent.acknowledges() + (u32::from(sent.header.window) << scale);
                assert!(told >= edge, "{told} after {edge}, with segments of {length}");
                edge = told;
            }
        }
        assert!(edge > at);
    }
}
