//! Streaming reader of pcap and pcapng files: any byte order, resolution and number of interfaces.

mod link;
mod segment;
mod window;

pub use link::LinkType;
pub use segment::{Checksum, Flow, Rejected, Segment, dissect};

use std::fmt;
use std::io::Read;
use std::ops::Range;

use pcap_parser::pcapng::{Block, PcapNGOption};
use pcap_parser::traits::PcapNGPacketBlock;
use pcap_parser::{
    PcapHeader, parse_block_be, parse_block_le, parse_pcap_frame, parse_pcap_frame_be,
    parse_pcap_frame_modified, parse_pcap_header,
};
use window::{Fill, Window};

/// The largest block or frame that is read, in bytes. Larger ones are an error.
pub const MAX_BLOCK_BYTES: usize = 16 << 20;
/// The most interfaces of one pcapng section.
pub const MAX_INTERFACES: usize = 4096;
/// Bytes of a pcap header.
const PCAP_HEADER_BYTES: usize = 24;
/// First bytes of a pcapng section header, and its byte-order magic.
const SECTION_HEADER: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
const LITTLE_ENDIAN_MAGIC: [u8; 4] = [0x4d, 0x3c, 0x2b, 0x1a];
/// Bytes of a section header that are needed to know its length.
const SECTION_FRONT_BYTES: usize = 12;
/// Bytes of a block's type and length.
const BLOCK_FRONT_BYTES: usize = 8;
/// Bytes before the packet in an enhanced packet block (type, length, interface, time, two lengths), and in a simple one.
const ENHANCED_FRONT_BYTES: usize = 28;
const SIMPLE_FRONT_BYTES: usize = 12;
/// The option of a packet with a comment, and that with its direction.
const COMMENT_OPTION: u16 = 1;
const FLAGS_OPTION: u16 = 2;
/// Smallest pcapng block.
const LEAST_BLOCK_BYTES: usize = 12;

/// A captured frame.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// Number in the file, from 1, as Wireshark counts.
    pub number: u64,
    /// Time stamp in nanoseconds since 1970.
    pub at_ns: u64,
    /// Interface in the file, from 0; sections count on.
    pub interface: u32,
    /// What `bytes` begins with.
    pub link: LinkType,
    /// The captured bytes.
    pub bytes: &'a [u8],
    /// Bytes of the frame on the wire.
    pub original_bytes: u32,
    /// It came in (true) or left (false), where the capture tells.
    pub is_inbound: Option<bool>,
    /// What the file says of it in words (`opt_comment`): lines that may be anybody's.
    pub comment: Option<&'a [u8]>,
}

/// What is wrong with a capture file, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct CaptureError {
    /// Where, in bytes from the beginning of the file.
    pub offset_bytes: u64,
    /// What is wrong.
    pub kind: CaptureErrorKind,
}

/// Kinds of damage.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum CaptureErrorKind {
    /// The file does not begin with the magic number of pcap or pcapng.
    NotACapture,
    /// The file ends in the middle of a header, block or frame.
    Truncated,
    /// A block or frame claims this many bytes, more than [`MAX_BLOCK_BYTES`].
    TooLong(u64),
    /// A pcapng block's length is below its minimum or not a multiple of 4: this many bytes.
    BlockLength(u64),
    /// A pcapng block's fields contradict its length.
    Block,
    /// A packet names an interface that was not described.
    Interface(u32),
    /// More than [`MAX_INTERFACES`] interfaces.
    TooManyInterfaces,
    /// The operating system's reader failed; its message.
    Read(String),
}

