//! Procedures that change a file: SETATTR, WRITE, COMMIT.

use super::{Named, Session};
use crate::codec::nfs::{
    Attributes, CommitArguments, Committed, FileType, Outcome, SetAttributes, SetAttributesArguments,
    SetTime, Stable, Status, Wcc, WriteArguments, Written,
};

/// Set-user-ID and set-group-ID.
const LENT_IDENTITY: u32 = 0o6000;

/// Whether a caller may set these attributes of a file.
pub(super) fn check_set(named: &Named, file: &Attributes, set: &SetAttributes) -> Result<(), Status> {
    let identity = &named.identity;
    let is_owner = identity.owns(file);
    let is_super = identity.uid == 0;
    if set.mode.is_some() && !is_owner {
        return Err(Status::PERM);
    }
    // Only the superuser gives a file away (chown_restricted of PATHCONF).
    if set.uid.is_some_and(|uid| uid != file.uid) && !is_super {
        return Err(Status::PERM);
    }
    if set.gid.is_some_and(|gid| gid != file.gid && !(is_super || is_owner && identity.is_in(gid))) {
        return Err(Status::PERM);
    }
    if set.size_bytes.is_some() && !identity.may_write(file) {
        return Err(Status::ACCES);
    }
    let times = [set.accessed, set.modified];
    if times.iter().any(|time| matches!(time, SetTime::To(_))) && !is_owner {
        return Err(Status::PERM);
    }
    if times.contains(&SetTime::Now) && !identity.may_write(file) {
        return Err(Status::ACCES);
    }
    Ok(())
}

impl Session<'_> {
    pub(super) fn set_attributes(&self, asked: &SetAttributesArguments) -> Outcome<Wcc, Wcc> {
        let changed = self.changing(&asked.object, |named, before| {
            if asked.guard.is_some_and(|guard| guard != before.changed) {
                return Err(Status::NOT_SYNC);
            }
            check_set(named, before, &asked.attributes)?;
            // What is given already is not set: a server that is not the superuser could not.
            let mut set = asked.attributes;
            set.uid = set.uid.filter(|&uid| uid != before.uid);
            set.gid = set.gid.filter(|&gid| gid != before.gid);
            self.set(named, &set)
        });
        changed.outcome(|(), wcc| wcc)
    }

    pub(super) fn write(&self, asked: &WriteArguments) -> Outcome<Written, Wcc> {
        // Before the octets are: a failed COMMIT that comes between has them sent again.
        let verifier = self.server.verifier();
        let changed = self.changing(&asked.file, |named, before| {
            if before.kind != FileType::Regular {
                return Err(if before.kind == FileType::Directory { Status::ISDIR } else { Status::INVAL });
            }
            if !named.identity.may_write(before) {
                return Err(Status::ACCES);
            }
            let octets = asked.data.0.get(..asked.count as usize).ok_or(Status::INVAL)?;
            let octets = &octets[..octets.len().min(self.data_limit())];
            let tree = &named.export.tree;
            if before.mode & LENT_IDENTITY != 0 {
                // The program is another one now.
                let mode = Some(before.mode & !LENT_IDENTITY);
                self.set(named, &SetAttributes { mode, ..SetAttributes::default() })?;
            }
            let written = tree.write(&named.key, asked.offset, octets, asked.stable);
            let stable = written.inspect_err(|status| {
                if asked.stable != Stable::Unstable {
                    self.may_have_lost(*status);
                }
            })?;
            Ok((octets.len() as u32, stable))
        });
        changed.outcome(|(count, stable), wcc| Written { wcc, count, stable, verifier })
    }

    /// Sets attributes. It puts the file on the disk, as a stable write does.
    pub(super) fn set(&self, named: &Named, set: &SetAttributes) -> Result<(), Status> {
        let done = named.export.tree.set_attributes(&named.key, set);
        done.inspect_err(|status| self.may_have_lost(*status))
    }

    /// After a failure to put a file on the disk: the system tells once that it lost what was written before, and a later
    /// COMMIT would succeed. With another verifier clients send those octets again.
    pub(super) fn may_have_lost(&self, status: Status) {
        if matches!(status, Status::IO | Status::NOSPC | Status::DQUOT) {
            self.server.change_verifier();
        }
    }

    pub(super) fn commit(&self, asked: &CommitArguments) -> Outcome<Committed, Wcc> {
        let changed = self.changing(&asked.file, |named, before| {
            if before.kind != FileType::Regular {
                return Err(Status::INVAL);
            }
            if !named.identity.may_write(before) {
                return Err(Status::ACCES);
            }
            named.export.tree.commit(&named.key).inspect_err(|status| self.may_have_lost(*status))
        });
        let verifier = self.server.verifier();
        changed.outcome(|(), wcc| Committed { wcc, verifier })
    }
}
