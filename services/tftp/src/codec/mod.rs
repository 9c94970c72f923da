//! The six kinds of packets (RFC 1350 §5, RFC 2347), checked once and written once.

pub(crate) mod netascii;
pub(crate) mod numbering;
pub(crate) mod options;

use inhost_common::Cleaner;
use std::fmt;

use crate::codec::options::Options;

/// A request is one datagram of at most so many octets (RFC 2347).
pub const REQUEST_BYTES: usize = 512;
/// Octets of a packet before the data.
pub const HEADER_BYTES: usize = 4;
/// Octets of an error's message that are kept.
const MESSAGE_BYTES: usize = 200;

/// Error code (RFC 1350 §5, RFC 2347).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ErrorCode(pub u16);

impl ErrorCode {
    /// See the message.
    pub const OTHER: ErrorCode = ErrorCode(0);
    /// There is no such file.
    pub const NOT_FOUND: ErrorCode = ErrorCode(1);
    /// It may not be done.
    pub const ACCESS: ErrorCode = ErrorCode(2);
    /// No room, or more than is allowed.
    pub const FULL: ErrorCode = ErrorCode(3);
    /// No such operation.
    pub const ILLEGAL: ErrorCode = ErrorCode(4);
    /// The packet belongs to no transfer that goes on.
    pub const UNKNOWN_TRANSFER: ErrorCode = ErrorCode(5);
    /// There is such a file already.
    pub const EXISTS: ErrorCode = ErrorCode(6);
    /// There is no such user; mail is long gone.
    pub const NO_USER: ErrorCode = ErrorCode(7);
    /// The options are not acceptable.
    pub const OPTIONS: ErrorCode = ErrorCode(8);
}

/// Transfer mode.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mode {
    /// As they are.
    #[default]
    Octet,
    /// Text, with the lines ends of Telnet (RFC 764).
    Netascii,
}

impl Mode {
    /// As it is written in a request.
    pub const fn name(self) -> &'static str {
        match self {
            Mode::Octet => "octet",
            Mode::Netascii => "netascii",
        }
    }
}

/// A request to read or write.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// Whether the file is to be written, by us who are asked.
    pub is_write: bool,
    /// The file's name, as it was sent.
    pub name: String,
    /// Transfer mode.
    pub mode: Mode,
    /// Options of the request.
    pub options: Options,
}

/// Why octets are not a packet, or none that can be acted on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Malformed {
    /// Not even an operation and what belongs to it.
    Short,
    /// No such operation.
    Operation(u16),
    /// A request longer than [`REQUEST_BYTES`].
    LongRequest,
    /// A name or an option without its end, or no text.
    Text,
    /// A mode that nobody has: `mail`, or one made up.
    Mode,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Malformed::Short => f.write_str("The packet is too short"),
            Malformed::Operation(number) => write!(f, "There is no operation {number}"),
            Malformed::LongRequest => write!(f, "The request is longer than {REQUEST_BYTES} octets"),
            Malformed::Text => f.write_str("A name or an option has no end, or is not text"),
            Malformed::Mode => f.write_str("The mode is neither octet nor netascii"),
        }
    }
}
impl std::error::Error for Malformed {}

/// One packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Packet<'a> {
    /// RRQ or WRQ.
    Request(Request),
    /// DATA: a block's number and its octets.
    Data(u16, &'a [u8]),
    /// ACK.
    Ack(u16),
    /// ERROR.
    Error(ErrorCode, String),
    /// OACK: the options that hold.
    OptionAck(Options),
}

const READ: u16 = 1;
const WRITE: u16 = 2;
const DATA: u16 = 3;
const ACK: u16 = 4;
const ERROR: u16 = 5;
const OPTION_ACK: u16 = 6;

impl<'a> Packet<'a> {
    /// Reads a datagram.
    pub fn parse(bytes: &'a [u8]) -> Result<Packet<'a>, Malformed> {
        let (operation, rest) = number(bytes).ok_or(Malformed::Short)?;
        match operation {
            READ | WRITE => request(operation == WRITE, bytes.len(), rest).map(Packet::Request),
            DATA => number(rest).map(|(block, data)| Packet::Data(block, data)).ok_or(Malformed::Short),
            ACK => number(rest).map(|(block, _)| Packet::Ack(block)).ok_or(Malformed::Short),
            ERROR => {
                let (code, message) = number(rest).ok_or(Malformed::Short)?;
                // Some leave the end of the message out.
                let message = message.split(|&octet| octet == 0).next().unwrap_or_default();
                // Untrusted text, which reaches a terminal or a log.
                let message = Cleaner::line(&message[..message.len().min(MESSAGE_BYTES)]);
                Ok(Packet::Error(ErrorCode(code), message))
            }
            OPTION_ACK => Options::parse(rest).map(Packet::OptionAck).ok_or(Malformed::Text),
            other => Err(Malformed::Operation(other)),
        }
    }
    /// Writes it behind what is in `into`.
    pub fn write(&self, into: &mut Vec<u8>) {
        match self {
            Packet::Request(request) => {
                put(into, if request.is_write { WRITE } else { READ });
                text(into, &request.name);
                text(into, request.mode.name());
                request.options.write(into);
            }
            Packet::Data(block, data) => {
                put(into, DATA);
                put(into, *block);
                into.extend_from_slice(data);
            }
            Packet::Ack(block) => {
                put(into, ACK);
                put(into, *block);
            }
            Packet::Error(code, message) => {
                put(into, ERROR);
                put(into, code.0);
                text(into, message);
            }
            Packet::OptionAck(options) => {
                put(into, OPTION_ACK);
                options.write(into);
            }
        }
    }
    /// It, alone.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.write(&mut bytes);
        bytes
    }
}

