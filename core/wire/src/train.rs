//! Segments that follow each other, seen as the one large segment that they are: the other way round than
//! [`crate::large`]. What differs is what differs between the segments of one large frame, and nothing else.

use crate::checksum::{Sum, pseudo_header};
use crate::tcp::Flags;
use crate::{ipv4, ipv6, protocol, tcp};
use inhost_base::{IpAddr, Ipv4Addr, Ipv6Addr};

const TCP_SEQUENCE: usize = 4;
const TCP_OFFSET: usize = 12;
const TCP_FLAGS: usize = 13;
/// Any packet is at most so long.
const LARGEST_BYTES: usize = u16::MAX as usize;
/// What may be joined: the link's header is that of one sender to one receiver.
const JOINED: u8 = Flags::ACK.bits() as u8;
const PUSHED: u8 = (Flags::ACK.bits() | Flags::PSH.bits()) as u8;

/// Segments with data that follow each other.
#[derive(Clone, Copy, Debug)]
pub struct Train {
    network: usize,
    transport: usize,
    payload: usize,
    is_v4: bool,
    /// Payload of the first, which none after it exceeds.
    each: usize,
    next_sequence: u32,
    payload_bytes: usize,
    /// Nothing goes behind a shorter one, or one with PSH.
    is_ended: bool,
    is_pushed: bool,
}

