//! A hash table from the names of sockets to sockets.

use crate::demux::name::{Name, NameHash};
use crate::sockets::{Socket, SocketId, Sockets};
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
    /// Which of a socket's names this table holds.
    // As the table is made.
    #[cfg_attr(feature = "freeze", serde(skip, default = "nameless"))]
    name: fn(&Socket) -> Option<Name>,
}

/// A socket in a table.
#[derive(Clone, Copy, Debug)]
struct Listed {
    /// Its place among the sockets.
    place: u32,
    hash: NameHash,
}

/// The names of a thawed table, until it is made anew.
#[cfg(feature = "freeze")]
fn nameless() -> fn(&Socket) -> Option<Name> {
    |_| None
}

impl Table {
    /// The secret of a thawed table, with which it is made anew.
    #[cfg(feature = "freeze")]
    pub(crate) fn secret(&self) -> SipKey {
        self.secret
    }
    pub(crate) fn new(secret: SipKey, name: fn(&Socket) -> Option<Name>) -> Self {
        Table { entries: HashTable::new(), secret, name }
    }
    /// The socket with this name.
    pub(crate) fn find(&self, sockets: &Sockets, name: &Name) -> Option<SocketId> {
        if self.entries.is_empty() {
            return None;
        }
        let is_it = |key| sockets.any(key).and_then(self.name).as_ref() == Some(name);
        self.find_hashed(sockets, self.hash(name), is_it)
    }
    /// The socket whose name has this hash and for which `is_it` holds.
    #[inline]
    pub(crate) fn find_hashed(
        &self,
        sockets: &Sockets,
        hash: NameHash,
        is_it: impl Fn(SocketId) -> bool,
    ) -> Option<SocketId> {
        let key_of = |listed: &Listed| sockets.at_place(listed.place as usize);
        let is_it = |listed: &Listed| listed.hash == hash && key_of(listed).is_some_and(&is_it);
        self.entries.find(hash.spread(), is_it).and_then(key_of)
    }
    /// Adds a socket by its name; false when it has none, or another has the same.
    pub(crate) fn insert(&mut self, sockets: &Sockets, key: SocketId) -> bool {
        self.insert_hashed(sockets, key, None).is_some()
    }
    /// The same, where the hash of its name may be known; gives that.
    pub(crate) fn insert_hashed(
        &mut self,
        sockets: &Sockets,
        key: SocketId,
        known: Option<NameHash>,
    ) -> Option<NameHash> {
        let name = sockets.any(key).and_then(self.name)?;
        debug_assert!(known.is_none_or(|hash| hash == self.hash(&name)));
        let (hash, name_of) = (known.unwrap_or_else(|| self.hash(&name)), self.name);
        let is_it = |listed: &Listed| {
            let found = sockets.at_place(listed.place as usize);
            listed.hash == hash && found.and_then(|key| sockets.any(key)).and_then(name_of) == Some(name)
        };
        match self.entries.entry(hash.spread(), is_it, |listed| listed.hash.spread()) {
            Entry::Occupied(_) => None,
            Entry::Vacant(place) => {
                place.insert(Listed { place: key.0.index() as u32, hash });
                Some(hash)
            }
        }
    }
    /// Takes a socket out, while it still has its name.
    pub(crate) fn remove(&mut self, sockets: &Sockets, key: SocketId) -> bool {
        let name = sockets.any(key).and_then(self.name);
        name.is_some_and(|name| self.remove_hashed(self.hash(&name), key))
    }
    /// The same, by the hash of its name.
    pub(crate) fn remove_hashed(&mut self, hash: NameHash, key: SocketId) -> bool {
        let place = key.0.index() as u32;
        match self.entries.find_entry(hash.spread(), |found| found.place == place) {
            Ok(entry) => {
                entry.remove();
                true
            }
            Err(_) => false,
        }
    }
    #[inline]
    pub(crate) fn hash(&self, name: &Name) -> NameHash {
        NameHash::of(name, &self.secret)
    }
}
