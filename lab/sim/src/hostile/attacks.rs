//! The kinds of hostile frames, and what each may do.

use inhost_base::{HardwareAddress, IpAddr, Ipv4Addr, Ipv6Addr};
use inhost_event::Drop;
use inhost_wire::arp::{ArpOperation, ArpPacket};
use inhost_wire::ethernet::{EtherType, EthernetView};
use inhost_wire::icmpv4::{Icmpv4Message, UnreachableCode as Unreachable4};
use inhost_wire::icmpv6::{Icmpv6Message, UnreachableCode as Unreachable6};
use inhost_wire::igmp::{IgmpMessage, QueryVersion};
use inhost_wire::ipv4::{Ipv4Header, Ipv4View};
use inhost_wire::ipv6::{self, Ipv6Header, Ipv6View};
use inhost_wire::ndp::{NdpMessage, NdpOptions, PrefixInformation};
use inhost_wire::protocol;
use inhost_wire::tcp::{FastOpenCookie, Flags, TcpOptions, TcpView};
use inhost_wire::udp::{UdpHeader, UdpView};

use super::forge::{Forger, Mark, mend, old, segment_between};
use super::world::{ECHO_PORT, OPEN_PORT, PEER, VICTIM, address, card};

/// Permitted effects of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum May {
    /// Nothing but be counted.
    Nothing,
    /// Be answered, within the limits on answers. No connection changes.
    BeAnswered,
    /// Change what such a frame changes, within the limits of tables and memory.
    Act,
}

/// A hostile frame.
pub(super) struct Frame {
    pub bytes: Vec<u8>,
    pub may: May,
    /// Under one of which it is counted; none when that is not prescribed.
    pub drops: &'static [Drop],
}

