//! Offloads in software: GSO frames split into segments, and checksums completed, for a device that does neither.
//!
//! The headers of the segments differ in a few fields, so the sum of the rest is made once, and each header is the one
//! before it with those fields changed.

use crate::checksum::Sum;
use crate::tcp::Flags;
use crate::{ethernet, ipv4, ipv6, protocol, tcp, udp};
use inhost_buf::{Device, Frame, Full, GsoType, Offload, Slices};

/// Room for the largest headers: link, IP and TCP with all options.
const HEADERS_BYTES: usize = ethernet::LENGTH + ipv4::LENGTH + ipv4::MAX_OPTIONS_BYTES + tcp::MAX_LENGTH;
/// Where IPv4 keeps its length, identification, and flags.
const V4_LENGTH: usize = 2;
const V4_IDENTIFICATION: usize = 4;
const V4_FLAGS: usize = 6;
const V4_CHECKSUM: usize = 10;
const DONT_FRAGMENT: u8 = 0x40;
/// Where IPv6 keeps its length.
const V6_LENGTH: usize = 4;
const TCP_SEQUENCE: usize = 4;
const TCP_FLAGS: usize = 13;
/// Where each transport keeps its checksum, after the start of its header.
pub const TCP_CHECKSUM_OFFSET: u16 = 16;
/// See [`TCP_CHECKSUM_OFFSET`].
pub const UDP_CHECKSUM_OFFSET: u16 = 6;
const UDP_LENGTH: usize = 4;

/// Software segmentation of one GSO frame.
#[derive(Clone, Debug)]
pub struct Segmenter<'a> {
    payload: Slices<'a>,
    segment_bytes: usize,
    count: usize,
    of: GsoType,
    is_v4: bool,
    network: usize,
    transport: usize,
    header_bytes: usize,
    /// The header of the segment that was made last.
    header: [u8; HEADERS_BYTES],
    /// The first segment's.
    sequence: u32,
    identification: u16,
    flags: u8,
    /// The sum of all that is the same in every segment's IPv4 header.
    network_sum: u16,
    /// That of the pseudo-header without the length.
    pseudo_sum: Sum,
    /// The sum of the pseudo-header and of the constant part of every transport header.
    transport_sum: u16,
    /// Of a TCP segment that differs from the one before in its sequence number and checksum alone, the sum of its headers
    /// but for these.
    repeated_sum: Option<u64>,
}

/// Number of segments of a GSO payload.
pub fn segments(payload_bytes: usize, segment_bytes: usize) -> usize {
    payload_bytes.div_ceil(segment_bytes.max(1)).max(1)
}

