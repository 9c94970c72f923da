//! Timers of tasks.

use std::collections::BTreeMap;
use std::task::Waker;

use inhost_base::Instant;

/// Names a timer that was set; the order of timers for one instant is the order in which they were set.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct TimerKey {
    due: Instant,
    number: u64,
}

/// Wakers by the instant at which they are due.
#[derive(Default)]
pub(crate) struct Timers {
    set: BTreeMap<TimerKey, Waker>,
    next_number: u64,
}

impl Timers {
    /// Sets a timer.
    pub(crate) fn set(&mut self, due: Instant, waker: Waker) -> TimerKey {
        let key = TimerKey { due, number: self.next_number };
        self.next_number += 1;
        self.set.insert(key, waker);
        key
    }
    /// Changes whom a timer wakes; false when it has fired.
    pub(crate) fn change(&mut self, key: TimerKey, waker: &Waker) -> bool {
        match self.set.get_mut(&key) {
            Some(place) => {
                place.clone_from(waker);
                true
            }
            None => false,
        }
    }
    /// Forgets a timer, whose waker is given back to be dropped outside any borrow.
    pub(crate) fn cancel(&mut self, key: TimerKey) -> Option<Waker> {
        self.set.remove(&key)
    }
    /// The wakers that are due at `now`, in order.
    pub(crate) fn due(&mut self, now: Instant) -> Vec<Waker> {
        let mut woken = Vec::new();
        while let Some(first) = self.set.first_entry()
            && first.key().due <= now
        {
            woken.push(first.remove());
        }
        woken
    }
    /// How many are set.
    pub(crate) fn len(&self) -> usize {
        self.set.len()
    }
    /// When the next one is due.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.set.first_key_value().map(|(key, _)| key.due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_fire_in_order_and_not_after_they_were_cancelled() {
        let mut timers = Timers::default();
        let late = timers.set(Instant::from_millis(9), Waker::noop().clone());
        let early = timers.set(Instant::from_millis(3), Waker::noop().clone());
        timers.set(Instant::from_millis(3), Waker::noop().clone());
        assert_eq!(timers.deadline(), Some(Instant::from_millis(3)));
        assert!(timers.cancel(early).is_some());
        assert_eq!(timers.due(Instant::from_millis(5)).len(), 1);
        assert!(!timers.change(early, Waker::noop()));
        assert!(timers.change(late, Waker::noop()));
        assert_eq!(timers.deadline(), Some(Instant::from_millis(9)));
    }
}
