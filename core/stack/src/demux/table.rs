//! A hash table from the names of sockets to their places.

use crate::demux::name::{Name, NameHash};
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use inhost_base::SipKey;

/// A hash table of sockets. The hash is keyed, so that a peer cannot choose endpoints that collide; nothing iterates
/// over the table, so that simulations are reproducible. The socket holds its name; an entry holds enough of the hash
/// that few sockets are compared, and that the table grows without reading any.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Table {
    // Listed anew from the sockets.
    #[cfg_attr(feature = "freeze", serde(skip))]
    entries: HashTable<Listed>,
    secret: SipKey,
}

/// A socket in a table.
#[derive(Clone, Copy, Debug)]
struct Listed {
    /// Its place among the sockets.
    place: u32,
    hash: NameHash,
}

impl Table {
    pub(crate) fn new(secret: SipKey) -> Self {
        Table { entries: HashTable::new(), secret }
    }
    /// Empties a thawed table, to be filled anew.
    #[cfg(feature = "freeze")]
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
    /// The first place listed under this hash for which `is_it` gives something.
    #[inline]
    pub(crate) fn find<T>(&self, hash: NameHash, is_it: impl Fn(usize) -> Option<T>) -> Option<T> {
        let mut found = None;
        self.entries.find(hash.spread(), |listed| {
            listed.hash == hash && {
                found = is_it(listed.place as usize);
                found.is_some()
            }
        });
        found
    }
    /// Lists a place under a hash; false when `is_it` holds for one that is listed under it.
    pub(crate) fn insert(&mut self, hash: NameHash, place: usize, is_it: impl Fn(usize) -> bool) -> bool {
        let is_it = |listed: &Listed| listed.hash == hash && is_it(listed.place as usize);
        match self.entries.entry(hash.spread(), is_it, |listed| listed.hash.spread()) {
            Entry::Occupied(_) => false,
            Entry::Vacant(entry) => {
                entry.insert(Listed { place: place as u32, hash });
                true
            }
        }
    }
    /// Takes a place out that is listed under a hash.
    pub(crate) fn remove(&mut self, hash: NameHash, place: usize) {
        if let Ok(entry) = self.entries.find_entry(hash.spread(), |found| found.place as usize == place) {
            entry.remove();
        }
    }
    #[inline]
    pub(crate) fn hash(&self, name: &Name) -> NameHash {
        NameHash::of(name, &self.secret)
    }
}
