//! A receiver's device that looks at checksums, and hands up segments of one stream that come one after another as one
//! large segment, as cards and kernels do.

use core::ops::Range;

use inhost_base::Sequence;
use inhost_buf::{Batch, Checksum, Packet, Pool};
use inhost_wire::ipv4::{self, Ipv4View};
use inhost_wire::ipv6::{self, Ipv6View};
use inhost_wire::protocol;
use inhost_wire::tcp::{Flags, TcpView};

/// The longest IP packet that is put together.
const LARGEST_BYTES: usize = 65_535;
/// What may differ between the last segment and those before it.
const LAST: Flags = Flags::PSH.union(Flags::FIN);
/// Where TCP keeps what changes from segment to segment: its number, its flags and its checksum.
const TCP_CHANGES: [Range<usize>; 3] = [4..8, 13..14, 16..18];
const TCP_FLAGS: usize = 13;
/// Where IPv4 keeps its length and its checksum, and where IPv6 keeps its length.
const V4_CHANGES: [Range<usize>; 2] = [2..4, 10..12];
const V6_LENGTH: Range<usize> = 4..6;

/// The segment that the next may be joined to.
#[derive(Debug, Default)]
pub(crate) struct Gather {
    held: Packet,
}

/// A segment that may be joined to another: where its parts lie, and what matters of its header.
#[derive(Clone, Copy)]
struct Part {
    network: usize,
    transport: usize,
    payload: usize,
    is_v4: bool,
    sequence: Sequence,
    flags: Flags,
}

impl Part {
    /// `None` for whatever is not plain data of a stream in its own packet.
    fn of(bytes: &[u8], network: usize) -> Option<Part> {
        let packet = bytes.get(network..)?;
        let is_v4 = packet.first()? >> 4 == 4;
        let (header_bytes, whole) = if is_v4 {
            let view = Ipv4View::new(packet).ok()?;
            let is_plain = view.protocol() == protocol::TCP && view.dont_fragment() && !view.is_fragment();
            (
                view.header_length(),
                is_plain && view.options().is_empty() && view.total_length() == packet.len(),
            )
        } else {
            let view = Ipv6View::new(packet).ok()?;
            (ipv6::LENGTH, view.next_header() == protocol::TCP && view.total_length() == packet.len())
        };
        let transport = network + header_bytes;
        let tcp = TcpView::new(bytes.get(transport..)?).ok()?;
        let is_data =
            tcp.flags().difference(LAST.union(Flags::ECE)) == Flags::ACK && !tcp.payload().is_empty();
        (whole && is_data).then(|| Part {
            network,
            transport,
            payload: transport + tcp.header_length(),
            is_v4,
            sequence: tcp.sequence(),
            flags: tcp.flags(),
        })
    }
    /// Whether all headers of `own`, of which this is a part, are those of `bytes` with its part `other`, but for what
    /// differs between neighbours.
    fn is_like(&self, own: &[u8], other: &Part, bytes: &[u8]) -> bool {
        let shape = |part: &Part| (part.network, part.transport, part.payload, part.is_v4);
        if shape(self) != shape(other) {
            return false;
        }
        let network: &[Range<usize>] = if self.is_v4 { &V4_CHANGES } else { &[V6_LENGTH] };
        let network = network.iter().map(|place| place.start + self.network..place.end + self.network);
        let transport =
            TCP_CHANGES.iter().map(|place| place.start + self.transport..place.end + self.transport);
        let mut from = 0;
        for place in network.chain(transport) {
            if own.get(from..place.start) != bytes.get(from..place.start) {
                return false;
            }
            from = place.end;
        }
        own.get(from..self.payload) == bytes.get(from..self.payload)
    }
}