/// What a kind is made from: the forger, a connection of the link, and a frame that came lately.
pub(super) type Make = fn(&mut Forger, &Mark<'_>, &[u8]) -> Frame;

/// Every kind: its name, how often it is drawn, and how it is made.
pub(super) const KINDS: [(&str, u32, Make); 28] = [
    ("random bytes", 1000, random_bytes),
    ("real frame, some bytes changed", 2000, spoilt),
    ("real frame, again", 300, repeated),
    ("another destination", 500, other_destination),
    ("impossible source", 500, impossible_source),
    ("segment before the window", 700, before_window),
    ("segment beyond the window", 700, beyond_window),
    ("acknowledgment of the future", 500, future_acknowledgment),
    ("acknowledgment of the distant past", 300, past_acknowledgment),
    ("old or missing timestamp", 500, old_timestamp),
    ("reset in the window", 400, reset_in_window),
    ("reset outside the window", 300, reset_outside),
    ("SYN on a connection", 400, syn_on_connection),
    ("segment without acknowledgment", 200, no_acknowledgment),
    ("malformed TCP header", 300, malformed_header),
    ("segment for no connection", 300, no_connection),
    ("SYN flood", 200, syn_flood),
    ("guessed SYN cookie", 300, guessed_cookie),
    ("guessed fast-open cookie", 200, guessed_fast_open),
    ("selective acknowledgment of nothing", 200, selective_nonsense),
    ("fragments", 500, fragment),
    ("bad IP options and extension headers", 200, bad_options),
    ("ICMP error about nothing in flight", 300, stale_error),
    ("ICMP error about what is in flight", 1, error_in_flight),
    ("ICMP, IGMP and unknown protocols", 300, other_protocols),
    ("UDP", 300, datagrams),
    ("ARP and neighbour discovery", 100, neighbours),
    ("router advertisement", 1, router),
];

const NONE: &[Drop] = &[];

fn frame(bytes: Vec<u8>, may: May) -> Frame {
    Frame { bytes, may, drops: NONE }
}
fn refused(bytes: Vec<u8>, drops: &'static [Drop]) -> Frame {
    Frame { bytes, may: May::BeAnswered, drops }
}

fn random_bytes(forger: &mut Forger, mark: &Mark<'_>, _: &[u8]) -> Frame {
    let most = forger.of([20, 100, 100, 1514]);
    let mut bytes = forger.bytes(most);
    if forger.one_in(2) {
        // So that they are looked at.
        let version = if mark.transfer.peer.address.is_ipv6() { 0x60 } else { 0x45 };
        if let Some(first) = bytes.first_mut() {
            *first = version;
        }
        let known = [EtherType::IPV4, EtherType::IPV6, EtherType::ARP];
        let ethertype = forger.of(known);
        bytes = forger.framed_as(ethertype, card(VICTIM), bytes);
    }
    frame(bytes, May::Nothing)
}

fn repeated(_: &mut Forger, _: &Mark<'_>, real: &[u8]) -> Frame {
    frame(real.to_vec(), May::Act)
}

fn spoilt(forger: &mut Forger, _: &Mark<'_>, real: &[u8]) -> Frame {
    let mut bytes = real.to_vec();
    for _ in 0..=forger.below(4) {
        let at = forger.below(bytes.len().max(1) as u32) as usize;
        let value = forger.below(256) as u8;
        match (forger.below(12), bytes.get_mut(at)) {
            (0, _) => bytes.truncate(at),
            (1, _) => bytes.extend(forger.bytes(20)),
            (2..=5, Some(byte)) => *byte ^= 1 << (value % 8),
            (_, Some(byte)) => *byte = value,
            _ => {}
        }
    }
    let mut may = judge_spoilt(forger.link == 0, &bytes);
    // Changes that cancel each other out in the checksum would be believed, and spoil a stream for good: TCP's checksum
    // is no more than that. So there is one change more.
    for _ in 0..MOST_CHANGES {
        if may != May::Act || bytes == real || bytes.is_empty() {
            break;
        }
        let at = forger.below(bytes.len() as u32) as usize;
        bytes[at] ^= 1 << forger.below(8);
        may = judge_spoilt(forger.link == 0, &bytes);
    }
    frame(bytes, may)
}
/// Changes that are added to a frame until its checksum is wrong.
const MOST_CHANGES: usize = 16;

/// What a frame may do that was real once: nothing, when a checksum or the destination is wrong.
fn judge_spoilt(is_ethernet: bool, bytes: &[u8]) -> May {
    let packet = if is_ethernet {
        let Ok(view) = EthernetView::new(bytes) else { return May::Nothing };
        match view.ethertype() {
            EtherType::IPV4 | EtherType::IPV6 => {}
            EtherType::ARP => return May::Act,
            _ => return May::Nothing,
        }
        // A packet that is ours, in a frame for all, is no business of a connection; else the card refuses it.
        if view.destination() != card(VICTIM) && view.destination().is_unicast() {
            return May::Nothing;
        }
        if (bytes[12..14] == [8, 0]) != (view.payload().first().is_some_and(|byte| byte >> 4 == 4)) {
            return May::Nothing;
        }
        view.payload()
    } else {
        bytes
    };
    let (source, destination, number, body) = match packet.first().map(|byte| byte >> 4) {
        Some(4) => match Ipv4View::new(packet) {
            Ok(view) if view.checksum_ok() => {
                if view.is_fragment() || !view.options().is_empty() {
                    return May::BeAnswered;
                }
                (view.source().into(), view.destination().into(), view.protocol(), view.payload())
            }
            _ => return May::Nothing,
        },
        Some(6) => match Ipv6View::new(packet) {
            Ok(view) => (view.source().into(), view.destination().into(), view.next_header(), view.payload()),
            _ => return May::Nothing,
        },
        _ => return May::Nothing,
    };
    let is_whole = match number {
        protocol::TCP => TcpView::new(body).is_ok_and(|view| view.checksum_ok(source, destination)),
        protocol::UDP => UdpView::new(body).is_ok_and(|view| view.checksum_ok(source, destination)),
        // Nothing protects what the next header is in IPv6: an extension, or an unknown protocol, may be answered.
        _ => return May::BeAnswered,
    };
    if is_whole { May::Act } else { May::Nothing }
}

fn other_destination(forger: &mut Forger, mark: &Mark<'_>, _: &[u8]) -> Frame {
    let is_ipv6 = mark.transfer.victim.address.is_ipv6();
    let header = forger.header(mark);
    let payload = forger.bytes(100);
    let source = mark.transfer.peer.address;
    let destination = match forger.below(6) {
        0 => forger.neighbour(is_ipv6),
        // Ours, but on the other link; and the peer's own.
        1 => address(1 - forger.link, VICTIM, is_ipv6),
        2 => address(forger.link, PEER, is_ipv6),
        3 if is_ipv6 => Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1).into(),
        3 => forger.of([Ipv4Addr::BROADCAST, Ipv4Addr::new(224, 0, 0, 1)]).into(),
        4 if is_ipv6 => Ipv6Addr::LOCALHOST.into(),
        4 => Ipv4Addr::LOCALHOST.into(),
        _ => {
            let bytes = forger.segment(mark, &header, &payload);
            if forger.link != 0 {
                return frame(forger.bytes(19), May::Nothing);
            }
            // For another card.
            let card = HardwareAddress([2, 0, 0, 0, 1, forger.below(256) as u8]);
            let ethertype = if is_ipv6 { EtherType::IPV6 } else { EtherType::IPV4 };
            return frame(forger.framed_as(ethertype, card, bytes[14..].to_vec()), May::Nothing);
        }
    };
    let body = segment_between(source, destination, &header, &payload);
    frame(forger.framed(forger.packet(source, destination, protocol::TCP, &body)), May::Nothing)
}

