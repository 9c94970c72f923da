//! Procedures that change names: CREATE, MKDIR, SYMLINK, MKNOD, REMOVE, RMDIR, RENAME, LINK.

use super::super::tree::{Known, Make};
use super::change::check_set;
use super::{Changed, Named, Session, locked};
use crate::codec::nfs::{
    Attributes, CreateArguments, Created, Failed, FileType, How, LinkArguments, LinkWcc,
    MakeDirectoryArguments, MakeNodeArguments, Named as NamedArguments, Outcome, Place, RenameArguments,
    RenameWcc, SetAttributes, SetTime, Status, SymlinkArguments, Time, Verifier, Wcc,
};

/// Permission bits of a file that gets none.
const FILE_MODE: u32 = 0o644;
/// Permission bits of a directory that gets none.
const DIRECTORY_MODE: u32 = 0o755;
/// Permission bits of a symbolic link.
const LINK_MODE: u32 = 0o777;

/// What may be no name of something new or removed.
fn check_name(name: &[u8]) -> Result<(), Status> {
    match name {
        b"" => Err(Status::ACCES),
        b"." | b".." => Err(Status::EXIST),
        _ => Ok(()),
    }
}

fn check_directory(named: &Named, attributes: &Attributes) -> Result<(), Status> {
    if attributes.kind != FileType::Directory {
        return Err(Status::NOTDIR);
    }
    if named.identity.may_add(attributes) { Ok(()) } else { Err(Status::ACCES) }
}

/// An exclusive CREATE stores its verifier as the file's times; a retransmission is recognized by it.
fn times_of(verifier: Verifier) -> (Time, Time) {
    let number = u64::from_be_bytes(verifier);
    let time = |seconds: u64| Time { seconds: (seconds & 0x7fff_ffff) as u32, nanoseconds: 0 };
    (time(number >> 32), time(number))
}

