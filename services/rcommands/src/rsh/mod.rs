//! rsh: a command on another host. The protocol is 4.2BSD's: a number of a port, for a second connection that the
//! server makes for the command's errors and for signals to it; two users' names; the command.

mod driver;

pub use crate::codec::{Request, RequestError, encode_error_port};
pub use driver::{BeginError, begin, begin_alone, first_word, send_port};

/// The port of rsh, and of rcp, which runs on it.
pub const PORT: u16 = 514;
/// The ports of which servers believe that only the system's own programs call from them.
pub const RESERVED_PORTS: core::ops::RangeInclusive<u16> = 512..=1023;
