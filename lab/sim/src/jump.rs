//! Jumps in sequence space: a host's connections use other numbers than the wire, and nobody else notices.
//!
//! A connection's numbers are moved on by as many as gigabytes of data would take, and no byte moves
//! ([`inhost_stack::TcpSockets::renumber`]). From then on every frame is translated where it leaves the host and where
//! it enters it: sequence and acknowledgment numbers and SACK blocks, in segments and in what ICMP errors quote of them.
//! Checksums are updated and not made anew, so that what was wrong stays wrong.
//!
//! The difference belongs to the two ends of the connection for good. A later connection between the same ends begins
//! where its host lets it begin, and is translated by the same.

use std::collections::BTreeMap;

use inhost_base::{Endpoint, IpAddr, Ipv4Addr, Ipv6Addr};
use inhost_socket::Host;
use inhost_stack::{AnySocketId, Ignore, TcpSocketId};
use inhost_wire::checksum::update;
use inhost_wire::protocol;
use inhost_wire::tcp::Flags;

use crate::ecn::packet_at;

/// Where a TCP header keeps what is translated, and where its fixed part ends.
const SEQUENCE: usize = 4;
const ACKNOWLEDGMENT: usize = 8;
const FLAGS: usize = 13;
const TCP_CHECKSUM: usize = 16;
const TCP_BYTES: usize = 20;
/// Options of TCP (RFC 9293 §3.2, RFC 2018 §3).
const END: u8 = 0;
const NO_OPERATION: u8 = 1;
const SACK: u8 = 5;
/// Where ICMP keeps its checksum, and where an error begins to quote.
const ICMP_CHECKSUM: usize = 2;
const ICMP_QUOTE: usize = 8;

/// Offsets of a connection's sequence numbers from those on the wire, modulo 2^32.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Ahead {
    send: u32,
    receive: u32,
}

/// Sequence offsets of one host's connections.
#[derive(Debug, Default)]
struct Jumps {
    /// By the host's end and the peer's.
    ahead: BTreeMap<(Endpoint, Endpoint), Ahead>,
}

/// A jump that is to come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JumpPlan {
    /// After so many frames that the host sent or took, and when one of its connections can jump.
    pub after_frames: u64,
    /// What it has sent is more by so many bytes that nobody saw.
    pub send_by: u32,
    /// What it has received likewise.
    pub receive_by: u32,
}

/// One host's jumps, past and to come.
#[derive(Debug, Default)]
pub(crate) struct Jumper {
    jumps: Jumps,
    /// Those to come, the next one last.
    plans: Vec<JumpPlan>,
    frames: u64,
    count: u64,
}

impl Jumper {
    pub fn plan(&mut self, plan: JumpPlan) {
        self.plans.push(plan);
        self.plans.sort_by_key(|plan| std::cmp::Reverse(plan.after_frames));
    }
    /// Connections that jumped.
    pub fn count(&self) -> u64 {
        self.count
    }
    /// A frame leaves the host or comes in.
    pub fn translate(&mut self, frame: &mut [u8], is_ethernet: bool, direction: PacketDirection) {
        self.frames += 1;
        self.jumps.translate(frame, is_ethernet, direction);
    }
    /// Does what is due; a jump for which no connection is ready waits.
    pub fn jump_if_due(&mut self, host: &Host) {
        while let Some(&JumpPlan { after_frames, send_by, receive_by }) = self.plans.last() {
            if after_frames > self.frames {
                return;
            }
            let sockets: Vec<TcpSocketId> = host.with_stack(|stack, _| {
                let all = stack.instruments().socket_states();
                all.filter_map(|(socket, ..)| match stack.typed(socket)? {
                    AnySocketId::Tcp(id) => Some(id),
                    _ => None,
                })
                .collect()
            });
            let jumped =
                sockets.iter().filter(|socket| self.jump(host, **socket, send_by, receive_by)).count();
            if jumped == 0 {
                return;
            }
            self.plans.pop();
        }
    }
    /// Moves one connection; whether it could be.
    pub fn jump(&mut self, host: &Host, socket: TcpSocketId, send_by: u32, receive_by: u32) -> bool {
        host.with_stack(|stack, now| {
            // What a host says to itself passes no port of it.
            let ends = stack.endpoints(socket).and_then(|(own, peer)| Some((own, peer?)));
            let Some((own, peer)) = ends.filter(|(own, peer)| own.address != peer.address) else {
                return false;
            };
            let has_jumped = stack.tcp(now, &mut Ignore).renumber(socket, send_by, receive_by);
            if has_jumped {
                self.jumps.add(own, peer, send_by, receive_by);
                self.count += 1;
            }
            has_jumped
        })
    }
}

