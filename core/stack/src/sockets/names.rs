//! Hash tables of sockets by their names.

use crate::demux::{Name, NameHash, binding};
use crate::socket::TcpSocketId;
use crate::sockets::entry::Socket;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use inhost_base::{Endpoint, IpAddr, Ipv6Addr, Key, SipKey, Slab, unspecified_like};

/// Whose segment it is: a connection's, or of none; then the hash of its two ends.
pub(crate) type Target = Result<TcpSocketId, NameHash>;

/// A hash table of sockets by one of their names. The hash is keyed, so that a peer cannot choose endpoints that collide;
/// nothing iterates over the table, so that simulations are reproducible. The socket holds its name; an entry holds enough of
/// the hash that few sockets are compared, and that the table grows without reading any.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Named {
    // Listed anew from the sockets.
    #[cfg_attr(feature = "freeze", serde(skip))]
    entries: HashTable<Listed>,
    secret: SipKey,
    by: By,
}

/// A socket in a table.
#[derive(Clone, Copy, Debug)]
struct Listed {
    /// Its place among the sockets.
    place: u32,
    hash: NameHash,
}

/// Which of a socket's names it is.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(super) enum By {
    Flow,
    Binding,
}

impl By {
    fn name_of(self, slab: &Slab<Socket>, key: Key) -> Option<Name> {
        let socket = slab.at(key)?;
        match self {
            By::Flow => socket.flow_name(),
            By::Binding => socket.binding_name(),
        }
    }
    /// The socket at a place, if it has this name.
    fn at(self, slab: &Slab<Socket>, place: usize, name: &Name) -> Option<Key> {
        let key = slab.key_at(place)?;
        (self.name_of(slab, key).as_ref() == Some(name)).then_some(key)
    }
}

impl Named {
    pub(super) fn new(secret: SipKey, by: By) -> Named {
        Named { entries: HashTable::new(), secret, by }
    }
    /// Empties a thawed table, to be filled anew.
    #[cfg(feature = "freeze")]
    pub(super) fn clear(&mut self) {
        self.entries.clear();
    }
    #[inline]
    pub(super) fn hash(&self, name: &Name) -> NameHash {
        NameHash::of(name, &self.secret)
    }
    /// The first place listed under this hash for which `is_it` gives something.
    #[inline]
    pub(super) fn find_place<T>(&self, hash: NameHash, is_it: impl Fn(usize) -> Option<T>) -> Option<T> {
        let mut found = None;
        self.entries.find(hash.spread(), |listed| {
            listed.hash == hash && {
                found = is_it(listed.place as usize);
                found.is_some()
            }
        });
        found
    }
    /// The socket with this name.
    pub(super) fn find(&self, slab: &Slab<Socket>, name: &Name) -> Option<Key> {
        if self.entries.is_empty() { None } else { self.find_hashed(slab, name, self.hash(name)) }
    }
    /// The same, where the hash of the name is known.
    pub(super) fn find_hashed(&self, slab: &Slab<Socket>, name: &Name, hash: NameHash) -> Option<Key> {
        self.find_place(hash, |place| self.by.at(slab, place, name))
    }
    /// Lists a socket by its name, of which the hash may be known, and gives that; `None` when it has none, or another has
    /// the same.
    pub(super) fn list(
        &mut self,
        slab: &Slab<Socket>,
        key: Key,
        known: Option<NameHash>,
    ) -> Option<NameHash> {
        let by = self.by;
        let name = by.name_of(slab, key)?;
        debug_assert!(known.is_none_or(|hash| hash == self.hash(&name)));
        let hash = known.unwrap_or_else(|| self.hash(&name));
        let is_same =
            |listed: &Listed| listed.hash == hash && by.at(slab, listed.place as usize, &name).is_some();
        match self.entries.entry(hash.spread(), is_same, |listed| listed.hash.spread()) {
            Entry::Occupied(_) => None,
            Entry::Vacant(entry) => {
                entry.insert(Listed { place: key.index() as u32, hash });
                Some(hash)
            }
        }
    }
    /// Takes a socket out, while it still has its name.
    pub(super) fn unlist(&mut self, slab: &Slab<Socket>, key: Key) {
        if let Some(name) = self.by.name_of(slab, key) {
            self.remove(self.hash(&name), key.index());
        }
    }
    /// Takes a place out that is listed under a hash.
    pub(super) fn remove(&mut self, hash: NameHash, place: usize) {
        if let Ok(entry) = self.entries.find_entry(hash.spread(), |found| found.place as usize == place) {
            entry.remove();
        }
    }
    /// Whether some socket is bound to `local`, to its port at any address of ours included.
    pub(super) fn is_bound(&self, slab: &Slab<Socket>, number: u8, local: Endpoint) -> bool {
        let Endpoint { address, port } = local;
        [address, unspecified_like(address), IpAddr::V6(Ipv6Addr::UNSPECIFIED)]
            .into_iter()
            .any(|address| self.find(slab, &binding(number, Endpoint { address, port }, false)).is_some())
    }
}
