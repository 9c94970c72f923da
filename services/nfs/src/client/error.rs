//! Errors of operations.

use std::fmt;

use inhost_common::storage::StorageError;

use super::CallError;
use crate::codec::mount::MountError;
use crate::codec::nfs::Status;
use crate::codec::xdr::Malformed;

/// Why an operation failed.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ClientError {
    /// A call gave nothing.
    Call(CallError),
    /// The server refused a procedure.
    Refused {
        /// The procedure.
        procedure: &'static str,
        /// Why.
        status: Status,
    },
    /// The server does not give the export.
    Mount(MountError),
    /// A reply is not well formed.
    Malformed(Malformed),
    /// The file at this end.
    Here(StorageError),
    /// The portmapper knows no port of this program.
    NoPort(u32),
    /// The file became shorter while it was read.
    Changed,
    /// A reply says what cannot be: more octets than were asked for, none at all, or entries without end.
    Nonsense(&'static str),
    /// Too many symbolic links follow one another, or one leads out of what is mounted.
    Links,
    /// The server forgets what was written each time before it is committed.
    NotCommitted,
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientError::Call(error) => error.fmt(f),
            ClientError::Refused { status, .. } => status.fmt(f),
            ClientError::Mount(error) => error.fmt(f),
            ClientError::Malformed(error) => write!(f, "the server's reply cannot be read: {error}"),
            ClientError::Here(error) => error.fmt(f),
            ClientError::NoPort(program) => {
                write!(f, "the server's portmapper does not know program {program}")
            }
            ClientError::Changed => f.write_str("the file became shorter while it was read"),
            ClientError::Nonsense(what) => write!(f, "the server's reply cannot be: {what}"),
            ClientError::Links => f.write_str("a symbolic link leads in a circle, or out of what is mounted"),
            ClientError::NotCommitted => f.write_str("the server forgets what was written, again and again"),
        }
    }
}
impl std::error::Error for ClientError {}

impl From<CallError> for ClientError {
    fn from(error: CallError) -> ClientError {
        ClientError::Call(error)
    }
}
impl From<Malformed> for ClientError {
    fn from(error: Malformed) -> ClientError {
        ClientError::Malformed(error)
    }
}
impl From<StorageError> for ClientError {
    fn from(error: StorageError) -> ClientError {
        ClientError::Here(error)
    }
}
