//! The Internet Protocol, version 4 (RFC 791).

mod options;
mod route;
mod timestamp;

pub use options::{BadOption, MAX_ROUTE_HOPS, MAX_TIMESTAMPS, OptionPlace, OptionPlaces};
pub use route::{OptionBytes, SourceRoute};
pub use timestamp::{Timestamp, TimestampKind, TimestampOption, record_time};

use crate::Malformed;
use crate::checksum::{self, Sum};
use inhost_base::Ipv4Addr;

/// Bytes of a header without options.
pub const LENGTH: usize = 20;
/// Most bytes that options can take.
pub const MAX_OPTIONS_BYTES: usize = 40;
/// The Router Alert option (RFC 2113), which IGMP messages carry.
pub const ROUTER_ALERT: [u8; 4] = [0x94, 4, 0, 0];

const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;

/// A packet in place. Version, header length and total length are checked; the checksum is asked for apart.
#[derive(Clone, Copy, Debug)]
pub struct Ipv4View<'a> {
    header: &'a [u8; LENGTH],
    options: &'a [u8],
    payload: &'a [u8],
}

impl<'a> Ipv4View<'a> {
    /// Bytes beyond the total length are the link's padding and not seen again.
    #[inline]
    pub fn new(packet: &'a [u8]) -> Result<Self, Malformed> {
        let view = Self::of_front(packet)?;
        if packet.len() < view.total_length() { Err(Malformed::Truncated) } else { Ok(view) }
    }
    /// A packet of which `front` may have only the headers: the payload is as much as is there.
    // spec: RFC1122 3.2.1.1-1
    #[inline(always)]
    pub fn of_front(front: &'a [u8]) -> Result<Self, Malformed> {
        let (header, _) = front.split_first_chunk::<LENGTH>().ok_or(Malformed::Truncated)?;
        if header[0] >> 4 != 4 {
            return Err(Malformed::Version);
        }
        let header_length = usize::from(header[0] & 0xf) * 4;
        let total_length = usize::from(u16::from_be_bytes([header[2], header[3]]));
        if header_length < LENGTH {
            return Err(Malformed::HeaderLength);
        }
        if total_length < header_length {
            return Err(Malformed::Length);
        }
        let packet = front.get(..total_length).unwrap_or(front);
        let (headers, payload) = packet.split_at_checked(header_length).ok_or(Malformed::HeaderLength)?;
        let options = headers.get(LENGTH..).unwrap_or_default();
        Ok(Ipv4View { header, options, payload })
    }
    /// Whether the header checksum is right.
    // spec: RFC1122 3.2.1.2-1
    #[inline(always)]
    pub fn checksum_ok(&self) -> bool {
        let sum = sum_of(self.header);
        if self.options.is_empty() { sum.is_valid() } else { sum.add_bytes(self.options).is_valid() }
    }
    /// Whether it has no options and is not a fragment, and its reserved bit is 0.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.options.is_empty() && self.fragment_word() & !DONT_FRAGMENT == 0
    }
    /// Differentiated services (six bits) and ECN (two bits); once type of service.
    #[inline]
    pub fn dscp_ecn(&self) -> u8 {
        self.header[1]
    }
    /// Bytes of header and options.
    #[inline]
    pub fn header_length(&self) -> usize {
        LENGTH + self.options.len()
    }
    /// Bytes of header, options and payload, as the header says.
    #[inline]
    pub fn total_length(&self) -> usize {
        usize::from(u16::from_be_bytes([self.header[2], self.header[3]]))
    }
    /// The identification, which fragments of one datagram share.
    pub fn identification(&self) -> u16 {
        u16::from_be_bytes([self.header[4], self.header[5]])
    }
    #[inline]
    fn fragment_word(&self) -> u16 {
        u16::from_be_bytes([self.header[6], self.header[7]])
    }
    /// DF.
    pub fn dont_fragment(&self) -> bool {
        self.fragment_word() & DONT_FRAGMENT != 0
    }
    /// MF.
    pub fn more_fragments(&self) -> bool {
        self.fragment_word() & MORE_FRAGMENTS != 0
    }
    /// Where the payload belongs in its datagram, in bytes; always a multiple of 8.
    pub fn fragment_offset_bytes(&self) -> u16 {
        self.fragment_word() << 3
    }
    /// Whether this is a part of a datagram, not a whole one.
    pub fn is_fragment(&self) -> bool {
        self.fragment_word() & !(DONT_FRAGMENT | 0x8000) != 0
    }
    /// Hops it may still travel.
    #[inline]
    pub fn time_to_live(&self) -> u8 {
        self.header[8]
    }
    /// Protocol of the payload, as in [`crate::protocol`].
    #[inline]
    pub fn protocol(&self) -> u8 {
        self.header[9]
    }
    /// The sender.
    pub fn source(&self) -> Ipv4Addr {
        Ipv4Addr::new(self.header[12], self.header[13], self.header[14], self.header[15])
    }
    /// The receiver.
    pub fn destination(&self) -> Ipv4Addr {
        Ipv4Addr::new(self.header[16], self.header[17], self.header[18], self.header[19])
    }
    /// The options, raw: a multiple of 4 bytes, at most [`MAX_OPTIONS_BYTES`].
    pub fn options(&self) -> &'a [u8] {
        self.options
    }
    /// The payload, up to the total length.
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }
}

