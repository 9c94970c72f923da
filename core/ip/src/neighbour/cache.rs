//! The neighbour cache of one link, for both families.

use super::transition::{Input, next};
use crate::table::{Keyed, Map};
use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;
use inhost_base::{Duration, HardwareAddress, Instant, IpAddr, Random};
use inhost_event::NeighbourState as State;

/// Most neighbours of one link.
pub(crate) const NEIGHBOUR_LIMIT: usize = 512;
/// Most questions and changes that wait to be acted on: more than one call can bring about for all neighbours.
const ACTION_LIMIT: usize = 4 * NEIGHBOUR_LIMIT;
/// Questions before a neighbour is given up: MAX_MULTICAST_SOLICIT and MAX_UNICAST_SOLICIT (RFC 4861 §10).
const SOLICIT_LIMIT: u8 = 3;
/// Between two questions: RETRANS_TIMER (RFC 4861 §10), and the ARP request rate of RFC 1122 §2.3.2.1.
pub(crate) const RETRANSMIT: Duration = Duration::from_secs(1);
/// DELAY_FIRST_PROBE_TIME (RFC 4861 §10).
const DELAY_FIRST_PROBE: Duration = Duration::from_secs(5);
/// REACHABLE_TIME (RFC 4861 §10), the base of a random time.
pub(crate) const BASE_REACHABLE: Duration = Duration::from_secs(30);
/// A neighbour that did not answer is not asked again for so long.
const FAILED_HOLD: Duration = Duration::from_secs(3);
/// Time after which an unused entry is removed.
const UNUSED: Duration = Duration::from_secs(600);

/// One neighbour, as an instrument shows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Neighbour {
    /// Its address.
    pub address: IpAddr,
    /// Where it is, once known.
    pub hardware: Option<HardwareAddress>,
    /// How sure that is.
    pub state: State,
    /// Whether it says that it is a router.
    pub is_router: bool,
}

#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
struct Entry {
    state: State,
    hardware: Option<HardwareAddress>,
    deadline: Instant,
    /// Questions asked since the state began.
    asked: u8,
    /// A sender waits for the result.
    awaited: bool,
    is_router: bool,
    used_at: Instant,
    /// Not asked again before this, after it was given up.
    hold_until: Instant,
    /// Reachable until so long after this, whatever the timer says: confirmations do not touch the timer.
    confirmed_at: Instant,
}

/// An action that the cache needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) enum Action {
    /// Ask where `address` is: everyone, or the card it was at.
    Solicit { address: IpAddr, at: Option<HardwareAddress> },
    /// Its state is another than before.
    Changed { address: IpAddr, hardware: Option<HardwareAddress>, state: State, awaited: bool },
}

/// The result of a lookup.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lookup {
    Known(HardwareAddress),
    Pending,
    Failed,
}

/// Information about a neighbour from a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Claim {
    /// Where it says it is; `None` when it does not say.
    pub hardware: Option<HardwareAddress>,
    /// It is solicited: an answer to a request of ours.
    pub solicited: bool,
    /// The override flag: it may replace a known address.
    pub overrides: bool,
    /// Whether it is a router, when it says so.
    pub is_router: Option<bool>,
    /// An entry is made when there is none.
    pub creates: bool,
}

impl Claim {
    /// A link-layer option of neighbour discovery, which may replace a known address.
    pub fn of_option(hardware: HardwareAddress, is_router: Option<bool>) -> Claim {
        Claim { hardware: Some(hardware), solicited: false, overrides: true, is_router, creates: true }
    }
}

/// The table. Every change leaves [`Action`]s that the caller takes and carries out.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Cache {
    #[cfg_attr(feature = "freeze", serde(with = "crate::table::frozen"))]
    entries: Map<IpAddr, Entry>,
    timers: BTreeSet<(Instant, IpAddr)>,
    actions: VecDeque<Action>,
    /// How long a confirmation holds.
    reachable: Duration,
    /// Between two questions.
    retransmit: Duration,
}

