//! Happy eyeballs (RFC 8305) as a pure machine: answers and failures go in, attempts and instants come out.

use inhost_base::{Duration, Instant, IpAddr};

/// Addresses tried for one name; what a server sends beyond them is left out.
pub const ADDRESSES_LIMIT: usize = 32;

/// IPv4 or IPv6.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// IPv6, whose answer is worth a short wait.
    Six,
    /// IPv4.
    Four,
}

impl Family {
    /// Which one `address` belongs to.
    pub fn of(address: IpAddr) -> Family {
        if address.is_ipv6() { Family::Six } else { Family::Four }
    }
}

/// Configuration of the address race.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct RaceConfig {
    /// Wait for the IPv6 answer once the IPv4 answer has arrived (resolution delay). RFC 8305 §3: 50 ms.
    pub resolution_delay: Duration,
    /// Connection attempt delay. RFC 8305 §5: 250 ms; less than 10 ms counts as 10.
    pub attempt_delay: Duration,
    /// First address family count. RFC 8305 §4: 1.
    pub first_family_count: usize,
}

impl Default for RaceConfig {
    fn default() -> Self {
        RaceConfig {
            resolution_delay: Duration::from_millis(50),
            attempt_delay: Duration::from_millis(250),
            first_family_count: 1,
        }
    }
}

/// The next action.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Start connecting to this address; attempts under way go on.
    Attempt(IpAddr),
    /// Do nothing before this instant, or before an answer or a failure comes; `FAR_FUTURE` when only those matter.
    Wait(Instant),
    /// Both answers are in and every attempt has failed.
    Exhausted,
}

/// One race for one name. Drive it so: tell it each family's answer by [`Race::answered`] and each failed attempt by
/// [`Race::failed`], and call [`Race::step`] after each of these and when a [`Step::Wait`] is over, until it says
/// something else than [`Step::Attempt`]. A spurious call changes nothing. The first attempt to connect ends the race.
#[derive(Debug)]
pub struct Race {
    config: RaceConfig,
    /// In the order of RFC 6724, without those that were tried.
    waiting: Vec<IpAddr>,
    known: Vec<IpAddr>,
    answered: [bool; 2],
    /// Until when the answer that is missing is waited for before the first attempt.
    hold_until: Option<Instant>,
    next_attempt: Instant,
    running: usize,
    started: usize,
    preferred: Option<Family>,
    last: Option<Family>,
}

impl Race {
    /// A race for which nothing is known yet.
    pub fn new(config: RaceConfig) -> Race {
        Race {
            config,
            waiting: Vec::new(),
            known: Vec::new(),
            answered: [false; 2],
            hold_until: None,
            next_attempt: Instant::ZERO,
            running: 0,
            started: 0,
            preferred: None,
            last: None,
        }
    }
    /// The look-up of one family is over, with these addresses or none. `order` sorts all that have not been tried,
    /// the one to try first in front (RFC 6724 §6).
    pub fn answered(
        &mut self,
        family: Family,
        addresses: &[IpAddr],
        now: Instant,
        order: impl FnOnce(&mut [IpAddr]),
    ) {
        self.answered[family as usize] = true;
        for &address in addresses {
            if self.known.len() < ADDRESSES_LIMIT && !self.known.contains(&address) {
                self.known.push(address);
                self.waiting.push(address);
            }
        }
        order(&mut self.waiting);
        // RFC 8305 §3: a positive IPv6 answer starts at once; an IPv4 answer alone waits a little for the other.
        if family == Family::Four && !self.answered[Family::Six as usize] && !self.waiting.is_empty() {
            self.hold_until = Some(now + self.config.resolution_delay);
        } else {
            self.hold_until = None;
        }
    }
    /// One attempt has failed: the next one need not wait.
    pub fn failed(&mut self, now: Instant) {
        self.running = self.running.saturating_sub(1);
        self.next_attempt = self.next_attempt.min(now);
    }
    /// The actions at `now`.
    pub fn step(&mut self, now: Instant) -> Step {
        if self.waiting.is_empty() {
            let over = self.running == 0 && self.answered == [true; 2];
            return if over { Step::Exhausted } else { Step::Wait(Instant::FAR_FUTURE) };
        }
        if let Some(until) = self.hold_until
            && now < until
        {
            return Step::Wait(until);
        }
        self.hold_until = None;
        if now < self.next_attempt {
            return Step::Wait(self.next_attempt);
        }
        let address = self.waiting.remove(self.next_index());
        let family = Family::of(address);
        self.preferred.get_or_insert(family);
        self.last = Some(family);
        self.started += 1;
        self.running += 1;
        self.next_attempt = now + self.config.attempt_delay.max(Duration::from_millis(10));
        Step::Attempt(address)
    }
    /// Attempts started so far.
    pub fn started(&self) -> usize {
        self.started
    }

