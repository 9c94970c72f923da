//! A terminal without a keyboard and a display of its own: keys go in, the screen comes out.
//!
//! - [`Terminal`]: a connection, its screen and a file transfer;
//! - [`script`]: files that wait for text, type, press keys and check;
//! - [`Printer`]: a printer session, whose lines come out.
//!
//! All is pure: octets and time in, octets and results out. [`driver`](crate::driver) has the streams.

mod cut;
mod printer;
mod replies;
pub mod script;
mod terminal;
mod transfer;

#[cfg(test)]
mod tests;

pub use printer::{JOB_LINES, Printer};
pub use terminal::{NVT_BYTES, PressError, StartError, Terminal, TerminalConfig};
pub use transfer::{TRANSFER_BYTES, TransferError, TransferReport};
