//! The timer wheel: arm, disarm and expire in constant time.

use crate::Lists;
use crate::{Instant, make_room};
use alloc::vec;
use alloc::vec::Vec;

/// Nanoseconds in a tick, as a power of two: 65.5 us.
const TICK_BITS: u32 = 16;
/// Slots in a level, as a power of two.
const LEVEL_BITS: u32 = 6;
const SLOTS: usize = 1 << LEVEL_BITS;
/// Eight levels of 64 slots of 2^16 ns span the whole clock.
const LEVELS: usize = 8;
/// The list of expired entries.
const DUE: usize = LEVELS * SLOTS;

/// A hierarchical timing wheel with one entry for each place in the socket table.
///
/// Levels differ by a factor of 64. An entry is in the level of the highest group of bits in which its tick differs
/// from the present one, so all of a lower level comes before all of a higher. Instants are kept exactly: an entry
/// expires at its own nanosecond and not at its tick.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct TimerWheel {
    lists: Lists,
    /// When each place expires; far in the future for those that are not armed.
    at: Vec<Instant>,
    occupied: [u64; LEVELS],
    /// Lower bounds of the instants in each slot; exact until an entry leaves.
    earliest: Vec<Instant>,
    /// The tick up to which slots were emptied.
    tick: u64,
    /// The slot that is being spread over lower levels, when the budget ended in the middle of it.
    spreading: Option<usize>,
}

impl TimerWheel {
    /// A wheel at rest, at `now`.
    pub fn new(now: Instant) -> Self {
        TimerWheel {
            lists: Lists::new(DUE + 1),
            at: Vec::new(),
            occupied: [0; LEVELS],
            earliest: vec![Instant::FAR_FUTURE; LEVELS * SLOTS],
            tick: now.as_nanos() >> TICK_BITS,
            spreading: None,
        }
    }
    /// Checks a thawed wheel of places below `places`.
    #[cfg(feature = "freeze")]
    pub fn check(&self, places: usize) -> Result<(), crate::freeze::Invalid> {
        self.lists.check(places)?;
        crate::freeze::require(
            self.lists.number() == DUE + 1 && self.earliest.len() == DUE,
            "the slots of the timers",
        )?;
        crate::freeze::require(
            self.lists.places() <= self.at.len() && self.at.len() <= places,
            "the instants of the timers",
        )?;
        crate::freeze::require(self.tick <= u64::MAX >> TICK_BITS, "the tick of the timers")?;
        crate::freeze::require(
            self.spreading.is_none_or(|list| (SLOTS..DUE).contains(&list)),
            "the slot of the timers",
        )?;
        for list in 0..DUE {
            let is_occupied = self.occupied[list / SLOTS] & 1 << (list % SLOTS) != 0;
            // The slot that is being spread may be empty.
            let is_true = is_occupied == (self.lists.count(list) > 0) || self.spreading == Some(list);
            crate::freeze::require(is_true, "the slots in use")?;
        }
        Ok(())
    }
    /// When the entry of `place` expires; [`Instant::FAR_FUTURE`] when it is not armed.
    #[inline]
    pub fn armed(&self, place: usize) -> Instant {
        self.at.get(place).copied().unwrap_or(Instant::FAR_FUTURE)
    }
    /// Lets `place` expire at `at`, instead of when it would have.
    #[inline]
    pub fn arm(&mut self, place: usize, at: Instant) {
        self.disarm(place);
        if at == Instant::FAR_FUTURE {
            return;
        }
        match self.at.get_mut(place) {
            Some(armed) => *armed = at,
            None => self.add_place(place, at),
        }
        let tick = (at.as_nanos() >> TICK_BITS).max(self.tick);
        let differing = tick ^ self.tick;
        let level = (63 - (differing | 1).leading_zeros()) / LEVEL_BITS;
        let slot = (tick >> (level * LEVEL_BITS)) as usize % SLOTS;
        let list = level as usize * SLOTS + slot;
        self.occupied[level as usize] |= 1 << slot;
        self.earliest[list] = self.earliest[list].min(at);
        self.lists.push_back(list, place);
    }
    #[cold]
    fn add_place(&mut self, place: usize, at: Instant) {
        make_room(&mut self.at, place + 1);
        self.at.resize(place, Instant::FAR_FUTURE);
        self.at.push(at);
    }
    /// Forgets the entry of `place`.
    #[inline]
    pub fn disarm(&mut self, place: usize) {
        if let Some(list) = self.lists.remove(place) {
            self.at[place] = Instant::FAR_FUTURE;
            self.update(list);
        }
    }
    /// When [`TimerWheel::advance`] has something to do next; [`Instant::ZERO`] when it has now.
    pub fn deadline(&self) -> Instant {
        if self.spreading.is_some() || self.lists.count(DUE) > 0 {
            return Instant::ZERO;
        }
        self.first_slot().map_or(Instant::FAR_FUTURE, |(list, _)| self.earliest[list])
    }
    /// Moves what expires up to `now` to the due list, touching at most `budget` entries. A jump of the clock
    /// costs no more than the entries it passes.
    pub fn advance(&mut self, now: Instant, budget: usize) {
        let now_tick = now.as_nanos() >> TICK_BITS;
        let mut left = budget;
        loop {
            if let Some(list) = self.spreading {
                while left > 0
                    && let Some(place) = self.lists.first(list)
                {
                    left -= 1;
                    match self.at[place] {
                        at if at <= now => self.lists.push_back(DUE, place),
                        at => self.arm(place, at),
                    }
                }
                if self.lists.count(list) > 0 {
                    return;
                }
                self.update(list);
                self.spreading = None;
            }
            let Some((list, start)) = self.first_slot() else { break };
            if start > now_tick || self.earliest[list] > now {
                break;
            }
            if left == 0 {
                return;
            }
            self.tick = self.tick.max(start);
            if list >= SLOTS {
                self.spreading = Some(list);
            } else {
                left = self.expire(list, now, left);
            }
        }
        // No armed entry is at or before `now` any more, but the slot that contains `now` may hold later entries; a
        // higher slot that contains it must be spread before the wheel may stand inside it.
        match self.first_slot() {
            Some((list, start)) if list >= SLOTS && start <= now_tick => {}
            _ => self.tick = self.tick.max(now_tick),
        }
    }
    /// Takes one expired entry.
    pub fn pop_due(&mut self) -> Option<usize> {
        let place = self.lists.pop_front(DUE)?;
        self.at[place] = Instant::FAR_FUTURE;
        Some(place)
    }

