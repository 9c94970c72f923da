//! A map of bounded size that forgets what was not used for longest.

use std::collections::BTreeMap;

/// Entries that are remembered.
pub(crate) const MAX_ENTRIES: usize = 10_000;
/// When there are more, one in this many is forgotten at once, so that the search is rare.
const FORGOTTEN_PART: usize = 8;

/// The map; each entry with the number of its latest use.
#[derive(Clone, Debug)]
pub(crate) struct Recent<K, V> {
    known: BTreeMap<K, (u64, V)>,
    uses: u64,
}

impl<K, V> Default for Recent<K, V> {
    fn default() -> Self {
        Recent { known: BTreeMap::new(), uses: 0 }
    }
}

impl<K: Ord, V> Recent<K, V> {
    /// The entry of `key`, which is made if there is none.
    pub(crate) fn entry(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
        if self.known.len() >= MAX_ENTRIES && !self.known.contains_key(&key) {
            self.forget();
        }
        self.uses += 1;
        let (used, value) = self.known.entry(key).or_insert_with(|| (0, make()));
        *used = self.uses;
        value
    }
    pub(crate) fn find(&self, key: &K) -> Option<&V> {
        self.known.get(key).map(|(_, value)| value)
    }
    /// All entries in the order of their keys.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.known.iter().map(|(key, (_, value))| (key, value))
    }
    pub(crate) fn retain(&mut self, is_kept: impl Fn(&V) -> bool) {
        self.known.retain(|_, (_, value)| is_kept(value));
    }
    fn forget(&mut self) {
        let mut uses: Vec<u64> = self.known.values().map(|(used, _)| *used).collect();
        let place = uses.len() / FORGOTTEN_PART;
        let (_, &mut bound, _) = uses.select_nth_unstable(place);
        self.known.retain(|_, (used, _)| *used >= bound);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_stays() {
        let mut recent = Recent::default();
        for number in 0..MAX_ENTRIES * 3 {
            recent.entry(number, || number);
            recent.entry(0, || 0);
            assert!(recent.iter().count() <= MAX_ENTRIES);
        }
        assert!(recent.find(&0).is_some() && recent.find(&1).is_none());
        assert!(recent.find(&(MAX_ENTRIES * 3 - 1)).is_some());
    }
}
