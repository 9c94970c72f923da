//! The Transmission Control Protocol's segment (RFC 9293 §3.1).
//!
//! [`TcpView`] reads a segment in place, [`Segment`] is its value, and [`TcpHeader`] is the value without the payload,
//! which a sender writes before data in other memory.

mod options;

pub use options::{FastOpenCookie, MAX_OPTIONS_BYTES, MAX_SACK_BLOCKS, SackBlocks, TcpOptions};
pub(crate) use options::{TIMESTAMPS_BYTES, emit_timestamps_alone};

use crate::checksum::{Sum, pseudo_header};
use crate::{Malformed, protocol};
use core::fmt;
use inhost_base::{IpAddr, Sequence};

/// Bytes of a header without options.
pub const LENGTH: usize = 20;
/// Most bytes of a header.
pub const MAX_LENGTH: usize = LENGTH + MAX_OPTIONS_BYTES;

/// The control bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct Flags(u16);

bitflags::bitflags! {
    impl Flags: u16 {
        /// Synchronise sequence numbers.
        const SYN = 0x002;
        /// No more data from the sender.
        const FIN = 0x001;
        /// Reset the connection.
        const RST = 0x004;
        /// Push.
        const PSH = 0x008;
        /// The acknowledgment field means something.
        const ACK = 0x010;
        /// The urgent pointer means something.
        const URG = 0x020;
        /// Congestion echoed (RFC 3168 §6.1).
        const ECE = 0x040;
        /// Congestion window reduced (RFC 3168 §6.1).
        const CWR = 0x080;
        /// Nonce sum (RFC 3540, historic), now the AE bit of accurate ECN.
        const NS = 0x100;
    }
}

impl Flags {
    /// FIN is set.
    pub const fn fin(self) -> bool {
        self.contains(Flags::FIN)
    }
    /// SYN is set.
    pub const fn syn(self) -> bool {
        self.contains(Flags::SYN)
    }
    /// RST is set.
    pub const fn rst(self) -> bool {
        self.contains(Flags::RST)
    }
    /// PSH is set.
    pub const fn psh(self) -> bool {
        self.contains(Flags::PSH)
    }
    /// ACK is set.
    pub const fn ack(self) -> bool {
        self.contains(Flags::ACK)
    }
    /// URG is set.
    pub const fn urg(self) -> bool {
        self.contains(Flags::URG)
    }
    /// ECE is set.
    pub const fn ece(self) -> bool {
        self.contains(Flags::ECE)
    }
    /// CWR is set.
    pub const fn cwr(self) -> bool {
        self.contains(Flags::CWR)
    }
}

impl fmt::Debug for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        inhost_base::write_names(f, self.iter_names().map(|(name, _)| name))
    }
}

/// A segment in place.
#[derive(Clone, Copy, Debug)]
pub struct TcpView<'a> {
    header: &'a [u8; LENGTH],
    options: &'a [u8],
    payload: &'a [u8],
}