/// The header as a value.
///
/// ```
/// use inhost_base::Ipv4Addr;
/// use inhost_wire::ipv4::{Ipv4Header, Ipv4View};
/// use inhost_wire::protocol;
/// let (source, destination) = (Ipv4Addr::new(10, 0, 0, 2), Ipv4Addr::new(10, 0, 0, 1));
/// let header = Ipv4Header::new(source, destination, protocol::UDP, 5);
/// let mut packet = [0; 25];
/// let length = header.emit(&mut packet);
/// packet[length..].copy_from_slice(b"hello");
///
/// let view = Ipv4View::new(&packet).unwrap();
/// assert!(view.checksum_ok());
/// assert_eq!((Ipv4Header::parse(&view), view.payload()), (header, &b"hello"[..]));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ipv4Header {
    /// Differentiated services (six bits) and ECN (two bits).
    pub dscp_ecn: u8,
    /// The identification, which fragments of one datagram share.
    pub identification: u16,
    /// Routers must not fragment.
    pub dont_fragment: bool,
    /// This is a fragment, and not the last.
    pub more_fragments: bool,
    /// Where the payload belongs in its datagram; a multiple of 8.
    pub fragment_offset_bytes: u16,
    /// Hops it may travel.
    pub time_to_live: u8,
    /// Protocol of the payload, as in [`crate::protocol`].
    pub protocol: u8,
    /// The sender.
    pub source: Ipv4Addr,
    /// The receiver.
    pub destination: Ipv4Addr,
    /// Bytes after header and options.
    pub payload_length: u16,
}

