//! When a client asks again. Every random word is used once: its upper half for one thing, its lower for another.

use inhost_base::{Duration, Instant};

/// The first wait for an answer (RFC 2131 §4.1).
const FIRST_WAIT_S: u64 = 4;
/// The longest.
const LONGEST_WAIT_S: u64 = 64;
/// Each way (RFC 2131 §4.1: uniform from −1 to +1).
const SPREAD_MS: u64 = 1000;
/// The least time between two requests to extend a lease (RFC 2131 §4.4.5).
const LEAST_EXTENSION_WAIT: Duration = Duration::from_secs(60);
/// Delay after an address conflict (RFC 2131 §3.1 (5)).
pub(crate) const CONFLICT_REST: Duration = Duration::from_secs(10);
/// Discovers that stay unanswered before the host helps itself.
pub(crate) const DISCOVERS_BEFORE_FALLBACK: u8 = 2;
/// Requests for an offer, the first included, before another is looked for (RFC 2131 §3.1 (5) has four in a minute).
pub(crate) const REQUESTS: u8 = 4;
/// Requests for what was had before a restart, before that is used unconfirmed.
pub(crate) const REBOOT_REQUESTS: u8 = 2;
/// Refusals one after the other behind which the rest no longer doubles.
const MOST_DOUBLINGS: u8 = 6;

/// A transaction's number, of a random word.
pub(crate) fn transaction(word: u64) -> u32 {
    (word >> 32) as u32
}
/// A random part of `whole`.
pub(crate) fn part_of(whole: Duration, word: u64) -> Duration {
    let nanos = (u128::from(whole.as_nanos()) * u128::from(word as u32)) >> 32;
    Duration::from_nanos(nanos as u64)
}
/// How long the `attempt`th question, counted from zero, waits for its answer: 4 s, 8, 16, 32, then 64, each one second
/// more or less (RFC 2131 §4.1).
pub(crate) fn wait(attempt: u8, word: u64) -> Duration {
    let seconds = (FIRST_WAIT_S << attempt.min(8)).min(LONGEST_WAIT_S);
    let least = Duration::from_millis(seconds * 1000 - SPREAD_MS);
    least + part_of(Duration::from_millis(2 * SPREAD_MS), word)
}
/// When a request to extend a lease is repeated: after half of what is left until `end`, and not within a minute; at
/// `end` something else happens (RFC 2131 §4.4.5).
pub(crate) fn extension(now: Instant, end: Instant) -> Instant {
    let half = end.since(now).divided_by(2).max(LEAST_EXTENSION_WAIT);
    (now + half).min(end)
}
/// How long a client rests that was refused `refusals` times one after the other: not at all, then a second, two, four …
/// A server that offers what it refuses would else be asked as fast as it answers.
pub(crate) fn refusal_rest(refusals: u8) -> Duration {
    match refusals {
        0 | 1 => Duration::ZERO,
        more => Duration::from_secs(1 << (more - 2).min(MOST_DOUBLINGS)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // RFC 2131 §4.1
    #[test]
    fn waits_double_up_to_a_minute_and_are_spread_by_a_second() {
        for (attempt, seconds) in [(0, 4), (1, 8), (2, 16), (3, 32), (4, 64), (5, 64), (255, 64)] {
            let bounds = [0, u64::MAX].map(|word| wait(attempt, word).as_millis());
            assert_eq!(bounds[0], (seconds - 1) * 1000);
            assert!(((seconds + 1) * 1000 - 1..=(seconds + 1) * 1000).contains(&bounds[1]), "{bounds:?}");
        }
    }

    // RFC 2131 §4.4.5
    #[test]
    fn extensions_are_asked_for_at_half_of_what_is_left_but_not_within_a_minute() {
        let (now, at) = (Instant::from_millis(5), |s| Instant::from_millis(5) + Duration::from_secs(s));
        assert_eq!(extension(now, at(1000)), at(500));
        assert_eq!(extension(now, at(100)), at(60));
        assert_eq!(extension(now, at(10)), at(10));
        assert_eq!(extension(now, now), now);
    }

    #[test]
    fn rests_after_refusals_grow_and_end_growing() {
        let rests = [0, 1, 2, 3, 4, 8, 9, 255].map(|refusals| refusal_rest(refusals).as_secs());
        assert_eq!(rests, [0, 0, 1, 2, 4, 64, 64, 64]);
    }
}