/// Which way a frame goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PacketDirection {
    /// From the host to the wire.
    Out,
    /// From the wire to the host.
    In,
}

impl Jumps {
    /// The connection between these ends has jumped.
    fn add(&mut self, own: Endpoint, peer: Endpoint, send_by: u32, receive_by: u32) {
        let ahead = self.ahead.entry((own, peer)).or_default();
        ahead.send = ahead.send.wrapping_add(send_by);
        ahead.receive = ahead.receive.wrapping_add(receive_by);
    }
    /// Translates a frame, if it has to do with a connection that jumped.
    fn translate(&self, frame: &mut [u8], is_ethernet: bool, direction: PacketDirection) {
        if self.ahead.is_empty() {
            return;
        }
        let Some(packet) = packet_at(frame, is_ethernet).and_then(|at| frame.get_mut(at..)) else { return };
        let Some(outer) = Packet::of(packet) else { return };
        match outer.protocol {
            protocol::TCP => self.segment(&outer, packet, direction, None),
            protocol::ICMPV4 | protocol::ICMPV6 if outer.is_icmp_error(packet) => {
                let quote = outer.body + ICMP_QUOTE;
                let Some(mut inner) = packet.get(quote..).and_then(Packet::of) else { return };
                inner.body += quote;
                if inner.protocol == protocol::TCP {
                    self.segment(&inner, packet, direction, Some(outer.body));
                }
            }
            _ => {}
        }
    }
    /// Translates the segment, or the front of one, at `packet.body`. `icmp` is where the message begins that quotes it.
    fn segment(&self, packet: &Packet, bytes: &mut [u8], direction: PacketDirection, icmp: Option<usize>) {
        let at = packet.body;
        let port = |index: usize| Some(u16::from_be_bytes(*bytes.get(at + index..)?.first_chunk()?));
        let (Some(from), Some(to)) = (port(0), port(2)) else { return };
        let (from, to) = (Endpoint::new(packet.source, from), Endpoint::new(packet.destination, to));
        // Of the sender's stream, and of that which it acknowledges.
        let (sequence, acknowledgment) = match (self.ahead.get(&(from, to)), self.ahead.get(&(to, from))) {
            (Some(own), _) => (own.send, own.receive),
            (None, Some(peer)) => (peer.receive, peer.send),
            (None, None) => return,
        };
        let signed = |ahead: u32| if direction == PacketDirection::In { ahead } else { ahead.wrapping_neg() };
        let (sequence, acknowledgment) = (signed(sequence), signed(acknowledgment));
        let mut edit = Edit::of(bytes, at, icmp);
        edit.add(at + SEQUENCE, sequence);
        // A quote may end here.
        let flags = edit
            .bytes
            .get(at + FLAGS)
            .map_or(Flags::empty(), |&bits| Flags::from_bits_truncate(u16::from(bits)));
        if flags.ack() {
            edit.add(at + ACKNOWLEDGMENT, acknowledgment);
            for edge in sack_edges(&edit.bytes[at..]) {
                edit.add(at + edge, acknowledgment);
            }
        }
    }
}

/// Where the edges of the blocks in a segment's SACK option lie, as far as the segment is there.
fn sack_edges(segment: &[u8]) -> Vec<usize> {
    let header_bytes = segment.get(12).map_or(0, |byte| usize::from(byte >> 4) * 4);
    let end = header_bytes.min(segment.len());
    let (mut at, mut edges) = (TCP_BYTES, Vec::new());
    while at + 1 < end {
        let (kind, length) = (segment[at], usize::from(segment[at + 1]));
        match kind {
            END => break,
            NO_OPERATION => at += 1,
            _ if length < 2 || at + length > end => break,
            SACK => {
                // Blocks are of eight bytes, and an edge takes four.
                edges.extend((at + 2..at + 2 + (length - 2) / 8 * 8).step_by(4));
                at += length;
            }
            _ => at += length,
        }
    }
    edges
}

