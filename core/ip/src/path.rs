//! A path to a destination, and the header that is built for it.

use inhost_base::{IpAddr, LinkId};
use inhost_wire::ethernet;

/// The path of a packet to its first hop. It is a plain value that a transport keeps and uses for every packet; when
/// [`crate::Paths::generation`] is no longer `generation`, ask [`crate::Paths::route`] again (with the same source), because
/// a route, an address, a gateway or a path MTU has changed since.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct Path {
    /// Where the packet leaves; link 0 is the host's own loopback.
    pub link: LinkId,
    /// Whose hardware address the frame bears: a gateway's or the destination's.
    pub next_hop: IpAddr,
    /// Our address.
    pub source: IpAddr,
    /// The other end.
    pub destination: IpAddr,
    /// The largest packet, IP header included, that is known to arrive in one piece.
    pub mtu_bytes: u16,
    /// Hops that a packet may take unless [`HeaderHow::hop_limit`] says otherwise.
    pub hop_limit: u8,
    /// Bytes of IPv4 options that every header on it bears: those of a source route.
    pub option_bytes: u8,
    /// The state of the tables from which this follows.
    pub generation: u32,
}

impl Path {
    /// Bytes of the IP header that [`crate::Ip::header`] writes, with the options of the path.
    pub const fn ip_header_bytes(&self) -> usize {
        match self.destination {
            IpAddr::V4(_) => inhost_wire::ipv4::LENGTH + self.option_bytes as usize,
            IpAddr::V6(_) => inhost_wire::ipv6::LENGTH,
        }
    }
    /// The most that the path takes behind the IP header in one piece.
    pub const fn payload_limit_bytes(&self) -> usize {
        (self.mtu_bytes as usize).saturating_sub(self.ip_header_bytes())
    }
}

/// The link's header, ready to be put before an IP header: 14 bytes on an Ethernet, none elsewhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct LinkHeader {
    bytes: [u8; ethernet::LENGTH],
    length: u8,
}

impl LinkHeader {
    /// The header of a link that has none.
    pub const NONE: LinkHeader = LinkHeader { bytes: [0; ethernet::LENGTH], length: 0 };

    pub(crate) fn ethernet(header: &ethernet::EthernetHeader) -> Self {
        let mut bytes = [0; ethernet::LENGTH];
        let length = header.emit(&mut bytes);
        LinkHeader { bytes, length: length as u8 }
    }
    /// The bytes that stand before the IP header.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or(&[])
    }
}

/// The state of a neighbour's resolution.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resolution {
    /// Known.
    Ready(LinkHeader),
    /// In progress. [`crate::Paths::take_resolved`] returns the neighbour when it ends.
    Pending,
    /// The neighbour does not answer. Asking again later starts anew.
    Failed,
}

/// IP header fields that a transport chooses.
// spec: RFC1122 3.4-1
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeaderHow {
    /// Protocol of the payload, as in [`inhost_wire::protocol`].
    pub protocol: u8,
    /// Differentiated services (six bits) and ECN (two bits).
    pub dscp_ecn: u8,
    /// Hops that the packet may take; `None` for the path's own.
    pub hop_limit: Option<u8>,
    /// Routers are not to fragment it (IPv4; in IPv6 they never do). A datagram that is too long for the path is
    /// then refused instead of fragmented, in both families.
    pub dont_fragment: bool,
    /// A datagram may be as long as the link takes, whatever is known of the path behind it: a probe, which
    /// `dont_fragment` goes with (RFC 4821 §9).
    pub beyond_path_mtu: bool,
    /// IPv6 flow label, 20 bits; 0 for none.
    pub flow_label: u32,
}

impl HeaderHow {
    /// For `protocol`, with no marks, the path's hop limit, and fragmentation allowed.
    pub const fn new(protocol: u8) -> Self {
        HeaderHow {
            protocol,
            dscp_ecn: 0,
            hop_limit: None,
            dont_fragment: false,
            beyond_path_mtu: false,
            flow_label: 0,
        }
    }
}
