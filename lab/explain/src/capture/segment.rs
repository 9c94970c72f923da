//! Dissection of a frame down to the fields of TCP that are judged.

use std::net::SocketAddr;

use inhost_base::IpAddr;
use inhost_wire::checksum::{Sum, pseudo_header};
use inhost_wire::ipv4::Ipv4View;
use inhost_wire::ipv6::{self, Ipv6View};
use inhost_wire::tcp::{Flags, TcpOptions, TcpView};
use inhost_wire::{Ecn, protocol};

use super::Frame;

/// The most IPv6 extension headers that are stepped over.
const MAX_EXTENSION_HEADERS: usize = 8;

/// Endpoints of a segment: who sent it to whom, and the interface where it was seen.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Flow {
    /// Interface of the file.
    pub interface: u32,
    /// Interface that the link header names (Linux cooked v2), or 0.
    pub device: u32,
    /// The sender.
    pub source: SocketAddr,
    /// The receiver.
    pub destination: SocketAddr,
}

impl Flow {
    /// The other way.
    pub(crate) fn reversed(self) -> Flow {
        Flow { source: self.destination, destination: self.source, ..self }
    }
    /// From the client, which without a SYN is who has the higher port.
    pub(crate) fn as_of_client(self) -> Flow {
        if self.source.port() < self.destination.port() { self.reversed() } else { self }
    }
}

/// What a checksum says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Checksum {
    /// It is right.
    Right,
    /// It holds the sum of the pseudo-header alone: the device is to complete it.
    Offloaded,
    /// It is wrong.
    Wrong,
    /// Not all bytes were captured.
    Unknown,
}

/// A TCP segment as it was captured.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    /// Number of the frame in the file.
    pub frame: u64,
    /// Time stamp in nanoseconds since 1970.
    pub at_ns: u64,
    /// First sequence number.
    pub sequence: u32,
    /// Acknowledgment number; means something with ACK.
    pub acknowledgment: u32,
    /// Control bits.
    pub flags: Flags,
    /// Window field, not scaled.
    pub window: u16,
    /// Bytes of payload on the wire.
    pub payload_bytes: u32,
    /// Options.
    pub options: TcpOptions,
    /// Time to live or hop limit.
    pub hop_limit: u8,
    /// Identification of IPv4; 0 of IPv6.
    pub identification: u16,
    /// Congestion mark.
    pub ecn: Ecn,
    /// TCP checksum.
    pub checksum: Checksum,
    /// The checksum field.
    pub checksum_field: u16,
}

/// Why a frame is not a segment to be judged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rejected {
    /// It is of another protocol or link type.
    NotTcp,
    /// It is a fragment of an IP datagram.
    Fragment,
    /// Its headers were not captured or contradict each other.
    Malformed,
}

struct Ip<'a> {
    source: IpAddr,
    destination: IpAddr,
    hop_limit: u8,
    identification: u16,
    ecn: Ecn,
    /// What is captured of the transport's bytes.
    captured: &'a [u8],
    /// Bytes of the transport on the wire.
    transport_bytes: usize,
}

/// The segment in a frame.
pub fn dissect(frame: &Frame<'_>) -> Result<(Flow, Segment), Rejected> {
    let (packet, device) = frame.link.ip_packet(frame.bytes).ok_or(Rejected::NotTcp)?;
    // What the link header took; needed where a length field holds 0.
    let front_bytes = frame.bytes.len() - packet.len();
    let wire_bytes = (frame.original_bytes as usize).saturating_sub(front_bytes);
    let ip = match packet.first().map(|octet| octet >> 4) {
        Some(4) => read_ipv4(packet, wire_bytes)?,
        Some(6) => read_ipv6(packet, wire_bytes)?,
        _ => return Err(Rejected::NotTcp),
    };
    let tcp = TcpView::new(ip.captured).map_err(|_| Rejected::Malformed)?;
    let header = tcp.header();
    let payload_bytes = ip.transport_bytes.checked_sub(tcp.header_length()).ok_or(Rejected::Malformed)?;
    let flow = Flow {
        interface: frame.interface,
        device,
        source: SocketAddr::new(ip.source, header.source_port),
        destination: SocketAddr::new(ip.destination, header.destination_port),
    };
    Ok((
        flow,
        Segment {
            frame: frame.number,
            at_ns: frame.at_ns,
            sequence: header.sequence.0,
            acknowledgment: header.acknowledgment.0,
            flags: header.flags,
            window: header.window,
            payload_bytes: payload_bytes as u32,
            options: header.options,
            hop_limit: ip.hop_limit,
            identification: ip.identification,
            ecn: ip.ecn,
            checksum: checksum(&ip, tcp.checksum()),
            checksum_field: tcp.checksum(),
        },
    ))
}