impl Session<'_> {
    /// Makes something with these attributes.
    fn make(
        &self,
        directory: &Named,
        name: &[u8],
        make: Make<'_>,
        (attributes, mode): (&SetAttributes, u32),
    ) -> Result<Known, Status> {
        let (tree, identity) = (&directory.export.tree, &directory.identity);
        let mode = attributes.mode.unwrap_or(mode);
        let owner = (identity.uid, identity.gid);
        let made = tree.make(&directory.key, name, make, mode, owner)?;
        let kept = SetAttributes { mode: None, ..*attributes };
        let mut set = SetAttributes { size_bytes: kept.size_bytes.filter(|&bytes| bytes > 0), ..kept };
        set.uid = set.uid.filter(|&uid| uid != made.attributes.uid);
        set.gid = set.gid.filter(|&gid| gid != made.attributes.gid);
        if make == Make::File || make == Make::Directory {
            let named = Named { key: made.key.clone(), ..directory.copy() };
            // What it may not have is left out: the file is there.
            if set != SetAttributes::default() && check_set(&named, &made.attributes, &set).is_ok() {
                self.set(&named, &set)?;
                let attributes = tree.attributes(&made.key)?;
                return Ok(Known { attributes, ..made });
            }
        }
        Ok(made)
    }

    fn created(&self, place: &Place, changed: Changed<Known>) -> Outcome<Created, Wcc> {
        let export = self.named(&place.directory).map(|named| named.export);
        changed.outcome(|known, directory| Created {
            object: export.ok().map(|export| self.handle(&export, &known)),
            attributes: Some(known.attributes),
            directory,
        })
    }

    fn make_plainly(
        &self,
        place: &Place,
        make: Make<'_>,
        attributes: (&SetAttributes, u32),
    ) -> Outcome<Created, Wcc> {
        let changed = self.changing(&place.directory, |directory, before| {
            check_directory(directory, before)?;
            check_name(&place.name.0)?;
            self.make(directory, &place.name.0, make, attributes)
        });
        self.created(place, changed)
    }

    pub(super) fn create(&self, asked: &CreateArguments) -> Outcome<Created, Wcc> {
        let place = &asked.place;
        let changed = self.changing(&place.directory, |directory, before| {
            check_name(&place.name.0)?;
            if before.kind != FileType::Directory {
                return Err(Status::NOTDIR);
            }
            if !directory.identity.may_look_up(before) {
                return Err(Status::ACCES);
            }
            let there = match directory.export.tree.lookup(&directory.key, &place.name.0) {
                Ok(there) => Some(there),
                Err(Status::NOENT) => None,
                Err(status) => return Err(status),
            };
            match there {
                Some(there) => self.take_existing(directory, there, &asked.how),
                None => {
                    check_directory(directory, before)?;
                    self.create_new(directory, &place.name.0, &asked.how)
                }
            }
        });
        self.created(place, changed)
    }

    fn create_new(&self, directory: &Named, name: &[u8], how: &How) -> Result<Known, Status> {
        match how {
            How::Unchecked(attributes) | How::Guarded(attributes) => {
                self.make(directory, name, Make::File, (attributes, FILE_MODE))
            }
            How::Exclusive(verifier) => {
                let (accessed, modified) = times_of(*verifier);
                let times = SetAttributes {
                    accessed: SetTime::To(accessed),
                    modified: SetTime::To(modified),
                    ..SetAttributes::default()
                };
                self.make(directory, name, Make::File, (&times, FILE_MODE))
            }
        }
    }

    fn take_existing(&self, directory: &Named, there: Known, how: &How) -> Result<Known, Status> {
        match how {
            How::Guarded(_) => Err(Status::EXIST),
            How::Exclusive(verifier) => {
                let own = (there.attributes.accessed, there.attributes.modified);
                let is_repetition = there.attributes.kind == FileType::Regular && own == times_of(*verifier);
                if is_repetition { Ok(there) } else { Err(Status::EXIST) }
            }
            How::Unchecked(attributes) => {
                if there.attributes.kind != FileType::Regular {
                    return Err(Status::EXIST);
                }
                // Of a file that is there only the length is set, as open(2) with O_TRUNC does.
                let Some(size_bytes) = attributes.size_bytes else { return Ok(there) };
                if !directory.identity.may_write(&there.attributes) {
                    return Err(Status::ACCES);
                }
                let set = SetAttributes { size_bytes: Some(size_bytes), ..SetAttributes::default() };
                self.set(&Named { key: there.key.clone(), ..directory.copy() }, &set)?;
                Ok(Known { attributes: directory.export.tree.attributes(&there.key)?, ..there })
            }
        }
    }

    pub(super) fn make_directory(&self, asked: &MakeDirectoryArguments) -> Outcome<Created, Wcc> {
        self.make_plainly(&asked.place, Make::Directory, (&asked.attributes, DIRECTORY_MODE))
    }

    pub(super) fn symlink(&self, asked: &SymlinkArguments) -> Outcome<Created, Wcc> {
        self.make_plainly(&asked.place, Make::Link(&asked.target.0), (&asked.attributes, LINK_MODE))
    }

    pub(super) fn make_node(&self, asked: &MakeNodeArguments) -> Outcome<Created, Wcc> {
        let node = &asked.node;
        let status = match node.kind {
            FileType::Socket | FileType::Fifo => {
                return self.make_plainly(&asked.place, Make::Node(node.kind), (&node.attributes, FILE_MODE));
            }
            // A device would be one of this machine.
            FileType::Block | FileType::Character => Status::NOTSUPP,
            FileType::Regular | FileType::Directory | FileType::Link => Status::BADTYPE,
        };
        let refused = self.changing::<()>(&asked.place.directory, |_, _| Err(status));
        Err(Failed { status: refused.result.err().unwrap_or(status), rest: refused.wcc })
    }

    fn remove_name(&self, place: &Place, is_directory: bool) -> Outcome<Wcc, Wcc> {
        let changed = self.changing(&place.directory, |directory, before| {
            check_directory(directory, before)?;
            match (place.name.0.as_slice(), is_directory) {
                (b".", _) => return Err(Status::INVAL),
                (b"..", true) => return Err(Status::EXIST),
                (b"..", false) => return Err(Status::ISDIR),
                _ => {}
            }
            let tree = &directory.export.tree;
            let file = tree.lookup(&directory.key, &place.name.0)?;
            if !directory.identity.may_remove(before, &file.attributes) {
                return Err(Status::ACCES);
            }
            match (file.attributes.kind == FileType::Directory, is_directory) {
                (true, false) => Err(Status::ISDIR),
                (false, true) => Err(Status::NOTDIR),
                _ => tree.remove(&directory.key, &place.name.0, is_directory),
            }
        });
        changed.outcome(|(), wcc| wcc)
    }

    pub(super) fn remove(&self, asked: &NamedArguments) -> Outcome<Wcc, Wcc> {
        self.remove_name(&asked.place, false)
    }

    pub(super) fn remove_directory(&self, asked: &NamedArguments) -> Outcome<Wcc, Wcc> {
        self.remove_name(&asked.place, true)
    }

    pub(super) fn rename(&self, asked: &RenameArguments) -> Outcome<RenameWcc, RenameWcc> {
        let failed = |status| Failed { status, rest: RenameWcc::default() };
        let from = self.named(&asked.from.directory).map_err(failed)?;
        let to = self.named(&asked.to.directory).map_err(failed)?;
        if from.export.number != to.export.number {
            return Err(failed(Status::XDEV));
        }
        // Both directories stand still; the locks are always taken in the same order.
        let (one, other) = (self.server.lock_of(&from.key), self.server.lock_of(&to.key));
        let _first = locked(&self.server.locks[one.min(other)]);
        let _second = (one != other).then(|| locked(&self.server.locks[one.max(other)]));
        let mut inner = None;
        let changed = self.change_alone(&from, |from, from_before| {
            let changed = self.change_alone(&to, |to, to_before| {
                self.check_rename(
                    (from, from_before, &asked.from.name.0),
                    (to, to_before, &asked.to.name.0),
                )?;
                from.export.tree.rename((&from.key, &asked.from.name.0), (&to.key, &asked.to.name.0))
            });
            inner = Some(changed.wcc);
            changed.result
        });
        let rest = RenameWcc { from: changed.wcc, to: inner.unwrap_or_default() };
        changed.result.map(|()| rest).map_err(|status| Failed { status, rest })
    }

    fn check_rename(
        &self,
        (from, from_before, from_name): (&Named, &Attributes, &[u8]),
        (to, to_before, to_name): (&Named, &Attributes, &[u8]),
    ) -> Result<(), Status> {
        check_directory(from, from_before)?;
        check_directory(to, to_before)?;
        if [from_name, to_name].iter().any(|name| matches!(*name, b"." | b"..")) {
            return Err(Status::INVAL);
        }
        let tree = &from.export.tree;
        let moved = tree.lookup(&from.key, from_name)?;
        if !from.identity.may_remove(from_before, &moved.attributes) {
            return Err(Status::ACCES);
        }
        match tree.lookup(&to.key, to_name) {
            Ok(replaced) if !to.identity.may_remove(to_before, &replaced.attributes) => Err(Status::ACCES),
            Ok(replaced) => {
                let is_directory = |known: &Known| known.attributes.kind == FileType::Directory;
                // RFC 1813 §3.3.14: types that do not go together are told as EXIST.
                if is_directory(&moved) == is_directory(&replaced) { Ok(()) } else { Err(Status::EXIST) }
            }
            Err(Status::NOENT) => Ok(()),
            Err(status) => Err(status),
        }
    }

    pub(super) fn link(&self, asked: &LinkArguments) -> Outcome<LinkWcc, LinkWcc> {
        let file = self.named(&asked.file).map_err(|status| Failed { status, rest: LinkWcc::default() })?;
        let changed = self.changing(&asked.link.directory, |directory, before| {
            check_directory(directory, before)?;
            check_name(&asked.link.name.0)?;
            if directory.export.number != file.export.number {
                return Err(Status::XDEV);
            }
            match file.attributes()?.kind {
                FileType::Directory => Err(Status::ISDIR),
                _ => {
                    let linked = directory.export.tree.link(&file.key, &directory.key, &asked.link.name.0);
                    linked.inspect_err(|status| self.may_have_lost(*status))
                }
            }
        });
        let rest = LinkWcc { attributes: file.after(), directory: changed.wcc };
        changed.result.map(|()| rest).map_err(|status| Failed { status, rest })
    }
}

impl Named {
    fn copy(&self) -> Named {
        Named { export: self.export.clone(), key: self.key.clone(), identity: self.identity.clone() }
    }
}