fn number(bytes: &[u8]) -> Option<(u16, &[u8])> {
    let (first, rest) = bytes.split_first_chunk::<2>()?;
    Some((u16::from_be_bytes(*first), rest))
}

fn put(into: &mut Vec<u8>, number: u16) {
    into.extend_from_slice(&number.to_be_bytes());
}

/// A text and its end; an end within it would make two of it.
pub(crate) fn text(into: &mut Vec<u8>, text: &str) {
    into.extend(text.bytes().filter(|&octet| octet != 0));
    into.push(0);
}

/// The text up to its end, and what follows.
pub(crate) fn take_text(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let end = bytes.iter().position(|&octet| octet == 0)?;
    Some((std::str::from_utf8(&bytes[..end]).ok()?, &bytes[end + 1..]))
}

fn request(is_write: bool, length: usize, rest: &[u8]) -> Result<Request, Malformed> {
    if length > REQUEST_BYTES {
        return Err(Malformed::LongRequest);
    }
    let (name, rest) = take_text(rest).ok_or(Malformed::Text)?;
    let (mode, rest) = take_text(rest).ok_or(Malformed::Text)?;
    let mode = match () {
        () if mode.eq_ignore_ascii_case(Mode::Octet.name()) => Mode::Octet,
        () if mode.eq_ignore_ascii_case(Mode::Netascii.name()) => Mode::Netascii,
        () => return Err(Malformed::Mode),
    };
    let options = Options::parse(rest).ok_or(Malformed::Text)?;
    Ok(Request { is_write, name: name.to_owned(), mode, options })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::numbering::Rollover;

    #[test]
    fn each_kind_there_and_back() {
        let options = Options {
            block_size: Some(1428),
            timeout_s: Some(3),
            transfer_size: Some(70_000),
            window: Some(8),
            rollover: Some(Rollover::ToOne),
        };
        let name = "pxe/größe".to_owned();
        let request = Request { is_write: true, name, mode: Mode::Netascii, options };
        for packet in [
            Packet::Request(request),
            Packet::Data(65_535, b"data"),
            Packet::Data(1, b""),
            Packet::Ack(7),
            Packet::Error(ErrorCode::FULL, "no room".into()),
            Packet::OptionAck(options),
        ] {
            assert_eq!(Packet::parse(&packet.bytes()), Ok(packet.clone()));
        }
    }

    #[test]
    fn what_others_send() {
        let parse = |bytes: &[u8]| Packet::parse(bytes).map(|packet| format!("{packet:?}"));
        // RFC 1350 §5: the case of a mode means nothing; RFC 2347: nor that of an option.
        let Ok(Packet::Request(request)) = Packet::parse(b"\0\x01x\0OcTeT\0BLKSIZE\x001024\0foo\0bar\0")
        else {
            panic!("no request")
        };
        assert_eq!((request.mode, request.options.block_size), (Mode::Octet, Some(1024)));
        assert_eq!(
            Packet::parse(b"\0\x05\0\x01gone"),
            Ok(Packet::Error(ErrorCode::NOT_FOUND, "gone".into()))
        );
        assert_eq!(
            Packet::parse("\0\x05\0\x01\x1b[2J\u{202e}x\r\ny\0".as_bytes()),
            Ok(Packet::Error(ErrorCode::NOT_FOUND, "\u{fffd}[2J\u{fffd}x\u{fffd}y".into()))
        );
        assert_eq!(parse(b"\0"), Err(Malformed::Short));
        assert_eq!(parse(b"\0\x04\0"), Err(Malformed::Short));
        assert_eq!(parse(b"\0\x09ab"), Err(Malformed::Operation(9)));
        assert_eq!(parse(b"\0\x01name"), Err(Malformed::Text));
        assert_eq!(parse(b"\0\x01\xff\0octet\0"), Err(Malformed::Text));
        assert_eq!(parse(b"\0\x01x\0mail\0"), Err(Malformed::Mode));
        assert_eq!(parse(b"\0\x01x\0octet\0blksize\0"), Err(Malformed::Text));
        let long = [b"\0\x01".as_slice(), &[b'x'; 600], b"\0octet\0"].concat();
        assert_eq!(parse(&long), Err(Malformed::LongRequest));
    }
}
