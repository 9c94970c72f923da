//! A slab: a table whose keys stay valid while their entry lives and are never reused for another.

use crate::make_room;
use alloc::vec::Vec;

/// Names an entry of a [`Slab`]. A key of an entry that was removed finds nothing, even when its place is taken again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct Key {
    index: u32,
    generation: u32,
}

impl Key {
    /// The place in the table, for arrays that run beside it.
    pub const fn index(self) -> usize {
        self.index as usize
    }
    /// The key as one number, and back by [`Key::from_bits`].
    pub const fn to_bits(self) -> u64 {
        (self.generation as u64) << 32 | self.index as u64
    }
    /// The key that [`Key::to_bits`] gave.
    pub const fn from_bits(bits: u64) -> Key {
        Key { index: bits as u32, generation: (bits >> 32) as u32 }
    }
}

#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
enum Slot<T> {
    Full { generation: u32, value: T },
    Empty { generation: u32, next_free: Option<u32> },
}

/// A slab with generations and a limit on its entries. Insert, look-up and removal take constant time;
/// iteration runs in order of place, so that it is the same in every run.
///
/// ```
/// use inhost_base::Slab;
/// let mut slab = Slab::new(2);
/// let first = slab.insert("first").unwrap();
/// assert_eq!(slab.remove(first), Some("first"));
/// let second = slab.insert("second").unwrap();
/// assert_eq!((slab.at(first), slab.at(second)), (None, Some(&"second")));
/// ```
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct Slab<T> {
    slots: Vec<Slot<T>>,
    first_free: Option<u32>,
    entries: usize,
    limit: usize,
}

