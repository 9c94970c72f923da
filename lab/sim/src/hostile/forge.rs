//! Frames with one defect, whose other headers and checksums are right.

use inhost_base::{HardwareAddress, IpAddr, Random, Sequence};
use inhost_wire::checksum::{Sum, pseudo_header};
use inhost_wire::ethernet::{EtherType, EthernetHeader};
use inhost_wire::ipv4::Ipv4Header;
use inhost_wire::ipv6::Ipv6Header;
use inhost_wire::protocol;
use inhost_wire::tcp::{Flags, TcpHeader, TcpOptions};

use super::sight::Connection;
use super::world::{PEER, Transfer, VICTIM, address, card};

/// Connection state known to an on-path forger.
pub(super) struct Mark<'a> {
    pub transfer: &'a Transfer,
    pub connection: &'a Connection,
    /// The last timestamps that came to the victim.
    pub timestamps: Option<(u32, u32)>,
}

/// Draws what is wrong.
pub(super) struct Forger {
    pub random: Random,
    /// The link of the frame that is being made.
    pub link: usize,
}

impl Forger {
    pub fn below(&mut self, limit: u32) -> u32 {
        self.random.public_below(limit)
    }
    pub fn one_in(&mut self, count: u32) -> bool {
        self.below(count) == 0
    }
    pub fn of<T: Copy, const N: usize>(&mut self, choices: [T; N]) -> T {
        choices[self.below(N as u32) as usize]
    }
    /// 1 or more, most often small, at most 2^30.
    pub fn distance(&mut self) -> u32 {
        let bits = self.below(31);
        1 + self.below(1 << bits)
    }
    pub fn bytes(&mut self, most: u32) -> Vec<u8> {
        let length = self.below(most + 1) as usize;
        let mut bytes = vec![0; length];
        for piece in bytes.chunks_mut(8) {
            let drawn = self.random.public_u64().to_le_bytes();
            piece.copy_from_slice(&drawn[..piece.len()]);
        }
        bytes
    }
    /// An address on the link that is neither host's.
    pub fn neighbour(&mut self, is_ipv6: bool) -> IpAddr {
        match address(self.link, PEER, is_ipv6) {
            IpAddr::V4(v4) => {
                let [a, b, c, _] = v4.octets();
                IpAddr::from([a, b, c, 3 + self.below(250) as u8])
            }
            IpAddr::V6(v6) => {
                let mut octets = v6.octets();
                octets[8..].copy_from_slice(&(3 + self.random.public_u64() / 2).to_be_bytes());
                IpAddr::from(octets)
            }
        }
    }

    /// A link header in front of a packet, from the peer's card to the victim's.
    pub fn framed(&self, packet: Vec<u8>) -> Vec<u8> {
        let ethertype = match packet.first().map_or(0, |byte| byte >> 4) {
            6 => EtherType::IPV6,
            _ => EtherType::IPV4,
        };
        self.framed_as(ethertype, card(VICTIM), packet)
    }
    pub fn framed_as(&self, ethertype: EtherType, destination: HardwareAddress, packet: Vec<u8>) -> Vec<u8> {
        if self.link != 0 {
            return packet;
        }
        let mut frame = vec![0; 14];
        EthernetHeader { destination, source: card(PEER), ethertype }.emit(&mut frame);
        frame.extend_from_slice(&packet);
        frame
    }
    /// A packet.
    pub fn packet(&self, source: IpAddr, destination: IpAddr, number: u8, body: &[u8]) -> Vec<u8> {
        let length = body.len() as u16;
        let mut packet = match (source, destination) {
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                let mut bytes = vec![0; 40];
                Ipv6Header::new(source, destination, number, length).emit(&mut bytes);
                bytes
            }
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let mut bytes = vec![0; 20];
                Ipv4Header::new(source, destination, number, length).emit(&mut bytes);
                bytes
            }
            _ => Vec::new(),
        };
        packet.extend_from_slice(body);
        packet
    }
    /// A frame between the addresses that the mark's peer and the victim have.
    pub fn datagram(&self, mark: &Mark<'_>, number: u8, body: &[u8]) -> Vec<u8> {
        self.framed(self.packet(mark.transfer.peer.address, mark.transfer.victim.address, number, body))
    }
    /// A header from the mark's peer that would be taken: the next in order, acknowledging what is in flight.
    pub fn header(&mut self, mark: &Mark<'_>) -> TcpHeader {
        let connection = mark.connection;
        let in_flight = connection.send_next.since(connection.send_unacknowledged);
        TcpHeader {
            source_port: mark.transfer.peer.port,
            destination_port: mark.transfer.victim.port,
            sequence: connection.receive_next,
            acknowledgment: connection.send_unacknowledged + self.below(in_flight + 1),
            flags: Flags::ACK.union(self.of([Flags::empty(), Flags::PSH])),
            window: self.below(65_536) as u16,
            urgent_pointer: 0,
            options: TcpOptions { timestamps: mark.timestamps, ..TcpOptions::NONE },
        }
    }
    /// The mark's segment with this header.
    pub fn segment(&self, mark: &Mark<'_>, header: &TcpHeader, payload: &[u8]) -> Vec<u8> {
        let (source, destination) = (mark.transfer.peer.address, mark.transfer.victim.address);
        let body = segment_between(source, destination, header, payload);
        self.framed(self.packet(source, destination, protocol::TCP, &body))
    }
}

/// A segment with its checksum for these addresses.
pub(super) fn segment_between(
    source: IpAddr,
    destination: IpAddr,
    header: &TcpHeader,
    payload: &[u8],
) -> Vec<u8> {
    let segment = header.with_payload(payload);
    let mut body = vec![0; segment.length()];
    segment.emit(source, destination, &mut body);
    body
}

/// Puts the right checksum at `offset` of a transport's bytes, whatever they say.
pub(super) fn mend(source: IpAddr, destination: IpAddr, number: u8, body: &mut [u8], offset: usize) {
    let length = body.len() as u32;
    if let Some(place) = body.get_mut(offset..offset + 2) {
        place.fill(0);
    }
    let sum = match (source, number) {
        (IpAddr::V4(_), protocol::ICMPV4 | protocol::IGMP) => Sum::ZERO,
        _ => pseudo_header(source, destination, number, length),
    };
    let sum = sum.add_bytes(body).finish();
    if let Some(place) = body.get_mut(offset..offset + 2) {
        place.copy_from_slice(&sum.to_be_bytes());
    }
}

/// A number before `next` of a segment so long that all of it is old.
pub(super) fn old(next: Sequence, length: u32, distance: u32) -> Sequence {
    next.back(length.max(1)).back(distance - 1)
}