/// An IP packet, or the front of one.
#[derive(Clone, Copy, Debug)]
struct Packet {
    source: IpAddr,
    destination: IpAddr,
    protocol: u8,
    /// Where the transport's header begins.
    body: usize,
}

impl Packet {
    /// None for later fragments, which have no transport header, and for extension headers, which no segment of ours
    /// has.
    fn of(bytes: &[u8]) -> Option<Packet> {
        if bytes.first()? >> 4 == 4 {
            let header: &[u8; 20] = bytes.first_chunk()?;
            let body = usize::from(header[0] & 0xf) * 4;
            let is_later_fragment = u16::from_be_bytes([header[6] & 0x1f, header[7]]) != 0;
            let address =
                |at: usize| Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]);
            (body >= header.len() && !is_later_fragment).then(|| Packet {
                source: address(12).into(),
                destination: address(16).into(),
                protocol: header[9],
                body,
            })
        } else {
            let header: &[u8; 40] = bytes.first_chunk()?;
            let address = |at: usize| -> Option<IpAddr> {
                Some(Ipv6Addr::from(*header.get(at..)?.first_chunk::<16>()?).into())
            };
            Some(Packet {
                source: address(8)?,
                destination: address(24)?,
                protocol: header[6],
                body: header.len(),
            })
        }
    }
    fn is_icmp_error(&self, bytes: &[u8]) -> bool {
        bytes.get(self.body).is_some_and(|&kind| match self.protocol {
            protocol::ICMPV4 => matches!(kind, 3 | 4 | 11 | 12),
            _ => kind < 128,
        })
    }
}

/// A segment, or the front of one, and the checksum that changes with it.
struct Edit<'a> {
    bytes: &'a mut [u8],
    /// What the checksum covers begins here.
    covered_from: usize,
    /// Where the checksum is.
    checksum: usize,
}

