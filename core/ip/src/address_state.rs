//! The state of an assigned address: duplicate address detection, announcement, defence, lifetimes.

use inhost_base::{Cidr, Duration, Instant, IpAddr, Random};

/// Most addresses of one interface.
pub(crate) const ADDRESS_LIMIT: usize = 16;

// RFC 5227 §1.1.
const PROBE_WAIT_MS: u32 = 1000;
const PROBE_COUNT: u8 = 3;
const PROBE_MIN_MS: u64 = 1000;
const PROBE_SPREAD_MS: u32 = 1000;
const ANNOUNCE_WAIT: Duration = Duration::from_secs(2);
const ANNOUNCE_COUNT: u8 = 2;
const ANNOUNCE_INTERVAL: Duration = Duration::from_secs(2);
const DEFEND_INTERVAL: Duration = Duration::from_secs(10);
// RFC 4862 §5.1 and RFC 4861 §10.
const SOLICIT_DELAY_MS: u32 = 1000;
const SOLICIT_COUNT: u8 = 1;
const SOLICIT_INTERVAL: Duration = Duration::from_secs(1);

/// Where an address comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub enum AddressOrigin {
    /// Configured by the owner of the host.
    Configured,
    /// Made from a prefix that a router advertised, or link-local (RFC 4862, RFC 7217).
    Autoconfigured,
    /// Lent by a server, or drawn from the link-local block (RFC 2131, RFC 3927): there are others to be had.
    Leased,
}

/// Whether an address may be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub enum AddressState {
    /// Being tested for a double: not ours yet.
    Tentative,
    /// Ours.
    Preferred,
    /// Ours, but not for new conversations (RFC 4862 §5.5.4).
    Deprecated,
    /// Another host has it; not used.
    Duplicate,
}

/// An action that an address needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AddressAction {
    /// A question whether anybody has it.
    Probe,
    /// A statement that it is ours.
    Announce,
    /// The test has passed: it is ours now.
    Passed,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
enum Step {
    Probing { sent: u8 },
    Waiting,
    Announcing { sent: u8 },
    Idle,
}

/// An address, as an instrument shows it and as the tables keep it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct Assigned {
    cidr: Cidr,
    origin: AddressOrigin,
    preferred_until: Instant,
    valid_until: Instant,
    router: Option<IpAddr>,
    state: AddressState,
    step: Step,
    next_at: Instant,
    defended_at: Option<Instant>,
    /// How many stable identifiers were tried before this one (RFC 7217 `DAD_Counter`).
    attempts: u8,
}

