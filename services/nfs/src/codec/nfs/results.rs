//! What procedures give (RFC 1813 §3.3).

use super::status::Status;
use super::values::{Attributes, Data, Handle, Name, PostOp, Target, Time, Verifier, Wcc};
use crate::codec::xdr::{Decoder, Encoder, Malformed, Xdr, xdr_struct};

/// A procedure that failed, and what it tells nevertheless.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Failed<T> {
    /// Why.
    pub status: Status,
    /// Attributes.
    pub rest: T,
}

/// Result of a procedure.
pub type Outcome<T, F> = Result<T, Failed<F>>;

impl<T: Xdr, F: Xdr> Xdr for Outcome<T, F> {
    fn encode(&self, to: &mut Encoder) {
        match self {
            Ok(done) => {
                to.value(&Status::OK);
                to.value(done);
            }
            Err(failed) => {
                to.value(&failed.status);
                to.value(&failed.rest);
            }
        }
    }
    fn decode(from: &mut Decoder<'_>) -> Result<Self, Malformed> {
        Ok(match from.value()? {
            Status::OK => Ok(from.value()?),
            status => Err(Failed { status, rest: from.value()? }),
        })
    }
}

xdr_struct! {
    /// Result of LOOKUP.
    Found {
        /// The file.
        object: Handle,
        /// Its attributes.
        attributes: PostOp,
        /// Those of the directory.
        directory: PostOp,
    }
}
xdr_struct! {
    /// Result of ACCESS.
    Allowed {
        /// Attributes of the file.
        attributes: PostOp,
        /// Bits that are allowed.
        access: u32,
    }
}
xdr_struct! {
    /// Result of READLINK.
    LinkTarget {
        /// Attributes of the link.
        attributes: PostOp,
        /// Where it leads.
        target: Target,
    }
}
xdr_struct! {
    /// Result of READ.
    ReadData {
        /// Attributes of the file.
        attributes: PostOp,
        /// Octets of `data`.
        count: u32,
        /// Whether the file ends behind them.
        is_end: bool,
        /// The octets.
        data: Data,
    }
}
xdr_struct! {
    /// Result of WRITE.
    Written {
        /// Attributes of the file.
        wcc: Wcc,
        /// Octets that were written.
        count: u32,
        /// How safe they are.
        stable: super::Stable,
        /// It changes when the server may have lost what was not committed.
        verifier: Verifier,
    }
}
xdr_struct! {
    /// Result of CREATE, MKDIR, SYMLINK, MKNOD.
    Created {
        /// The file.
        object: Option<Handle>,
        /// Its attributes.
        attributes: PostOp,
        /// Those of the directory.
        directory: Wcc,
    }
}
xdr_struct! {
    /// Result of RENAME, also when it failed.
    #[derive(Copy)]
    RenameWcc {
        /// Attributes of the directory that had the name.
        from: Wcc,
        /// Those of the directory that has it.
        to: Wcc,
    }
}
xdr_struct! {
    /// Result of LINK, also when it failed.
    #[derive(Copy)]
    LinkWcc {
        /// Attributes of the file.
        attributes: PostOp,
        /// Those of the directory.
        directory: Wcc,
    }
}
xdr_struct! {
    /// An entry of READDIR.
    Entry {
        /// Number of the file.
        fileid: u64,
        /// The name.
        name: Name,
        /// Its place.
        cookie: u64,
    }
}
xdr_struct! {
    /// An entry of READDIRPLUS.
    EntryPlus {
        /// The entry.
        entry: Entry,
        /// Attributes of the file.
        attributes: PostOp,
        /// Its handle.
        handle: Option<Handle>,
    }
}

/// Entries of a reply that are read; a reply of a megaoctet has fewer.
const ENTRIES_LIMIT: usize = 65_536;

/// Result of READDIR and READDIRPLUS.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Entries<E> {
    /// Attributes of the directory.
    pub directory: PostOp,
    /// It goes with the cookies.
    pub verifier: Verifier,
    /// The entries.
    pub entries: Vec<E>,
    /// Whether these are the last.
    pub is_end: bool,
}

impl<E: Xdr> Xdr for Entries<E> {
    fn encode(&self, to: &mut Encoder) {
        to.value(&self.directory);
        to.value(&self.verifier);
        to.list(&self.entries);
        to.value(&self.is_end);
    }
    fn decode(from: &mut Decoder<'_>) -> Result<Entries<E>, Malformed> {
        Ok(Entries {
            directory: from.value()?,
            verifier: from.value()?,
            entries: from.list(ENTRIES_LIMIT)?,
            is_end: from.value()?,
        })
    }
}

xdr_struct! {
    /// Result of FSSTAT.
    Statistics {
        /// Attributes of the file.
        attributes: PostOp,
        /// Octets of the file system.
        total_bytes: u64,
        /// Octets that are free.
        free_bytes: u64,
        /// Octets that the caller may have.
        available_bytes: u64,
        /// Files that there can be.
        total_files: u64,
        /// Files that may still be made.
        free_files: u64,
        /// Files that the caller may make.
        available_files: u64,
        /// Seconds for which this does not change.
        unchanged_s: u32,
    }
}
xdr_struct! {
    /// Result of FSINFO.
    Information {
        /// Attributes of the file.
        attributes: PostOp,
        /// Octets of a READ at most.
        read_most: u32,
        /// Octets of a READ that are best.
        read_best: u32,
        /// READ goes best in multiples of this.
        read_multiple: u32,
        /// Octets of a WRITE at most.
        write_most: u32,
        /// Octets of a WRITE that are best.
        write_best: u32,
        /// WRITE goes best in multiples of this.
        write_multiple: u32,
        /// Octets of a READDIR that are best.
        directory_best: u32,
        /// Octets of the longest file.
        file_most: u64,
        /// How exact times are.
        time_step: Time,
        /// [Properties](super::properties).
        properties: u32,
    }
}
xdr_struct! {
    /// Result of PATHCONF.
    PathLimits {
        /// Attributes of the file.
        attributes: PostOp,
        /// Names of a file at most.
        links_most: u32,
        /// Octets of a name at most.
        name_most: u32,
        /// Whether a longer name fails, and is not cut.
        no_truncation: bool,
        /// Whether only root gives a file to another owner.
        chown_restricted: bool,
        /// Whether letters of both cases are the same.
        case_insensitive: bool,
        /// Whether the case of letters is kept.
        case_preserving: bool,
    }
}
xdr_struct! {
    /// Result of COMMIT.
    #[derive(Copy)]
    Committed {
        /// Attributes of the file.
        wcc: Wcc,
        /// It changes when the server may have lost what was not committed.
        verifier: Verifier,
    }
}
xdr_struct! {
    /// Result of GETATTR.
    #[derive(Copy)]
    AttributesOf {
        /// Attributes of the file.
        attributes: Attributes,
    }
}