fn checksum(ip: &Ip<'_>, field: u16) -> Checksum {
    let Some(covered) = ip.captured.get(..ip.transport_bytes) else { return Checksum::Unknown };
    let pseudo = pseudo_header(ip.source, ip.destination, protocol::TCP, ip.transport_bytes as u32);
    if pseudo.combine(Sum::of(covered), false).is_valid() {
        return Checksum::Right;
    }
    // Devices that segment take a pseudo-header without or with its length.
    let without = pseudo_header(ip.source, ip.destination, protocol::TCP, 0);
    if field == pseudo.folded() || field == without.folded() { Checksum::Offloaded } else { Checksum::Wrong }
}

fn read_ipv4(packet: &[u8], wire_bytes: usize) -> Result<Ip<'_>, Rejected> {
    // Giants that the device is to cut may have a total length of 0.
    let zero_length = packet.get(2..4) == Some(&[0, 0]);
    let mut patched = [0; 60];
    let view = if zero_length {
        let header = usize::from(packet.first().copied().unwrap_or_default() & 0xf) * 4;
        let (Some(from), Some(to)) = (packet.get(..header), patched.get_mut(..header)) else {
            return Err(Rejected::Malformed);
        };
        to.copy_from_slice(from);
        if header < 20 {
            return Err(Rejected::Malformed);
        }
        patched[2..4].copy_from_slice(&(header as u16).to_be_bytes());
        Ipv4View::of_front(&patched[..header])
    } else {
        Ipv4View::of_front(packet)
    }
    .map_err(|_| Rejected::Malformed)?;
    if view.protocol() != protocol::TCP {
        return Err(Rejected::NotTcp);
    }
    if view.is_fragment() {
        return Err(Rejected::Fragment);
    }
    let total_bytes = if zero_length { wire_bytes } else { view.total_length() };
    let rest = packet.get(view.header_length()..).ok_or(Rejected::Malformed)?;
    let transport_bytes = total_bytes.checked_sub(view.header_length()).ok_or(Rejected::Malformed)?;
    Ok(Ip {
        source: view.source().into(),
        destination: view.destination().into(),
        hop_limit: view.time_to_live(),
        identification: view.identification(),
        ecn: Ecn::of(view.dscp_ecn()),
        captured: rest.get(..transport_bytes).unwrap_or(rest),
        transport_bytes,
    })
}

fn read_ipv6(packet: &[u8], wire_bytes: usize) -> Result<Ip<'_>, Rejected> {
    let view = Ipv6View::of_front(packet).map_err(|_| Rejected::Malformed)?;
    let is_jumbo = view.total_length() == ipv6::LENGTH;
    let total_bytes = if is_jumbo { wire_bytes } else { view.total_length() };
    let mut rest = packet.get(ipv6::LENGTH..).ok_or(Rejected::Malformed)?;
    let mut transport_bytes = total_bytes.checked_sub(ipv6::LENGTH).ok_or(Rejected::Malformed)?;
    let mut next = view.next_header();
    for _ in 0..MAX_EXTENSION_HEADERS {
        let header_bytes = match next {
            protocol::TCP => {
                return Ok(Ip {
                    source: view.source().into(),
                    destination: view.destination().into(),
                    hop_limit: view.hop_limit(),
                    identification: 0,
                    ecn: Ecn::of(view.dscp_ecn()),
                    captured: rest.get(..transport_bytes).unwrap_or(rest),
                    transport_bytes,
                });
            }
            protocol::FRAGMENT => return Err(Rejected::Fragment),
            protocol::HOP_BY_HOP | protocol::ROUTING | protocol::DESTINATION_OPTIONS => {
                rest.get(1).map_or(0, |&units| 8 + 8 * usize::from(units))
            }
            _ => return Err(Rejected::NotTcp),
        };
        next = *rest.first().ok_or(Rejected::Malformed)?;
        rest = rest.get(header_bytes..).ok_or(Rejected::Malformed)?;
        transport_bytes = transport_bytes.checked_sub(header_bytes).ok_or(Rejected::Malformed)?;
    }
    Err(Rejected::Malformed)
}
