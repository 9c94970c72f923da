//! PLPMTUD: recovery from MTU black holes, and use of larger sizes found (RFC 4821).

use super::trial::{ACK, OURS, SYN, Trial, lend, open, plain, segment};
use crate::{Config, Connection, Open, PathMtuProbing};
use inhost_base::Sequence;
use std::sync::Arc;

/// Established over a path of 1,460 bytes of payload.
pub(super) fn wide(config: Config) -> Trial {
    wide_from(config, Open { path_mtu_mss: 1460, ..open() })
}
/// Established as `open` says, to a peer that accepts segments of 1,460 bytes.
pub(super) fn wide_from(config: Config, open: Open) -> Trial {
    let mut trial = Trial::calling(config.clone());
    trial.connection = Connection::connect(&Arc::new(config), open, lend!(trial));
    trial.sent.clear();
    trial.round();
    trial.expect();
    let mut answer = segment(0, SYN | ACK, 1);
    answer.options.mss = Some(1460);
    trial.pass_ms(50);
    trial.give(answer, b"");
    trial.expect();
    trial
}
pub(super) fn segment_bytes(trial: &Trial) -> u16 {
    trial.connection.info(trial.now).send_segment_bytes
}
/// All data in flight is acknowledged, as long as more is sent, if its segments have at most `most` bytes. A longer one
/// is lost, and those after it yield duplicate ACKs. Returns the number of lost segments.
pub(super) fn through(trial: &mut Trial, most: usize) -> usize {
    let mut had = trial.connection.info(trial.now).send_unacknowledged.since(Sequence(OURS));
    let (mut ahead, mut lost) = (Vec::new(), 0);
    for _ in 0..4000 {
        trial.pass_ms(10);
        if trial.connection.sender().unacknowledged_bytes() == 0 {
            return lost;
        }
        for sent in trial.sent.drain(..).collect::<Vec<_>>() {
            if sent.len() > most {
                lost += 1;
                continue;
            }
            ahead.push((sent.at(), sent.at() + sent.len() as u32));
            while let Some(i) = ahead.iter().position(|&(start, end)| start <= had && end > had) {
                had = ahead.swap_remove(i).1;
            }
            trial.give_early(segment(1, ACK, had), b"");
        }
        trial.round();
    }
    panic!("no end: {:?}", trial.connection.info(trial.now));
}

// spec: RFC4821 7.7-1
#[test]
fn a_hole_that_swallows_full_segments_gets_smaller_ones_and_then_the_largest_that_pass() {
    let mut trial = wide(Config { path_mtu_probing: PathMtuProbing::BlackHoles, ..plain() });
    assert_eq!(segment_bytes(&trial), 1460);
    trial.write(&[1; 60_000]);
    trial.sent.clear();
    trial.pass_ms(2_000);
    assert_eq!(segment_bytes(&trial), 1024, "two time-outs of a full segment");
    let last = trial.sent.pop_back().unwrap();
    last.is_data(1, 1024);
    trial.sent.clear();
    trial.give(segment(1, ACK, 1025), b"");
    through(&mut trial, 1300);
    for _ in 0..12 {
        trial.write(&[1; 60_000]);
        through(&mut trial, 1300);
    }
    let found = segment_bytes(&trial);
    assert!((1270..=1300).contains(&found), "{found}");
    assert_eq!(trial.connection.sender().unacknowledged_bytes(), 0);
}

// spec: RFC4821 7.7-2
#[test]
fn no_hole_makes_a_segment_of_ipv6_smaller_than_its_least_mtu() {
    let config = Config { path_mtu_probing: PathMtuProbing::BlackHoles, ..plain() };
    let mut trial = wide_from(config, Open { path_mtu_mss: 1440, default_mss: 1220, ..open() });
    trial.write(&[1; 60_000]);
    trial.pass_ms(2_000);
    assert_eq!(segment_bytes(&trial), 1220);
    trial.pass_ms(200_000);
    assert!(trial.connection.info(trial.now).timeouts > 6);
    assert_eq!(segment_bytes(&trial), 1220, "1280 less headers, however often it is lost");
}

// spec: RFC4821 7.7-1
#[test]
fn a_hole_that_swallows_less_than_a_full_segment_is_found_and_one_that_swallows_little_is_none() {
    for (bytes, then, after_ms) in
        [(1100, 1024, 2_000), (1000, 1460, 2_000), (1000, 512, 40_000), (500, 1460, 40_000)]
    {
        let config = Config { path_mtu_probing: PathMtuProbing::BlackHoles, ..plain() };
        let mut trial = wide(config);
        trial.write(&vec![1; bytes]);
        trial.sent.clear();
        trial.pass_ms(after_ms);
        assert_eq!(segment_bytes(&trial), then);
        let again = trial.sent.pop_back().unwrap();
        again.is_data(1, bytes.min(usize::from(then)));
    }
}

// spec: RFC4821 7.4-1
#[test]
fn where_probing_is_always_on_it_begins_small_and_finds_the_whole_path() {
    let mut trial = wide(Config { path_mtu_probing: PathMtuProbing::Always, ..plain() });
    assert_eq!(segment_bytes(&trial), 1024);
    trial.write(&[1; 60_000]);
    through(&mut trial, 1460);
    assert_eq!(segment_bytes(&trial), 1460);
    assert_eq!(trial.connection.info(trial.now).retransmitted_segments, 0);
}

#[test]
fn without_probing_nothing_shrinks() {
    let mut trial = wide(Config { path_mtu_probing: PathMtuProbing::Off, ..plain() });
    trial.write(&[1; 20_000]);
    trial.pass_ms(20_000);
    assert_eq!(segment_bytes(&trial), 1460);
}
