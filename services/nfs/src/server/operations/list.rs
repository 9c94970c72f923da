//! READDIR and READDIRPLUS.

use super::super::DATAGRAM_DATA_BYTES;
use super::super::tree::{TreeEntries, TreeEntry};
use super::{Known, Named, Session};
use crate::codec::nfs::{
    Attributes, Entries, Entry, EntryPlus, FileType, HANDLE_BYTES, Handle, Name, Outcome, PostOp,
    ReadDirArguments, ReadDirPlusArguments, Status, Verifier,
};

/// Octets of a reply beside its entries: attributes, verifier, two flags.
const FRONT_BYTES: usize = 104;
/// Octets of an entry beside its name.
const ENTRY_BYTES: usize = 24;
/// Octets that READDIRPLUS adds to an entry: attributes and a handle.
const PLUS_BYTES: usize = 88 + 8 + HANDLE_BYTES;
/// Octets of a reply of names at most.
const REPLY_BYTES: usize = DATAGRAM_DATA_BYTES;

fn entry_bytes(entry: &TreeEntry) -> usize {
    ENTRY_BYTES + entry.name.len().next_multiple_of(4)
}

impl Session<'_> {
    /// Entries of a directory, within so many octets, with the verifier of their cookies.
    fn entries(
        &self,
        directory: &Named,
        attributes: &Attributes,
        (cookie, verifier): (u64, Verifier),
        bytes: usize,
    ) -> Result<(TreeEntries, Verifier), Status> {
        if attributes.kind != FileType::Directory {
            return Err(Status::NOTDIR);
        }
        if !directory.identity.may_list(attributes) {
            return Err(Status::ACCES);
        }
        let tree = &directory.export.tree;
        let own = tree.cookie_verifier(&directory.key)?;
        if cookie != 0 && verifier != own {
            return Err(Status::BAD_COOKIE);
        }
        let list = tree.entries(&directory.key, cookie, bytes)?;
        if list.entries.first().is_some_and(|first| entry_bytes(first) > bytes) {
            return Err(Status::TOOSMALL);
        }
        Ok((list, own))
    }

    pub(super) fn read_directory(&self, asked: &ReadDirArguments) -> Outcome<Entries<Entry>, PostOp> {
        let bytes = REPLY_BYTES.min(asked.count as usize).saturating_sub(FRONT_BYTES);
        let told = self.telling(&asked.directory, |directory, attributes| {
            self.entries(directory, attributes, (asked.cookie, asked.verifier), bytes)
        });
        told.map(|((list, verifier), directory)| Entries {
            directory,
            verifier,
            entries: list.entries.into_iter().map(entry).collect(),
            is_end: list.is_end,
        })
    }

    pub(super) fn read_directory_plus(
        &self,
        asked: &ReadDirPlusArguments,
    ) -> Outcome<Entries<EntryPlus>, PostOp> {
        let room = REPLY_BYTES.min(asked.count as usize).saturating_sub(FRONT_BYTES);
        // More names than this do not fit with all that is told of each.
        let names = room.min(asked.names_bytes as usize).min(room / 2);
        let told = self.telling(&asked.directory, |directory, attributes| {
            let (mut list, verifier) =
                self.entries(directory, attributes, (asked.cookie, asked.verifier), names)?;
            let mut used = 0;
            let fit = list.entries.iter().take_while(|entry| {
                used += entry_bytes(entry) + PLUS_BYTES;
                used <= room
            });
            let fit = fit.count();
            if fit == 0 && !list.entries.is_empty() {
                return Err(Status::TOOSMALL);
            }
            list.is_end &= fit == list.entries.len();
            list.entries.truncate(fit);
            let may_look_up = directory.identity.may_look_up(attributes);
            let plus = list.entries.into_iter().map(|name| {
                let known = if may_look_up { self.known(directory, attributes, &name.name) } else { None };
                let (attributes, handle) = known.unzip();
                EntryPlus { entry: entry(name), attributes, handle }
            });
            Ok((plus.collect(), verifier, list.is_end))
        });
        told.map(|((entries, verifier, is_end), directory)| Entries { directory, verifier, entries, is_end })
    }

    /// Attributes and handle of a name that was listed; none if it went away, or cannot be reached.
    fn known(&self, directory: &Named, attributes: &Attributes, name: &[u8]) -> Option<(Attributes, Handle)> {
        let tree = &directory.export.tree;
        let known = match name {
            b"." => Known { key: directory.key.clone(), attributes: *attributes },
            b".." => tree.parent(&directory.key).ok()?,
            name => tree.lookup(&directory.key, name).ok()?,
        };
        Some((known.attributes, self.handle(&directory.export, &known)))
    }
}

fn entry(name: TreeEntry) -> Entry {
    Entry { fileid: name.fileid, name: Name(name.name), cookie: name.cookie }
}