impl Train {
    /// A train that begins with `frame`, whose IP header is at `network`: a plain data segment without IP options.
    #[inline]
    pub fn begin(frame: &[u8], network: usize) -> Option<Train> {
        let version = frame.get(network)? >> 4;
        let (transport, length) = match version {
            4 => {
                let header = frame.get(network..)?.first_chunk::<{ ipv4::LENGTH }>()?;
                // Fragments and options go their own way.
                if header[0] != 0x45 || header[6] & 0x3f != 0 || header[7] != 0 || header[9] != protocol::TCP
                {
                    return None;
                }
                (network + ipv4::LENGTH, usize::from(u16::from_be_bytes([header[2], header[3]])))
            }
            6 => {
                let header = frame.get(network..)?.first_chunk::<{ ipv6::LENGTH }>()?;
                if header[6] != protocol::TCP {
                    return None;
                }
                let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
                (network + ipv6::LENGTH, ipv6::LENGTH + length)
            }
            _ => return None,
        };
        let header = frame.get(transport..)?.first_chunk::<{ tcp::LENGTH }>()?;
        let flags = header[TCP_FLAGS];
        let payload = transport + usize::from(header[TCP_OFFSET] >> 4) * 4;
        let is_plain = (flags == JOINED || flags == PUSHED) && header[TCP_OFFSET] & 1 == 0;
        if !is_plain
            || payload < transport + tcp::LENGTH
            || network + length != frame.len()
            || payload >= frame.len()
        {
            return None;
        }
        let each = frame.len() - payload;
        let sequence = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
        Some(Train {
            network,
            transport,
            payload,
            is_v4: version == 4,
            each,
            next_sequence: sequence.wrapping_add(each as u32),
            payload_bytes: each,
            is_ended: flags == PUSHED,
            is_pushed: flags == PUSHED,
        })
    }
    /// Whether `frame` is the next segment of the train that begins with `first`; then it belongs to it.
    #[inline]
    pub fn takes(&mut self, first: &[u8], frame: &[u8]) -> bool {
        let room = frame.len() <= first.len() && frame.len() > self.payload;
        if self.is_ended || !room || self.bytes() + frame.len() - self.payload > self.network + LARGEST_BYTES
        {
            return false;
        }
        let Some(next) = Train::begin(frame, self.network) else { return false };
        let sequence = self.transport + TCP_SEQUENCE;
        let at = frame.get(sequence..sequence + 4).is_some_and(|at| *at == self.next_sequence.to_be_bytes());
        if !at || next.payload != self.payload || !self.is_alike(first, frame) {
            return false;
        }
        self.next_sequence = next.next_sequence;
        self.payload_bytes += next.each;
        self.is_pushed = next.is_pushed;
        self.is_ended = next.is_pushed || next.each < self.each;
        true
    }
    /// Whether two headers agree in all but length, identification, sequence number, PSH and checksums.
    fn is_alike(&self, first: &[u8], frame: &[u8]) -> bool {
        let (network, transport) = (self.network, self.transport);
        let same = |from: usize, to: usize| first.get(from..to) == frame.get(from..to);
        let network_same = match self.is_v4 {
            true => {
                same(0, network + 2) && same(network + 6, network + 10) && same(network + 12, transport + 4)
            }
            false => same(0, network + 4) && same(network + 6, transport + 4),
        };
        network_same
            && same(transport + 8, transport + TCP_FLAGS)
            && same(transport + 14, transport + 16)
            && same(transport + 18, self.payload)
    }
    /// Bytes of all headers, which are the first's.
    pub const fn header_bytes(&self) -> usize {
        self.payload
    }
    /// Payload of each segment but the last, which may have less.
    pub const fn segment_bytes(&self) -> u16 {
        self.each as u16
    }
    /// Bytes of the frame that stands for all.
    pub const fn bytes(&self) -> usize {
        self.payload + self.payload_bytes
    }
    /// Whether the checksum of one of the segments is right, `frame` being its headers, and `sum` that of its payload of
    /// `payload_bytes`.
    // spec: RFC9293 MUST-3
    pub fn is_intact(&self, frame: &[u8], payload_bytes: usize, sum: Sum) -> bool {
        let Some(header) = frame.get(self.transport..self.payload) else { return false };
        let Some((source, destination)) = self.addresses(frame) else { return false };
        let length = (header.len() + payload_bytes) as u32;
        pseudo_header(source, destination, protocol::TCP, length)
            .add_bytes(header)
            .combine(sum, false)
            .is_valid()
    }
    fn addresses(&self, frame: &[u8]) -> Option<(IpAddr, IpAddr)> {
        let network = frame.get(self.network..)?;
        if self.is_v4 {
            let (from, to) = (network.get(12..16)?.first_chunk()?, network.get(16..20)?.first_chunk()?);
            return Some((Ipv4Addr::from(*from).into(), Ipv4Addr::from(*to).into()));
        }
        let (from, to) = (network.get(8..24)?.first_chunk()?, network.get(24..40)?.first_chunk()?);
        Some((Ipv6Addr::from(*from).into(), Ipv6Addr::from(*to).into()))
    }
    /// Makes the first's headers those of the frame that stands for all, its TCP checksum apart.
    pub fn finish(&self, frame: &mut [u8]) {
        let total = (self.bytes() - self.network) as u16;
        let (field, length) = if self.is_v4 {
            (self.network + 2, total)
        } else {
            (self.network + 4, total - ipv6::LENGTH as u16)
        };
        if let Some(place) = frame.get_mut(field..field + 2) {
            place.copy_from_slice(&length.to_be_bytes());
        }
        if self.is_v4
            && let Some(header) = frame.get_mut(self.network..self.transport)
        {
            ipv4::renew_checksum(header);
        }
        if self.is_pushed
            && let Some(flags) = frame.get_mut(self.transport + TCP_FLAGS)
        {
            *flags = PUSHED;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::large::{Cut, sum_of};
    use crate::tcp::TcpHeader;
    use inhost_base::Sequence;
    use inhost_buf::{Frame, Large, Offload, Slices};

    /// The frames of a large segment, and itself.
    fn frames(v4: bool, network: usize, payload_bytes: usize, flags: Flags) -> (Vec<Vec<u8>>, Vec<u8>) {
        let tcp =
            TcpHeader { sequence: Sequence(u32::MAX - 2000), flags, window: 77, ..TcpHeader::default() };
        let mut header = vec![0xee; network];
        let mut place = [0; 80];
        let length = (20 + payload_bytes) as u16;
        let (source, destination): (IpAddr, IpAddr) = match v4 {
            true => (Ipv4Addr::new(10, 0, 0, 1).into(), Ipv4Addr::new(10, 0, 0, 2).into()),
            false => ("fd00::1".parse().unwrap(), "fd00::2".parse().unwrap()),
        };
        let written = match (source, destination) {
            (IpAddr::V4(a), IpAddr::V4(b)) => {
                ipv4::Ipv4Header::new(a, b, protocol::TCP, length).emit(&mut place)
            }
            (IpAddr::V6(a), IpAddr::V6(b)) => {
                ipv6::Ipv6Header::new(a, b, protocol::TCP, length).emit(&mut place)
            }
            _ => 0,
        };
        header.extend_from_slice(&place[..written]);
        let transport_offset = header.len() as u16;
        assert_eq!(tcp.emit(&mut place), 20);
        header.extend_from_slice(&place[..20]);
        let data: Vec<u8> = (0..payload_bytes).map(|i| (i * 3 + i / 256) as u8).collect();
        let of = if v4 { Large::TcpV4 } else { Large::TcpV6 };
        let offload = Offload::Segment { of, segment_bytes: 1000, transport_offset };
        let frame = Frame { header: &header, payload: Slices::one(&data), offload };
        let mut cut = Cut::new(&frame, network).unwrap();
        let flat = |frame: Frame<'_>| {
            let mut flat = vec![0; frame.len()];
            frame.write_to(&mut flat).unwrap();
            flat
        };
        let pieces = (0..cut.count()).map(|index| {
            let payload = cut.payload(index);
            flat(cut.frame(index, payload, sum_of(&payload)))
        });
        (pieces.collect(), flat(frame))
    }

    #[test]
    fn what_was_cut_is_joined_again() {
        for (v4, network) in [(true, 0), (false, 0), (true, 14), (false, 14)] {
            let (pieces, whole) = frames(v4, network, 4_500, Flags::ACK | Flags::PSH);
            assert_eq!(pieces.len(), 5);
            let mut train = Train::begin(&pieces[0], network).unwrap();
            let mut joined = pieces[0].clone();
            for piece in &pieces[1..] {
                assert!(train.takes(&pieces[0], piece));
                let payload = &piece[train.header_bytes()..];
                assert!(train.is_intact(piece, payload.len(), Sum::of(payload)));
                joined.extend_from_slice(payload);
            }
            train.finish(&mut joined);
            assert_eq!((train.bytes(), train.segment_bytes()), (whole.len(), 1000));
            let checksum = train.transport + 16;
            joined[checksum..checksum + 2].copy_from_slice(&whole[checksum..checksum + 2]);
            assert_eq!(joined, whole);
            // Behind PSH, and behind a shorter one, there is nothing more.
            let mut after = pieces[0].clone();
            let at = train.transport + 4;
            after[at..at + 4].copy_from_slice(&train.next_sequence.to_be_bytes());
            assert!(!train.takes(&pieces[0], &after));
        }
    }

    #[test]
    fn what_differs_in_anything_else_stays_alone() {
        for v4 in [true, false] {
            let (pieces, _) = frames(v4, 0, 3_000, Flags::ACK);
            let train = Train::begin(&pieces[0], 0).unwrap();
            let alone: Vec<usize> = (0..train.header_bytes())
                .filter(|&at| {
                    let mut changed = pieces[1].clone();
                    changed[at] ^= 1;
                    !train.clone().takes(&pieces[0], &changed)
                })
                .collect();
            // Only the identification and the checksums, which are looked at later, may differ.
            let free = if v4 { vec![4, 5, 10, 11, 36, 37] } else { vec![56, 57] };
            let rest: Vec<usize> = (0..train.header_bytes()).filter(|at| !free.contains(at)).collect();
            assert_eq!(alone, rest);
            assert!(!train.clone().takes(&pieces[0], &pieces[2]), "not the next");
            let mut spoiled = pieces[1].clone();
            *spoiled.last_mut().unwrap() ^= 1;
            let payload = &spoiled[train.header_bytes()..];
            assert!(!train.is_intact(&spoiled, payload.len(), Sum::of(payload)));
        }
        for flags in [Flags::ACK | Flags::FIN, Flags::SYN, Flags::ACK | Flags::URG, Flags::ACK | Flags::CWR] {
            assert!(Train::begin(&frames(true, 0, 1000, flags).0[0], 0).is_none(), "{flags:?}");
        }
        assert!(Train::begin(&[], 0).is_none() && Train::begin(&[0x45; 30], 0).is_none());
    }

    #[test]
    fn no_bytes_are_too_strange() {
        let mut random = inhost_base::Random::from_number(5);
        let (pieces, _) = frames(true, 0, 2_000, Flags::ACK);
        for _ in 0..20_000 {
            let mut bytes = pieces[random.public_below(2) as usize].clone();
            bytes.truncate(random.public_below(1200) as usize);
            for _ in 0..random.public_below(4) {
                let at = random.public_below(bytes.len().max(1) as u32) as usize;
                bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte = random.public_u64() as u8);
            }
            let network = [0, 14][random.public_below(2) as usize];
            if let Some(mut train) = Train::begin(&bytes, network) {
                train.takes(&bytes, &pieces[1]);
                train.finish(&mut bytes);
            }
        }
    }
}