impl<'a> TcpView<'a> {
    /// Checks the data offset. Reserved bits are ignored.
    #[inline(always)]
    pub fn new(segment: &'a [u8]) -> Result<Self, Malformed> {
        let (header, rest) = segment.split_first_chunk::<LENGTH>().ok_or(Malformed::Truncated)?;
        let header_length = usize::from(header[12] >> 4) * 4;
        let options_length = header_length.checked_sub(LENGTH).ok_or(Malformed::HeaderLength)?;
        let (options, payload) = rest.split_at_checked(options_length).ok_or(Malformed::HeaderLength)?;
        Ok(TcpView { header, options, payload })
    }
    #[inline]
    fn u16_at<const AT: usize>(&self) -> u16 {
        u16::from_be_bytes([self.header[AT], self.header[AT + 1]])
    }
    #[inline]
    fn u32_at<const AT: usize>(&self) -> u32 {
        let header = self.header;
        u32::from_be_bytes([header[AT], header[AT + 1], header[AT + 2], header[AT + 3]])
    }
    /// The sender's port.
    #[inline]
    pub fn source_port(&self) -> u16 {
        self.u16_at::<0>()
    }
    /// The receiver's port.
    #[inline]
    pub fn destination_port(&self) -> u16 {
        self.u16_at::<2>()
    }
    /// The number of the first byte, or of the SYN.
    #[inline]
    pub fn sequence(&self) -> Sequence {
        Sequence(self.u32_at::<4>())
    }
    /// The number expected next, when ACK is set.
    #[inline]
    pub fn acknowledgment(&self) -> Sequence {
        Sequence(self.u32_at::<8>())
    }
    /// The control bits.
    #[inline]
    pub fn flags(&self) -> Flags {
        Flags::from_bits_truncate(self.u16_at::<12>())
    }
    /// The window field, not scaled.
    #[inline]
    pub fn window(&self) -> u16 {
        self.u16_at::<14>()
    }
    /// The checksum field.
    pub fn checksum(&self) -> u16 {
        self.u16_at::<16>()
    }
    /// The urgent pointer, when URG is set.
    #[inline]
    pub fn urgent_pointer(&self) -> u16 {
        self.u16_at::<18>()
    }
    /// The option list, raw.
    #[inline]
    pub fn options(&self) -> &'a [u8] {
        self.options
    }
    /// The data.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }
    /// Bytes of header and options.
    #[inline]
    pub fn header_length(&self) -> usize {
        LENGTH + self.options.len()
    }
    /// The header as a value. It cannot fail: malformed options are left out.
    #[inline]
    pub fn header(&self) -> TcpHeader {
        TcpHeader {
            source_port: self.source_port(),
            destination_port: self.destination_port(),
            sequence: self.sequence(),
            acknowledgment: self.acknowledgment(),
            flags: self.flags(),
            window: self.window(),
            urgent_pointer: self.urgent_pointer(),
            options: if self.options.is_empty() { TcpOptions::NONE } else { TcpOptions::parse(self.options) },
        }
    }
    /// The header as a plain one, where it says no more than that: ACK, perhaps PSH, and no option but timestamps.
    #[inline]
    pub fn plain_header(&self) -> Option<PlainHeader> {
        let flags = self.flags();
        if flags.difference(Flags::PSH) != Flags::ACK {
            return None;
        }
        let timestamps = match self.options {
            [] => None,
            options => Some(options::timestamps_alone(options)?),
        };
        Some(PlainHeader {
            sequence: self.sequence(),
            acknowledgment: self.acknowledgment(),
            window: self.window(),
            flags,
            timestamps,
        })
    }
    /// Whether the checksum is right for a segment between these addresses. There is no leaving it out.
    // spec: RFC9293 MUST-3
    pub fn checksum_ok(&self, source: IpAddr, destination: IpAddr) -> bool {
        let length = self.header_length() + self.payload.len();
        self.checksum_ok_with(pseudo_header(source, destination, protocol::TCP, length as u32))
    }
    /// As [`TcpView::checksum_ok`], with the pseudo-header's sum (its length included) at hand.
    pub fn checksum_ok_with(&self, pseudo_header: Sum) -> bool {
        pseudo_header.add_bytes(self.header).add_bytes(self.options).add_bytes(self.payload).is_valid()
    }
}

/// A segment as a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Segment<'a> {
    /// The sender's port.
    pub source_port: u16,
    /// The receiver's port.
    pub destination_port: u16,
    /// The number of the first byte, or of the SYN.
    pub sequence: Sequence,
    /// The number expected next, when ACK is set.
    pub acknowledgment: Sequence,
    /// The control bits.
    pub flags: Flags,
    /// The window field, not scaled.
    pub window: u16,
    /// Offset of the last urgent byte from `sequence`, when URG is set (RFC 9293 §3.8.5).
    pub urgent_pointer: u16,
    /// The options.
    pub options: TcpOptions,
    /// The data.
    pub payload: &'a [u8],
}