    /// RFC 8305 §4: the families take turns once the preferred one has had its first addresses.
    fn next_index(&self) -> usize {
        let wanted = match (self.preferred, self.last) {
            (Some(preferred), _) if self.started < self.config.first_family_count => preferred,
            (_, Some(Family::Six)) => Family::Four,
            (_, Some(Family::Four)) => Family::Six,
            _ => return 0,
        };
        self.waiting.iter().position(|&a| Family::of(a) == wanted).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }
    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }
    /// As RFC 6724 mostly has it: IPv6 first.
    fn order(addresses: &mut [IpAddr]) {
        addresses.sort_by_key(|a| a.is_ipv4());
    }

    /// spec: RFC8305
    #[test]
    fn families_take_turns_a_quarter_second_apart() {
        let mut race = Race::new(RaceConfig::default());
        assert_eq!(race.step(at(0)), Step::Wait(Instant::FAR_FUTURE));
        race.answered(Family::Six, &[ip("fd00::1"), ip("fd00::2"), ip("fd00::3")], at(10), order);
        assert_eq!(race.step(at(10)), Step::Attempt(ip("fd00::1")));
        race.answered(Family::Four, &[ip("10.0.0.1")], at(20), order);
        assert_eq!(race.step(at(20)), Step::Wait(at(260)));
        assert_eq!(race.step(at(259)), Step::Wait(at(260)));
        assert_eq!(race.step(at(260)), Step::Attempt(ip("10.0.0.1")));
        assert_eq!(race.step(at(510)), Step::Attempt(ip("fd00::2")));
        assert_eq!(race.step(at(760)), Step::Attempt(ip("fd00::3")));
        assert_eq!(race.step(at(760)), Step::Wait(Instant::FAR_FUTURE));
        for _ in 0..4 {
            assert_ne!(race.step(at(800)), Step::Exhausted);
            race.failed(at(800));
        }
        assert_eq!(race.step(at(800)), Step::Exhausted);
    }

    /// spec: RFC8305
    #[test]
    fn a_late_ipv6_answer_is_waited_for_50_ms() {
        let mut race = Race::new(RaceConfig::default());
        race.answered(Family::Four, &[ip("10.0.0.1"), ip("10.0.0.2")], at(10), order);
        assert_eq!(race.step(at(10)), Step::Wait(at(60)));
        race.answered(Family::Six, &[ip("fd00::1")], at(40), order);
        assert_eq!(race.step(at(40)), Step::Attempt(ip("fd00::1")));

        let mut race = Race::new(RaceConfig::default());
        race.answered(Family::Four, &[ip("10.0.0.1"), ip("10.0.0.2")], at(10), order);
        assert_eq!(race.step(at(60)), Step::Attempt(ip("10.0.0.1")));
        race.answered(Family::Six, &[ip("fd00::1")], at(70), order);
        assert_eq!(race.step(at(310)), Step::Attempt(ip("fd00::1")));
        assert_eq!(race.step(at(560)), Step::Attempt(ip("10.0.0.2")));
    }

    #[test]
    fn a_failure_starts_the_next_at_once_and_empty_answers_end_the_race() {
        let mut race = Race::new(RaceConfig::default());
        race.answered(Family::Six, &[], at(0), order);
        assert_eq!(race.step(at(0)), Step::Wait(Instant::FAR_FUTURE));
        race.answered(Family::Four, &[ip("10.0.0.1"), ip("10.0.0.1"), ip("10.0.0.2")], at(5), order);
        assert_eq!(race.step(at(5)), Step::Attempt(ip("10.0.0.1")));
        race.failed(at(7));
        assert_eq!(race.step(at(7)), Step::Attempt(ip("10.0.0.2")));
        race.failed(at(9));
        assert_eq!((race.step(at(9)), race.started()), (Step::Exhausted, 2));
        let mut race = Race::new(RaceConfig::default());
        race.answered(Family::Six, &[], at(0), order);
        race.answered(Family::Four, &[], at(0), order);
        assert_eq!(race.step(at(0)), Step::Exhausted);
    }
}