impl Ipv4Header {
    /// A whole datagram that may not be fragmented, with identification 0 (RFC 6864 §4.1) and 64 hops.
    pub const fn new(source: Ipv4Addr, destination: Ipv4Addr, protocol: u8, payload_length: u16) -> Self {
        Ipv4Header {
            dscp_ecn: 0,
            identification: 0,
            dont_fragment: true,
            more_fragments: false,
            fragment_offset_bytes: 0,
            time_to_live: 64,
            protocol,
            source,
            destination,
            payload_length,
        }
    }
    /// The header that `view` shows, without its options.
    pub fn parse(view: &Ipv4View<'_>) -> Self {
        Ipv4Header {
            dscp_ecn: view.dscp_ecn(),
            identification: view.identification(),
            dont_fragment: view.dont_fragment(),
            more_fragments: view.more_fragments(),
            fragment_offset_bytes: view.fragment_offset_bytes(),
            time_to_live: view.time_to_live(),
            protocol: view.protocol(),
            source: view.source(),
            destination: view.destination(),
            // At most the total length, which is 16 bits.
            payload_length: view.payload.len() as u16,
        }
    }
    /// Writes [`LENGTH`] bytes with their checksum; 0 when `buffer` is shorter or the total length exceeds 65,535.
    pub fn emit(&self, buffer: &mut [u8]) -> usize {
        self.emit_with_options(&[], buffer)
    }
    /// Writes header and `options` (a multiple of 4 bytes, at most 40) with the checksum over both; 0 when they
    /// do not fit. A fragment offset is rounded down to a multiple of 8.
    pub fn emit_with_options(&self, options: &[u8], buffer: &mut [u8]) -> usize {
        let header_length = LENGTH + options.len();
        let total = header_length + usize::from(self.payload_length);
        if options.len() > MAX_OPTIONS_BYTES || !options.len().is_multiple_of(4) {
            return 0;
        }
        let Ok(total_length) = u16::try_from(total) else { return 0 };
        let Some((place, rest)) = buffer.split_first_chunk_mut::<LENGTH>() else { return 0 };
        let Some(options_place) = rest.get_mut(..options.len()) else { return 0 };
        let addresses = checksum::words_of(self.source.into()) + checksum::words_of(self.destination.into());
        let behind = u64::from(Sum::of(options).folded());
        self.emit_fixed(options.len(), total_length, addresses + behind, place);
        options_place.copy_from_slice(options);
        header_length
    }
    /// Writes the fixed part, each word summed as it is written. `others` are the words of both addresses and of the
    /// options, added.
    #[inline]
    pub(crate) fn emit_fixed(
        &self,
        options_bytes: usize,
        total_length: u16,
        others: u64,
        place: &mut [u8; LENGTH],
    ) {
        let header_words = ((LENGTH + options_bytes) / 4) as u16;
        let first = 0x4000 | header_words << 8 | u16::from(self.dscp_ecn);
        let mut fragment = self.fragment_offset_bytes >> 3;
        if self.dont_fragment {
            fragment |= DONT_FRAGMENT;
        }
        if self.more_fragments {
            fragment |= MORE_FRAGMENTS;
        }
        let second = u32::from(self.identification) << 16 | u32::from(fragment);
        let hops = u16::from(self.time_to_live) << 8 | u16::from(self.protocol);
        let words = u64::from(first) + u64::from(total_length) + u64::from(second) + u64::from(hops);
        let sum = Sum::of_words(words + others);
        place[..2].copy_from_slice(&first.to_be_bytes());
        place[2..4].copy_from_slice(&total_length.to_be_bytes());
        place[4..8].copy_from_slice(&second.to_be_bytes());
        place[8..10].copy_from_slice(&hops.to_be_bytes());
        place[10..12].copy_from_slice(&sum.finish().to_be_bytes());
        place[12..16].copy_from_slice(&self.source.octets());
        place[16..].copy_from_slice(&self.destination.octets());
    }
}

/// The sum of a header without options.
#[inline(always)]
pub(crate) fn sum_of(header: &[u8; LENGTH]) -> Sum {
    Sum::of_native(header.as_chunks::<4>().0.iter().map(|word| u64::from(u32::from_ne_bytes(*word))).sum())
}

/// Takes one hop from the packet that begins with a header of at least [`LENGTH`] bytes; the checksum is mended, not
/// made anew, so that a header that was spoilt meanwhile stays so.
// spec: RFC1812 5.3.1
pub fn decrement_time_to_live(header: &mut [u8]) {
    let Some(header) = header.first_chunk_mut::<LENGTH>() else { return };
    let old = u16::from_be_bytes([header[8], header[9]]);
    header[8] = header[8].saturating_sub(1);
    let new = u16::from_be_bytes([header[8], header[9]]);
    let sum = u16::from_be_bytes([header[10], header[11]]);
    header[10..12].copy_from_slice(&checksum::update(sum, old, new).to_be_bytes());
}