fn impossible_source(forger: &mut Forger, mark: &Mark<'_>, _: &[u8]) -> Frame {
    let is_ipv6 = mark.transfer.victim.address.is_ipv6();
    let mut header = forger.header(mark);
    if forger.one_in(3) {
        header.destination_port = OPEN_PORT;
        header.flags = Flags::SYN;
    }
    let source: IpAddr = match is_ipv6 {
        true => forger
            .of([Ipv6Addr::LOCALHOST, Ipv6Addr::UNSPECIFIED, Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1)])
            .into(),
        false => forger
            .of([
                Ipv4Addr::LOCALHOST,
                Ipv4Addr::UNSPECIFIED,
                Ipv4Addr::BROADCAST,
                Ipv4Addr::new(224, 0, 0, 1),
                Ipv4Addr::new(10, 0, forger.link as u8, 255),
            ])
            .into(),
    };
    let source = if forger.one_in(4) { mark.transfer.victim.address } else { source };
    let destination = mark.transfer.victim.address;
    let body = segment_between(source, destination, &header, &[]);
    frame(forger.framed(forger.packet(source, destination, protocol::TCP, &body)), May::Nothing)
}

fn before_window(forger: &mut Forger, mark: &Mark<'_>, _: &[u8]) -> Frame {
    let mut header = forger.header(mark);
    let payload = forger.bytes(100);
    if forger.one_in(4) {
        header.flags = header.flags.union(forger.of([Flags::FIN, Flags::URG]));
        header.urgent_pointer = forger.below(65_536) as u16;
    }
    let length = payload.len() as u32 + u32::from(header.flags.fin());
    header.sequence = old(mark.connection.receive_next, length, forger.distance());
    refused(forger.segment(mark, &header, &payload), &[Drop::OutOfWindow])
}

fn beyond_window(forger: &mut Forger, mark: &Mark<'_>, _: &[u8]) -> Frame {
    let mut header = forger.header(mark);
    let payload = forger.bytes(100);
    if forger.one_in(4) {
        header.flags = header.flags.union(forger.of([Flags::FIN, Flags::URG]));
        header.urgent_pointer = forger.below(65_536) as u16;
    }
    let edge = mark.connection.receive_next + mark.connection.receive_window_bytes;
    header.sequence = edge + forger.distance();
    refused(forger.segment(mark, &header, &payload), &[Drop::OutOfWindow])
}

/// In the window and newer than everything, so that only the acknowledgment is wrong.
fn with_acknowledgment(forger: &mut Forger, mark: &Mark<'_>, acknowledgment: inhost_base::Sequence) -> Frame {
    let mut header = forger.header(mark);
    header.acknowledgment = acknowledgment;
    let ahead = forger.of([0, 1, 60_000, 1 << 30]);
    header.options.timestamps = mark.timestamps.map(|(value, echo)| (value.wrapping_add(ahead), echo));
    let payload = forger.bytes(100);
    refused(forger.segment(mark, &header, &payload), &[Drop::OutOfWindow, Drop::RateLimited])
}

fn future_acknowledgment(forger: &mut Forger, mark: &Mark<'_>, _: &[u8]) -> Frame {
    let acknowledgment = mark.connection.send_next + forger.distance();
    with_acknowledgment(forger, mark, acknowledgment)
}

fn past_acknowledgment(forger: &mut Forger, mark: &Mark<'_>, _: &[u8]) -> Frame {
    // Further back than any window can reach (RFC 7323 §2.3).
    let back = (1 << 30) + forger.below(1 << 29) + 1;
    with_acknowledgment(forger, mark, mark.connection.send_unacknowledged.back(back))
}

