//! The keyed hash of IP's tables: unpredictable to peers, and the same in every run from one seed.

use core::hash::BuildHasher;
use inhost_base::Random;
use siphasher::sip::SipHasher13;

/// A table by hash. It is only looked up in; where its order could reach the outside, it is sorted first.
pub(crate) type Map<K, V> = hashbrown::HashMap<K, V, Keyed>;

/// The key of one host's tables.
#[derive(Clone, Copy)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Keyed([u64; 2]);

impl Keyed {
    pub fn new(random: &mut Random) -> Self {
        let mut half = || u64::from(random.private_u32()) << 32 | u64::from(random.private_u32());
        Keyed([half(), half()])
    }
}

/// Gives a table another key.
#[cfg(feature = "freeze")]
pub(crate) fn rekey<K: core::hash::Hash + Eq, V>(map: &mut Map<K, V>, keyed: Keyed) {
    let entries = core::mem::replace(map, Map::with_hasher(keyed));
    map.extend(entries);
}

/// For `#[serde(with)]`: a table with its key, in the order of its keys, so that equal tables are written alike.
#[cfg(feature = "freeze")]
pub(crate) mod frozen {
    use crate::table::{Keyed, Map};
    use alloc::vec::Vec;
    use core::hash::Hash;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<K: Serialize + Ord, V: Serialize, S: Serializer>(
        map: &Map<K, V>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let mut entries: Vec<_> = map.iter().collect();
        entries.sort_unstable_by_key(|(key, _)| *key);
        (map.hasher(), entries).serialize(serializer)
    }
    pub fn deserialize<'de, K, V, D>(deserializer: D) -> Result<Map<K, V>, D::Error>
    where
        K: Deserialize<'de> + Hash + Eq,
        V: Deserialize<'de>,
        D: Deserializer<'de>,
    {
        let (keyed, entries): (Keyed, Vec<(K, V)>) = Deserialize::deserialize(deserializer)?;
        let mut map = Map::with_capacity_and_hasher(entries.len(), keyed);
        map.extend(entries);
        Ok(map)
    }
}

impl BuildHasher for Keyed {
    type Hasher = SipHasher13;
    fn build_hasher(&self) -> SipHasher13 {
        SipHasher13::new_with_keys(self.0[0], self.0[1])
    }
}

impl core::fmt::Debug for Keyed {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Keyed(..)")
    }
}