impl fmt::Display for CaptureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}: ", self.offset_bytes)?;
        match &self.kind {
            CaptureErrorKind::NotACapture => f.write_str("this is neither a pcap nor a pcapng file"),
            CaptureErrorKind::Truncated => f.write_str("the file ends in the middle of a frame"),
            CaptureErrorKind::TooLong(bytes) => {
                write!(f, "a frame or block claims {bytes} bytes; the limit is {MAX_BLOCK_BYTES}")
            }
            CaptureErrorKind::BlockLength(bytes) => write!(f, "{bytes} is not a length of a pcapng block"),
            CaptureErrorKind::Block => f.write_str("the fields of a pcapng block contradict its length"),
            CaptureErrorKind::Interface(number) => {
                write!(f, "a packet names interface {number}, which the file does not describe")
            }
            CaptureErrorKind::TooManyInterfaces => {
                write!(f, "the file describes more than {MAX_INTERFACES} interfaces")
            }
            CaptureErrorKind::Read(why) => write!(f, "reading failed: {why}"),
        }
    }
}
impl std::error::Error for CaptureError {}

/// A described interface.
#[derive(Clone, Copy)]
struct Interface {
    link: LinkType,
    units_per_second: u64,
    offset_s: i64,
    snap_bytes: u32,
}

enum Format {
    Pcap { header: PcapHeader, link: LinkType },
    PcapNg { is_big_endian: bool, interfaces: Vec<Interface>, first: u32 },
}

/// Reader of a capture: give it bytes from anywhere, and take frames until there is none.
pub struct Reader<R: Read> {
    window: Window<R>,
    format: Format,
    frames: u64,
}

/// A frame whose bytes are still in the window.
struct Found {
    at_ns: u64,
    interface: u32,
    link: LinkType,
    bytes: Range<usize>,
    original_bytes: u32,
    is_inbound: Option<bool>,
    comment: Option<Range<usize>>,
    block_bytes: usize,
}

impl<R: Read> Reader<R> {
    /// Reads the header.
    pub fn new(source: R) -> Result<Self, CaptureError> {
        let mut window = Window::new(source);
        window.fill(PCAP_HEADER_BYTES)?;
        let front = window.bytes();
        let format = if front.starts_with(&SECTION_HEADER) {
            Format::PcapNg { is_big_endian: false, interfaces: Vec::new(), first: 0 }
        } else {
            let header = match parse_pcap_header(front) {
                Ok((_, header)) => header,
                Err(pcap_parser::nom::Err::Incomplete(_)) if front.len() >= 4 => {
                    return Err(window.error(CaptureErrorKind::Truncated));
                }
                Err(_) => return Err(window.error(CaptureErrorKind::NotACapture)),
            };
            window.consume(PCAP_HEADER_BYTES);
            // The upper bits tell of frame check sequences.
            let link = LinkType::from_number(header.network.0 as u32 & 0xffff);
            Format::Pcap { header, link }
        };
        Ok(Reader { window, format, frames: 0 })
    }
    /// The next frame, or `None` at the end of the file. After an error there is nothing more.
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, CaptureError> {
        let found = match &self.format {
            Format::Pcap { .. } => self.find_in_pcap()?,
            Format::PcapNg { .. } => self.find_in_pcapng()?,
        };
        let Some(found) = found else { return Ok(None) };
        self.frames += 1;
        let Found { at_ns, interface, link, bytes, original_bytes, is_inbound, comment, block_bytes } = found;
        let block = self.window.take(block_bytes);
        Ok(Some(Frame {
            number: self.frames,
            at_ns,
            interface,
            link,
            bytes: block.get(bytes).unwrap_or_default(),
            original_bytes,
            is_inbound,
            comment: comment.and_then(|place| block.get(place)),
        }))
    }
    /// Bytes of the file that were read.
    pub fn offset_bytes(&self) -> u64 {
        self.window.offset_bytes()
    }

