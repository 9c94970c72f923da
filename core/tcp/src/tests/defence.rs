//! Unacceptable segments: the state that they may not change, and the few that are answered (RFC 5961, RFC 7323 §5).

use super::trial::*;
use crate::{Config, ConnectionError, Header};
use inhost_base::{Random, Sequence};
use inhost_event::{Drop, TcpState};
use inhost_wire::tcp::Flags;

fn stamped() -> Trial {
    Trial::established(Config { window_scaling: false, ..Config::default() })
}

// RFC 5961 §3.2
// spec: RFC5961 3.2-1
#[test]
fn only_a_reset_at_exactly_the_next_number_counts() {
    let mut trial = Trial::established(plain());
    let outcome = trial.give(segment(90_000, RST, 0), b"");
    assert_eq!(outcome.dropped, Some(Drop::OutOfWindow));
    trial.nothing();
    trial.give(segment(2, RST, 0), b"");
    trial.expect().is_ack(1);
    assert_eq!(trial.connection.state(), TcpState::Established);
    trial.give(segment(1, RST, 0), b"");
    assert_eq!(trial.connection.error(), Some(ConnectionError::Reset));
    trial.nothing();
}

// RFC 5961 §4.2, §7
// spec: RFC5961 4.2-1
#[test]
fn a_syn_is_challenged_within_a_limit() {
    let mut trial = Trial::established(plain());
    for i in 0..30 {
        let outcome = trial.give(segment(1 + i, SYN, 0), b"");
        assert!(outcome.dropped.is_some());
    }
    assert_eq!(trial.sent.len(), 10);
    trial.sent.iter().for_each(|sent| {
        sent.is_ack(1);
    });
    trial.sent.clear();
    trial.pass_ms(1000);
    trial.give(segment(1, SYN, 0), b"");
    trial.expect().is_ack(1);
    assert_eq!(trial.connection.state(), TcpState::Established);
}

// RFC 5961 §5.2
// spec: RFC5961 5.2-2
#[test]
fn an_acknowledgment_out_of_range_is_challenged_and_its_data_is_not_taken() {
    let mut trial = Trial::established_with(plain(), 5000);
    trial.write(b"one");
    trial.expect();
    for acknowledges in [5, 60_000, 4u32.wrapping_sub(5010)] {
        let outcome = trial.give(with_window(segment(1, ACK, acknowledges), 5000), b"evil");
        assert_eq!(outcome.dropped, Some(Drop::OutOfWindow), "{acknowledges}");
        trial.expect().is_ack(1);
    }
    assert_eq!(trial.connection.receiver().readable_bytes(), 0);
    // An old one from within the last window is fine.
    trial.give(with_window(segment(1, ACK, 4), 5000), b"");
    trial.give(with_window(segment(1, ACK, 1), 5000), b"good");
    assert_eq!(trial.read(10), b"good");
}

// RFC 5961 §5.2, RFC 7323 §5.3
#[test]
fn an_acknowledgment_out_of_range_leaves_no_timestamp_behind() {
    let mut trial = Trial::called_by(Config::default(), &with_timestamps(segment(0, SYN, 0), 100, 0), false);
    let echo = trial.expect().header.options.timestamps.unwrap().0;
    trial.give(with_timestamps(segment(1, ACK, 1), 101, echo), b"");
    let far_ahead = 101 + (1 << 30);
    trial.give(with_timestamps(segment(1, ACK, 60_000), far_ahead, echo), b"evil");
    trial.sent.clear();
    trial.give(with_timestamps(segment(1, ACK, 1), 102, echo), b"good");
    assert_eq!(trial.read(10), b"good", "PAWS still measures by the honest peer");
}

#[test]
fn a_segment_without_acknowledgment_is_dropped() {
    let mut trial = Trial::established(plain());
    trial.give(segment(1, PSH, 0), b"data");
    trial.give(segment(1, Flags::empty(), 0), b"data");
    assert_eq!(trial.connection.receiver().readable_bytes(), 0);
    trial.nothing();
}

// RFC 7323 §5.3, §5.5, §3.2
// spec: RFC7323 5.3-2, 5.5-1
#[test]
fn an_old_timestamp_is_answered_and_dropped() {
    let mut trial = stamped();
    trial.give(with_timestamps(segment(1, ACK, 1), 1000, 0), b"new");
    trial.pass_ms(50);
    trial.sent.clear();
    let old = with_timestamps(segment(4, ACK, 1), 999, 0);
    let outcome = trial.give(old, b"old");
    assert_eq!(outcome.dropped, Some(Drop::OldTimestamp));
    trial.expect().is_ack(4);
    let outcome = trial.give(segment(4, ACK, 1), b"none");
    assert_eq!(outcome.dropped, Some(Drop::OldTimestamp));
    trial.sent.clear();
    assert_eq!(trial.read(100), b"new");
    // After 24 idle days the saved timestamp is not valid any more.
    trial.pass(inhost_base::Duration::from_secs(25 * 24 * 3600));
    trial.give(old, b"old");
    assert_eq!(trial.read(100), b"old");
    // The one that was accepted in its place is the one to compare with: an older one is old, the next is predicted.
    let outcome = trial.give(with_timestamps(segment(7, ACK, 1), 998, 0), b"old");
    assert_eq!(outcome.dropped, Some(Drop::OldTimestamp));
    let next = with_timestamps(segment(7, ACK, 1), 999, 0).plain().unwrap();
    assert!(trial.connection.is_predicted(&next, 3));
    // A reset needs no timestamp.
    trial.give(segment(7, RST, 0), b"");
    assert_eq!(trial.connection.error(), Some(ConnectionError::Reset));
}