impl<'a> Segmenter<'a> {
    /// Prepares `frame`, whose IP header begins at `network_offset`. `None` when it is not a GSO frame, or is
    /// malformed.
    pub fn new(frame: &Frame<'a>, network_offset: usize) -> Option<Segmenter<'a>> {
        let Offload::Segment { of, segment_bytes, transport_offset } = frame.offload else { return None };
        let transport = usize::from(transport_offset);
        let header_bytes = frame.header.len();
        let mut header = [0; HEADERS_BYTES];
        header.get_mut(..header_bytes)?.copy_from_slice(frame.header);
        let is_v4 = match of {
            GsoType::TcpV4 => true,
            GsoType::TcpV6 => false,
            GsoType::Udp => frame.header.get(network_offset)? >> 4 == 4,
        };
        let least = network_offset + if is_v4 { ipv4::LENGTH } else { ipv6::LENGTH };
        let transport_bytes = match of {
            GsoType::Udp => udp::LENGTH,
            GsoType::TcpV4 | GsoType::TcpV6 => tcp::LENGTH,
        };
        if segment_bytes == 0 || transport < least || header_bytes < transport + transport_bytes {
            return None;
        }
        let mut segmenter = Segmenter {
            payload: frame.payload,
            segment_bytes: usize::from(segment_bytes),
            count: segments(frame.payload.len(), usize::from(segment_bytes)),
            of,
            is_v4,
            network: network_offset,
            transport,
            header_bytes,
            header,
            sequence: 0,
            identification: 0,
            flags: 0,
            network_sum: 0,
            pseudo_sum: Sum::ZERO,
            transport_sum: 0,
            repeated_sum: None,
        };
        segmenter.prepare()?;
        Some(segmenter)
    }
    /// Keeps what changes, and sums what does not.
    fn prepare(&mut self) -> Option<()> {
        let (network, transport) = (self.network, self.transport);
        let next = match self.of {
            GsoType::Udp => protocol::UDP,
            GsoType::TcpV4 | GsoType::TcpV6 => protocol::TCP,
        };
        let addresses = if self.is_v4 { network + 12..network + 20 } else { network + 8..network + 40 };
        self.pseudo_sum = Sum::of(self.header.get(addresses)?).add_u16(u16::from(next));
        if self.is_v4 {
            self.identification = self.word(network + V4_IDENTIFICATION);
            for field in [V4_LENGTH, V4_IDENTIFICATION, V4_CHECKSUM] {
                self.put(network + field, 0);
            }
            self.network_sum = Sum::of(self.header.get(network..transport)?).folded();
        }
        if self.of == GsoType::Udp {
            self.put(transport + UDP_LENGTH, 0);
            self.put(transport + usize::from(UDP_CHECKSUM_OFFSET), 0);
        } else {
            let at = transport + TCP_SEQUENCE;
            self.sequence = u32::from(self.word(at)) << 16 | u32::from(self.word(at + 2));
            self.put(at, 0);
            self.put(at + 2, 0);
            self.put(transport + usize::from(TCP_CHECKSUM_OFFSET), 0);
            self.flags = core::mem::take(self.header.get_mut(transport + TCP_FLAGS)?);
        }
        let transport_sum = Sum::of(self.header.get(transport..self.header_bytes)?);
        self.transport_sum = self.pseudo_sum.combine(transport_sum, false).folded();
        Some(())
    }
    /// How many segments it makes.
    #[inline]
    pub fn count(&self) -> usize {
        self.count
    }
    /// Gives `device`, which cuts nothing itself, at most `most` segments, and returns how many it took. `sums` are those of
    /// their data, as far as they are known.
    ///
    /// # Errors
    /// The device takes not even the first.
    pub fn transmit<D: Device + ?Sized>(
        mut self,
        sums: &[Option<u16>],
        most: usize,
        device: &mut D,
    ) -> Result<usize, Full> {
        let sums_there = device.offers().checksum;
        let wanted = self.count().min(most);
        for index in 0..wanted {
            let piece = match sums_there {
                true => self.frame_without_sum(index),
                false => self.frame(index, sums.get(index).copied().flatten()),
            };
            match device.transmit(&piece) {
                Ok(()) => {}
                Err(Full) if index > 0 => return Ok(index),
                Err(Full) => return Err(Full),
            }
        }
        Ok(wanted)
    }
    /// The complete frame of the segment `index`, whose payload has this sum, where it is known.
    #[inline(always)]
    pub fn frame(&mut self, index: usize, sum: Option<u16>) -> Frame<'_> {
        let mut frame = self.without_header(index, Offload::None);
        frame.payload = frame.payload.with_sum(sum);
        let sum = sum_of(&frame.payload);
        match self.repeated_sum {
            Some(known) if index > 1 && index + 1 < self.count => self.repeat(index, known, sum),
            _ => self.complete(index, frame.payload.len(), sum),
        }
        frame.header = self.header();
        frame
    }
    /// The header follows: a frame is made where it stays, since to move it just after it was written holds up the
    /// processor.
    #[inline(always)]
    fn without_header(&self, index: usize, offload: Offload) -> Frame<'a> {
        let payload = self.payload.part(index * self.segment_bytes, self.segment_bytes);
        Frame { header: &[], payload, offload }
    }
    #[inline]
    fn header(&self) -> &[u8] {
        self.header.get(..self.header_bytes).unwrap_or(&[])
    }
    /// Updates the header to that of the segment `index`, neither the first nor the last.
    #[inline]
    fn repeat(&mut self, index: usize, known: u64, sum: Sum) {
        let sequence = self.sequence_of(index);
        let whole = known + u64::from(sequence) + u64::from(sum.folded());
        let checksum = Sum::of_words(whole).finish();
        let transport = self.header.get_mut(self.transport..);
        if let Some(tcp) = transport.and_then(<[u8]>::first_chunk_mut::<{ tcp::LENGTH }>) {
            tcp[TCP_SEQUENCE..TCP_SEQUENCE + 4].copy_from_slice(&sequence.to_be_bytes());
            put_word(tcp, usize::from(TCP_CHECKSUM_OFFSET), checksum);
        }
    }
    fn complete(&mut self, index: usize, payload_bytes: usize, sum: Sum) {
        let (length, changed) = self.patch(index, payload_bytes);
        let headers = u64::from(self.transport_sum) + u64::from(length);
        let whole = Sum::of_words(headers + changed + u64::from(sum.folded()));
        let checksum = match (whole.finish(), self.of) {
            // RFC 768: zero says that there is none.
            (0, GsoType::Udp) => 0xffff,
            (checksum, _) => checksum,
        };
        self.put(self.checksum_at(), checksum);
        // The first may bear another flag, and the last is shorter. IPv4 numbers packets that may be fragmented.
        let is_atomic =
            self.header.get(self.network + V4_FLAGS).is_some_and(|byte| byte & DONT_FRAGMENT != 0);
        if index == 1 && self.of != GsoType::Udp && (is_atomic || !self.is_v4) {
            self.repeated_sum = Some(headers + u64::from(self.flags_of(index)));
        }
    }
    #[inline]
    fn sequence_of(&self, index: usize) -> u32 {
        self.sequence.wrapping_add((index * self.segment_bytes) as u32)
    }
    /// The frame of the segment `index` for a device that makes the checksum.
    #[inline]
    pub fn frame_without_sum(&mut self, index: usize) -> Frame<'_> {
        let checksum_offset = (self.checksum_at() - self.transport) as u16;
        let offload = Offload::Checksum { transport_offset: self.transport as u16, checksum_offset };
        let mut frame = self.without_header(index, offload);
        let (length, _) = self.patch(index, frame.payload.len());
        self.put(self.checksum_at(), self.pseudo_of(length).folded());
        frame.header = self.header();
        frame
    }
    #[inline]
    fn checksum_at(&self) -> usize {
        self.transport
            + usize::from(match self.of {
                GsoType::Udp => UDP_CHECKSUM_OFFSET,
                GsoType::TcpV4 | GsoType::TcpV6 => TCP_CHECKSUM_OFFSET,
            })
    }
    /// Makes the header that of the segment `index`, its checksum apart; gives the length of transport header and
    /// payload, and the sum of the fields that were changed in the transport's.
    #[inline]
    fn patch(&mut self, index: usize, payload_bytes: usize) -> (u16, u64) {
        self.repeated_sum = None;
        let (flags, sequence) = (self.flags_of(index), self.sequence_of(index));
        let length = (self.header_bytes - self.transport + payload_bytes) as u16;
        let Some((front, transport)) = self.header.split_at_mut_checked(self.transport) else {
            return (0, 0);
        };
        let network_bytes = (front.len() - self.network) as u16;
        let Some(network) = front.get_mut(self.network..) else { return (0, 0) };
        if !self.is_v4 {
            if let Some(network) = network.first_chunk_mut::<{ ipv6::LENGTH }>() {
                put_word(network, V6_LENGTH, network_bytes - ipv6::LENGTH as u16 + length);
            }
        } else if let Some(network) = network.first_chunk_mut::<{ ipv4::LENGTH }>() {
            let total = network_bytes + length;
            let is_atomic = network[V4_FLAGS] & DONT_FRAGMENT != 0;
            let identification = if is_atomic { 0 } else { index as u16 }.wrapping_add(self.identification);
            put_word(network, V4_LENGTH, total);
            put_word(network, V4_IDENTIFICATION, identification);
            let sum = u64::from(self.network_sum) + u64::from(total) + u64::from(identification);
            put_word(network, V4_CHECKSUM, Sum::of_words(sum).finish());
        }
        let changed = if self.of == GsoType::Udp {
            if let Some(transport) = transport.first_chunk_mut::<{ udp::LENGTH }>() {
                put_word(transport, UDP_LENGTH, length);
            }
            u64::from(length)
        } else {
            if let Some(transport) = transport.first_chunk_mut::<{ tcp::LENGTH }>() {
                transport[TCP_SEQUENCE..TCP_SEQUENCE + 4].copy_from_slice(&sequence.to_be_bytes());
                transport[TCP_FLAGS] = flags;
            }
            u64::from(sequence) + u64::from(flags)
        };
        (length, changed)
    }
    /// FIN and PSH belong to the last, CWR to the first (RFC 3168 §6.1.2: once a window).
    #[inline]
    fn flags_of(&self, index: usize) -> u8 {
        let mut flags = self.flags;
        if index + 1 < self.count() {
            flags &= !(Flags::FIN.bits() | Flags::PSH.bits()) as u8;
        }
        if index > 0 {
            flags &= !Flags::CWR.bits() as u8;
        }
        flags
    }
    fn pseudo_of(&self, length: u16) -> Sum {
        self.pseudo_sum.add_u16(length)
    }
    fn word(&self, at: usize) -> u16 {
        match self.header.get(at..at + 2) {
            Some(&[high, low]) => u16::from_be_bytes([high, low]),
            _ => 0,
        }
    }
    #[inline]
    fn put(&mut self, at: usize, word: u16) {
        if let Some(place) = self.header.get_mut(at..at + 2) {
            place.copy_from_slice(&word.to_be_bytes());
        }
    }
}