    fn find_in_pcap(&mut self) -> Result<Option<Found>, CaptureError> {
        let Format::Pcap { header, link } = &self.format else { return Ok(None) };
        let front_bytes = if header.is_modified_format() { 24 } else { 16 };
        if self.window.fill(front_bytes)? == Fill::Empty {
            return Ok(None);
        }
        let is_big_endian = header.is_bigendian();
        let front = self.window.bytes();
        let Some(length) = front.get(8..).and_then(<[u8]>::first_chunk::<4>) else {
            return Err(self.window.error(CaptureErrorKind::Truncated));
        };
        let length = if is_big_endian { u32::from_be_bytes(*length) } else { u32::from_le_bytes(*length) };
        if length as usize > MAX_BLOCK_BYTES {
            return Err(self.window.error(CaptureErrorKind::TooLong(length.into())));
        }
        let block_bytes = front_bytes + length as usize;
        self.window.fill(block_bytes)?;
        let parse = match (header.is_modified_format(), is_big_endian) {
            (true, _) => parse_pcap_frame_modified,
            (false, true) => parse_pcap_frame_be,
            (false, false) => parse_pcap_frame,
        };
        let Ok((_, frame)) = parse(self.window.bytes()) else {
            return Err(self.window.error(CaptureErrorKind::Truncated));
        };
        let part_ns = u64::from(frame.ts_usec) * if header.is_nanosecond_precision() { 1 } else { 1000 };
        Ok(Some(Found {
            at_ns: u64::from(frame.ts_sec) * 1_000_000_000 + part_ns,
            interface: 0,
            link: *link,
            bytes: front_bytes..block_bytes,
            original_bytes: frame.origlen.max(length),
            is_inbound: None,
            comment: None,
            block_bytes,
        }))
    }

    fn find_in_pcapng(&mut self) -> Result<Option<Found>, CaptureError> {
        let Format::PcapNg { is_big_endian, interfaces, first } = &mut self.format else { return Ok(None) };
        let window = &mut self.window;
        loop {
            if window.fill(SECTION_FRONT_BYTES)? == Fill::Empty {
                return Ok(None);
            }
            let Some(front) = window.bytes().first_chunk::<SECTION_FRONT_BYTES>() else {
                return Err(window.error(CaptureErrorKind::Truncated));
            };
            let is_section = front.starts_with(&SECTION_HEADER);
            if is_section {
                *is_big_endian = !front.ends_with(&LITTLE_ENDIAN_MAGIC);
                *first = first.saturating_add(interfaces.len() as u32);
                interfaces.clear();
            }
            let &[.., a, b, c, d] =
                front.first_chunk::<BLOCK_FRONT_BYTES>().unwrap_or(&[0; BLOCK_FRONT_BYTES]);
            let length = [a, b, c, d];
            let length = if *is_big_endian { u32::from_be_bytes(length) } else { u32::from_le_bytes(length) };
            let block_bytes = length as usize;
            if block_bytes > MAX_BLOCK_BYTES {
                return Err(window.error(CaptureErrorKind::TooLong(length.into())));
            }
            if block_bytes < LEAST_BLOCK_BYTES || !block_bytes.is_multiple_of(4) {
                return Err(window.error(CaptureErrorKind::BlockLength(length.into())));
            }
            window.fill(block_bytes)?;
            let Some(block) = window.bytes().get(..block_bytes) else {
                return Err(window.error(CaptureErrorKind::Truncated));
            };
            let parse = if *is_big_endian { parse_block_be } else { parse_block_le };
            let Ok((_, parsed)) = parse(block) else { return Err(window.error(CaptureErrorKind::Block)) };
            let packet = match packet_of(parsed, interfaces, *is_big_endian, block.as_ptr() as usize) {
                Ok(packet) => packet,
                Err(kind) => return Err(window.error(kind)),
            };
            let Some(packet) = packet else {
                window.consume(block_bytes);
                continue;
            };
            let Packet { interface, from, captured, .. } = packet;
            return Ok(Some(Found {
                at_ns: packet.units.map_or(0, |units| nanoseconds(units, &interface)),
                interface: first.saturating_add(packet.number),
                link: interface.link,
                bytes: from..from + captured,
                original_bytes: packet.original_bytes.max(captured as u32),
                is_inbound: packet.is_inbound,
                comment: packet.comment,
                block_bytes,
            }));
        }
    }
}

