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

/// A hash table of socket keys. The hash is keyed, so that a peer cannot choose ends that collide; nothing iterates
/// over the table, so that runs repeat. An entry is the key alone: what it is compared with stands in the socket.
#[derive(Debug)]
pub(crate) struct Table {
    keys: HashTable<Key>,
    secret: SipKey,
    /// Which of a socket's names this table holds.
    name: fn(&Socket) -> Option<Name>,
}

impl Table {
    pub(crate) fn new(secret: SipKey, name: fn(&Socket) -> Option<Name>) -> Self {
        Table { keys: HashTable::new(), secret, name }
    }
    /// The socket with this name.
    pub(crate) fn find(&self, sockets: &Slab<Socket>, name: &Name) -> Option<Key> {
        if self.keys.is_empty() {
            return None;
        }
        let is_it = |key: &Key| sockets.at(*key).and_then(self.name).as_ref() == Some(name);
        self.keys.find(self.hash(name), is_it).copied()
    }
    /// The socket with this name, told by `is_it`.
    #[inline]
    pub(crate) fn find_where(&self, name: &Name, is_it: impl Fn(Key) -> bool) -> Option<Key> {
        self.keys.find(self.hash(name), |key| is_it(*key)).copied()
    }
    /// Adds a socket by its name; false when it has none, or another has the same.
    pub(crate) fn insert(&mut self, sockets: &Slab<Socket>, key: Key) -> bool {
        let Some(name) = sockets.at(key).and_then(self.name) else { return false };
        let (secret, name_of) = (self.secret, self.name);
        let hash_of = |key: &Key| sockets.at(*key).and_then(name_of).map_or(0, |name| hash(&secret, &name));
        let is_it = |found: &Key| sockets.at(*found).and_then(name_of) == Some(name);
        match self.keys.entry(hash(&secret, &name), is_it, hash_of) {
            Entry::Occupied(_) => false,
            Entry::Vacant(place) => {
                place.insert(key);
                true
            }
        }
    }
    /// Takes a socket out, while it still has its name.
    pub(crate) fn remove(&mut self, sockets: &Slab<Socket>, key: Key) -> bool {
        let Some(name) = sockets.at(key).and_then(self.name) else { return false };
        match self.keys.find_entry(self.hash(&name), |found| *found == key) {
            Ok(entry) => {
                entry.remove();
                true
            }
            Err(_) => false,
        }
    }
    fn hash(&self, name: &Name) -> u64 {
        hash(&self.secret, name)
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