impl Assigned {
    /// Checks a thawed address.
    #[cfg(feature = "freeze")]
    pub fn check(&self) -> Result<(), inhost_base::freeze::Invalid> {
        let sent = match self.step {
            Step::Probing { sent } | Step::Announcing { sent } => sent,
            Step::Waiting | Step::Idle => 0,
        };
        let most = PROBE_COUNT.max(ANNOUNCE_COUNT).max(SOLICIT_COUNT);
        inhost_base::freeze::require(sent <= most, "the tests of an address")
    }
    /// An address for ever, in use at once and not tested.
    pub(crate) fn new(cidr: Cidr, origin: AddressOrigin) -> Self {
        Assigned {
            cidr,
            origin,
            preferred_until: Instant::FAR_FUTURE,
            valid_until: Instant::FAR_FUTURE,
            router: None,
            state: AddressState::Preferred,
            step: Step::Idle,
            next_at: Instant::FAR_FUTURE,
            defended_at: None,
            attempts: 0,
        }
    }
    /// A stable address (RFC 7217) after so many that were in use already.
    pub(crate) fn stable(cidr: Cidr, attempts: u8) -> Self {
        Assigned { attempts, ..Assigned::new(cidr, AddressOrigin::Autoconfigured) }
    }
    /// How many stable addresses were tried before this one (RFC 7217 `DAD_Counter`).
    pub(crate) fn attempts(&self) -> u8 {
        self.attempts
    }
    /// Begins the test; until it has passed the address is not ours when `before_use`.
    // spec: RFC5227 2.1.1, RFC4862 5.4.2
    pub(crate) fn test(&mut self, before_use: bool, now: Instant, random: &mut Random) {
        if before_use {
            self.state = AddressState::Tentative;
        }
        self.step = Step::Probing { sent: 0 };
        let spread_ms = if self.address().is_ipv4() { PROBE_WAIT_MS } else { SOLICIT_DELAY_MS };
        self.next_at = now + Duration::from_millis(u64::from(random.public_below(spread_ms)));
    }
    /// Announces it without a test.
    pub(crate) fn announce(&mut self, now: Instant) {
        if self.address().is_ipv4() {
            self.step = Step::Announcing { sent: 0 };
            self.next_at = now;
        }
    }
    /// The address and the prefix that is on the link.
    pub fn cidr(&self) -> Cidr {
        self.cidr
    }
    /// Where it comes from.
    pub fn origin(&self) -> AddressOrigin {
        self.origin
    }
    /// Until then it is used for new conversations.
    pub fn preferred_until(&self) -> Instant {
        self.preferred_until
    }
    /// Until then it is ours.
    pub fn valid_until(&self) -> Instant {
        self.valid_until
    }
    /// The router whose prefix it is made from.
    pub fn router(&self) -> Option<IpAddr> {
        self.router
    }
    pub(crate) fn set_router(&mut self, router: Option<IpAddr>) {
        self.router = router;
    }
    /// The address.
    pub fn address(&self) -> IpAddr {
        self.cidr.address()
    }
    /// Whether it may be used.
    pub fn state(&self) -> AddressState {
        self.state
    }
    /// Whether packets to it are for us, and packets from it may be sent.
    pub fn is_usable(&self) -> bool {
        matches!(self.state, AddressState::Preferred | AddressState::Deprecated)
    }
    /// Whether its test is under way.
    pub(crate) fn is_tested(&self) -> bool {
        matches!(self.step, Step::Probing { .. } | Step::Waiting)
    }
    /// When [`Assigned::timeout`] is next due.
    pub(crate) fn deadline(&self) -> Instant {
        let ends = match self.state {
            AddressState::Preferred => self.preferred_until.min(self.valid_until),
            _ => self.valid_until,
        };
        self.next_at.min(ends)
    }
    /// Sets lifetimes, and whether it is preferred follows.
    // spec: RFC4862 5.5.4
    pub(crate) fn set_lifetimes(&mut self, preferred_until: Instant, valid_until: Instant, now: Instant) {
        self.preferred_until = preferred_until;
        self.valid_until = valid_until;
        if self.is_usable() {
            self.state =
                if preferred_until > now { AddressState::Preferred } else { AddressState::Deprecated };
        }
    }
    /// Runs the timer. Returns at most one action a call.
    // spec: RFC5227 2.1.1, 2.3, RFC4862 5.4.2
    pub(crate) fn timeout(&mut self, now: Instant, random: &mut Random) -> Option<AddressAction> {
        if self.state == AddressState::Preferred && self.preferred_until <= now {
            self.state = AddressState::Deprecated;
        }
        if self.next_at > now {
            return None;
        }
        let is_v4 = self.address().is_ipv4();
        let (count, last_wait) =
            if is_v4 { (PROBE_COUNT, ANNOUNCE_WAIT) } else { (SOLICIT_COUNT, SOLICIT_INTERVAL) };
        match self.step {
            Step::Probing { sent } if sent + 1 < count => {
                self.step = Step::Probing { sent: sent + 1 };
                let spread = u64::from(random.public_below(PROBE_SPREAD_MS));
                self.next_at = now + Duration::from_millis(PROBE_MIN_MS + spread);
                Some(AddressAction::Probe)
            }
            Step::Probing { .. } => {
                self.step = Step::Waiting;
                self.next_at = now + last_wait;
                Some(AddressAction::Probe)
            }
            Step::Waiting => {
                self.state = AddressState::Preferred;
                self.set_lifetimes(self.preferred_until, self.valid_until, now);
                self.step = if is_v4 { Step::Announcing { sent: 0 } } else { Step::Idle };
                self.next_at = if is_v4 { now } else { Instant::FAR_FUTURE };
                Some(AddressAction::Passed)
            }
            Step::Announcing { sent } => {
                let is_last = sent + 1 >= ANNOUNCE_COUNT;
                self.step = if is_last { Step::Idle } else { Step::Announcing { sent: sent + 1 } };
                self.next_at = if is_last { Instant::FAR_FUTURE } else { now + ANNOUNCE_INTERVAL };
                Some(AddressAction::Announce)
            }
            Step::Idle => {
                self.next_at = Instant::FAR_FUTURE;
                None
            }
        }
    }
    /// Handles an address conflict. An address under test is given up. An assigned address is defended, at most every
    /// ten seconds (RFC 5227 §2.4 (c): a server keeps its address). A leased address is given up at the second conflict
    /// within that time (RFC 5227 §2.4 (b), RFC 3927 §2.5).
    // spec: RFC5227 2.4, RFC4862 5.4.5
    pub(crate) fn conflict(&mut self, now: Instant) -> Conflict {
        let is_second = self.defended_at.is_some_and(|at| now.since(at) < DEFEND_INTERVAL);
        if self.is_tested() || self.is_usable() && is_second && self.origin == AddressOrigin::Leased {
            self.state = AddressState::Duplicate;
            self.step = Step::Idle;
            self.next_at = Instant::FAR_FUTURE;
            return Conflict::Lost;
        }
        if !self.is_usable() || is_second {
            return Conflict::Ignored;
        }
        self.defended_at = Some(now);
        Conflict::Defended
    }
}

