//! Actions that a session asks of its driver, and their results.

use std::fmt;

use inhost_base::Endpoint;

use crate::codec::data::DecodeError;
use crate::codec::{Facts, Family, Parameters, UnixTime};
use inhost_common::storage::{StorageError, Store, VirtualPath};

/// Access rights of a user.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rights {
    /// Change files, and not only read them.
    pub write: bool,
}

/// Result of a login attempt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LogIn {
    /// Name and password are right.
    Granted {
        /// Access rights of the user.
        rights: Rights,
        /// Account that ACCT must give, if required.
        account: Option<String>,
    },
    /// They are not.
    Denied,
    /// They were not looked at: too many are being checked.
    Busy,
    /// They were not looked at: too many wrong ones came from the same address.
    TooMany,
    /// They could not be verified.
    Unavailable,
}

/// Actions that a session requests.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// Verify a user; answered by [`super::Session::authenticated`].
    Authenticate {
        /// The name.
        user: String,
        /// The password.
        password: String,
    },
    /// Count something wrong that a password was not: an account.
    Denied,
    /// Once all that is pending was sent, begin TLS; answered by [`super::Session::tls_started`].
    StartTls,
    /// Once all that is pending was sent, end TLS and go on in clear text; answered by
    /// [`super::Session::tls_ended`].
    EndTls,
    /// Do something with files; answered by [`super::Session::file_done`].
    File(FileRequest),
    /// Listen for a data connection; answered by [`super::Session::listening`].
    Listen(Family),
    /// Stop listening, if somebody does.
    StopListening,
    /// Transfer; answered by [`super::Session::transfer_event`]s, the last of which is [`TransferEvent::Ended`].
    Transfer(TransferRequest),
    /// End the transfer now; nothing more is said of it.
    AbortTransfer,
    /// End the connection once all that is pending was sent.
    Close(Closing),
}

/// Why a session ends from this side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Closing {
    /// QUIT.
    Quit,
    /// Too many wrong passwords.
    Attempts,
    /// Passwords cannot be checked now.
    Busy,
    /// Nobody logged in in time, a command did not end, or replies were not read.
    TooSlow,
    /// The user said nothing for too long.
    Idle,
    /// The TLS handshake failed, or something was said behind AUTH that TLS does not cover.
    Tls,
    /// The host goes down.
    HostEnds,
    /// An operator has ended it.
    Dropped,
}

impl Closing {
    /// The reason as the log tells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Closing::Quit => "left",
            Closing::Attempts => "too many wrong passwords",
            Closing::Busy => "passwords cannot be checked now",
            Closing::TooSlow => "too slow",
            Closing::Idle => "idle too long",
            Closing::Tls => "TLS failed",
            Closing::HostEnds => "the host goes down",
            Closing::Dropped => "ended by an operator",
        }
    }
}

/// A hash that HASH knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Digest {
    /// The default.
    Sha256,
    /// Longer.
    Sha512,
    /// For old clients; it proves no origin.
    Sha1,
}

impl Digest {
    /// All that there are.
    pub const ALL: [Digest; 3] = [Digest::Sha256, Digest::Sha512, Digest::Sha1];
    /// As FEAT, OPTS and HASH write it.
    pub fn name(self) -> &'static str {
        match self {
            Digest::Sha256 => "SHA-256",
            Digest::Sha512 => "SHA-512",
            Digest::Sha1 => "SHA-1",
        }
    }
    /// The one that is written so.
    pub fn parse(name: &str) -> Option<Digest> {
        Digest::ALL.into_iter().find(|digest| digest.name().eq_ignore_ascii_case(name))
    }
}

/// Something that is done with files and answered on the control connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FileRequest {
    /// Is it a directory?
    Enter(VirtualPath),
    /// Transfer size: with `text`, in type A.
    Size {
        /// Of what.
        path: VirtualPath,
        /// Whether line ends count twice.
        text: bool,
    },
    /// When it was last changed.
    Modified(VirtualPath),
    /// All its facts.
    Facts(VirtualPath),
    /// Set its time.
    SetModified(VirtualPath, UnixTime),
    /// Make a directory.
    Make {
        /// Which.
        path: VirtualPath,
        /// Permission bits that it does not get.
        umask: u32,
    },
    /// Remove a directory.
    RemoveDirectory(VirtualPath),
    /// Remove a file.
    Remove(VirtualPath),
    /// Is it there to be renamed?
    RenameFrom(VirtualPath),
    /// Rename.
    Rename(VirtualPath, VirtualPath),
    /// Set permission bits.
    SetMode(VirtualPath, u32),
    /// Its hash.
    Digest {
        /// Of what.
        path: VirtualPath,
        /// By what.
        digest: Digest,
    },
    /// A listing for STAT.
    List(VirtualPath),
}