/// The large frame that a device has put together and handed up as `bytes`, of segments with `segment_bytes` each, as one
/// to be cut again. `None` when it is neither TCP nor UDP.
pub fn received(bytes: &[u8], network_offset: usize, segment_bytes: u16) -> Option<Frame<'_>> {
    let (transport, number, is_v4) = transport_of(bytes, network_offset)?;
    let (of, header_bytes) = match (number, is_v4) {
        (protocol::UDP, _) => (GsoType::Udp, udp::LENGTH),
        (protocol::TCP, true) => (GsoType::TcpV4, tcp_header_bytes(bytes, transport)?),
        (protocol::TCP, false) => (GsoType::TcpV6, tcp_header_bytes(bytes, transport)?),
        _ => return None,
    };
    let (header, payload) = bytes.split_at_checked(transport + header_bytes)?;
    let offload = Offload::Segment { of, segment_bytes, transport_offset: transport as u16 };
    Some(Frame { header, payload: Slices::one(payload), offload })
}

/// All offloads in software: lends to `put` the frames that `frame`, whose IP header begins at `network_offset`, is on
/// the wire: itself, itself with its checksum, or its segments. A malformed frame is not sent.
#[inline]
pub fn complete(frame: &Frame<'_>, network_offset: usize, mut put: impl FnMut(&Frame<'_>)) {
    match frame.offload {
        Offload::None => put(frame),
        Offload::Checksum { transport_offset, checksum_offset } => {
            let mut header = [0; HEADERS_BYTES];
            let (transport, field) = (usize::from(transport_offset), usize::from(checksum_offset));
            if with_checksum(frame, &mut header, transport, transport + field).is_some() {
                let header = header.get(..frame.header.len()).unwrap_or(&[]);
                put(&Frame { header, payload: frame.payload, offload: Offload::None });
            }
        }
        Offload::Segment { .. } => {
            let Some(mut segmenter) = Segmenter::new(frame, network_offset) else { return };
            for index in 0..segmenter.count() {
                put(&segmenter.frame(index, None));
            }
        }
    }
}

