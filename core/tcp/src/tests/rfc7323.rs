//! Requirements of RFC 7323 that no other test covers.

use super::trial::*;
use crate::Config;
use inhost_base::{Duration, Instant};
use inhost_event::TcpState;

/// The peer's SYN-ACK for `trial`'s SYN, with timestamps and window scale.
fn answered(config: Config) -> Trial {
    let mut trial = Trial::calling(config);
    let syn = trial.expect();
    let mut answer = segment(0, SYN | ACK, 1);
    answer.options.mss = Some(MSS as u16);
    answer.options.timestamps = syn.header.options.timestamps.map(|(value, _)| (1, value));
    answer.options.window_scale = syn.header.options.window_scale.map(|_| 2);
    trial.give(answer, b"");
    trial.expect();
    trial
}
fn scaled() -> Config {
    Config { timestamps: false, ..Config::default() }
}
fn stamped() -> Config {
    Config { window_scaling: false, ..Config::default() }
}
/// The timestamp of the next segment sent.
fn value(trial: &mut Trial) -> u32 {
    trial.expect().header.options.timestamps.unwrap().0
}

// spec: RFC7323 2.2-3
#[test]
fn a_scale_without_syn_is_nothing() {
    let mut trial = answered(scaled());
    let mut header = with_window(segment(1, ACK, 1), 100);
    header.options.window_scale = Some(9);
    trial.give(header, b"");
    let info = trial.connection.info(trial.now);
    assert_eq!((info.send_window_scale, info.send_window_bytes), (2, 400));
}

// spec: RFC7323 3.2-3
#[test]
fn an_echo_without_acknowledgment_measures_nothing() {
    let mut trial = Trial::calling(stamped());
    let stamp = value(&mut trial);
    trial.pass_ms(30);
    // In a simultaneous open, the peer's SYN bears a value that looks like an echo.
    trial.give(with_timestamps(segment(0, SYN, 0), 1, stamp.wrapping_sub(5000)), b"");
    assert_eq!(trial.connection.state(), TcpState::SynReceived);
    assert_eq!(trial.connection.info(trial.now).smoothed_round_trip, None);
}

// spec: RFC7323 4.1-1, 5.4-1, 5.4-2, 7.1-1
#[test]
fn timestamps_are_milliseconds_from_an_offset_of_their_own() {
    let mut trial = answered(stamped());
    trial.write(b"a");
    let first = value(&mut trial);
    let age_ms = trial.now.since(Instant::ZERO).as_millis() as u32;
    assert_eq!(first.wrapping_sub(age_ms), open().timestamp_offset);
    for (passed_ms, ticks) in [(1, 1), (250, 250), (70_000, 70_000)] {
        let before = trial.connection.parts().0.timestamp(trial.now);
        trial.now += Duration::from_millis(passed_ms);
        assert_eq!(trial.connection.parts().0.timestamp(trial.now).wrapping_sub(before), ticks);
    }
    // It wraps around after 2^32 ms, seven weeks; a segment lives for two minutes.
    let before = trial.connection.parts().0.timestamp(trial.now);
    trial.now += Duration::from_millis(1 << 32);
    assert_eq!(trial.connection.parts().0.timestamp(trial.now), before);
}

// spec: RFC7323 5.3-3
#[test]
fn what_was_kept_is_not_old_when_its_turn_comes() {
    let mut trial = answered(stamped());
    let stamp = trial.connection.parts().0.timestamp(trial.now);
    trial.give(with_timestamps(segment(3, ACK, 1), 10, stamp), b"cd");
    // The segment that fills the hole is much newer, and an even newer one arrived between.
    trial.give(with_timestamps(segment(5, ACK, 1), 900, stamp), b"ef");
    trial.give(with_timestamps(segment(1, ACK, 1), 1000, stamp), b"ab");
    assert_eq!(trial.read(10), b"abcdef");
}

// spec: RFC7323 5.2-3
#[test]
fn the_reset_of_an_abort_bears_timestamps_where_they_were_agreed_on() {
    for config in [stamped(), plain()] {
        let agreed = config.timestamps;
        let mut trial = answered(config);
        trial.pass_ms(20);
        let now_stamp = trial.connection.parts().0.timestamp(trial.now);
        let reset = trial.connection.abort(lend!(trial)).reset.unwrap();
        // The peer's value, as `answered` sent it, is echoed.
        assert_eq!(reset.header().options.timestamps, agreed.then_some((now_stamp, 1)));
    }
}