fn old_timestamp(forger: &mut Forger, mark: &Mark<'_>, _: &[u8]) -> Frame {
    let mut header = forger.header(mark);
    let Some((value, echo)) = mark.timestamps else { return frame(Vec::new(), May::Nothing) };
    // Older than what any segment of this run bore lately.
    let back = 100_000 + forger.distance();
    let old = Some((value.wrapping_sub(back), echo));
    header.options.timestamps = if forger.one_in(3) { None } else { old };
    let payload = forger.bytes(100);
    refused(forger.segment(mark, &header, &payload), &[Drop::OldTimestamp])
}

fn reset_in_window(forger: &mut Forger, mark: &Mark<'_>, _: &[u8]) -> Frame {
    let mut header = forger.header(mark);
    header.flags = Flags::RST.union(forger.of([Flags::empty(), Flags::ACK]));
    let window = mark.connection.receive_window_bytes;
    if window < 2 {
        return reset_outside(forger, mark, &[]);
    }
    header.sequence = header.sequence + 1 + forger.below(window - 1);
    refused(forger.segment(mark, &header, &[]), &[Drop::OutOfWindow, Drop::RateLimited])
}

fn reset_outside(forger: &mut Forger, mark: &Mark<'_>, _: &[u8]) -> Frame {
    let mut header = forger.header(mark);
    header.flags = Flags::RST.union(forger.of([Flags::empty(), Flags::ACK]));
    let edge = header.sequence + mark.connection.receive_window_bytes;
    let distance = forger.distance();
    header.sequence = if forger.one_in(2) { old(header.sequence, 0, distance) } else { edge + distance };
    Frame { may: May::Nothing, ..refused(forger.segment(mark, &header, &[]), &[Drop::OutOfWindow]) }
}

fn syn_on_connection(forger: &mut Forger, mark: &Mark<'_>, _: &[u8]) -> Frame {
    let mut header = forger.header(mark);
    header.flags = Flags::SYN.union(forger.of([Flags::empty(), Flags::ACK]));
    header.options = TcpOptions { mss: Some(1460), window_scale: Some(7), ..header.options };
    let window = mark.connection.receive_window_bytes.max(1);
    header.sequence = match forger.below(3) {
        0 => header.sequence,
        1 => header.sequence + forger.below(window),
        _ => header.sequence + forger.distance(),
    };
    let payload = forger.bytes(10);
    refused(forger.segment(mark, &header, &payload), &[Drop::OutOfWindow, Drop::RateLimited])
}

fn no_acknowledgment(forger: &mut Forger, mark: &Mark<'_>, _: &[u8]) -> Frame {
    let mut header = forger.header(mark);
    header.flags = forger.of([Flags::empty(), Flags::PSH, Flags::FIN, Flags::URG]);
    let ahead = forger.of([0, 1, 60_000, 1 << 30]);
    header.options.timestamps = mark.timestamps.map(|(value, echo)| (value.wrapping_add(ahead), echo));
    let payload = forger.bytes(100);
    refused(forger.segment(mark, &header, &payload), &[Drop::OutOfWindow])
}

fn malformed_header(forger: &mut Forger, mark: &Mark<'_>, _: &[u8]) -> Frame {
    let mut header = forger.header(mark);
    // Old, so that whatever the options are taken for, the data is not.
    header.sequence = old(header.sequence, 100, forger.distance());
    let (source, destination) = (mark.transfer.peer.address, mark.transfer.victim.address);
    let payload = forger.bytes(60);
    let mut body = segment_between(source, destination, &header, &payload);
    let may = if forger.one_in(2) {
        // A data offset within the fixed header, or beyond the end.
        let words = if forger.one_in(2) || body.len() >= 60 { forger.below(5) } else { 15 };
        body[12] = (words as u8) << 4;
        May::Nothing
    } else {
        // Rubbish for options.
        let end = usize::from(body[12] >> 4) * 4;
        for byte in body.iter_mut().take(end).skip(20) {
            let any = forger.below(256) as u8;
            *byte = forger.of([0, 1, 2, 3, 4, 5, 8, 34, 255, any]);
        }
        May::BeAnswered
    };
    mend(source, destination, protocol::TCP, &mut body, 16);
    frame(forger.framed(forger.packet(source, destination, protocol::TCP, &body)), may)
}