#[test]
fn an_echo_of_our_own_acknowledgments_dies_out() {
    let mut trial = Trial::established(plain());
    for _ in 0..1000 {
        trial.give(segment(80_000, ACK, 1), b"");
    }
    assert!(trial.sent.len() <= 10);
}

/// State that an unacceptable segment may not change.
fn figures(trial: &Trial) -> impl PartialEq + core::fmt::Debug + use<> {
    let info = trial.connection.info(trial.now);
    (
        (info.state, info.send_unacknowledged, info.send_next, info.send_window_bytes),
        (info.receive_next, info.receive_window_bytes, info.receive_queue_bytes, info.reassembly_bytes),
        (info.congestion_window_bytes, info.retransmission_timeout, info.urgent_ahead_bytes),
    )
}

#[test]
fn a_hundred_thousand_strangers_change_nothing() {
    let mut random = Random::from_number(4);
    let mut trial = stamped();
    trial.write(&[1; 5000]);
    trial.give(with_timestamps(segment(1, ACK, 1), 500, 0), b"something unread");
    trial.give(with_timestamps(segment(100, ACK, 1), 500, 0), b"ahead");
    trial.sent.clear();
    let before = figures(&trial);
    for _ in 0..100_000 {
        let mut header = segment(0, Flags::from_bits_truncate(random.public_u64() as u16), 0);
        header.window = random.public_u64() as u16;
        header.urgent_pointer = random.public_u64() as u16;
        header.options.mss = Some(random.public_u64() as u16);
        header.options.window_scale = Some(random.public_u64() as u8);
        // Outside the window, or an acknowledgment of what was never sent, or an old timestamp.
        let kind = random.public_below(3);
        let far = 200_000 + random.public_below(1 << 30);
        header.sequence = Sequence(THEIRS) + if kind == 0 { far } else { 17 + random.public_below(60_000) };
        header.acknowledgment = Sequence(OURS) + if kind == 1 { far } else { random.public_below(5000) };
        header.options.timestamps = Some((if kind == 2 { 400 } else { 600 }, random.public_u64() as u32));
        let flags = if kind == 0 { Flags::empty() } else { Flags::RST };
        header.flags = header.flags.difference(flags);
        if kind == 1 {
            header.flags |= ACK;
        }
        let payload = [7; 40];
        let length = random.public_below(40) as usize;
        let outcome = trial.give(header, &payload[..length]);
        assert!(outcome.dropped.is_some(), "{header:?}");
        assert!(outcome.reset.is_none());
    }
    assert_eq!(figures(&trial), before);
    assert!(trial.sent.iter().all(|sent| sent.len() == 0 && sent.flags() == ACK));
}

#[test]
fn any_segment_in_any_state_is_survived() {
    for seed in 0..400 {
        let mut random = Random::from_number(seed);
        let mut trial = match seed % 4 {
            0 => Trial::calling(Config::default()),
            1 => Trial::called_by(Config::default(), &segment(0, SYN, 0), seed % 8 == 1),
            _ => stamped(),
        };
        for _ in 0..300 {
            match random.public_below(8) {
                0 => drop(trial.connection.send(&[1; 3000], crate::SendHow::default(), lend!(trial))),
                1 => drop(trial.connection.read(&mut [0; 700], lend!(trial))),
                2 if random.public_chance(0.05) => drop(trial.connection.close(lend!(trial))),
                3 => trial.pass_ms(u64::from(random.public_below(400))),
                _ => {}
            }
            let near = |random: &mut Random, base: u32| {
                Sequence(base.wrapping_add(random.public_below(9000)).wrapping_sub(2000))
            };
            let info = trial.connection.info(trial.now);
            let mut header = Header {
                sequence: near(&mut random, info.receive_next.0),
                acknowledgment: near(&mut random, info.send_unacknowledged.0),
                flags: Flags::from_bits_truncate(random.public_u64() as u16).union(ACK),
                window: (random.public_u64() as u16) >> random.public_below(16),
                urgent_pointer: random.public_u64() as u16,
                ..Header::default()
            };
            if random.public_chance(0.95) {
                header.flags = header.flags.difference(RST | SYN);
            }
            if random.public_chance(0.3) {
                header.sequence = info.receive_next;
            }
            if random.public_chance(0.8) {
                header.options.timestamps = Some((random.public_below(2000), random.public_u64() as u32));
            }
            let length = random.public_below(1400) as usize;
            trial.give(header, &vec![9; length]);
            trial.sent.clear();
            let info = trial.connection.info(trial.now);
            let pinned = info.receive_queue_capacity_bytes;
            assert!(pinned <= (1 << 20) + (64 << 10), "seed {seed}");
            let idle = matches!(info.state, TcpState::SynSent | TcpState::SynReceived | TcpState::Closed);
            assert!(info.congestion_window_bytes > 0 || idle, "seed {seed}");
            assert!(info.send_segment_bytes > 0, "seed {seed}");
        }
        trial.connection.clear(&mut trial.pool);
        assert_eq!(trial.pool.outstanding_bytes(), 0, "seed {seed}");
    }
}