/// A packet in its block.
struct Packet {
    /// Of the interface in its section.
    number: u32,
    interface: Interface,
    /// Time stamp in the interface's units, where there is one.
    units: Option<u64>,
    /// Where its bytes begin, and how many there are.
    from: usize,
    captured: usize,
    original_bytes: u32,
    is_inbound: Option<bool>,
    /// Where its comment is in the block.
    comment: Option<Range<usize>>,
}

/// Takes a block: the packet in it, or a description of an interface to keep.
fn packet_of(
    block: Block<'_>,
    interfaces: &mut Vec<Interface>,
    is_big_endian: bool,
    place: usize,
) -> Result<Option<Packet>, CaptureErrorKind> {
    match block {
        Block::InterfaceDescription(described) => {
            if interfaces.len() == MAX_INTERFACES {
                return Err(CaptureErrorKind::TooManyInterfaces);
            }
            interfaces.push(Interface {
                link: LinkType::from_number(described.linktype.0 as u32 & 0xffff),
                units_per_second: described.ts_resolution().unwrap_or(1_000_000).max(1),
                offset_s: described.ts_offset(),
                snap_bytes: if described.snaplen == 0 { u32::MAX } else { described.snaplen },
            });
            Ok(None)
        }
        Block::EnhancedPacket(packet) => {
            let number = packet.if_id;
            let interface = *interfaces.get(number as usize).ok_or(CaptureErrorKind::Interface(number))?;
            Ok(Some(Packet {
                number,
                interface,
                units: Some(u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low)),
                from: ENHANCED_FRONT_BYTES,
                captured: packet.packet_data().len(),
                original_bytes: packet.origlen,
                is_inbound: is_inbound(&packet.options, is_big_endian),
                comment: comment(&packet.options, place),
            }))
        }
        Block::SimplePacket(packet) => {
            let interface = *interfaces.first().ok_or(CaptureErrorKind::Interface(0))?;
            Ok(Some(Packet {
                number: 0,
                interface,
                units: None,
                from: SIMPLE_FRONT_BYTES,
                captured: packet.packet_data().len().min(interface.snap_bytes as usize),
                original_bytes: packet.origlen,
                is_inbound: None,
                comment: None,
            }))
        }
        _ => Ok(None),
    }
}

/// Where the first comment is in a block that lies at `place`.
fn comment(options: &[PcapNGOption<'_>], place: usize) -> Option<Range<usize>> {
    let found = options.iter().find(|option| option.code.0 == COMMENT_OPTION)?;
    let from = (found.value.as_ptr() as usize).checked_sub(place)?;
    // Its value goes on to a multiple of four.
    Some(from..from + found.value.len().min(found.len.into()))
}

/// The direction in the two lowest bits of `epb_flags`: 1 came in, 2 left.
fn is_inbound(options: &[PcapNGOption<'_>], is_big_endian: bool) -> Option<bool> {
    let flags = options.iter().find(|option| option.code.0 == FLAGS_OPTION)?;
    let value = *flags.value.first_chunk::<4>()?;
    let value = if is_big_endian { u32::from_be_bytes(value) } else { u32::from_le_bytes(value) };
    match value & 3 {
        1 => Some(true),
        2 => Some(false),
        _ => None,
    }
}

/// A time stamp in nanoseconds since 1970; what lies outside of 63 bits is held at their end.
fn nanoseconds(units: u64, interface: &Interface) -> u64 {
    let ns = i128::from(units) * 1_000_000_000 / i128::from(interface.units_per_second);
    let ns = ns + i128::from(interface.offset_s) * 1_000_000_000;
    ns.clamp(0, i128::from(i64::MAX)) as u64
}