fn no_connection(forger: &mut Forger, mark: &Mark<'_>, _: &[u8]) -> Frame {
    let mut header = forger.header(mark);
    header.flags = Flags::from_bits_truncate(forger.below(512) as u16);
    header.destination_port = 10_000 + forger.below(30_000) as u16;
    let is_ipv6 = mark.transfer.peer.address.is_ipv6();
    let source = if forger.one_in(2) { mark.transfer.peer.address } else { forger.neighbour(is_ipv6) };
    let destination = mark.transfer.victim.address;
    let payload = forger.bytes(50);
    let body = segment_between(source, destination, &header, &payload);
    refused(forger.framed(forger.packet(source, destination, protocol::TCP, &body)), &[Drop::NoSocket])
}

fn syn_flood(forger: &mut Forger, mark: &Mark<'_>, _: &[u8]) -> Frame {
    let mut header = forger.header(mark);
    header.flags = forger.of([Flags::SYN, Flags::SYN, Flags::SYN.union(Flags::FIN), Flags::ACK]);
    header.destination_port = OPEN_PORT;
    header.source_port = forger.below(65_536) as u16;
    header.options.mss = Some(forger.below(65_536) as u16);
    let is_ipv6 = mark.transfer.peer.address.is_ipv6();
    let source = if forger.one_in(2) { mark.transfer.peer.address } else { forger.neighbour(is_ipv6) };
    let destination = mark.transfer.victim.address;
    let body = segment_between(source, destination, &header, &[]);
    frame(forger.framed(forger.packet(source, destination, protocol::TCP, &body)), May::Act)
}

/// The last step of a handshake that never was: its number is a cookie with a chance of one in 2^28, and then its
/// timestamp must be ours as well.
fn guessed_cookie(forger: &mut Forger, mark: &Mark<'_>, _: &[u8]) -> Frame {
    let mut header = forger.header(mark);
    header.flags = Flags::ACK.union(forger.of([Flags::empty(), Flags::PSH, Flags::FIN, Flags::URG]));
    header.destination_port = OPEN_PORT;
    // No SYN comes from there, so that nothing is in progress.
    header.source_port = 0x8000 | forger.below(0x8000) as u16;
    header.acknowledgment = inhost_base::Sequence(forger.random.public_u64() as u32);
    header.options.timestamps = forger.of([None, mark.timestamps]);
    let is_ipv6 = mark.transfer.peer.address.is_ipv6();
    let source = forger.neighbour(is_ipv6);
    let payload = forger.bytes(50);
    let body = segment_between(source, mark.transfer.victim.address, &header, &payload);
    let bytes = forger.framed(forger.packet(source, mark.transfer.victim.address, protocol::TCP, &body));
    // A flood may have left a handshake with the very same ends.
    refused(
        bytes,
        &[Drop::NoSocket, Drop::NotCredible, Drop::OutOfWindow, Drop::OldTimestamp, Drop::QueueFull],
    )
}

/// A SYN with data and a cookie that was never given away, in either form.
fn guessed_fast_open(forger: &mut Forger, mark: &Mark<'_>, _: &[u8]) -> Frame {
    let mut header = forger.header(mark);
    header.flags = Flags::SYN;
    header.destination_port = OPEN_PORT;
    header.source_port = forger.below(0x8000) as u16;
    let cookie = forger.bytes(16);
    header.options = TcpOptions {
        fast_open: FastOpenCookie::from_slice(&cookie),
        fast_open_experimental: forger.one_in(2),
        ..TcpOptions::NONE
    };
    let is_ipv6 = mark.transfer.peer.address.is_ipv6();
    let source = forger.neighbour(is_ipv6);
    let payload = forger.bytes(100);
    let body = segment_between(source, mark.transfer.victim.address, &header, &payload);
    frame(forger.framed(forger.packet(source, mark.transfer.victim.address, protocol::TCP, &body)), May::Act)
}

/// Blocks that were never sent, that are acknowledged, that are inside out or that overlap, on a segment that is
/// otherwise in order and says nothing new. What it does to recovery is limited to sending again.
fn selective_nonsense(forger: &mut Forger, mark: &Mark<'_>, _: &[u8]) -> Frame {
    let connection = mark.connection;
    let mut header = forger.header(mark);
    header.acknowledgment = connection.send_unacknowledged;
    for _ in 0..1 + forger.below(4) {
        let around = forger.of([connection.send_unacknowledged, connection.send_next]);
        let start =
            if forger.one_in(2) { around + forger.distance() } else { around.back(forger.distance()) };
        let end = if forger.one_in(4) { start.back(forger.distance()) } else { start + forger.distance() };
        // What the peer may well have would be a forgery that is to be believed.
        let is_plausible = connection.send_unacknowledged.precedes(end)
            && start.precedes(connection.send_next)
            && start.precedes(end);
        if !is_plausible {
            header.options.sack.push((start, end));
        }
    }
    frame(forger.segment(mark, &header, &[]), May::Act)
}

