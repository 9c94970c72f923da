//! Between a file's octets and those of a data connection: representation, structure and mode (RFC 959 §3).
//!
//! [`Encoder`] makes the wire's octets of a file's; [`Decoder`] the file's of the wire's. Both are pure, take their
//! input in any pieces, and keep nothing that grows with a file. What is plain goes around them.

mod decode;
mod ebcdic;
mod encode;

pub use decode::{DecodeError, Decoded, Decoder};
pub use ebcdic::{from_ebcdic, to_ebcdic};
pub use encode::Encoder;

/// Descriptor bits of block and compressed mode (RFC 959 §3.4.2).
const EOR: u8 = 128;
const EOF: u8 = 64;
const SUSPECT: u8 = 32;
const MARKER: u8 = 16;

/// NL of EBCDIC, which ends lines of type E.
const NEW_LINE: u8 = 0x15;
/// Octets of a file between two restart markers.
pub const MARKER_EVERY_BYTES: u64 = 1 << 20;
/// The longest restart marker that is taken.
pub const MARKER_BYTES: usize = 64;

#[cfg(test)]
mod tests;