impl Cache {
    pub fn new(keyed: Keyed) -> Self {
        Cache {
            entries: Map::with_hasher(keyed),
            timers: BTreeSet::new(),
            actions: VecDeque::new(),
            reachable: BASE_REACHABLE,
            retransmit: RETRANSMIT,
        }
    }
    /// Checks a thawed cache: each entry has its timer.
    #[cfg(feature = "freeze")]
    pub fn check(&self) -> Result<(), inhost_base::freeze::Invalid> {
        let has_entry = |(at, address): &(Instant, IpAddr)| {
            self.entries.get(address).is_some_and(|entry| entry.deadline == *at)
        };
        let is_whole = self.timers.len() == self.entries.len() && self.timers.iter().all(has_entry);
        let is_bounded = self.entries.len() <= NEIGHBOUR_LIMIT && self.actions.len() <= ACTION_LIMIT;
        inhost_base::freeze::require(is_whole && is_bounded, "the timers of neighbours")
    }
    /// Chooses a new key.
    #[cfg(feature = "freeze")]
    pub fn rekey(&mut self, keyed: Keyed) {
        crate::table::rekey(&mut self.entries, keyed);
    }
    /// Draws a new reachable time between half and one and a half times `base` (RFC 4861 §6.3.2).
    // spec: RFC4861 6.3.2
    pub fn set_base_reachable(&mut self, base: Duration, random: &mut Random) {
        self.reachable =
            base.divided_by(2) + base.divided_by(1000).times(u64::from(random.public_below(1000)));
    }
    /// Sets the time between two questions.
    pub fn set_retransmit(&mut self, retransmit: Duration) {
        self.retransmit = retransmit;
    }
    /// Pending actions, oldest first.
    pub fn take_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }
    /// Whether there is something to be done.
    pub fn has_actions(&self) -> bool {
        !self.actions.is_empty()
    }
    /// When [`Cache::timeout`] is next due.
    pub fn deadline(&self) -> Instant {
        self.timers.first().map_or(Instant::FAR_FUTURE, |(at, _)| *at)
    }
    /// All neighbours, by address.
    pub fn list(&self) -> Vec<Neighbour> {
        let mut list: Vec<Neighbour> = self
            .entries
            .iter()
            .map(|(&address, entry)| Neighbour {
                address,
                hardware: entry.hardware,
                state: entry.state,
                is_router: entry.is_router,
            })
            .collect();
        list.sort_by_key(|neighbour| neighbour.address);
        list
    }
    /// The state of one.
    pub fn state(&self, address: IpAddr) -> Option<State> {
        self.entries.get(&address).map(|entry| entry.state)
    }

    /// A packet is to go to `address`.
    // spec: RFC1122 2.3.2.1-2; RFC4861 7.2.2
    pub fn resolve(&mut self, address: IpAddr, now: Instant) -> Lookup {
        match self.entries.get_mut(&address) {
            Some(entry) => {
                entry.used_at = now;
                match (entry.state, entry.hardware) {
                    (State::Reachable | State::Delay | State::Probe, Some(hardware)) => {
                        return Lookup::Known(hardware);
                    }
                    (State::Incomplete, _) => {
                        entry.awaited = true;
                        return Lookup::Pending;
                    }
                    (State::Failed, _) if entry.hold_until > now => return Lookup::Failed,
                    _ => {}
                }
            }
            None => {
                self.insert(address, State::Failed, now);
            }
        }
        self.apply(address, Input::Used, now);
        match self.entries.get_mut(&address) {
            Some(Entry { state: State::Incomplete | State::Failed, awaited, .. }) => {
                *awaited = true;
                Lookup::Pending
            }
            Some(Entry { hardware: Some(hardware), .. }) => Lookup::Known(*hardware),
            _ => Lookup::Failed,
        }
    }
    /// The known hardware address, without marking the entry as used.
    pub fn peek(&self, address: IpAddr) -> Option<Lookup> {
        let entry = self.entries.get(&address)?;
        Some(match (entry.state, entry.hardware) {
            (State::Failed, _) => Lookup::Failed,
            (State::Incomplete, _) | (_, None) => Lookup::Pending,
            (_, Some(hardware)) => Lookup::Known(hardware),
        })
    }
    /// Asks for `address` anew although it was given up, or was never asked.
    pub fn ask_again(&mut self, address: IpAddr, now: Instant) {
        if !self.entries.contains_key(&address) {
            self.insert(address, State::Failed, now);
        }
        if self.state(address) == Some(State::Failed) {
            self.apply(address, Input::Used, now);
        }
    }
    /// A transport confirms reachability through `address` (RFC 4861 §7.3.1). True when the state changed. Cheap when
    /// it did not.
    // spec: RFC4861 7.3.1
    pub fn confirm(&mut self, address: IpAddr, now: Instant) -> bool {
        match self.entries.get_mut(&address) {
            Some(entry) if entry.state == State::Reachable => {
                entry.confirmed_at = now;
                false
            }
            Some(_) => {
                self.apply(address, Input::Confirmed, now);
                true
            }
            None => false,
        }
    }
    /// A transport suspects that `address` is unreachable.
    // spec: RFC1122 3.3.1.4-2
    pub fn suspect(&mut self, address: IpAddr, now: Instant) {
        let state = self.entries.get(&address).map(|entry| entry.state);
        if matches!(state, Some(State::Reachable | State::Stale | State::Delay)) {
            self.apply(address, Input::Suspected, now);
        }
    }
    /// Handles information from a message in the neighbour's name.
    // spec: RFC4861 7.2.3, 7.2.5
    pub fn claim(&mut self, address: IpAddr, claim: Claim, now: Instant) {
        if claim.creates && claim.hardware.is_some() && !self.entries.contains_key(&address) {
            self.insert(address, State::Incomplete, now);
        }
        let Some(entry) = self.entries.get_mut(&address) else { return };
        let is_unknown = matches!(entry.state, State::Incomplete | State::Failed);
        // A message without a hardware address does not help an incomplete entry.
        if is_unknown && claim.hardware.is_none() {
            return;
        }
        let differs = !is_unknown && claim.hardware.is_some() && claim.hardware != entry.hardware;
        let input = match (differs, claim.overrides, claim.solicited) {
            (true, false, _) => Input::Disputed,
            (true, true, false) => Input::Moved,
            (_, _, true) => Input::Answered,
            (_, _, false) => Input::Heard,
        };
        if claim.hardware.is_some() && (is_unknown || input != Input::Disputed) {
            entry.hardware = claim.hardware;
        }
        if input != Input::Disputed {
            entry.is_router = claim.is_router.unwrap_or(entry.is_router);
        }
        self.apply(address, input, now);
    }
    /// Forgets one.
    pub fn remove(&mut self, address: IpAddr) {
        if let Some(entry) = self.entries.remove(&address) {
            self.timers.remove(&(entry.deadline, address));
            // Packets that wait must fail now: without the entry no timer would end their wait.
            if entry.awaited || entry.state == State::Incomplete {
                let awaited = entry.awaited;
                self.act(Action::Changed { address, hardware: None, state: State::Failed, awaited });
            }
        }
    }
    /// Handles every timer that is due.
    // spec: RFC1122 2.3.2.1-1
    pub fn timeout(&mut self, now: Instant) {
        while let Some(&(at, address)) = self.timers.first()
            && at <= now
        {
            let Some(entry) = self.entries.get(&address) else {
                self.timers.pop_first();
                continue;
            };
            let confirmed_until = entry.confirmed_at + self.reachable;
            let unused = now.since(entry.used_at) >= UNUSED;
            match entry.state {
                State::Reachable if confirmed_until > now => self.arm(address, confirmed_until),
                State::Stale | State::Failed if unused => self.remove(address),
                State::Stale | State::Failed => {
                    let until = entry.used_at + UNUSED;
                    self.arm(address, until);
                }
                State::Incomplete | State::Probe if entry.asked < SOLICIT_LIMIT => {
                    self.apply(address, Input::TimerAsk, now);
                }
                _ => self.apply(address, Input::TimerLast, now),
            }
        }
    }

    /// Moves one entry by one input, and does what entering the state asks.
    fn apply(&mut self, address: IpAddr, input: Input, now: Instant) {
        let Some(entry) = self.entries.get_mut(&address) else { return };
        let before = entry.state;
        let state = next(before, input, address.is_ipv6());
        entry.state = state;
        if matches!(input, Input::Answered | Input::Confirmed) {
            entry.confirmed_at = now;
        }
        let is_new = state != before;
        if is_new {
            entry.asked = 0;
            entry.hold_until = now + FAILED_HOLD;
        }
        let asks = matches!(state, State::Incomplete | State::Probe) && (is_new || input == Input::TimerAsk);
        let deadline = match state {
            State::Reachable => entry.confirmed_at + self.reachable,
            State::Delay if is_new => now + DELAY_FIRST_PROBE,
            State::Incomplete | State::Probe if asks => now + self.retransmit,
            State::Stale | State::Failed => entry.used_at.max(now) + UNUSED,
            _ => entry.deadline,
        };
        let known = entry.hardware;
        let changed = Action::Changed {
            address,
            hardware: if state == State::Incomplete { None } else { known },
            state,
            awaited: entry.awaited,
        };
        if is_new && state != State::Incomplete {
            entry.awaited = false;
        }
        if asks {
            entry.asked += 1;
            let at = if state == State::Probe { known } else { None };
            self.act(Action::Solicit { address, at });
        }
        self.arm(address, deadline);
        if is_new {
            self.act(changed);
        }
    }
    fn arm(&mut self, address: IpAddr, deadline: Instant) {
        if let Some(entry) = self.entries.get_mut(&address) {
            self.timers.remove(&(entry.deadline, address));
            entry.deadline = deadline;
            self.timers.insert((deadline, address));
        }
    }
    fn act(&mut self, action: Action) {
        if self.actions.len() < ACTION_LIMIT {
            self.actions.push_back(action);
        }
    }
    fn insert(&mut self, address: IpAddr, state: State, now: Instant) {
        if self.entries.len() >= NEIGHBOUR_LIMIT {
            self.evict();
        }
        let entry = Entry {
            state,
            hardware: None,
            deadline: now,
            asked: 0,
            awaited: false,
            is_router: false,
            used_at: now,
            hold_until: now,
            confirmed_at: Instant::ZERO,
        };
        self.entries.insert(address, entry);
        self.timers.insert((now, address));
    }
    /// Evicts one neighbour: preferably unresolved, without waiters and least recently used; a router last.
    fn evict(&mut self) {
        let least = self
            .entries
            .iter()
            .map(|(&address, entry)| {
                let is_known = matches!(entry.state, State::Reachable | State::Delay | State::Probe);
                (entry.is_router, is_known, entry.awaited, entry.used_at, address)
            })
            .min();
        if let Some((.., address)) = least {
            self.remove(address);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CARD: HardwareAddress = HardwareAddress([2, 0, 0, 0, 0, 9]);
    const OTHER: HardwareAddress = HardwareAddress([2, 0, 0, 0, 0, 8]);

    fn cache() -> Cache {
        Cache::new(Keyed::new(&mut Random::from_number(5)))
    }
    fn answer(hardware: HardwareAddress) -> Claim {
        Claim { hardware: Some(hardware), solicited: true, overrides: false, is_router: None, creates: false }
    }
    fn solicitations(cache: &mut Cache) -> Vec<Option<HardwareAddress>> {
        core::iter::from_fn(|| cache.take_action())
            .filter_map(|action| match action {
                Action::Solicit { at, .. } => Some(at),
                Action::Changed { .. } => None,
            })
            .collect()
    }
    fn secs(s: u64) -> Instant {
        Instant::from_millis(s * 1000)
    }

    #[test]
    fn a_full_table_evicts_unresolved_neighbours_first_and_notifies_those_who_wait() {
        let mut cache = cache();
        let known = IpAddr::from([10, 0, 0, 9]);
        cache.resolve(known, secs(1));
        cache.claim(known, answer(CARD), secs(1));
        let unknown = (0..NEIGHBOUR_LIMIT as u32).map(|n| IpAddr::from((0x0a01_0000 + n).to_be_bytes()));
        for address in unknown {
            assert_eq!(cache.resolve(address, secs(2)), Lookup::Pending);
        }
        assert_eq!(cache.state(known), Some(State::Reachable));
        let given_up = core::iter::from_fn(|| cache.take_action())
            .filter(|a| matches!(a, Action::Changed { state: State::Failed, awaited: true, .. }))
            .count();
        assert_eq!(given_up, 1, "one unresolved neighbour made room, and its sender was notified");
    }

    // spec: RFC1122 2.3.2.1-1, 2.3.2.1-2
    #[test]
    fn a_silent_neighbour_is_asked_three_times_a_second_apart_and_then_given_up() {
        let (mut cache, peer) = (cache(), "10.0.0.9".parse().unwrap());
        assert_eq!(cache.resolve(peer, secs(1)), Lookup::Pending);
        for _ in 0..50 {
            assert_eq!(cache.resolve(peer, secs(1)), Lookup::Pending);
        }
        assert_eq!(solicitations(&mut cache), [None], "however often it is used");
        for second in [2, 3] {
            assert_eq!(cache.deadline(), secs(second));
            cache.timeout(secs(second));
            assert_eq!(solicitations(&mut cache), [None]);
        }
        cache.timeout(secs(4));
        let told = cache.take_action();
        assert!(
            matches!(told, Some(Action::Changed { state: State::Failed, awaited: true, .. })),
            "{told:?}"
        );
        assert_eq!(cache.resolve(peer, secs(5)), Lookup::Failed);
        assert_eq!(cache.resolve(peer, secs(7)), Lookup::Pending);
        assert_eq!(solicitations(&mut cache), [None]);
    }

    // spec: RFC4861 7.3.3
    #[test]
    fn a_stale_neighbour_is_used_then_doubted_then_probed_where_it_was() {
        let (mut cache, peer) = (cache(), "fe80::9".parse().unwrap());
        cache.resolve(peer, secs(0));
        cache.claim(peer, answer(CARD), secs(0));
        assert_eq!(cache.state(peer), Some(State::Reachable));
        cache.timeout(secs(30));
        assert_eq!(cache.state(peer), Some(State::Stale));
        assert_eq!(cache.resolve(peer, secs(31)), Lookup::Known(CARD));
        assert_eq!(cache.state(peer), Some(State::Delay));
        solicitations(&mut cache);
        cache.timeout(secs(36));
        assert_eq!(solicitations(&mut cache), [Some(CARD)]);
        cache.confirm(peer, secs(36));
        assert_eq!(cache.state(peer), Some(State::Reachable));
        cache.confirm(peer, secs(60));
        cache.timeout(secs(66));
        assert_eq!(
            cache.state(peer),
            Some(State::Reachable),
            "confirmations prolong it without a timer each"
        );
        cache.timeout(secs(90));
        assert_eq!(cache.state(peer), Some(State::Stale));
    }

    #[test]
    fn an_arp_claim_does_not_take_a_known_neighbours_place() {
        let (mut cache, peer) = (cache(), "10.0.0.9".parse().unwrap());
        cache.resolve(peer, secs(0));
        cache.claim(peer, answer(CARD), secs(0));
        solicitations(&mut cache);
        cache.claim(peer, answer(OTHER), secs(1));
        assert_eq!(cache.resolve(peer, secs(1)), Lookup::Known(CARD));
        assert_eq!(solicitations(&mut cache), [Some(CARD)], "the card that we know is asked");
        cache.claim(peer, answer(CARD), secs(1));
        assert_eq!(cache.state(peer), Some(State::Reachable));
    }

    #[test]
    fn the_table_stays_bounded_and_keeps_what_is_in_use() {
        let (mut cache, peer) = (cache(), "10.0.0.9".parse().unwrap());
        cache.resolve(peer, secs(0));
        cache.claim(peer, answer(CARD), secs(0));
        for i in 0..10_000u32 {
            let claim = Claim { creates: true, solicited: false, ..answer(OTHER) };
            cache.claim(IpAddr::V4((0x0a01_0000 + i).into()), claim, secs(1));
            cache.resolve(IpAddr::V4((0x0a02_0000 + i).into()), secs(1));
        }
        assert_eq!(cache.entries.len(), NEIGHBOUR_LIMIT);
        assert_eq!(cache.timers.len(), NEIGHBOUR_LIMIT);
        assert!(cache.actions.len() <= ACTION_LIMIT);
        assert_eq!(cache.resolve(peer, secs(1)), Lookup::Known(CARD));
    }
}