fn fragment(forger: &mut Forger, mark: &Mark<'_>, _: &[u8]) -> Frame {
    let is_ipv6 = mark.transfer.peer.address.is_ipv6();
    let source = if forger.one_in(2) { mark.transfer.peer.address } else { forger.neighbour(is_ipv6) };
    // Few identifications, so that pieces meet.
    let identification = forger.below(40);
    let most_eights = if forger.one_in(10) { 8192 } else { 100 };
    let offset_bytes = (forger.below(most_eights) as u16) << 3;
    let more = !forger.one_in(3);
    let most_bytes = if forger.one_in(10) { 1400 } else { 64 };
    let data = forger.bytes(most_bytes);
    let number = forger.of([protocol::TCP, protocol::UDP, 99]);
    let bytes = match (source, mark.transfer.victim.address) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let header = Ipv4Header {
                dont_fragment: false,
                more_fragments: more,
                fragment_offset_bytes: offset_bytes,
                identification: identification as u16,
                ..Ipv4Header::new(source, destination, number, data.len() as u16)
            };
            let mut packet = vec![0; 20];
            header.emit(&mut packet);
            packet.extend_from_slice(&data);
            packet
        }
        (source, destination) => {
            let mut body = vec![0; 8];
            ipv6::emit_fragment_header(number, offset_bytes, more, identification, &mut body);
            body.extend_from_slice(&data);
            forger.packet(source, destination, protocol::FRAGMENT, &body)
        }
    };
    frame(forger.framed(bytes), May::BeAnswered)
}

fn bad_options(forger: &mut Forger, mark: &Mark<'_>, _: &[u8]) -> Frame {
    let mut header = forger.header(mark);
    header.sequence = old(header.sequence, 0, forger.distance());
    let (source, destination) = (mark.transfer.peer.address, mark.transfer.victim.address);
    let segment = segment_between(source, destination, &header, &[]);
    let bytes = match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let words = 1 + forger.below(10) as usize;
            let mut options = Vec::new();
            options.resize_with(words * 4, || {
                let any = forger.below(256) as u8;
                forger.of([0, 1, 7, 68, 131, 137, 148, 3, 4, any])
            });
            let mut packet = vec![0; 20 + options.len()];
            Ipv4Header::new(source, destination, protocol::TCP, (options.len() + segment.len()) as u16)
                .emit_with_options(&options, &mut packet);
            packet.extend_from_slice(&segment);
            packet
        }
        _ => {
            let chain = [protocol::HOP_BY_HOP, protocol::DESTINATION_OPTIONS, protocol::ROUTING, 59, 135];
            let first = forger.of(chain);
            let mut body = Vec::new();
            for _ in 0..forger.below(12) {
                let another = forger.of(chain);
                let next = forger.of([protocol::TCP, another]);
                body.extend_from_slice(&[next, forger.below(3) as u8]);
                body.extend((0..6).map(|_| forger.of([0, 1, 4, 5, 0x3e, 0x80, 0xc2, 0xff])));
            }
            body.extend_from_slice(&segment);
            forger.packet(source, destination, first, &body)
        }
    };
    frame(forger.framed(bytes), May::BeAnswered)
}

/// An ICMP error that quotes a segment of the victim with this number.
fn quoting(forger: &mut Forger, mark: &Mark<'_>, sequence: inhost_base::Sequence) -> Vec<u8> {
    let mut header = forger.header(mark);
    (header.source_port, header.destination_port) = (header.destination_port, header.source_port);
    header.sequence = sequence;
    let (source, destination) = (mark.transfer.victim.address, mark.transfer.peer.address);
    let body = segment_between(source, destination, &header, &[0; 20]);
    let invoking = forger.packet(source, destination, protocol::TCP, &body);
    let mut message = vec![0; 1600];
    let mtu = forger.of([0, 68, 576, 1280, 1400, 65_535]);
    let length = match (destination, source) {
        (IpAddr::V4(_), _) => {
            let invoking = &invoking[..forger.of([28, 40, invoking.len()])];
            let code = forger.of([
                Unreachable4::Host,
                Unreachable4::Port,
                Unreachable4::Protocol,
                Unreachable4::FragmentationNeeded,
                Unreachable4::Network,
            ]);
            Icmpv4Message::DestinationUnreachable { code, next_hop_mtu: mtu, invoking }.emit(&mut message)
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let invoking = &invoking[..];
            let code = forger.of([Unreachable6::Port, Unreachable6::NoRoute, Unreachable6::Address]);
            let error = match forger.below(3) {
                0 => Icmpv6Message::PacketTooBig { mtu: u32::from(mtu), invoking },
                1 => Icmpv6Message::ParameterProblem { code: 1, pointer: 6, invoking },
                _ => Icmpv6Message::DestinationUnreachable { code, invoking },
            };
            error.emit(from, to, &mut message)
        }
        _ => 0,
    };
    message.truncate(length);
    message
}

