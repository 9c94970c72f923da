//! Errors (RFC 1813 §2.6).

use core::fmt;

use crate::codec::xdr::{Decoder, Encoder, Malformed, Xdr};

/// Result code of a procedure (nfsstat3). Numbers that are not named here are kept.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Status(pub u32);

macro_rules! statuses {
    ($($(#[doc = $doc:literal])* $name:ident = $number:literal, $text:literal;)*) => {
        impl Status {
            $($(#[doc = $doc])* pub const $name: Status = Status($number);)*
        }
        impl fmt::Display for Status {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match *self {
                    $(Status::$name => f.write_str($text),)*
                    Status(number) => write!(f, "NFS error {number}"),
                }
            }
        }
    };
}

statuses! {
    /// Done.
    OK = 0, "done";
    /// The caller does not own it.
    PERM = 1, "Not the owner";
    /// There is no such name.
    NOENT = 2, "No such file or directory";
    /// The device failed.
    IO = 5, "Input or output failed";
    /// There is no such device.
    NXIO = 6, "No such device";
    /// The mode does not let the caller do it.
    ACCES = 13, "Permission denied";
    /// There is such a name already.
    EXIST = 17, "There is such a name already";
    /// The names are on two devices.
    XDEV = 18, "The names are on two devices";
    /// It cannot be done with the device.
    NODEV = 19, "No such operation on the device";
    /// A directory is wanted.
    NOTDIR = 20, "It is not a directory";
    /// Something else than a directory is wanted.
    ISDIR = 21, "It is a directory";
    /// An argument that cannot be acted on.
    INVAL = 22, "Invalid argument";
    /// A file would be too long.
    FBIG = 27, "The file would be too long";
    /// No space is left.
    NOSPC = 28, "No space is left";
    /// The export is read only.
    ROFS = 30, "The export is read only";
    /// The file has too many names.
    MLINK = 31, "Too many links";
    /// A name is too long.
    NAMETOOLONG = 63, "The name is too long";
    /// The directory has something in it.
    NOTEMPTY = 66, "The directory is not empty";
    /// The quota is used up.
    DQUOT = 69, "The quota is used up";
    /// The file of the handle is gone.
    STALE = 70, "The file handle is stale";
    /// Too many remote parts in a path.
    REMOTE = 71, "Too many levels of remote in the path";
    /// The handle is not one of the server.
    BADHANDLE = 10_001, "The file handle is not one of this server";
    /// The guard of SETATTR does not hold.
    NOT_SYNC = 10_002, "The file has changed meanwhile";
    /// The cookie of READDIR is not valid any more.
    BAD_COOKIE = 10_003, "The place in the directory is not valid any more";
    /// The operation is not there.
    NOTSUPP = 10_004, "Not supported";
    /// A limit of the caller is too small for an answer.
    TOOSMALL = 10_005, "The limit is too small for an answer";
    /// The server failed.
    SERVERFAULT = 10_006, "The server failed";
    /// A type that is not there.
    BADTYPE = 10_007, "The server does not have files of this type";
    /// The server has begun, and cannot answer yet: ask again later.
    JUKEBOX = 10_008, "The server asks to try later";
}

impl std::error::Error for Status {}

impl Xdr for Status {
    fn encode(&self, to: &mut Encoder) {
        to.u32(self.0);
    }
    fn decode(from: &mut Decoder<'_>) -> Result<Status, Malformed> {
        from.u32().map(Status)
    }
}