/// Changes the destination and recomputes the checksum, options included: done by a hop of a source route.
pub fn readdress(header: &mut [u8], destination: Ipv4Addr) {
    if let Some(place) = header.get_mut(16..LENGTH) {
        place.copy_from_slice(&destination.octets());
    }
    renew_checksum(header);
}

/// Makes the checksum of a header with its options anew.
pub fn renew_checksum(header: &mut [u8]) {
    if let Some(place) = header.get_mut(10..12) {
        place.fill(0);
    }
    let checksum = Sum::of(header).finish();
    if let Some(place) = header.get_mut(10..12) {
        place.copy_from_slice(&checksum.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A SYN from a Linux host, its TCP header cut off here.
    const REAL: [u8; 20] = [
        0x45, 0x00, 0x00, 0x3c, 0x1c, 0x46, 0x40, 0x00, 0x40, 0x06, 0xb1, 0xe6, 0xac, 0x10, 0x0a, 0x63, 0xac,
        0x10, 0x0a, 0x0c,
    ];

    fn packet() -> Vec<u8> {
        let mut packet = REAL.to_vec();
        packet.resize(64, 7);
        packet
    }

    #[test]
    fn a_real_header_is_read_and_written_again() {
        let packet = packet();
        let view = Ipv4View::new(&packet).unwrap();
        // spec: RFC1122 3.2.1.2-1
        assert!(view.checksum_ok());
        assert_eq!(view.payload().len(), 40, "padding is trimmed");
        let header = Ipv4Header::parse(&view);
        assert_eq!(header.source, Ipv4Addr::new(172, 16, 10, 99));
        assert_eq!((header.protocol, header.dont_fragment, header.time_to_live), (6, true, 64));
        assert!(!view.is_fragment());
        let mut out = [0xee; 20];
        assert_eq!(header.emit(&mut out), 20);
        assert_eq!(out, REAL);
    }

    #[test]
    fn any_changed_bit_breaks_the_checksum() {
        for bit in 0..160 {
            let mut packet = packet();
            packet[bit / 8] ^= 0x80 >> (bit % 8);
            if let Ok(view) = Ipv4View::new(&packet) {
                assert!(!view.checksum_ok(), "bit {bit}");
            }
        }
    }

    #[test]
    fn lengths_are_checked() {
        let good = packet();
        let with = |at: usize, value: u8| {
            let mut bad = good.clone();
            bad[at] = value;
            Ipv4View::new(&bad).err()
        };
        // spec: RFC1122 3.2.1.1-1
        assert_eq!(with(0, 0x65), Some(Malformed::Version));
        assert_eq!(with(0, 0x44), Some(Malformed::HeaderLength));
        assert_eq!(with(3, 19), Some(Malformed::Length));
        assert_eq!(with(3, 65), Some(Malformed::Truncated));
        assert_eq!(with(0, 0x4f), None, "all of the header may be options");
        assert_eq!(Ipv4View::new(&good[..19]).err(), Some(Malformed::Truncated));
    }

    #[test]
    fn options_and_fragments_survive_the_wire() {
        let mut header = Ipv4Header::new(Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(224, 0, 0, 2), 2, 8);
        header.dont_fragment = false;
        header.more_fragments = true;
        header.fragment_offset_bytes = 65_528;
        let mut packet = [0; 32];
        assert_eq!(header.emit_with_options(&ROUTER_ALERT, &mut packet), 24);
        let view = Ipv4View::new(&packet).unwrap();
        assert!(view.checksum_ok() && view.is_fragment());
        assert_eq!(view.options(), ROUTER_ALERT);
        assert_eq!(Ipv4Header::parse(&view), header);
        assert_eq!(header.emit_with_options(&[0; 3], &mut packet), 0);
        header.payload_length = 65_516;
        assert_eq!(header.emit(&mut packet), 0, "a total length of 65,536 has no field");
    }
}