fn icmp_number(mark: &Mark<'_>) -> u8 {
    if mark.transfer.peer.address.is_ipv6() { protocol::ICMPV6 } else { protocol::ICMPV4 }
}

fn stale_error(forger: &mut Forger, mark: &Mark<'_>, _: &[u8]) -> Frame {
    let connection = mark.connection;
    let distance = forger.distance();
    let sequence = match forger.below(2) {
        0 => connection.send_next + (distance - 1),
        _ => connection.send_unacknowledged.back(distance),
    };
    let mut message = quoting(forger, mark, sequence);
    if forger.one_in(4) {
        let at = forger.below(message.len() as u32) as usize;
        message[at] ^= 1 << forger.below(8);
        return frame(forger.datagram(mark, icmp_number(mark), &message), May::Nothing);
    }
    frame(forger.datagram(mark, icmp_number(mark), &message), May::BeAnswered)
}

fn error_in_flight(forger: &mut Forger, mark: &Mark<'_>, _: &[u8]) -> Frame {
    let message = quoting(forger, mark, mark.connection.send_unacknowledged);
    frame(forger.datagram(mark, icmp_number(mark), &message), May::Act)
}

fn other_protocols(forger: &mut Forger, mark: &Mark<'_>, _: &[u8]) -> Frame {
    let (source, destination) = (mark.transfer.peer.address, mark.transfer.victim.address);
    let mut body = forger.bytes(60);
    body.resize(body.len().max(8), 0);
    let number = match forger.below(4) {
        0 => {
            // An echo request.
            body[0] = if source.is_ipv6() { 128 } else { 8 };
            body[1] = 0;
            icmp_number(mark)
        }
        1 => icmp_number(mark),
        2 if source.is_ipv4() => {
            let query = IgmpMessage::Query {
                version: QueryVersion::V2,
                group: forger.of([Ipv4Addr::UNSPECIFIED, Ipv4Addr::new(224, 0, 0, 251)]),
                max_response_code: forger.below(256) as u8,
            };
            query.emit(&mut body);
            protocol::IGMP
        }
        _ => 136 + forger.below(100) as u8,
    };
    mend(source, destination, number, &mut body, 2);
    frame(forger.framed(forger.packet(source, destination, number, &body)), May::Act)
}

fn datagrams(forger: &mut Forger, mark: &Mark<'_>, _: &[u8]) -> Frame {
    let (source, destination) = (mark.transfer.peer.address, mark.transfer.victim.address);
    let to_nobody = 20_000 + forger.below(10_000) as u16;
    let header =
        UdpHeader { source_port: 40_000, destination_port: forger.of([ECHO_PORT, ECHO_PORT, to_nobody]) };
    let payload = forger.bytes(200);
    let mut body = vec![0; 8 + payload.len()];
    header.emit_datagram(source, destination, &payload, &mut body);
    let may = if forger.one_in(3) {
        // Zero would mean that there is none.
        let checksum = u16::from_be_bytes([body[6], body[7]]);
        let wrong = if checksum == 0x1234 { 0x1235 } else { 0x1234_u16 };
        body[6..8].copy_from_slice(&wrong.to_be_bytes());
        May::Nothing
    } else {
        May::BeAnswered
    };
    frame(forger.framed(forger.packet(source, destination, protocol::UDP, &body)), may)
}