/// Copies the headers of `frame` to the front of `header`, with the checksum in its place at `field`.
fn with_checksum(frame: &Frame<'_>, header: &mut [u8], transport: usize, field: usize) -> Option<()> {
    let header = header.get_mut(..frame.header.len())?;
    header.copy_from_slice(frame.header);
    let covered = header.get(transport..)?;
    let sum = Sum::of(covered).combine(sum_of(&frame.payload), covered.len() % 2 == 1).finish();
    // As in `finish_checksum`.
    let sum = if sum == 0 { 0xffff_u16 } else { sum };
    header.get_mut(field..field + 2)?.copy_from_slice(&sum.to_be_bytes());
    Some(())
}

/// Makes the checksum of a packet whose sender left it to the device; false when it is neither TCP nor UDP.
pub fn finish_checksum(bytes: &mut [u8], network_offset: usize) -> bool {
    let offset = match transport_of(bytes, network_offset) {
        Some((transport, protocol::TCP, _)) => (transport, TCP_CHECKSUM_OFFSET),
        Some((transport, protocol::UDP, _)) => (transport, UDP_CHECKSUM_OFFSET),
        _ => return false,
    };
    let (transport, field) = (offset.0, offset.0 + usize::from(offset.1));
    let sum = Sum::of(bytes.get(transport..).unwrap_or(&[])).finish();
    let Some(place) = bytes.get_mut(field..field + 2) else { return false };
    // Zero stands for no checksum in UDP, and for the same as this in TCP.
    place.copy_from_slice(&if sum == 0 { 0xffff_u16 } else { sum }.to_be_bytes());
    true
}

