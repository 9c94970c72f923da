//! The keyed hash of IP's tables: unpredictable to peers, and the same in every run from one seed.

use core::hash::BuildHasher;
use inhost_base::Random;
use siphasher::sip::SipHasher13;

/// A table by hash. It is only looked up in; where its order could reach the outside, it is sorted first.
pub(crate) type Map<K, V> = hashbrown::HashMap<K, V, Keyed>;

/// The key of one host's tables.
#[derive(Clone, Copy)]
pub(crate) struct Keyed([u64; 2]);

impl Keyed {
    pub fn new(random: &mut Random) -> Self {
        let mut half = || u64::from(random.private_u32()) << 32 | u64::from(random.private_u32());
        Keyed([half(), half()])
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