/// Result of a file operation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FileReply {
    /// It is done.
    Done,
    /// So many octets.
    Size(u64),
    /// These facts.
    Facts(Facts),
    /// This hash of so many octets.
    Digest(String, u64),
    /// These lines.
    Lines(Vec<String>),
}

/// Listing formats.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ListStyle {
    /// LIST: in the manner of `ls -l`; with `all`, also names that begin with a dot.
    Long {
        /// As `-a`.
        all: bool,
    },
    /// NLST: names alone.
    Names,
    /// MLSD: facts, those of which the bit is set.
    Facts(u8),
}

/// The content of a transfer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Task {
    /// A file to the client, from this place on.
    Retrieve {
        /// Which.
        path: VirtualPath,
        /// The first octet: of the file, or with text in stream mode of what was sent of it (RFC 3659 §5).
        start: u64,
    },
    /// A file from the client.
    Store {
        /// Which.
        path: VirtualPath,
        /// How.
        how: Store,
        /// Permission bits that it does not get.
        umask: u32,
        /// Size announced by ALLO.
        expected_bytes: Option<u64>,
    },
    /// A listing.
    List {
        /// Of what; where a pattern was given, of the directory above.
        path: VirtualPath,
        /// Names that are wanted, with `*` and `?`.
        pattern: Option<String>,
        /// How.
        style: ListStyle,
    },
}

/// Between whom the data connection is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Channel {
    /// The client connects to our announced endpoint.
    Passive,
    /// We go to the client.
    Active(Endpoint),
}

/// One transfer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TransferRequest {
    /// What.
    pub task: Task,
    /// Where.
    pub channel: Channel,
    /// How.
    pub parameters: Parameters,
    /// With TLS.
    pub protected: bool,
}

/// Events of a transfer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TransferEvent {
    /// The file is open: so long, as far as that is known, and so named.
    Opened {
        /// Octets of the file.
        size_bytes: Option<u64>,
        /// The name it gets, where the client did not choose it.
        name: Option<String>,
    },
    /// The sender's restart marker stands for this place of our file.
    Marker {
        /// Theirs.
        theirs: String,
        /// Ours.
        ours: u64,
    },
    /// It is over; so many octets of the file were moved.
    Ended(Result<u64, TransferError>),
}

/// Why a transfer came to nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum TransferError {
    /// The file.
    Storage(StorageError),
    /// MLSD is for a directory, and this is none.
    NoDirectory,
    /// There was no data connection.
    NoConnection(String),
    /// TLS did not come about on it.
    Tls(String),
    /// It resumed no session of the user's, which the configuration asks for.
    NotResumed,
    /// It was lost.
    Lost(String),
    /// Nothing moved for too long.
    Stalled,
    /// The data does not follow the agreed mode and structure.
    Decode(DecodeError),
    /// It ended before ALLO's count was reached, or together with the control connection.
    Incomplete,
}

impl fmt::Display for TransferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TransferError::Storage(error) => write!(f, "{error}"),
            TransferError::NoDirectory => write!(f, "{}", StorageError::NotDirectory),
            TransferError::NoConnection(why) => write!(f, "No data connection: {why}"),
            TransferError::Tls(why) => write!(f, "No protected data connection: {why}"),
            TransferError::NotResumed => f.write_str(
                "The data connection has to resume the TLS session of the control connection; a server whose \
                 host.toml has \"resumption = false\" under [ftp] takes others",
            ),
            TransferError::Lost(why) => write!(f, "Data connection lost: {why}"),
            TransferError::Stalled => f.write_str("Nothing moved on the data connection for too long"),
            TransferError::Decode(error) => write!(f, "Data not understood: {error}"),
            TransferError::Incomplete => {
                f.write_str("Less came than was announced; what is there is kept for REST")
            }
        }
    }
}
