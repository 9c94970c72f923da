//! A bounded table of conversations, each forgotten when it has been silent for its time, or when a newer one needs
//! its place and none has been silent for longer.

use inhost_base::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug)]
struct Flow<V> {
    value: V,
    idle: Duration,
    moved: Instant,
    /// Tells flows apart that have had the same key.
    number: u64,
}

/// Conversations by key.
#[derive(Debug)]
pub(crate) struct Flows<K, V> {
    limit: usize,
    flows: BTreeMap<K, Flow<V>>,
    /// Least recently moved first; the number makes entries differ.
    by_age: BTreeSet<(Instant, u64, K)>,
    next_number: u64,
}

impl<K: Ord + Copy, V> Flows<K, V> {
    pub(crate) fn new(limit: usize) -> Self {
        Flows { limit: limit.max(1), flows: BTreeMap::new(), by_age: BTreeSet::new(), next_number: 0 }
    }
    #[cfg(test)]
    fn len(&self) -> usize {
        self.flows.len()
    }
    /// The value of `key`, which has just moved.
    pub(crate) fn touch(&mut self, key: K, now: Instant) -> Option<&mut V> {
        let flow = self.flows.get_mut(&key)?;
        if flow.moved != now {
            self.by_age.remove(&(flow.moved, flow.number, key));
            flow.moved = now;
            self.by_age.insert((now, flow.number, key));
        }
        Some(&mut flow.value)
    }
    /// The number of the next flow that is inserted.
    pub(crate) fn next_number(&self) -> u64 {
        self.next_number
    }
    /// Adds a flow. Gives what had its key or had to make room for it, to be dropped where nothing is borrowed.
    #[must_use]
    pub(crate) fn insert(&mut self, key: K, value: V, idle: Duration, now: Instant) -> Option<V> {
        let mut removed = self.remove(key);
        if self.flows.len() >= self.limit
            && let Some(&(_, _, oldest)) = self.by_age.first()
        {
            removed = self.remove(oldest);
        }
        let number = self.next_number;
        self.next_number += 1;
        self.flows.insert(key, Flow { value, idle, moved: now, number });
        self.by_age.insert((now, number, key));
        removed
    }
    pub(crate) fn remove(&mut self, key: K) -> Option<V> {
        let flow = self.flows.remove(&key)?;
        self.by_age.remove(&(flow.moved, flow.number, key));
        Some(flow.value)
    }
    /// Removes the flow of `key` if it is still the one of `number`.
    pub(crate) fn remove_numbered(&mut self, key: K, number: u64) -> Option<V> {
        if self.flows.get(&key)?.number == number { self.remove(key) } else { None }
    }
    /// When the flow of `key` and `number` has been silent for its time; `None` once it is gone.
    pub(crate) fn expires(&self, key: K, number: u64) -> Option<Instant> {
        let flow = self.flows.get(&key)?;
        (flow.number == number).then(|| flow.moved + flow.idle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_silent_makes_room() {
        let mut flows = Flows::new(3);
        let (idle, at) = (Duration::from_secs(30), Instant::from_millis);
        for key in 0..3 {
            assert_eq!(flows.insert(key, key * 10, idle, at(key)), None);
        }
        assert_eq!(flows.touch(0, at(5)), Some(&mut 0));
        let number = flows.next_number();
        assert_eq!(flows.insert(9, 90, idle, at(6)), Some(10));
        assert_eq!((flows.len(), flows.by_age.len()), (3, 3));
        assert!(flows.touch(1, at(7)).is_none() && flows.touch(0, at(7)).is_some());
        assert_eq!(flows.expires(9, number), Some(at(30_006)));
        assert_eq!(flows.insert(9, 91, idle, at(8)), Some(90));
        assert_eq!((flows.expires(9, number), flows.remove_numbered(9, number)), (None, None));
        assert_eq!(flows.remove(9), Some(91));
        assert_eq!((flows.len(), flows.by_age.len()), (2, 2));
    }
}
