//! Result of a transfer.

use std::fmt;

use inhost_base::Endpoint;

use crate::codec::ErrorCode;
use crate::codec::options::Options;

/// A transfer that went well.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Summary {
    /// Octets of the file.
    pub file_bytes: u64,
    /// Blocks that were sent again, or came again.
    pub blocks_again: u64,
    /// The options that held.
    pub agreed: Options,
}

/// Why a transfer did not.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum TransferError {
    /// Nobody answered the request.
    NoAnswer,
    /// The peer has said nothing for too long.
    Silent,
    /// The peer said that it is over.
    Refused {
        /// From where.
        from: Endpoint,
        /// The error.
        code: ErrorCode,
        /// As the peer says it.
        message: String,
    },
    /// The peer violated the protocol and got an error.
    Broken {
        /// The error that it received.
        code: ErrorCode,
        /// In words.
        message: &'static str,
    },
    /// The file has not the size that was announced.
    Size {
        /// Octets, as announced.
        announced: u64,
        /// Octets that came.
        arrived: u64,
    },
    /// This end ended it.
    Here {
        /// The error sent to the peer.
        code: ErrorCode,
        /// In words.
        message: String,
    },
    /// The network said that there is no way.
    Unreachable(String),
}

impl fmt::Display for TransferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TransferError::NoAnswer => f.write_str("no answer; is a TFTP server there?"),
            TransferError::Silent => f.write_str("the other end fell silent in the middle of the transfer"),
            TransferError::Refused { code, message, .. } if message.is_empty() => {
                write!(f, "refused with error {}", code.0)
            }
            TransferError::Refused { code, message, .. } => {
                write!(f, "refused with error {}: {message}", code.0)
            }
            TransferError::Broken { message, .. } => write!(f, "the other end broke the protocol: {message}"),
            TransferError::Size { announced, arrived } => {
                write!(f, "{announced} octets were announced, and {arrived} came")
            }
            TransferError::Here { message, .. } => f.write_str(message),
            TransferError::Unreachable(why) => f.write_str(why),
        }
    }
}
impl std::error::Error for TransferError {}
