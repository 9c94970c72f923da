//! Where files are: for each the directory and the name by which it was seen last. The table has a limit; what was not
//! used for long is forgotten.

use std::collections::{HashMap, HashSet, VecDeque};

use super::key::{FileId, Key};

/// Files that are remembered in each half of the table.
const HALF_LIMIT: usize = 32 * 1024;
/// Directories on the way to a file; a longer way is a circle, or too long for the system.
const DEPTH_LIMIT: usize = 512;

/// Files that are known to be gone.
const GONE_LIMIT: usize = 4096;
/// Files that a search did not find before it reached its limit.
const GIVEN_UP_LIMIT: usize = 64;
/// Calls for such a file that are refused before it is searched for again: then a call costs a small part of a search.
pub(super) const GIVEN_UP_CALLS: u32 = 256;

#[derive(Debug)]
struct Place {
    parent: FileId,
    name: Box<[u8]>,
    /// From the first key given out for the file, so that hard links and renames do not give it a second key.
    birth: u32,
    levels: Box<[u8]>,
}

/// The table. A new half takes what is used; when it is full, the old half is dropped.
#[derive(Debug, Default)]
pub(super) struct Places {
    new: HashMap<FileId, Place>,
    old: HashMap<FileId, Place>,
    /// Stale files, by inode number and time of birth: they are not searched for again until a lookup finds them.
    gone: HashSet<(FileId, u32)>,
    gone_order: VecDeque<(FileId, u32)>,
    /// Files that were not found, and the calls for each that are still refused; the oldest first.
    given_up: VecDeque<((FileId, u32), u32)>,
}

impl Places {
    /// Notes where a file is, and gives its key the levels by which it is known.
    pub(super) fn remember(&mut self, key: &mut Key, parent: FileId, name: &[u8]) {
        let id = key.id();
        self.gone.remove(&(id, key.birth));
        self.given_up.retain(|(file, _)| *file != (id, key.birth));
        if id == parent {
            return;
        }
        let known = self.old.remove(&id).or_else(|| self.new.remove(&id));
        if let Some(known) = known.filter(|known| known.birth == key.birth) {
            key.levels = known.levels.to_vec();
        }
        let levels = key.levels.as_slice().into();
        self.insert(id, Place { parent, name: name.into(), birth: key.birth, levels });
    }
    fn insert(&mut self, file: FileId, place: Place) {
        if self.new.len() >= HALF_LIMIT {
            self.old = std::mem::take(&mut self.new);
        }
        self.new.insert(file, place);
    }
    /// Removes the entry of a file, unless its inode number belongs to another file now.
    pub(super) fn forget(&mut self, key: &Key) {
        let id = key.id();
        for half in [&mut self.new, &mut self.old] {
            if half.get(&id).is_some_and(|place| place.birth == key.birth) {
                half.remove(&id);
            }
        }
    }
    /// Marks a file as stale.
    pub(super) fn bury(&mut self, key: &Key) {
        self.forget(key);
        let id = (key.id(), key.birth);
        if self.gone.insert(id) {
            self.gone_order.push_back(id);
        }
        while self.gone_order.len() > GONE_LIMIT {
            if let Some(oldest) = self.gone_order.pop_front() {
                self.gone.remove(&oldest);
            }
        }
    }
    /// Whether a file is known to be stale.
    pub(super) fn is_gone(&self, key: &Key) -> bool {
        self.gone.contains(&(key.id(), key.birth))
    }
    /// Notes that a search for a file reached its limit.
    pub(super) fn give_up(&mut self, key: &Key) {
        let file = (key.id(), key.birth);
        self.given_up.retain(|(other, _)| *other != file);
        if self.given_up.len() >= GIVEN_UP_LIMIT {
            self.given_up.pop_front();
        }
        self.given_up.push_back((file, GIVEN_UP_CALLS));
    }
    /// Whether a call for a file is refused without a search: it is gone, or a search gave up a short time ago.
    pub(super) fn is_stale(&mut self, key: &Key) -> bool {
        let file = (key.id(), key.birth);
        let Some(at) = self.given_up.iter().position(|(other, _)| *other == file) else {
            return self.is_gone(key);
        };
        let Some((_, calls_left)) = self.given_up.get_mut(at) else { return false };
        *calls_left -= 1;
        if *calls_left == 0 {
            self.given_up.remove(at);
        }
        true
    }
    /// The path below `root`, if all directories on the way are remembered.
    pub(super) fn path(&mut self, file: FileId, root: FileId) -> Option<Vec<u8>> {
        let (mut names, mut at) = (Vec::new(), file);
        while at != root {
            if names.len() >= DEPTH_LIMIT {
                return None;
            }
            if let Some(place) = self.old.remove(&at) {
                self.insert(at, place);
            }
            let place = self.new.get(&at)?;
            names.push(place.name.clone());
            at = place.parent;
        }
        names.reverse();
        Some(names.join(&b'/'))
    }
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.new.len() + self.old.len()
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::tree::FileKey;
    use super::*;

    fn key(inode: u64) -> Key {
        Key::parse(&FileKey([&inode.to_be_bytes()[..], &[0; 8], b"levels"].concat())).unwrap()
    }

    #[test]
    fn the_table_is_bounded_and_keeps_what_is_used() {
        let (mut places, root) = (Places::default(), (1, 0));
        places.remember(&mut key(2), root, b"directory");
        for n in 3..200_000 {
            places.remember(&mut key(n), key(2).id(), b"file");
            assert_eq!(places.path(key(n).id(), root).unwrap(), b"directory/file");
        }
        assert!(places.len() <= 2 * HALF_LIMIT);
        assert_eq!(places.path(key(3).id(), root), None);
        places.forget(&key(2));
        assert_eq!(places.path(key(199_999).id(), root), None);
    }

    #[test]
    fn files_that_were_given_up_are_few() {
        let mut places = Places::default();
        for n in 0..1000 {
            places.give_up(&key(n));
        }
        assert_eq!(places.given_up.len(), GIVEN_UP_LIMIT);
        assert!(places.is_stale(&key(999)) && !places.is_stale(&key(0)));
    }

    #[test]
    fn a_circle_has_an_end() {
        let mut places = Places::default();
        places.remember(&mut key(2), (3, 0), b"a");
        places.remember(&mut key(3), (2, 0), b"b");
        assert_eq!(places.path((2, 0), (1, 0)), None);
    }

    #[test]
    fn a_file_has_one_key_and_is_gone_until_it_is_seen() {
        let mut places = Places::default();
        let mut other = key(2);
        places.remember(&mut key(2), (1, 0), b"a");
        other.levels = b"other".to_vec();
        places.remember(&mut other, (1, 0), b"b");
        assert_eq!(other, key(2));
        let mut reborn = key(2);
        (reborn.birth, reborn.levels) = (7, b"other".to_vec());
        places.remember(&mut reborn, (1, 0), b"b");
        assert_eq!(reborn.levels, b"other", "another file with this number has a key of its own");
        places.bury(&key(2));
        assert!(places.is_gone(&key(2)) && !places.is_gone(&reborn), "the other one is there");
        assert!(places.path(reborn.id(), (1, 0)).is_some());
        for n in 0..10_000 {
            places.bury(&key(n));
        }
        assert!(places.is_gone(&key(9_999)) && !places.is_gone(&key(2)) && places.gone.len() == GONE_LIMIT);
        places.remember(&mut key(9_999), (1, 0), b"c");
        assert!(!places.is_gone(&key(9_999)));
    }
}