    /// The earliest slot in use and the tick at which it starts.
    fn first_slot(&self) -> Option<(usize, u64)> {
        let level = self.occupied.iter().position(|&bits| bits != 0)?;
        let slot = self.occupied[level].trailing_zeros() as u64;
        let shift = level as u32 * LEVEL_BITS;
        let above = self.tick.checked_shr(shift + LEVEL_BITS).unwrap_or(0);
        let start = (above << LEVEL_BITS | slot) << shift;
        Some((level * SLOTS + slot as usize, start))
    }
    /// Moves the expired entries of a level-0 slot to the due list; gives the budget left.
    fn expire(&mut self, list: usize, now: Instant, budget: usize) -> usize {
        let mut left = budget;
        let mut latest_left = Instant::FAR_FUTURE;
        let mut cursor = self.lists.first(list);
        while let Some(place) = cursor {
            if left == 0 {
                return 0;
            }
            left -= 1;
            cursor = self.lists.next(place);
            if self.at[place] <= now {
                self.lists.push_back(DUE, place);
            } else {
                latest_left = latest_left.min(self.at[place]);
            }
        }
        self.earliest[list] = latest_left;
        self.update(list);
        left
    }
    /// Notes that a slot is empty, when it is.
    fn update(&mut self, list: usize) {
        if list < DUE && self.lists.count(list) == 0 {
            self.occupied[list / SLOTS] &= !(1 << (list % SLOTS));
            self.earliest[list] = Instant::FAR_FUTURE;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Duration, Random};

    fn due(wheel: &mut TimerWheel, now: Instant) -> Vec<usize> {
        wheel.advance(now, usize::MAX);
        let mut found: Vec<usize> = core::iter::from_fn(|| wheel.pop_due()).collect();
        found.sort_unstable();
        found
    }

    #[test]
    fn it_agrees_with_a_plain_list() {
        let mut random = Random::from_number(3);
        let mut now = Instant::from_millis(12_345);
        let mut wheel = TimerWheel::new(now);
        let mut plain: Vec<Option<Instant>> = vec![None; 60];
        for step in 0..20_000 {
            let place = random.public_below(60) as usize;
            match random.public_below(4) {
                0 => {
                    wheel.disarm(place);
                    plain[place] = None;
                }
                1 | 2 => {
                    // From nanoseconds to days.
                    let ahead = random.public_u64() >> (16 + random.public_below(45));
                    let at = now + Duration::from_nanos(ahead);
                    wheel.arm(place, at);
                    plain[place] = Some(at);
                }
                _ => {
                    let soonest = plain.iter().flatten().min().copied();
                    let told = wheel.deadline();
                    assert!(told <= soonest.unwrap_or(Instant::FAR_FUTURE), "late at step {step}");
                    now = match random.public_below(8) {
                        0 => now + Duration::from_secs(3600 * u64::from(random.public_below(100))),
                        1..5 if told < Instant::FAR_FUTURE => now + told.since(now),
                        _ => {
                            now + Duration::from_nanos(random.public_u64() >> (20 + random.public_below(40)))
                        }
                    };
                    let mut expected = Vec::new();
                    for (place, at) in plain.iter_mut().enumerate() {
                        if at.is_some_and(|at| at <= now) {
                            expected.push(place);
                            *at = None;
                        }
                    }
                    assert_eq!(due(&mut wheel, now), expected, "step {step}");
                }
            }
            assert_eq!(wheel.armed(place), plain[place].unwrap_or(Instant::FAR_FUTURE));
        }
    }

    #[test]
    fn a_budget_spreads_the_work_and_loses_nothing() {
        let mut wheel = TimerWheel::new(Instant::ZERO);
        for place in 0..1000 {
            wheel.arm(place, Instant::from_millis(10_000 + place as u64 / 100));
        }
        let now = Instant::from_millis(3_600_000);
        let (mut calls, mut found) = (0, 0);
        while wheel.deadline() <= now {
            wheel.advance(now, 64);
            found += core::iter::from_fn(|| wheel.pop_due()).count();
            calls += 1;
        }
        assert_eq!(found, 1000);
        assert!((15..60).contains(&calls), "{calls} calls");
        assert_eq!(wheel.deadline(), Instant::FAR_FUTURE);
    }

    #[test]
    fn a_deadline_is_exact_while_nothing_leaves() {
        let mut wheel = TimerWheel::new(Instant::ZERO);
        let at = Instant::from_nanos(7_200_000_000_123);
        wheel.arm(5, at);
        wheel.arm(6, at + Duration::from_nanos(1));
        assert_eq!(wheel.deadline(), at);
        assert!(due(&mut wheel, at - Duration::from_nanos(1)).is_empty());
        assert_eq!(wheel.deadline(), at);
        assert_eq!(due(&mut wheel, at), [5]);
        assert_eq!(wheel.deadline(), at + Duration::from_nanos(1));
    }
}