fn neighbours(forger: &mut Forger, mark: &Mark<'_>, real: &[u8]) -> Frame {
    if forger.link != 0 {
        return spoilt(forger, mark, real);
    }
    let is_ipv6 = mark.transfer.peer.address.is_ipv6();
    let hardware = HardwareAddress([2, 9, 9, 9, forger.below(256) as u8, forger.below(256) as u8]);
    // To be somebody else is common; to be the peer would cut the transfers off and is rare.
    let claims_peer = forger.one_in(3000);
    let claimed = if claims_peer { address(0, PEER, is_ipv6) } else { forger.neighbour(is_ipv6) };
    let ours = address(0, VICTIM, is_ipv6);
    match (claimed, ours) {
        (IpAddr::V4(claimed), IpAddr::V4(ours)) => {
            let other = ArpOperation::Other(forger.below(10) as u16);
            let packet = ArpPacket {
                operation: forger.of([ArpOperation::Request, ArpOperation::Reply, other]),
                sender_hardware: hardware,
                sender_protocol: forger.of([claimed, claimed, Ipv4Addr::UNSPECIFIED]),
                target_hardware: card(VICTIM),
                target_protocol: forger.of([ours, Ipv4Addr::new(10, 0, 0, 77)]),
            };
            let mut bytes = vec![0; 28];
            packet.emit(&mut bytes);
            frame(forger.framed_as(EtherType::ARP, card(VICTIM), bytes), May::Act)
        }
        (IpAddr::V6(claimed), IpAddr::V6(ours)) => {
            let options = NdpOptions {
                source_link_layer: Some(hardware),
                target_link_layer: Some(hardware),
                ..NdpOptions::default()
            };
            let message = match forger.below(3) {
                0 => NdpMessage::NeighbourSolicitation { target: ours, options },
                1 => NdpMessage::Redirect { target: claimed, destination: claimed, options },
                _ => NdpMessage::NeighbourAdvertisement {
                    router: forger.one_in(2),
                    solicited: forger.one_in(2),
                    override_cache: forger.one_in(2),
                    target: claimed,
                    options,
                },
            };
            discovery(forger, claimed, ours, message)
        }
        _ => frame(Vec::new(), May::Nothing),
    }
}

/// A message of neighbour discovery; one in four comes from beyond the link, by its hop limit.
fn discovery(forger: &mut Forger, source: Ipv6Addr, destination: Ipv6Addr, message: NdpMessage<'_>) -> Frame {
    let mut body = vec![0; 400];
    let length = Icmpv6Message::Ndp(message).emit(source, destination, &mut body);
    body.truncate(length);
    let from_beyond = forger.one_in(4);
    let header = Ipv6Header {
        hop_limit: if from_beyond { forger.below(255) as u8 } else { 255 },
        ..Ipv6Header::new(source, destination, protocol::ICMPV6, length as u16)
    };
    let mut packet = vec![0; 40];
    header.emit(&mut packet);
    packet.extend_from_slice(&body);
    frame(forger.framed(packet), if from_beyond { May::Nothing } else { May::Act })
}

fn router(forger: &mut Forger, mark: &Mark<'_>, real: &[u8]) -> Frame {
    if forger.link != 0 {
        return spoilt(forger, mark, real);
    }
    let mut options = NdpOptions {
        mtu: Some(1280 + forger.below(400)),
        source_link_layer: Some(HardwareAddress([2, 7, 7, 7, 7, 7])),
        ..NdpOptions::default()
    };
    options.prefixes.push(PrefixInformation {
        prefix: Ipv6Addr::new(0x2001, 0xdb8, forger.below(65_536) as u16, 0, 0, 0, 0, 0),
        prefix_bits: forger.of([64, 64, 64, 48, 0, 128]),
        on_link: true,
        autonomous: true,
        valid_lifetime_s: forger.of([0, 1000, u32::MAX]),
        preferred_lifetime_s: forger.of([0, 500, u32::MAX]),
    });
    let message = NdpMessage::RouterAdvertisement {
        hop_limit: forger.below(256) as u8,
        managed: false,
        other_configuration: false,
        router_lifetime_s: forger.of([0, 100, 65_535]),
        reachable_time_ms: forger.of([0, 1, 30_000, u32::MAX]),
        retransmit_timer_ms: forger.of([0, 1, 1000, 20_000]),
        options,
    };
    let source = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 2 + forger.below(60_000) as u16);
    discovery(forger, source, Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1), message)
}

/// A reset or a SYN that asks for a challenge.
pub(super) fn challenging(forger: &mut Forger, mark: &Mark<'_>) -> Frame {
    if forger.one_in(2) { reset_in_window(forger, mark, &[]) } else { syn_on_connection(forger, mark, &[]) }
}
