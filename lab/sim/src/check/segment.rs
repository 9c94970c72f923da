//! Segment view of the checker: parsed once, options only on demand.

use inhost_base::{Endpoint, IpAddr, Ipv4Addr, Sequence};
use inhost_wire::ipv4::Ipv4View;
use inhost_wire::ipv6::Ipv6View;
use inhost_wire::protocol;
use inhost_wire::tcp::{Flags, TcpOptions, TcpView};

use crate::ecn::{Ecn, packet_at};
use crate::network::Seen;

/// Two NOPs and the timestamps option, the usual option layout (RFC 7323 appendix A).
const TIMESTAMPS_BEGIN: [u8; 4] = [1, 1, 8, 10];
const ANY: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// A complete TCP segment in a frame. Checksums are verified on demand.
#[derive(Debug)]
pub(crate) struct SegmentView<'a> {
    pub key: FlowKey,
    pub sequence: Sequence,
    pub acknowledgment: Sequence,
    pub flags: Flags,
    /// Not scaled.
    pub window: u16,
    pub payload_bytes: usize,
    pub option_bytes: usize,
    /// TSval and TSecr.
    pub timestamps: Option<(u32, u32)>,
    pub ecn: Ecn,
    has_other_options: bool,
    /// From the IP header on.
    packet: &'a [u8],
}

/// Compact key of a flow: exact for IPv4; for IPv6 a hash that the full names must confirm.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct FlowKey {
    /// The sender's address, and the receiver's in the lower half.
    pub addresses: u64,
    /// The ports likewise.
    pub ports: u32,
    pub is_exact: bool,
}

impl FlowKey {
    /// Hash over all of it.
    pub fn hash(self) -> usize {
        let mixed =
            (self.addresses ^ u64::from(self.ports).rotate_left(19)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 40) as usize
    }
    /// The key of the reverse direction.
    pub fn reversed(self) -> FlowKey {
        FlowKey { addresses: self.addresses.rotate_left(32), ports: self.ports.rotate_left(16), ..self }
    }
}

impl<'a> SegmentView<'a> {
    #[inline(always)]
    pub fn of(seen: &Seen<'a>) -> Option<SegmentView<'a>> {
        let packet = seen.bytes.get(packet_at(seen.bytes, seen.is_ethernet)?..)?;
        let (addresses, service, segment, is_v4) = if packet.first()? >> 4 == 4 {
            let view = Ipv4View::new(packet).ok().filter(|view| !view.is_fragment())?;
            if view.protocol() != protocol::TCP {
                return None;
            }
            let addresses =
                u64::from(view.source().to_bits()) << 32 | u64::from(view.destination().to_bits());
            (addresses, view.dscp_ecn(), view.payload(), true)
        } else {
            let view = Ipv6View::new(packet).ok()?;
            if view.next_header() != protocol::TCP {
                return None;
            }
            let addresses = folded(view.source().to_bits()) << 32 | folded(view.destination().to_bits());
            (addresses, view.dscp_ecn(), view.payload(), false)
        };
        let tcp = TcpView::new(segment).ok()?;
        let options = tcp.options();
        let (timestamps, has_other_options) = match options.as_chunks::<4>().0 {
            [] => (None, false),
            &[TIMESTAMPS_BEGIN, value, echo] => {
                (Some((u32::from_be_bytes(value), u32::from_be_bytes(echo))), false)
            }
            _ => (TcpOptions::parse(options).timestamps, true),
        };
        let ports = u32::from(tcp.source_port()) << 16 | u32::from(tcp.destination_port());
        Some(SegmentView {
            key: FlowKey { addresses, ports, is_exact: is_v4 },
            sequence: tcp.sequence(),
            acknowledgment: tcp.acknowledgment(),
            flags: tcp.flags(),
            window: tcp.window(),
            payload_bytes: tcp.payload().len(),
            option_bytes: options.len(),
            timestamps,
            ecn: Ecn::from_bits(service),
            has_other_options,
            packet,
        })
    }
    /// Parses the headers again, for the rare fields.
    fn views(&self) -> Option<(Ip<'a>, TcpView<'a>)> {
        let ip = match self.packet.first()? >> 4 {
            4 => Ip::V4(Ipv4View::new(self.packet).ok()?),
            _ => Ip::V6(Ipv6View::new(self.packet).ok()?),
        };
        let segment = match &ip {
            Ip::V4(view) => view.payload(),
            Ip::V6(view) => view.payload(),
        };
        Some((ip, TcpView::new(segment).ok()?))
    }
    /// All options.
    pub fn options(&self) -> TcpOptions {
        self.views().map_or(TcpOptions::NONE, |(_, tcp)| TcpOptions::parse(tcp.options()))
    }
    /// Whether there is any but timestamps.
    pub fn has_other_options(&self) -> bool {
        self.has_other_options
    }
    /// Sequence numbers that it occupies.
    pub fn sequence_length(&self) -> u32 {
        self.payload_bytes as u32 + u32::from(self.flags.syn()) + u32::from(self.flags.fin())
    }
    /// The number after the last that it occupies.
    pub fn sequence_end(&self) -> Sequence {
        self.sequence + self.sequence_length()
    }
    /// The sender and the receiver.
    pub fn ends(&self) -> (Endpoint, Endpoint) {
        let (from, to) = self.views().map_or((ANY, ANY), |(ip, _)| ip.addresses());
        let [from_port, to_port] = [(self.key.ports >> 16) as u16, self.key.ports as u16];
        (Endpoint::new(from, from_port), Endpoint::new(to, to_port))
    }
    /// Whether both checksums are right, IPv4's and TCP's.
    pub fn checksums_ok(&self) -> bool {
        let Some((ip, tcp)) = self.views() else { return false };
        let (from, to) = ip.addresses();
        let is_header_right = match &ip {
            Ip::V4(view) => view.checksum_ok(),
            Ip::V6(_) => true,
        };
        is_header_right && tcp.checksum_ok(from, to)
    }
}

/// The IP packet around a segment.
enum Ip<'a> {
    V4(Ipv4View<'a>),
    V6(Ipv6View<'a>),
}

impl Ip<'_> {
    fn addresses(&self) -> (IpAddr, IpAddr) {
        match self {
            Ip::V4(view) => (view.source().into(), view.destination().into()),
            Ip::V6(view) => (view.source().into(), view.destination().into()),
        }
    }
}

fn folded(bits: u128) -> u64 {
    let half = (bits >> 64) as u64 ^ bits as u64;
    (half >> 32) ^ (half & 0xffff_ffff)
}
