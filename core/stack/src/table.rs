//! From the two ends in a packet to the socket that they belong to, in one look-up.

use crate::entry::Socket;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use inhost_base::{Endpoint, IpAddr, Key, SipKey, Slab};

/// What a table finds sockets by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Name {
    /// The transport, or one of the marks below.
    pub(crate) protocol: u8,
    pub(crate) local: Endpoint,
    pub(crate) remote: Endpoint,
}

/// A hash table of sockets. The hash is keyed, so that a peer cannot choose ends that collide; nothing iterates over the
/// table, so that runs repeat. What a name is compared with stands in the socket; an entry has enough of the hash that
/// few others are looked at, and that the table grows without a look at any.
#[derive(Debug)]
pub(crate) struct Table {
    entries: HashTable<Listed>,
    secret: SipKey,
    /// Which of a socket's names this table holds.
    name: fn(&Socket) -> Option<Name>,
}

/// A socket in a table.
#[derive(Clone, Copy, Debug)]
struct Listed {
    /// Its place among the sockets.
    place: u32,
    hash: NameHash,
}

/// The keyed hash of a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct NameHash(u32);

impl NameHash {
    /// For the table, which takes its lowest bits and its highest.
    #[inline]
    fn spread(self) -> u64 {
        u64::from(self.0) << 32 | u64::from(self.0)
    }
}

impl Table {
    pub(crate) fn new(secret: SipKey, name: fn(&Socket) -> Option<Name>) -> Self {
        Table { entries: HashTable::new(), secret, name }
    }
    /// The socket with this name.
    pub(crate) fn find(&self, sockets: &Slab<Socket>, name: &Name) -> Option<Key> {
        if self.entries.is_empty() {
            return None;
        }
        let is_it = |key| sockets.at(key).and_then(self.name).as_ref() == Some(name);
        self.find_hashed(sockets, self.hash(name), is_it)
    }
    /// The socket with this name, told by `is_it`.
    #[inline]
    pub(crate) fn find_where(
        &self,
        sockets: &Slab<Socket>,
        name: &Name,
        is_it: impl Fn(Key) -> bool,
    ) -> Option<Key> {
        self.find_hashed(sockets, self.hash(name), is_it)
    }
    /// The socket whose name has this hash, told by `is_it`.
    #[inline]
    pub(crate) fn find_hashed(
        &self,
        sockets: &Slab<Socket>,
        hash: NameHash,
        is_it: impl Fn(Key) -> bool,
    ) -> Option<Key> {
        let key_of = |listed: &Listed| sockets.key_at(listed.place as usize);
        let is_it = |listed: &Listed| listed.hash == hash && key_of(listed).is_some_and(&is_it);
        self.entries.find(hash.spread(), is_it).and_then(key_of)
    }
    /// Adds a socket by its name; false when it has none, or another has the same.
    pub(crate) fn insert(&mut self, sockets: &Slab<Socket>, key: Key) -> bool {
        self.insert_hashed(sockets, key, None).is_some()
    }
    /// The same, where the hash of its name may be known; gives that.
    pub(crate) fn insert_hashed(
        &mut self,
        sockets: &Slab<Socket>,
        key: Key,
        known: Option<NameHash>,
    ) -> Option<NameHash> {
        let name = sockets.at(key).and_then(self.name)?;
        debug_assert!(known.is_none_or(|hash| hash == self.hash(&name)));
        let (hash, name_of) = (known.unwrap_or_else(|| self.hash(&name)), self.name);
        let is_it = |listed: &Listed| {
            let found = sockets.key_at(listed.place as usize);
            listed.hash == hash && found.and_then(|key| sockets.at(key)).and_then(name_of) == Some(name)
        };
        match self.entries.entry(hash.spread(), is_it, |listed| listed.hash.spread()) {
            Entry::Occupied(_) => None,
            Entry::Vacant(place) => {
                place.insert(Listed { place: key.index() as u32, hash });
                Some(hash)
            }
        }
    }
    /// Takes a socket out, while it still has its name.
    pub(crate) fn remove(&mut self, sockets: &Slab<Socket>, key: Key) -> bool {
        let name = sockets.at(key).and_then(self.name);
        name.is_some_and(|name| self.remove_hashed(self.hash(&name), key))
    }
    /// The same, by the hash of its name.
    pub(crate) fn remove_hashed(&mut self, hash: NameHash, key: Key) -> bool {
        let place = key.index() as u32;
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
        NameHash((hash(&self.secret, name) >> 32) as u32)
    }
}

fn hash(secret: &SipKey, name: &Name) -> u64 {
    let Name { protocol, local, remote } = *name;
    let ports = u64::from(local.port) << 32 | u64::from(remote.port) << 16 | u64::from(protocol);
    match (local.address, remote.address) {
        (IpAddr::V4(local), IpAddr::V4(remote)) => {
            secret.hash_words([u64::from(u32::from(local)) << 32 | u64::from(u32::from(remote)), ports])
        }
        (local, remote) => {
            let ([a, b], [c, d]) = (halves(local), halves(remote));
            secret.hash_words([a, b, c, d, ports])
        }
    }
}

pub(crate) fn halves(address: IpAddr) -> [u64; 2] {
    let bits = match address {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => u128::from(address),
    };
    [(bits >> 64) as u64, bits as u64]
}
