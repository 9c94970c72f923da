//! Where files are: for each the directory and the name by which it was seen last. The table has a limit; what was not
//! used for long is forgotten.

use std::collections::HashMap;

use super::key::FileId;

/// Files that are remembered in each half of the table.
const HALF_LIMIT: usize = 32 * 1024;
/// Directories on the way to a file; a longer way is a circle, or too long for the system.
const DEPTH_LIMIT: usize = 512;

#[derive(Debug)]
struct Place {
    parent: FileId,
    name: Box<[u8]>,
}

/// The table. A new half takes what is used; when it is full, the old half is dropped.
#[derive(Debug, Default)]
pub(super) struct Places {
    new: HashMap<FileId, Place>,
    old: HashMap<FileId, Place>,
}

impl Places {
    pub(super) fn remember(&mut self, file: FileId, parent: FileId, name: &[u8]) {
        if file == parent {
            return;
        }
        self.old.remove(&file);
        self.insert(file, Place { parent, name: name.into() });
    }
    fn insert(&mut self, file: FileId, place: Place) {
        if self.new.len() >= HALF_LIMIT {
            self.old = std::mem::take(&mut self.new);
        }
        self.new.insert(file, place);
    }
    pub(super) fn forget(&mut self, file: FileId) {
        self.new.remove(&file);
        self.old.remove(&file);
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
    use super::*;

    #[test]
    fn the_table_is_bounded_and_keeps_what_is_used() {
        let (mut places, root, id) = (Places::default(), (1, 0), |n: u64| (n, 0));
        places.remember(id(2), root, b"directory");
        for n in 3..200_000 {
            places.remember(id(n), id(2), b"file");
            assert_eq!(places.path(id(n), root).unwrap(), b"directory/file");
        }
        assert!(places.len() <= 2 * HALF_LIMIT);
        assert_eq!(places.path(id(3), root), None);
        places.forget(id(2));
        assert_eq!(places.path(id(199_999), root), None);
    }

    #[test]
    fn a_circle_has_an_end() {
        let mut places = Places::default();
        places.remember((2, 0), (3, 0), b"a");
        places.remember((3, 0), (2, 0), b"b");
        assert_eq!(places.path((2, 0), (1, 0)), None);
    }
}