impl<T> Slab<T> {
    /// An empty table of at most `limit` entries. Memory is taken as it fills.
    pub fn new(limit: usize) -> Self {
        Slab { slots: Vec::new(), first_free: None, entries: 0, limit: limit.min(u32::MAX as usize) }
    }
    /// Entries held.
    pub fn len(&self) -> usize {
        self.entries
    }
    /// Places in which an entry may be, from 0 on.
    pub fn places(&self) -> usize {
        self.slots.len()
    }
    /// Whether nothing is held.
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }
    /// Whether the limit is reached.
    pub fn is_full(&self) -> bool {
        self.entries >= self.limit
    }
    /// Adds `value`, or hands it back when the table is full.
    #[inline]
    pub fn insert(&mut self, value: T) -> Result<Key, T> {
        if self.is_full() {
            return Err(value);
        }
        let key = match self.first_free {
            Some(index) => {
                let slot = &mut self.slots[index as usize];
                let Slot::Empty { generation, next_free } = *slot else { return Err(value) };
                self.first_free = next_free;
                *slot = Slot::Full { generation, value };
                Key { index, generation }
            }
            None => {
                let length = self.slots.len() + 1;
                make_room(&mut self.slots, length);
                self.slots.push(Slot::Full { generation: 0, value });
                Key { index: self.slots.len() as u32 - 1, generation: 0 }
            }
        };
        self.entries += 1;
        Ok(key)
    }
    /// The key that the next insertion will give, or `None` when the table is full.
    pub fn next_key(&self) -> Option<Key> {
        if self.is_full() {
            return None;
        }
        match self.first_free {
            Some(index) => match self.slots.get(index as usize)? {
                Slot::Empty { generation, .. } => Some(Key { index, generation: *generation }),
                Slot::Full { .. } => None,
            },
            None => Some(Key { index: self.slots.len() as u32, generation: 0 }),
        }
    }
    /// The key of the entry at `index`, for lists that hold places only.
    #[inline]
    pub fn key_at(&self, index: usize) -> Option<Key> {
        match self.slots.get(index)? {
            Slot::Full { generation, .. } => Some(Key { index: index as u32, generation: *generation }),
            Slot::Empty { .. } => None,
        }
    }
    /// The entry, while it lives.
    #[inline]
    pub fn at(&self, key: Key) -> Option<&T> {
        match self.slots.get(key.index())? {
            Slot::Full { generation, value } if *generation == key.generation => Some(value),
            _ => None,
        }
    }
    /// The entry, to change.
    #[inline]
    pub fn at_mut(&mut self, key: Key) -> Option<&mut T> {
        match self.slots.get_mut(key.index())? {
            Slot::Full { generation, value } if *generation == key.generation => Some(value),
            _ => None,
        }
    }
    /// Takes the entry out.
    pub fn remove(&mut self, key: Key) -> Option<T> {
        self.at(key)?;
        let slot = self.slots.get_mut(key.index())?;
        let freed = Slot::Empty { generation: key.generation.wrapping_add(1), next_free: self.first_free };
        match core::mem::replace(slot, freed) {
            Slot::Full { value, .. } => {
                self.first_free = Some(key.index);
                self.entries -= 1;
                Some(value)
            }
            Slot::Empty { .. } => None,
        }
    }
    /// Drops the entry in place; false when it does not exist.
    pub fn discard(&mut self, key: Key) -> bool {
        if self.at(key).is_none() {
            return false;
        }
        if let Some(slot) = self.slots.get_mut(key.index()) {
            *slot = Slot::Empty {
                generation: key.generation.wrapping_add(1),
                next_free: self.first_free.replace(key.index),
            };
            self.entries -= 1;
        }
        true
    }
    /// Checks a thawed table: its list of free places is whole, and its counts are true. Spare memory is freed.
    #[cfg(feature = "freeze")]
    pub fn check(&mut self) -> Result<(), crate::freeze::Invalid> {
        use crate::freeze::require;
        let full = self.slots.iter().filter(|slot| matches!(slot, Slot::Full { .. })).count();
        require(full == self.entries, "the count of a table's entries")?;
        require(self.slots.len() <= self.limit.min(u32::MAX as usize), "a table beyond its limit")?;
        let (mut next, mut free) = (self.first_free, self.slots.len() - full);
        while let Some(index) = next {
            let Some(Slot::Empty { next_free, .. }) = self.slots.get(index as usize) else {
                return Err(crate::freeze::Invalid("a free place of a table"));
            };
            free = free.checked_sub(1).ok_or(crate::freeze::Invalid("a circle of free places"))?;
            next = *next_free;
        }
        require(free == 0, "a free place that is lost")?;
        self.slots.shrink_to_fit();
        Ok(())
    }
    /// All entries with their keys, to change, in order of place.
    #[cfg(feature = "freeze")]
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (Key, &mut T)> {
        self.slots.iter_mut().enumerate().filter_map(|(index, slot)| match slot {
            Slot::Full { generation, value } => {
                Some((Key { index: index as u32, generation: *generation }, value))
            }
            Slot::Empty { .. } => None,
        })
    }
    /// All entries with their keys, in order of place.
    pub fn iter(&self) -> impl Iterator<Item = (Key, &T)> {
        self.slots.iter().enumerate().filter_map(|(index, slot)| match slot {
            Slot::Full { generation, value } => {
                Some((Key { index: index as u32, generation: *generation }, value))
            }
            Slot::Empty { .. } => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_key_finds_nothing() {
        let mut slab = Slab::new(2);
        let a = slab.insert('a').unwrap();
        assert_eq!(slab.remove(a), Some('a'));
        let a = slab.insert('a').unwrap();
        assert_eq!((slab.discard(a), slab.discard(a), slab.len()), (true, false, 0));
        let next = slab.next_key();
        let b = slab.insert('b').unwrap();
        assert_eq!(next, Some(b));
        assert_eq!(a.index(), b.index());
        assert_eq!((slab.at(a), slab.at(b)), (None, Some(&'b')));
        assert_eq!(Key::from_bits(b.to_bits()), b);
        assert_eq!((slab.key_at(b.index()), slab.key_at(7)), (Some(b), None));
        assert_eq!(slab.next_key(), slab.insert('c').ok());
        assert_eq!(slab.next_key(), None);
        assert_eq!(slab.insert('d'), Err('d'));
    }
}
