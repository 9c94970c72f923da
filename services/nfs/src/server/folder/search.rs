//! Looking for a file that is not in the table of places.

use std::sync::TryLockError;

use super::directory::each;
use super::key::{Key, LEVELS, level};
use super::{FolderTree, Node, RENAME_TRIES, Status, TreeResult, locked};

/// Directory entries that one search reads. A search that reaches the limit reports the handle as stale.
pub(super) const NAMES_LIMIT: usize = 100_000;
/// Directories that wait to be looked at.
const WAITING_LIMIT: usize = 20_000;
/// The deepest directory that is looked into.
const DEPTH_LIMIT: usize = 256;

impl FolderTree {
    /// Looks for a file, first where its key says, then anywhere. What is found is remembered. `tried` is a path where it
    /// is not. One search runs at a time; during it the others are told to come again ([`Status::JUKEBOX`]), so that handles
    /// of files that are gone occupy one slot of the server and not all.
    pub(super) fn search(&self, key: &Key, tried: Option<&[u8]>) -> TreeResult<Node> {
        if locked(&self.places).is_stale(key) {
            return Err(Status::STALE);
        }
        let _one = match self.searching.try_lock() {
            Ok(one) => one,
            Err(TryLockError::Poisoned(one)) => one.into_inner(),
            Err(TryLockError::WouldBlock) => return Err(Status::JUKEBOX),
        };
        for _ in 0..RENAME_TRIES {
            if locked(&self.places).is_gone(key) {
                return Err(Status::STALE);
            }
            // Another search may have found it.
            let known = locked(&self.places).path(key.id(), self.root_key.id());
            if let Some(path) = known.filter(|path| Some(path.as_slice()) != tried)
                && let Ok(node) = self.node_at(&path)
                && key.is_of(&node.seen)
            {
                return Ok(node);
            }
            let before = self.renames.standstill();
            let mut names_left = self.names_limit;
            if let Some(node) = self.search_once(key, &mut names_left)? {
                return Ok(node);
            }
            // It may have been moved from a directory that was still to be looked at to one that was not.
            let stood_still = before.is_some() && self.renames.standstill() == before;
            if stood_still {
                let mut places = locked(&self.places);
                if names_left > 0 {
                    places.bury(key)
                } else {
                    places.give_up(key)
                }
                break;
            }
        }
        Err(Status::STALE)
    }

    fn search_once(&self, key: &Key, names_left: &mut usize) -> TreeResult<Option<Node>> {
        for is_guided in [true, false] {
            if let Some(path) = self.search_below(key, is_guided, names_left)?
                && let Ok((node, _)) = self.walk(&path)
                && key.is_of(&node.seen)
            {
                return Ok(Some(node));
            }
        }
        Ok(None)
    }

    fn search_below(
        &self,
        key: &Key,
        is_guided: bool,
        names_left: &mut usize,
    ) -> TreeResult<Option<Vec<u8>>> {
        let mut waiting = vec![(Vec::new(), 0)];
        while let Some((path, depth)) = waiting.pop() {
            let opened = if path.is_empty() { self.node_at(b".") } else { self.node_at(&path) };
            // It went away, or is not ours to read.
            let Ok(node) = opened else { continue };
            let (mut found, mut below) = (None, Vec::new());
            let visited = each(&node, |candidate| {
                let Some(left) = names_left.checked_sub(1) else { return false };
                *names_left = left;
                let joined = |name: &[u8]| {
                    let parts = [path.as_slice(), name];
                    if path.is_empty() { name.to_vec() } else { parts.join(&b'/') }
                };
                let is_here = !is_guided || depth == key.levels.len() || depth >= LEVELS;
                if is_here && candidate.inode == key.inode() {
                    let path = joined(&candidate.name);
                    if self.node_at(&path).is_ok_and(|node| key.is_of(&node.seen)) {
                        found = Some(path);
                        return false;
                    }
                }
                let is_on_the_way = match key.levels.get(depth) {
                    _ if !is_guided || depth >= LEVELS => true,
                    Some(&wanted) => level(candidate.inode) == wanted,
                    None => key.levels.len() == LEVELS,
                };
                let has_room = waiting.len() + below.len() < WAITING_LIMIT && depth < DEPTH_LIMIT;
                if candidate.is_directory && is_on_the_way && has_room {
                    below.push((joined(&candidate.name), depth + 1));
                }
                true
            });
            if found.is_some() {
                return Ok(found);
            }
            // A directory that cannot be listed hides what is in it, and nothing else.
            let _ = visited;
            waiting.append(&mut below);
        }
        Ok(None)
    }
}