impl Gather {
    /// Takes the next frame, whose checksums are right where `is_sound`.
    pub fn add(
        &mut self,
        mut packet: Packet,
        network: usize,
        is_sound: bool,
        pool: &mut Pool,
        batch: &mut Batch,
    ) {
        if is_sound {
            packet.set_checksum(Checksum::Verified);
            if self.join(&packet, network, pool) {
                return pool.give(packet);
            }
        }
        self.finish(batch);
        self.held = packet;
    }
    /// Hands up what is held; the batch has room for it.
    pub fn finish(&mut self, batch: &mut Batch) {
        if self.held.capacity() > 0 {
            let _ = batch.push(self.held.take());
        }
    }
    /// Puts the data of `next` behind what is held, if it belongs there.
    fn join(&mut self, next: &Packet, network: usize, pool: &mut Pool) -> bool {
        let held = &self.held;
        let (Some(first), Some(part)) = (Part::of(held.bytes(), network), Part::of(next.bytes(), network))
        else {
            return false;
        };
        let (data, held_bytes) = (&next.bytes()[part.payload..], held.len() - first.payload);
        let segment_bytes =
            if held.segment_bytes() > 0 { usize::from(held.segment_bytes()) } else { held_bytes };
        let fits = held.checksum() == Checksum::Verified
            && !first.flags.intersects(LAST)
            && held_bytes.is_multiple_of(segment_bytes)
            && data.len() <= segment_bytes
            && held.len() - network + data.len() <= LARGEST_BYTES
            && part.sequence == first.sequence + held_bytes as u32
            && first.is_like(held.bytes(), &part, next.bytes())
            && part.flags.difference(LAST) == first.flags;
        if !fits || !self.widen(data.len(), network, pool) {
            return false;
        }
        let held = &mut self.held;
        held.append(data);
        held.set_segment_bytes(segment_bytes as u16);
        let bytes = held.bytes_mut();
        bytes[first.transport + TCP_FLAGS] |= part.flags.bits() as u8;
        let length = bytes.len() - network;
        if first.is_v4 {
            bytes[network + 2..network + 4].copy_from_slice(&(length as u16).to_be_bytes());
            ipv4::renew_checksum(&mut bytes[network..first.transport]);
        } else {
            let length = (length - ipv6::LENGTH) as u16;
            bytes[network + V6_LENGTH.start..network + V6_LENGTH.end].copy_from_slice(&length.to_be_bytes());
        }
        true
    }
    /// Makes room for `bytes` more behind what is held, as far as the host has memory.
    fn widen(&mut self, bytes: usize, network: usize, pool: &mut Pool) -> bool {
        if self.held.tailroom() >= bytes {
            return true;
        }
        let Some(mut large) = pool.take(network + LARGEST_BYTES) else { return false };
        large.append(self.held.bytes());
        large.set_checksum(self.held.checksum());
        large.set_segment_bytes(self.held.segment_bytes());
        pool.give(std::mem::replace(&mut self.held, large));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use inhost_base::{IpAddr, Ipv4Addr, Ipv6Addr};
    use inhost_wire::ipv4::Ipv4Header;
    use inhost_wire::ipv6::Ipv6Header;
    use inhost_wire::tcp::TcpHeader;

    fn segment(v4: bool, sequence: u32, bytes: usize, flags: Flags) -> Vec<u8> {
        let tcp = TcpHeader { sequence: Sequence(sequence), flags, ..TcpHeader::default() };
        let data: Vec<u8> = (sequence..).take(bytes).map(|at| at as u8).collect();
        let segment = tcp.with_payload(&data);
        let (length, mut packet) = (segment.length(), vec![0; 40]);
        let (source, destination): (IpAddr, IpAddr) = if v4 {
            let ends = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
            let mut header = Ipv4Header::new(ends.0, ends.1, protocol::TCP, length as u16);
            header.dont_fragment = true;
            let written = header.emit(&mut packet);
            packet.truncate(written);
            (ends.0.into(), ends.1.into())
        } else {
            let ends =
                (Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1), Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2));
            Ipv6Header::new(ends.0, ends.1, protocol::TCP, length as u16).emit(&mut packet);
            (ends.0.into(), ends.1.into())
        };
        let front = packet.len();
        packet.resize(front + length, 0);
        segment.emit(source, destination, &mut packet[front..]);
        packet
    }
    /// Lengths of the payloads handed up.
    fn gathered(v4: bool, segments: &[(u32, usize, Flags)], limit_bytes: usize) -> Vec<usize> {
        let (mut pool, mut batch, mut gather) = (Pool::new(limit_bytes), Batch::new(), Gather::default());
        for &(sequence, bytes, flags) in segments {
            let bytes = segment(v4, sequence, bytes, flags);
            let mut packet = pool.take(bytes.len()).unwrap();
            packet.append(&bytes);
            gather.add(packet, 0, true, &mut pool, &mut batch);
        }
        gather.finish(&mut batch);
        let mut lengths = Vec::new();
        while let Some(packet) = batch.pop() {
            let part = Part::of(packet.bytes(), 0);
            let data = part.map_or(&[][..], |part| &packet.bytes()[part.payload..]);
            assert!(
                data.iter()
                    .enumerate()
                    .all(|(at, &byte)| byte == (part.unwrap().sequence.0 as usize + at) as u8)
            );
            if v4 {
                assert!(Ipv4View::new(packet.bytes()).unwrap().checksum_ok());
            }
            lengths.push(data.len());
            pool.give(packet);
        }
        assert_eq!(pool.outstanding_bytes(), 0);
        lengths
    }

    #[test]
    fn what_follows_each_other_becomes_one_until_it_is_pushed_or_short() {
        let (ack, push) = (Flags::ACK, Flags::ACK | Flags::PSH);
        for v4 in [true, false] {
            let two = [(0, 1000, ack), (1000, 1000, ack)];
            assert_eq!(gathered(v4, &two, 1 << 20), [2000]);
            assert_eq!(gathered(v4, &[(0, 1000, push), (1000, 1000, ack)], 1 << 20), [1000, 1000]);
            let short = [(0, 1000, ack), (1000, 10, ack), (1010, 10, ack), (1020, 10, push)];
            assert_eq!(gathered(v4, &short, 1 << 20), [1010, 20]);
            let hole = [(0, 1000, ack), (2000, 1000, ack), (3000, 1000, ack | Flags::CWR)];
            assert_eq!(gathered(v4, &hole, 1 << 20), [1000, 1000, 0]);
            let longer = [(0, 500, ack), (500, 1000, ack)];
            assert_eq!(gathered(v4, &longer, 1 << 20), [500, 1000]);
            let many: Vec<_> = (0..60).map(|index| (index * 1400, 1400, ack)).collect();
            assert_eq!(gathered(v4, &many, 1 << 20), [64_400, 19_600]);
            // A large buffer is more than there is.
            let three: Vec<_> = (0..3).map(|index| (index * 1400, 1400, ack)).collect();
            assert_eq!(gathered(v4, &three, 20_000), [1400, 1400, 1400]);
        }
    }
}
