//! The search for the path's largest segment: black holes heal, and what is found larger is used (RFC 4821).

use super::trial::{ACK, OURS, SYN, Trial, lend, open, plain, segment};
use crate::{Config, Connection, Open, PathMtuProbing};
use inhost_base::Sequence;
use std::sync::Arc;

/// Established over a path of 1,460 bytes of payload.
pub(super) fn wide(config: Config) -> Trial {
    let mut trial = Trial::calling(config.clone());
    let open = Open { path_mtu_mss: 1460, ..open() };
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
/// Everything that is out is acknowledged, as often as something goes out, while its segments are of at most `most`
/// bytes; a longer one is lost, and those after it tell so by duplicates. How many were lost.
pub(super) fn through(trial: &mut Trial, most: usize) -> usize {
    let mut had = trial.connection.info(trial.now).send_unacknowledged.since(Sequence(OURS));
    let (mut ahead, mut lost) = (Vec::new(), 0);
    for _ in 0..4000 {
        trial.pass_ms(10);
        if trial.connection.unacknowledged_bytes() == 0 {
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
    panic!("no end: {:?} {:?}", trial.connection.info(trial.now), trial.connection.history);
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
    assert_eq!(trial.connection.unacknowledged_bytes(), 0);
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