impl<'a> Edit<'a> {
    /// Of the segment at `at`, which the ICMP message at `icmp` may quote. A quote with the segment's own checksum needs
    /// no other: what the number adds to the message's sum, that checksum takes away.
    fn of(bytes: &'a mut [u8], at: usize, icmp: Option<usize>) -> Edit<'a> {
        let has_checksum = at + TCP_CHECKSUM + 2 <= bytes.len();
        match icmp {
            Some(icmp) if !has_checksum => Edit { bytes, covered_from: icmp, checksum: icmp + ICMP_CHECKSUM },
            _ => Edit { bytes, covered_from: at, checksum: at + TCP_CHECKSUM },
        }
    }
    /// Adds to the number at `at`, if it is there.
    fn add(&mut self, at: usize, by: u32) {
        let Some(&number) = self.bytes.get(at..).and_then(|bytes| bytes.first_chunk()) else { return };
        let number = u32::from_be_bytes(number).wrapping_add(by).to_be_bytes();
        // The words of the sum begin where it begins, and a number may lie across three of them.
        let first = at - (at - self.covered_from) % 2;
        for start in (first..at + number.len()).step_by(2) {
            let before = self.word(start);
            for place in (start.max(at)..start + 2).take_while(|place| *place < at + number.len()) {
                self.bytes[place] = number[place - at];
            }
            let after = self.word(start);
            let checksum = update(self.word(self.checksum), before, after);
            if let Some(place) = self.bytes.get_mut(self.checksum..self.checksum + 2) {
                place.copy_from_slice(&checksum.to_be_bytes());
            }
        }
    }
    /// The word at `at`; beyond the end are zeros.
    fn word(&self, at: usize) -> u16 {
        let byte = |at: usize| self.bytes.get(at).copied().unwrap_or(0);
        u16::from_be_bytes([byte(at), byte(at + 1)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use inhost_base::Sequence;
    use inhost_wire::checksum::Sum;
    use inhost_wire::icmpv4::{Icmpv4Message, UnreachableCode as Unreachable4};
    use inhost_wire::icmpv6::Icmpv6Message;
    use inhost_wire::ipv4::Ipv4Header;
    use inhost_wire::ipv6::Ipv6Header;
    use inhost_wire::tcp::{Segment, TcpHeader, TcpOptions, TcpView};

    const SEND_BY: u32 = (1 << 31) + 5;
    const RECEIVE_BY: u32 = 0xfedc_ba98;

    fn ends(is_ipv6: bool) -> (Endpoint, Endpoint) {
        let address = |last: u8| -> IpAddr {
            match is_ipv6 {
                true => Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, u16::from(last)).into(),
                false => Ipv4Addr::new(10, 0, 0, last).into(),
            }
        };
        (Endpoint::new(address(1), 7), Endpoint::new(address(2), 40_000))
    }
    fn packet(from: IpAddr, to: IpAddr, number: u8, body: &[u8]) -> Vec<u8> {
        let length = body.len() as u16;
        let mut packet = match (from, to) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                let mut bytes = vec![0; 20];
                Ipv4Header::new(from, to, number, length).emit(&mut bytes);
                bytes
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                let mut bytes = vec![0; 40];
                Ipv6Header::new(from, to, number, length).emit(&mut bytes);
                bytes
            }
            _ => unreachable!(),
        };
        packet.extend_from_slice(body);
        packet
    }
    fn header(sequence: u32, acknowledgment: u32, blocks: &[(u32, u32)]) -> TcpHeader {
        let mut options = TcpOptions { timestamps: Some((5, 6)), ..TcpOptions::NONE };
        for &(start, end) in blocks {
            options.sack.push((Sequence(start), Sequence(end)));
        }
        TcpHeader {
            sequence: Sequence(sequence),
            acknowledgment: Sequence(acknowledgment),
            flags: Flags::ACK,
            options,
            ..TcpHeader::default()
        }
    }
    fn segment((from, to): (Endpoint, Endpoint), header: TcpHeader, payload: &[u8]) -> Vec<u8> {
        let header = TcpHeader { source_port: from.port, destination_port: to.port, ..header };
        let segment = header.with_payload(payload);
        let mut bytes = vec![0; segment.length()];
        segment.emit(from.address, to.address, &mut bytes);
        packet(from.address, to.address, protocol::TCP, &bytes)
    }
    fn jumps(is_ipv6: bool) -> Jumps {
        let (own, peer) = ends(is_ipv6);
        let mut jumps = Jumps::default();
        jumps.add(own, peer, SEND_BY + 1, 1);
        jumps.add(own, peer, u32::MAX, RECEIVE_BY - 1);
        jumps
    }
    /// The numbers of a segment, and whether its checksum is right.
    fn numbers(packet: &[u8], (from, to): (Endpoint, Endpoint)) -> (u32, u32, Vec<(u32, u32)>, bool) {
        let body = if packet[0] >> 4 == 4 { 20 } else { 40 };
        let view = TcpView::new(&packet[body..]).unwrap();
        let segment = Segment::parse(&view);
        let blocks = segment.options.sack.iter().map(|(start, end)| (start.0, end.0)).collect();
        (segment.sequence.0, segment.acknowledgment.0, blocks, view.checksum_ok(from.address, to.address))
    }

    #[test]
    fn segments_are_translated_both_ways_and_checksums_with_them() {
        let (send, receive) = (SEND_BY, RECEIVE_BY);
        for is_ipv6 in [false, true] {
            let (jumps, (own, peer)) = (jumps(is_ipv6), ends(is_ipv6));
            let made = header(100, 200, &[(210, 220), (230, 0xffff_fff0)]);
            for length in [0, 1, 1000] {
                let payload = vec![0xa5; length];
                let mut out = segment((own, peer), made, &payload);
                let before = out.clone();
                jumps.translate(&mut out, false, PacketDirection::Out);
                let less = |number: u32| number.wrapping_sub(receive);
                let blocks = vec![(less(210), less(220)), (less(230), less(0xffff_fff0))];
                let sequence = 100u32.wrapping_sub(send);
                assert_eq!(numbers(&out, (own, peer)), (sequence, less(200), blocks, true));
                // And back, were it to come in.
                jumps.translate(&mut out, false, PacketDirection::In);
                assert_eq!(out, before);

                let mut input = segment((peer, own), made, &payload);
                jumps.translate(&mut input, false, PacketDirection::In);
                let more = |number: u32| number.wrapping_add(send);
                let blocks = vec![(more(210), more(220)), (more(230), more(0xffff_fff0))];
                let sequence = 100u32.wrapping_add(receive);
                assert_eq!(numbers(&input, (peer, own)), (sequence, more(200), blocks, true));
            }
        }
    }

    #[test]
    fn options_at_odd_places_keep_the_checksum_right_and_wrong_ones_wrong() {
        let (jumps, (own, peer)) = (jumps(false), ends(false));
        for is_wrong in [false, true] {
            let mut bytes = segment((peer, own), header(1, 2, &[(3, 4)]), b"data");
            // No-operations, timestamps and no-operations become one no-operation, the blocks, and an end.
            let options = [1, 5, 10, 0, 0, 0, 9, 0, 0, 0, 12, 0];
            let at = 20 + TCP_BYTES;
            let end = 20 + usize::from(bytes[32] >> 4) * 4;
            bytes[at..end].fill(1);
            bytes[at..at + options.len()].copy_from_slice(&options);
            bytes[36..38].fill(0);
            let sum = inhost_wire::checksum::pseudo_header(
                peer.address,
                own.address,
                protocol::TCP,
                bytes.len() as u32 - 20,
            );
            let sum = sum.add_bytes(&bytes[20..]).finish();
            bytes[36..38].copy_from_slice(&(sum ^ u16::from(is_wrong)).to_be_bytes());
            jumps.translate(&mut bytes, false, PacketDirection::In);
            let (.., blocks, is_right) = numbers(&bytes, (peer, own));
            let more = |number: u32| number.wrapping_add(SEND_BY);
            assert_eq!((blocks, is_right), (vec![(more(9), more(12))], !is_wrong));
        }
    }

    #[test]
    fn what_icmp_errors_quote_is_translated_however_short_it_is() {
        for is_ipv6 in [false, true] {
            let (jumps, (own, peer)) = (jumps(is_ipv6), ends(is_ipv6));
            let quoted = segment((own, peer), header(100, 200, &[(210, 220)]), &[7; 30]);
            let network = if is_ipv6 { 40 } else { 20 };
            for quoted_bytes in [network + 8, network + 13, network + 20, quoted.len()] {
                let mut message = vec![0; 600];
                let invoking = &quoted[..quoted_bytes];
                let length = match (own.address, peer.address) {
                    (IpAddr::V6(own), IpAddr::V6(peer)) => {
                        Icmpv6Message::PacketTooBig { mtu: 1280, invoking }.emit(peer, own, &mut message)
                    }
                    _ => Icmpv4Message::DestinationUnreachable {
                        code: Unreachable4::FragmentationNeeded,
                        next_hop_mtu: 1400,
                        invoking,
                    }
                    .emit(&mut message),
                };
                let number = if is_ipv6 { protocol::ICMPV6 } else { protocol::ICMPV4 };
                let mut error = packet(peer.address, own.address, number, &message[..length]);
                let before = error.clone();
                jumps.translate(&mut error, false, PacketDirection::In);
                let at = network + ICMP_QUOTE + network;
                let number_at = |at: usize| u32::from_be_bytes(*error[at..].first_chunk().unwrap());
                assert_eq!(number_at(at + SEQUENCE), 100u32.wrapping_add(SEND_BY));
                if quoted_bytes > network + FLAGS {
                    assert_eq!(number_at(at + ACKNOWLEDGMENT), 200u32.wrapping_add(RECEIVE_BY));
                }
                let body_bytes = (error.len() - network) as u32;
                let pseudo = match is_ipv6 {
                    true => {
                        inhost_wire::checksum::pseudo_header(peer.address, own.address, number, body_bytes)
                    }
                    false => Sum::ZERO,
                };
                assert!(pseudo.add_bytes(&error[network..]).is_valid(), "{is_ipv6} {quoted_bytes}");
                jumps.translate(&mut error, false, PacketDirection::Out);
                assert_eq!(error, before);
            }
        }
    }

    #[test]
    fn others_and_rubbish_stay_as_they_are() {
        let (jumps, (own, peer)) = (jumps(false), ends(false));
        let other = Endpoint::new(own.address, 8);
        for mut bytes in
            [segment((other, peer), header(1, 2, &[]), b"x"), vec![0x45; 30], vec![0x60; 41], vec![]]
        {
            let before = bytes.clone();
            jumps.translate(&mut bytes, false, PacketDirection::In);
            assert_eq!(bytes, before);
            (0..before.len())
                .for_each(|length| jumps.translate(&mut bytes[..length], false, PacketDirection::Out));
        }
        let whole = segment((own, peer), header(1, 2, &[(3, 4)]), b"data");
        for length in 0..whole.len() {
            jumps.translate(&mut whole.clone()[..length], false, PacketDirection::Out);
        }
    }
}
