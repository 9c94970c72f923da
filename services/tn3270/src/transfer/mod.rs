//! What both ends of a file transfer share: the text of IND$FILE, and the code of its CUT mode.
//!
//! IND$FILE is the file transfer of 3270 terminals. The operator starts it by a command on the screen of the host, as
//! `IND$FILE GET report (ASCII CRLF`. In DFT mode the host then sends structured fields ([`Ddm`](crate::codec::Ddm)); in CUT
//! mode, for terminals that have none, it writes frames to the screen.

mod command;
pub(crate) mod cut;
pub(crate) mod text;

pub use command::{CommandError, Direction, HostKind, TransferCommand};

/// The message of a host at the end of a transfer that went well.
pub const COMPLETE: &str = "TRANS03";