/// Offset and protocol of the transport header, and whether the IP version is 4.
fn transport_of(bytes: &[u8], network_offset: usize) -> Option<(usize, u8, bool)> {
    let packet = bytes.get(network_offset..)?;
    if packet.first()? >> 4 == 4 {
        let view = ipv4::Ipv4View::new(packet).ok()?;
        return Some((network_offset + view.header_length(), view.protocol(), true));
    }
    let view = ipv6::Ipv6View::new(packet).ok()?;
    let upper = ipv6::walk(&view).ok()?;
    upper.fragment.is_none().then_some((network_offset + upper.offset, upper.protocol, false))
}

fn tcp_header_bytes(bytes: &[u8], transport: usize) -> Option<usize> {
    tcp::TcpView::new(bytes.get(transport..)?).ok().map(|view| view.header_length())
}

#[inline]
fn put_word<const N: usize>(header: &mut [u8; N], at: usize, word: u16) {
    header[at..at + 2].copy_from_slice(&word.to_be_bytes());
}

/// The sum of a payload, as it is known, or made of its pieces, any of which may be of odd length.
#[inline]
pub fn sum_of(payload: &Slices<'_>) -> Sum {
    if let Some(known) = payload.known_sum() {
        return Sum::from_folded(known);
    }
    if let Some(piece) = payload.as_one() {
        return Sum::of(piece);
    }
    let (mut sum, mut at_odd) = (Sum::ZERO, false);
    for piece in payload.iter() {
        sum = sum.combine(Sum::of(piece), at_odd);
        at_odd ^= piece.len() % 2 == 1;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ipv4::{Ipv4Header, Ipv4View};
    use crate::ipv6::{Ipv6Header, Ipv6View};
    use crate::tcp::{TcpHeader, TcpView};
    use crate::udp::{UdpHeader, UdpView};
    use inhost_base::{IpAddr, Ipv4Addr, Ipv6Addr, Sequence};

    const V4: (Ipv4Addr, Ipv4Addr) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));

    fn v6() -> (Ipv6Addr, Ipv6Addr) {
        ("fd00::1".parse().unwrap(), "fd00::2".parse().unwrap())
    }
    fn header(of: GsoType, v4: bool, front: usize, payload_bytes: usize) -> Vec<u8> {
        let mut header = vec![0xee; front];
        let transport_bytes = if of == GsoType::Udp { udp::LENGTH } else { 32 };
        let next = if of == GsoType::Udp { protocol::UDP } else { protocol::TCP };
        let length = (transport_bytes + payload_bytes) as u16;
        let mut ip = [0; 64];
        let n = if v4 {
            Ipv4Header { identification: 77, ..Ipv4Header::new(V4.0, V4.1, next, length) }.emit(&mut ip)
        } else {
            Ipv6Header::new(v6().0, v6().1, next, length).emit(&mut ip)
        };
        header.extend_from_slice(&ip[..n]);
        let mut transport = [0; 64];
        if of == GsoType::Udp {
            let udp = UdpHeader { source_port: 5, destination_port: 6 };
            let (source, destination) = (IpAddr::V4(V4.0), IpAddr::V4(V4.1));
            udp.emit(source, destination, payload_bytes, Sum::ZERO, &mut transport);
        } else {
            let mut tcp = TcpHeader {
                sequence: Sequence(0xffff_fff0),
                acknowledgment: Sequence(9),
                flags: Flags::ACK | Flags::PSH | Flags::FIN | Flags::CWR,
                window: 500,
                ..TcpHeader::default()
            };
            tcp.options.timestamps = Some((3, 4));
            assert_eq!(tcp.emit(&mut transport), 32);
        }
        header.extend_from_slice(&transport[..transport_bytes]);
        header
    }
    fn check(of: GsoType, v4: bool, front: usize, payload_bytes: usize, segment_bytes: u16) {
        let bytes: Vec<u8> = (0..payload_bytes).map(|i| (i * 7 + i / 256) as u8).collect();
        let header = header(of, v4, front, payload_bytes);
        let transport_offset = (front + if v4 { 20 } else { 40 }) as u16;
        let mut payload = Slices::EMPTY;
        for piece in bytes.chunks(bytes.len() / 3 + 1) {
            payload = payload.with(piece).unwrap();
        }
        let offload = Offload::Segment { of, segment_bytes, transport_offset };
        let mut segmenter = Segmenter::new(&Frame { header: &header, payload, offload }, front).unwrap();
        let (mut got, count) = (Vec::new(), segmenter.count());
        // In one go, too: then what is the same in segments is not written again.
        let mut again = segmenter.clone();
        for index in 0..count {
            let mut flat = vec![0; 2048];
            let length = segmenter.frame(index, None).write_to(&mut flat).unwrap();
            let mut in_one_go = vec![0; 2048];
            assert_eq!(again.frame(index, None).write_to(&mut in_one_go), Some(length));
            assert_eq!(in_one_go, flat);
            let ip = &flat[front..length];
            let (source, destination, transport): (IpAddr, IpAddr, &[u8]) = if v4 {
                let view = Ipv4View::new(ip).unwrap();
                assert!(view.checksum_ok() && view.total_length() == ip.len());
                assert_eq!(view.identification(), 77 + if view.dont_fragment() { 0 } else { index as u16 });
                (V4.0.into(), V4.1.into(), view.payload())
            } else {
                let view = Ipv6View::new(ip).unwrap();
                assert_eq!(view.total_length(), ip.len());
                (v6().0.into(), v6().1.into(), view.payload())
            };
            if of == GsoType::Udp {
                let view = UdpView::new(transport).unwrap();
                assert!(view.checksum_ok(source, destination) && view.checksum() != 0);
                got.extend_from_slice(view.payload());
            } else {
                let view = TcpView::new(transport).unwrap();
                assert!(view.checksum_ok(source, destination));
                assert_eq!(view.sequence(), Sequence(0xffff_fff0) + got.len() as u32);
                let (first, last) = (index == 0, index + 1 == count);
                let flags = view.flags();
                assert_eq!((flags.cwr(), flags.psh(), flags.fin()), (first, last, last));
                got.extend_from_slice(view.payload());
            }
            // A device that makes the sum itself makes the same.
            let with_sum = flat[..length].to_vec();
            let mut flat = vec![0; 2048];
            segmenter.frame_without_sum(index).write_to(&mut flat).unwrap();
            let at = usize::from(transport_offset) + if of == GsoType::Udp { 6 } else { 16 };
            let sum = Sum::of(&flat[usize::from(transport_offset)..length]).finish();
            flat[at..at + 2].copy_from_slice(&sum.to_be_bytes());
            assert_eq!(&flat[..length], with_sum);
        }
        assert_eq!(got, bytes);
    }

    #[test]
    fn each_segment_is_what_the_host_would_have_sent_one_by_one() {
        for (payload_bytes, segment_bytes) in
            [(4000, 1448), (2896, 1448), (3001, 999), (100, 1448), (65_000, 1400), (7, 1)]
        {
            for front in [0, 14] {
                check(GsoType::TcpV4, true, front, payload_bytes, segment_bytes);
                check(GsoType::TcpV6, false, front, payload_bytes, segment_bytes);
                check(GsoType::Udp, true, front, payload_bytes, segment_bytes);
                check(GsoType::Udp, false, front, payload_bytes, segment_bytes);
            }
        }
    }

    #[test]
    fn what_came_in_large_is_cut_as_what_goes_out() {
        for (of, v4, segment_bytes) in [
            (GsoType::TcpV4, true, 1000),
            (GsoType::TcpV6, false, 999),
            (GsoType::Udp, true, 1200),
            (GsoType::Udp, false, 7),
        ] {
            let mut bytes = header(of, v4, 14, 5000);
            let transport_offset = if v4 { 34 } else { 54 };
            bytes.extend((0..5000).map(|i| i as u8));
            let frame = received(&bytes, 14, segment_bytes).unwrap();
            assert_eq!(frame.offload, Offload::Segment { of, segment_bytes, transport_offset });
            assert_eq!((frame.len(), frame.payload.len()), (bytes.len(), 5000));
            assert!(Segmenter::new(&frame, 14).is_some());
        }
        assert!(received(&[0x45; 20], 0, 1000).is_none() && received(&[], 14, 1000).is_none());
    }

    #[test]
    fn a_checksum_left_to_the_device_is_made() {
        for (of, v4) in [(GsoType::TcpV4, true), (GsoType::TcpV6, false)] {
            let mut bytes = header(of, v4, 0, 333);
            bytes.extend((0..333).map(|i| (i * i) as u8));
            let transport = if v4 { 20 } else { 40 };
            let (source, destination): (IpAddr, IpAddr) =
                if v4 { (V4.0.into(), V4.1.into()) } else { (v6().0.into(), v6().1.into()) };
            let length = (bytes.len() - transport) as u32;
            let pseudo = crate::checksum::pseudo_header(source, destination, protocol::TCP, length);
            bytes[transport + 16..transport + 18].copy_from_slice(&pseudo.folded().to_be_bytes());
            assert!(finish_checksum(&mut bytes, 0));
            assert!(TcpView::new(&bytes[transport..]).unwrap().checksum_ok(source, destination));
        }
        assert!(!finish_checksum(&mut [0x45; 20], 0));
    }

    #[test]
    fn what_is_not_what_it_says_is_refused() {
        let header = header(GsoType::TcpV4, true, 0, 3000);
        let bytes = [0; 3000];
        let frame = |transport_offset, segment_bytes| Frame {
            header: &header,
            payload: Slices::one(&bytes),
            offload: Offload::Segment { of: GsoType::TcpV4, segment_bytes, transport_offset },
        };
        assert!(Segmenter::new(&frame(20, 1000), 0).is_some());
        assert!(Segmenter::new(&frame(19, 1000), 0).is_none());
        assert!(Segmenter::new(&frame(40, 1000), 0).is_none());
        assert!(Segmenter::new(&frame(20, 0), 0).is_none());
        let whole = Frame { offload: Offload::None, ..frame(20, 1000) };
        assert!(Segmenter::new(&whole, 0).is_none());
    }

    #[test]
    fn a_device_in_software_does_what_it_is_asked_for() {
        let payload: Vec<u8> = (0..700_u32).map(|at| at as u8).collect();
        for (of, v4) in [(GsoType::TcpV4, true), (GsoType::TcpV6, false), (GsoType::Udp, true)] {
            let header = header(of, v4, 0, payload.len());
            let transport_offset = if v4 { 20 } else { 40 };
            let checksum_offset = if of == GsoType::Udp { UDP_CHECKSUM_OFFSET } else { TCP_CHECKSUM_OFFSET };
            let frame = |offload| Frame { header: &header, payload: Slices::one(&payload), offload };
            let put = |offload| {
                let mut put = Vec::new();
                complete(&frame(offload), 0, |frame| {
                    let mut bytes = vec![0; frame.len()];
                    assert!(frame.write_to(&mut bytes).is_some() && frame.offload == Offload::None);
                    put.push(bytes);
                });
                put
            };
            let whole: Vec<u8> = [&header[..], &payload].concat();
            assert_eq!(put(Offload::None), std::slice::from_ref(&whole));
            let mut finished = whole.clone();
            assert!(finish_checksum(&mut finished, 0));
            assert_eq!(put(Offload::Checksum { transport_offset, checksum_offset }), [finished]);
            let segments = put(Offload::Segment { of, segment_bytes: 300, transport_offset });
            let data: Vec<usize> = segments.iter().map(|segment| segment.len() - header.len()).collect();
            assert_eq!(data, [300, 300, 100]);
            // A checksum field outside the header.
            assert!(put(Offload::Checksum { transport_offset: 500, checksum_offset: 16 }).is_empty());
        }
    }
}
