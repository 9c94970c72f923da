//! What a segment says, as the checker reads it: once, and no more than it asks for.

use inhost_base::{Endpoint, IpAddr, Sequence};
use inhost_wire::ipv4::Ipv4View;
use inhost_wire::ipv6::Ipv6View;
use inhost_wire::protocol;
use inhost_wire::tcp::{Flags, LENGTH, TcpOptions, TcpView};

use crate::ecn::{Ecn, packet_at};
use crate::network::Seen;

/// Two no-operations, and the timestamps behind them, which is all that most segments have (RFC 7323 appendix A).
const TIMESTAMPS_BEGIN: [u8; 4] = [1, 1, 8, 10];

/// A TCP segment that is whole in its frame. Checksums are not looked at before somebody asks.
#[derive(Debug)]
pub(crate) struct Told<'a> {
    pub glance: Glance,
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
    /// Options, when they are not timestamps alone.
    others: &'a [u8],
    ip: Ip<'a>,
    tcp: TcpView<'a>,
}

/// The IP packet around it.
#[derive(Debug)]
enum Ip<'a> {
    V4(Ipv4View<'a>),
    V6(Ipv6View<'a>),
}

/// Who speaks to whom, short: exact for IPv4, and for IPv6 what a look at the names has to confirm.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Glance {
    /// The sender's address, and the receiver's in the lower half.
    pub addresses: u64,
    /// The ports likewise.
    pub ports: u32,
    pub is_exact: bool,
}

impl Glance {
    /// A number in which all of it has a part.
    pub fn spread(self) -> usize {
        let mixed =
            (self.addresses ^ u64::from(self.ports).rotate_left(19)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 40) as usize
    }
    /// The same of the other direction.
    pub fn turned(self) -> Glance {
        Glance { addresses: self.addresses.rotate_left(32), ports: self.ports.rotate_left(16), ..self }
    }
}

impl<'a> Told<'a> {
    #[inline]
    pub fn of(seen: &Seen<'a>) -> Option<Told<'a>> {
        let packet = seen.bytes.get(packet_at(seen.bytes, seen.is_ethernet)?..)?;
        if packet.first()? >> 4 == 4 {
            let view = Ipv4View::new(packet).ok().filter(|view| !view.is_fragment())?;
            if view.protocol() != protocol::TCP {
                return None;
            }
            let addresses =
                u64::from(view.source().to_bits()) << 32 | u64::from(view.destination().to_bits());
            Told::read(view.payload(), addresses, view.dscp_ecn(), Ip::V4(view))
        } else {
            let view = Ipv6View::new(packet).ok()?;
            if view.next_header() != protocol::TCP {
                return None;
            }
            let addresses = folded(view.source().to_bits()) << 32 | folded(view.destination().to_bits());
            Told::read(view.payload(), addresses, view.dscp_ecn(), Ip::V6(view))
        }
    }
    #[inline]
    fn read(bytes: &'a [u8], addresses: u64, service: u8, ip: Ip<'a>) -> Option<Told<'a>> {
        let tcp = TcpView::new(bytes).ok()?;
        let options = tcp.options();
        let (timestamps, others) = match options.as_chunks::<4>().0 {
            [] => (None, options),
            &[TIMESTAMPS_BEGIN, value, echo] => {
                (Some((u32::from_be_bytes(value), u32::from_be_bytes(echo))), &[][..])
            }
            _ => (TcpOptions::parse(options).timestamps, options),
        };
        let ports = u32::from(tcp.source_port()) << 16 | u32::from(tcp.destination_port());
        Some(Told {
            glance: Glance { addresses, ports, is_exact: matches!(ip, Ip::V4(_)) },
            sequence: tcp.sequence(),
            acknowledgment: tcp.acknowledgment(),
            flags: tcp.flags(),
            window: tcp.window(),
            payload_bytes: tcp.payload().len(),
            option_bytes: tcp.header_length() - LENGTH,
            timestamps,
            ecn: Ecn::from_bits(service),
            others,
            ip,
            tcp,
        })
    }
    /// All options but timestamps.
    pub fn other_options(&self) -> TcpOptions {
        TcpOptions::parse(self.others)
    }
    /// Whether there are any.
    pub fn has_other_options(&self) -> bool {
        !self.others.is_empty()
    }
    /// Sequence numbers that it occupies.
    pub fn sequence_length(&self) -> u32 {
        self.payload_bytes as u32 + u32::from(self.flags.syn()) + u32::from(self.flags.fin())
    }
    /// The number after the last that it occupies.
    pub fn sequence_end(&self) -> Sequence {
        self.sequence + self.sequence_length()
    }
    fn addresses(&self) -> (IpAddr, IpAddr) {
        match &self.ip {
            Ip::V4(view) => (view.source().into(), view.destination().into()),
            Ip::V6(view) => (view.source().into(), view.destination().into()),
        }
    }
    /// The sender and the receiver.
    pub fn ends(&self) -> (Endpoint, Endpoint) {
        let (from, to) = self.addresses();
        (Endpoint::new(from, self.tcp.source_port()), Endpoint::new(to, self.tcp.destination_port()))
    }
    /// Whether both checksums are right, IPv4's and TCP's.
    pub fn checksums_ok(&self) -> bool {
        let (from, to) = self.addresses();
        let is_header_right = match &self.ip {
            Ip::V4(view) => view.checksum_ok(),
            Ip::V6(_) => true,
        };
        is_header_right && self.tcp.checksum_ok(from, to)
    }
}

fn folded(bits: u128) -> u64 {
    let half = (bits >> 64) as u64 ^ bits as u64;
    (half >> 32) ^ (half & 0xffff_ffff)
}