impl<'a> Segment<'a> {
    /// The segment that `view` shows. It cannot fail: malformed options are left out.
    pub fn parse(view: &TcpView<'a>) -> Self {
        view.header().with_payload(view.payload)
    }
    /// Sequence numbers that the segment occupies: its data, and one each for SYN and FIN (SEG.LEN of RFC 9293).
    pub fn sequence_length(&self) -> u32 {
        (self.payload.len() as u32)
            .wrapping_add(u32::from(self.flags.syn()))
            .wrapping_add(u32::from(self.flags.fin()))
    }
    /// The number after the last that the segment occupies.
    pub fn sequence_end(&self) -> Sequence {
        self.sequence + self.sequence_length()
    }
    /// The segment without its payload.
    pub fn header(&self) -> TcpHeader {
        TcpHeader {
            source_port: self.source_port,
            destination_port: self.destination_port,
            sequence: self.sequence,
            acknowledgment: self.acknowledgment,
            flags: self.flags,
            window: self.window,
            urgent_pointer: self.urgent_pointer,
            options: self.options,
        }
    }
    /// Bytes that [`Segment::emit`] writes.
    pub fn length(&self) -> usize {
        self.header().length() + self.payload.len()
    }
    /// Writes header, options and payload with the checksum for these addresses; their length, or 0 when
    /// `buffer` is too short.
    // spec: RFC9293 MUST-2
    pub fn emit(&self, source: IpAddr, destination: IpAddr, buffer: &mut [u8]) -> usize {
        let header_length = self.header().emit(buffer);
        let length = header_length + self.payload.len();
        let Some((header, rest)) = buffer.split_at_mut_checked(header_length) else { return 0 };
        let Some(place) = rest.get_mut(..self.payload.len()) else { return 0 };
        if header_length == 0 {
            return 0;
        }
        place.copy_from_slice(self.payload);
        let pseudo_header = pseudo_header(source, destination, protocol::TCP, length as u32);
        fill_checksum(header, pseudo_header, Sum::of(self.payload));
        length
    }
}

/// The header of a segment with nothing but data, acknowledgment and timestamps, as established connections exchange in
/// most cases; or of a FIN without data, where it is to be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PlainHeader {
    /// The number of the first byte.
    pub sequence: Sequence,
    /// The number expected next.
    pub acknowledgment: Sequence,
    /// The window field, not scaled.
    pub window: u16,
    /// The control bits: ACK, perhaps PSH, and where it is to be written perhaps FIN. One that was read never has FIN.
    pub flags: Flags,
    /// TSval and TSecr.
    pub timestamps: Option<(u32, u32)>,
}

impl PlainHeader {
    /// Its fixed part.
    #[inline]
    pub(crate) fn fixed(&self, ports: (u16, u16), options_bytes: usize) -> FixedHeader {
        let PlainHeader { sequence, acknowledgment, window, flags, .. } = *self;
        FixedHeader { ports, sequence, acknowledgment, flags, window, urgent_pointer: 0, options_bytes }
    }
    /// The same as any header, ports 0.
    #[inline]
    pub fn full(&self) -> TcpHeader {
        TcpHeader {
            sequence: self.sequence,
            acknowledgment: self.acknowledgment,
            flags: self.flags,
            window: self.window,
            options: TcpOptions { timestamps: self.timestamps, ..TcpOptions::NONE },
            ..TcpHeader::default()
        }
    }
}

/// A segment without its payload, to be written before data in other memory.
///
/// ```
/// use inhost_base::Sequence;
/// use inhost_wire::tcp::{Flags, Segment, TcpHeader, TcpView};
/// let header = TcpHeader {
///     source_port: 49_152,
///     destination_port: 80,
///     sequence: Sequence(100),
///     flags: Flags::SYN,
///     window: 65_535,
///     ..TcpHeader::default()
/// };
/// let (source, destination) = ("10.0.0.2".parse()?, "10.0.0.1".parse()?);
/// let mut bytes = [0; 64];
/// let length = header.with_payload(b"").emit(source, destination, &mut bytes);
///
/// let view = TcpView::new(&bytes[..length]).unwrap();
/// assert!(view.checksum_ok(source, destination));
/// assert_eq!(Segment::parse(&view).header(), header);
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct TcpHeader {
    /// The sender's port.
    pub source_port: u16,
    /// The receiver's port.
    pub destination_port: u16,
    /// The number of the first byte, or of the SYN.
    pub sequence: Sequence,
    /// The number expected next, when ACK is set.
    pub acknowledgment: Sequence,
    /// The control bits.
    pub flags: Flags,
    /// The window field, not scaled.
    pub window: u16,
    /// Offset of the last urgent byte from `sequence`, when URG is set.
    pub urgent_pointer: u16,
    /// The options.
    pub options: TcpOptions,
}

