//! The 22 procedures, each with the types of what it takes and gives.

use super::*;
use crate::codec::xdr::Xdr;

/// A procedure of a program.
pub trait Procedure {
    /// Its number.
    const NUMBER: u32;
    /// Whether it is idempotent.
    const IS_REPEATABLE: bool;
    /// What it takes.
    type Arguments: Xdr;
    /// What it gives.
    type Results: Xdr;
}

macro_rules! procedures {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $repeatable:literal, $arguments:ty => $results:ty;)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug)]
            pub struct $name;
            impl Procedure for $name {
                const NUMBER: u32 = $number;
                const IS_REPEATABLE: bool = $repeatable;
                type Arguments = $arguments;
                type Results = $results;
            }
        )*
        /// Whether the procedure with this number is idempotent; `None` if there is none.
        pub fn is_repeatable(procedure: u32) -> Option<bool> {
            match procedure {
                $($number => Some($repeatable),)*
                _ => None,
            }
        }
        /// The name of a procedure.
        pub fn procedure_name(procedure: u32) -> &'static str {
            match procedure {
                $($number => stringify!($name),)*
                _ => "unknown",
            }
        }
    };
}

procedures! {
    /// Does nothing.
    Null = 0, true, () => ();
    /// Attributes of a file.
    GetAttr = 1, true, Object => Outcome<AttributesOf, ()>;
    /// Sets attributes.
    SetAttr = 2, false, SetAttributesArguments => Outcome<Wcc, Wcc>;
    /// The file of a name.
    Lookup = 3, true, Named => Outcome<Found, PostOp>;
    /// What the caller may do.
    Access = 4, true, AccessArguments => Outcome<Allowed, PostOp>;
    /// Where a symbolic link leads.
    ReadLink = 5, true, Object => Outcome<LinkTarget, PostOp>;
    /// Octets of a file.
    Read = 6, true, ReadArguments => Outcome<ReadData, PostOp>;
    /// Writes octets. A late repetition could undo a later write.
    Write = 7, false, WriteArguments => Outcome<Written, Wcc>;
    /// Makes a file.
    Create = 8, false, CreateArguments => Outcome<Created, Wcc>;
    /// Makes a directory.
    Mkdir = 9, false, MakeDirectoryArguments => Outcome<Created, Wcc>;
    /// Makes a symbolic link.
    Symlink = 10, false, SymlinkArguments => Outcome<Created, Wcc>;
    /// Makes a socket or a named pipe.
    Mknod = 11, false, MakeNodeArguments => Outcome<Created, Wcc>;
    /// Removes a file.
    Remove = 12, false, Named => Outcome<Wcc, Wcc>;
    /// Removes a directory.
    Rmdir = 13, false, Named => Outcome<Wcc, Wcc>;
    /// Gives another name.
    Rename = 14, false, RenameArguments => Outcome<RenameWcc, RenameWcc>;
    /// Gives one more name.
    Link = 15, false, LinkArguments => Outcome<LinkWcc, LinkWcc>;
    /// Names of a directory.
    ReadDir = 16, true, ReadDirArguments => Outcome<Entries<Entry>, PostOp>;
    /// Names of a directory with attributes and handles.
    ReadDirPlus = 17, true, ReadDirPlusArguments => Outcome<Entries<EntryPlus>, PostOp>;
    /// What of the file system is used.
    FsStat = 18, true, Object => Outcome<Statistics, PostOp>;
    /// What the server can do.
    FsInfo = 19, true, Object => Outcome<Information, PostOp>;
    /// Limits of names and links.
    PathConf = 20, true, Object => Outcome<PathLimits, PostOp>;
    /// Has written octets put on the disk.
    Commit = 21, true, CommitArguments => Outcome<Committed, Wcc>;
}
