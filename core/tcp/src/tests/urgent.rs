//! Urgent data, in both directions.

use super::trial::*;
use crate::{Changes, SendHow};

const URGENT: SendHow = SendHow { push: true, urgent: true, more: false, end_of_record: false };

// spec: RFC9293 MUST-30
// spec: RFC9293 MUST-62
#[test]
fn the_pointer_names_the_first_byte_that_is_not_urgent() {
    let mut trial = Trial::established(plain());
    trial.write_how(b"!", URGENT);
    let sent = trial.expect();
    assert_eq!((sent.flags(), sent.header.urgent_pointer), (ACK | PSH | URG, 1));
    // Nagle's algorithm holds back only data that is not urgent.
    trial.write(b"calm");
    trial.nothing();
    trial.write_how(b"interrupt", URGENT);
    let sent = trial.expect();
    sent.is_data(2, 13);
    assert_eq!((sent.flags(), sent.header.urgent_pointer), (ACK | PSH | URG, 13));
    trial.give(segment(1, ACK, 15), b"");
    trial.write(b"calm again");
    assert!(!trial.expect().flags().urg());
}

// spec: RFC9293 MUST-31
#[test]
fn urgent_data_may_be_longer_than_the_pointer_reaches() {
    let mut trial = Trial::established(plain());
    trial.write_how(&vec![1; 100_000], URGENT);
    let first = trial.expect();
    assert_eq!(first.header.urgent_pointer, 0xffff);
    let mut at = 1;
    while at < 100_001 {
        while let Some(sent) = trial.sent.pop_front() {
            let ahead = 100_001 - sent.at();
            assert!(sent.flags().urg());
            assert_eq!(u32::from(sent.header.urgent_pointer), ahead.min(0xffff));
        }
        let info = trial.connection.info(trial.now);
        at = info.send_next.since(inhost_base::Sequence(OURS));
        trial.give(segment(1, ACK, at), b"");
    }
}

#[test]
fn with_the_window_closed_the_announcement_still_goes() {
    let mut trial = Trial::established(plain());
    trial.give(with_window(segment(1, ACK, 1), 0), b"");
    trial.write(&[1; 500]);
    trial.nothing();
    trial.write_how(b"!", URGENT);
    let sent = trial.expect();
    assert_eq!((sent.at(), sent.len(), sent.flags()), (1, 0, ACK | URG));
    assert_eq!(sent.header.urgent_pointer, 501);
    trial.nothing();
}

// spec: RFC9293 MUST-32
// spec: RFC9293 MUST-33
#[test]
fn the_mark_is_known_ahead_of_its_data_and_a_read_stops_at_it() {
    let mut trial = Trial::established(plain());
    trial.give(segment(1, ACK, 1), b"abc");
    trial.changed();
    let mut header = segment(4, ACK | URG, 1);
    header.urgent_pointer = 6;
    let outcome = trial.give(header, b"de");
    assert!(outcome.changes.contains(Changes::URGENT));
    assert_eq!(trial.connection.receiver().urgent_ahead(), Some(9), "four of them have yet to come");
    assert_eq!(trial.read(100), b"abcde");
    assert_eq!(trial.connection.receiver().urgent_ahead(), Some(4));
    // The same mark again is not reported.
    let outcome = trial.give(urgent_segment(6, 4), b"fghiCALM");
    assert!(!outcome.changes.contains(Changes::URGENT));
    assert_eq!(trial.connection.receiver().front(), b"fghi");
    assert_eq!(trial.read(100), b"fghi");
    assert_eq!(trial.connection.receiver().urgent_ahead(), None);
    assert_eq!(trial.read(100), b"CALM");
    // An old mark is ignored.
    let outcome = trial.give(urgent_segment(14, 0), b"x");
    assert!(!outcome.changes.contains(Changes::URGENT));
    assert_eq!(trial.connection.receiver().urgent_ahead(), None);
}

fn urgent_segment(at: u32, pointer: u16) -> crate::Header {
    let mut header = segment(at, ACK | URG, 1);
    header.urgent_pointer = pointer;
    header
}