impl TcpHeader {
    /// The same as a plain header, where it says no more than that. The urgent pointer means nothing without URG.
    #[inline]
    pub fn plain(&self) -> Option<PlainHeader> {
        let timestamps = self.options.timestamps;
        let is_plain = self.flags.difference(Flags::PSH) == Flags::ACK && self.options.is_plain();
        is_plain.then_some(PlainHeader {
            sequence: self.sequence,
            acknowledgment: self.acknowledgment,
            window: self.window,
            flags: self.flags,
            timestamps,
        })
    }
    /// Its fixed part, with other ports.
    pub(crate) fn fixed(&self, ports: (u16, u16), options_bytes: usize) -> FixedHeader {
        let TcpHeader { sequence, acknowledgment, flags, window, urgent_pointer, .. } = *self;
        FixedHeader { ports, sequence, acknowledgment, flags, window, urgent_pointer, options_bytes }
    }
    /// Bytes that [`TcpHeader::emit`] writes: a multiple of 4, at most [`MAX_LENGTH`].
    pub fn length(&self) -> usize {
        LENGTH + self.options.length()
    }
    /// This header in front of `payload`.
    pub fn with_payload<'a>(&self, payload: &'a [u8]) -> Segment<'a> {
        Segment {
            source_port: self.source_port,
            destination_port: self.destination_port,
            sequence: self.sequence,
            acknowledgment: self.acknowledgment,
            flags: self.flags,
            window: self.window,
            urgent_pointer: self.urgent_pointer,
            options: self.options,
            payload,
        }
    }
    /// Writes header and options with a checksum field of 0, for [`fill_checksum`]; their length, or 0 when
    /// `buffer` is too short.
    pub fn emit(&self, buffer: &mut [u8]) -> usize {
        let Some((place, rest)) = buffer.split_first_chunk_mut::<LENGTH>() else { return 0 };
        let options_length = self.options.length();
        let Some(options_place) = rest.get_mut(..options_length) else { return 0 };
        self.options.emit(options_place);
        self.fixed((self.source_port, self.destination_port), options_length).emit(place);
        LENGTH + options_length
    }
}

/// The fixed part of a header.
#[derive(Clone, Copy)]
pub(crate) struct FixedHeader {
    pub ports: (u16, u16),
    pub sequence: Sequence,
    pub acknowledgment: Sequence,
    pub flags: Flags,
    pub window: u16,
    pub urgent_pointer: u16,
    pub options_bytes: usize,
}

impl FixedHeader {
    /// Writes it with a checksum field of 0; its words, added as they are written.
    #[inline(always)]
    pub(crate) fn emit(&self, place: &mut [u8; LENGTH]) -> u64 {
        let header_words = ((LENGTH + self.options_bytes) / 4) as u16;
        let offset_and_flags = header_words << 12 | self.flags.bits();
        let words = [
            u32::from(self.ports.0) << 16 | u32::from(self.ports.1),
            self.sequence.0,
            self.acknowledgment.0,
            u32::from(offset_and_flags) << 16 | u32::from(self.window),
            u32::from(self.urgent_pointer),
        ];
        for (place, word) in place.as_chunks_mut::<4>().0.iter_mut().zip(words) {
            *place = word.to_be_bytes();
        }
        words.iter().map(|&word| u64::from(word)).sum()
    }
}

/// Puts the checksum into `header`, as [`TcpHeader::emit`] wrote it. `pseudo_header` includes the segment's
/// whole length; `payload` is the sum of the data that follows the header.
// spec: RFC9293 MUST-2
pub fn fill_checksum(header: &mut [u8], pseudo_header: Sum, payload: Sum) {
    let Some(field) = header.get_mut(16..18) else { return };
    field.copy_from_slice(&[0, 0]);
    let checksum = pseudo_header.add_bytes(header).combine(payload, false).finish();
    if let Some(field) = header.get_mut(16..18) {
        field.copy_from_slice(&checksum.to_be_bytes());
    }
}

#[cfg(test)]
mod tests;
