//! The sleep of a thread that has both hosts and nothing to do.

use inhost_base::{Duration, Instant};
use inhost_runtime::Clock;

/// Sleeps until the first of two deadlines, and returns the time then.
///
/// # Errors
/// At `give_up`.
pub fn until(clock: Clock, deadlines: [Option<Instant>; 2], give_up: Instant) -> Result<Instant, String> {
    let wanted = deadlines.into_iter().flatten().min().unwrap_or(give_up).min(give_up);
    loop {
        let now = clock.now();
        if now >= give_up {
            return Err("both hosts waited until the deadline".into());
        }
        if now >= wanted {
            return Ok(now);
        }
        let left: Duration = wanted.since(now);
        std::thread::park_timeout(left.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_ends_at_the_first_deadline_and_fails_at_the_last() {
        let clock = Clock::start();
        let (soon, late) = (clock.now() + Duration::from_millis(2), clock.now() + Duration::from_secs(30));
        assert!(until(clock, [None, Some(soon)], late).unwrap() >= soon);
        assert!(until(clock, [Some(late), None], soon).is_err());
    }
}