/// The result of an address conflict.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Conflict {
    /// The address is given up.
    Lost,
    /// It is announced once more.
    Defended,
    /// Nothing is said, for now.
    Ignored,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(assigned: &mut Assigned, until: Instant) -> Vec<(u64, AddressAction)> {
        let mut random = Random::from_number(9);
        let mut done = Vec::new();
        while assigned.deadline() <= until {
            let now = assigned.deadline();
            done.extend(assigned.timeout(now, &mut random).map(|action| (now.as_millis(), action)));
        }
        done
    }

    // spec: RFC5227 2.1.1, 2.3
    #[test]
    fn an_ipv4_address_is_probed_three_times_and_announced_twice() {
        let mut assigned = Assigned::new("10.0.0.1/24".parse().unwrap(), AddressOrigin::Configured);
        assigned.test(true, Instant::ZERO, &mut Random::from_number(1));
        assert!(!assigned.is_usable());
        let done = run(&mut assigned, Instant::from_millis(60_000));
        use AddressAction::{Announce, Passed, Probe};
        let actions: Vec<_> = done.iter().map(|(_, action)| *action).collect();
        assert_eq!(actions, [Probe, Probe, Probe, Passed, Announce, Announce]);
        assert!(done[0].0 < 1000);
        for pair in done[..3].windows(2) {
            assert!((1000..2000).contains(&(pair[1].0 - pair[0].0)), "{done:?}");
        }
        assert_eq!(done[3].0 - done[2].0, 2000);
        assert_eq!(done[5].0 - done[4].0, 2000);
        assert!(assigned.is_usable());
    }

    // spec: RFC4862 5.4.2
    #[test]
    fn an_ipv6_address_is_asked_for_once() {
        let mut assigned = Assigned::new("fd00::1/64".parse().unwrap(), AddressOrigin::Configured);
        assigned.test(true, Instant::ZERO, &mut Random::from_number(2));
        let done = run(&mut assigned, Instant::from_millis(60_000));
        assert_eq!(done.len(), 2, "{done:?}");
        assert_eq!(done[1].0 - done[0].0, 1000);
    }

    // spec: RFC5227 2.4
    #[test]
    fn a_conflict_loses_an_address_under_test_and_is_answered_rarely_afterwards() {
        let mut assigned = Assigned::new("10.0.0.1/24".parse().unwrap(), AddressOrigin::Configured);
        assert_eq!(assigned.conflict(Instant::from_millis(1)), Conflict::Defended);
        assert_eq!(assigned.conflict(Instant::from_millis(9_000)), Conflict::Ignored);
        assert_eq!(assigned.conflict(Instant::from_millis(10_001)), Conflict::Defended);
        assigned.test(true, Instant::ZERO, &mut Random::from_number(2));
        assert_eq!(assigned.conflict(Instant::from_millis(20_000)), Conflict::Lost);
        assert_eq!((assigned.state(), assigned.deadline()), (AddressState::Duplicate, Instant::FAR_FUTURE));
    }

    // RFC 5227 §2.4 (b), RFC 3927 §2.5
    #[test]
    fn a_leased_address_is_defended_once_and_given_up_at_the_next_claim() {
        let mut assigned = Assigned::new("10.0.0.1/24".parse().unwrap(), AddressOrigin::Leased);
        assert_eq!(assigned.conflict(Instant::from_millis(1)), Conflict::Defended);
        assert_eq!(
            assigned.conflict(Instant::from_millis(10_001)),
            Conflict::Defended,
            "ten seconds of peace"
        );
        assert_eq!(assigned.conflict(Instant::from_millis(11_000)), Conflict::Lost);
        assert_eq!(assigned.state(), AddressState::Duplicate);
        assert_eq!(assigned.conflict(Instant::from_millis(11_001)), Conflict::Ignored);
    }

    // spec: RFC4862 5.5.4
    #[test]
    fn a_preferred_address_is_deprecated_in_time() {
        let mut assigned = Assigned::new("fd00::1/64".parse().unwrap(), AddressOrigin::Autoconfigured);
        assigned.set_lifetimes(Instant::from_millis(10), Instant::from_millis(20), Instant::ZERO);
        assert_eq!(assigned.deadline(), Instant::from_millis(10));
        assigned.timeout(Instant::from_millis(10), &mut Random::from_number(1));
        assert_eq!(
            (assigned.state(), assigned.deadline()),
            (AddressState::Deprecated, Instant::from_millis(20))
        );
    }
}
