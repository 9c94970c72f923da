//! The results of [`crate::Ip::receive`].

use inhost_base::{HardwareAddress, IpAddr, LinkId};
use inhost_event::Drop;
use inhost_wire::Ecn;
use inhost_wire::quoted::Quoted;

/// The result of a received frame. Except in the cases with a payload, the packet is finished, and its memory goes back
/// to the pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Received {
    /// Consumed by IP itself.
    Handled,
    /// Dropped; counted and recorded already.
    Dropped(Drop),
    /// A transport's datagram. The packet's window is the transport header and payload; the IP header, extension
    /// headers included, is in the headroom before it, so that an ICMP error can quote it.
    Datagram(Datagram),
    /// News of a packet that a transport sent.
    Error(TransportError),
    /// News of a better first hop for packets like one that a transport sent.
    Redirect(Redirect),
    /// The answer to an echo request. The packet's window is the data that came back.
    EchoReply(EchoReply),
    /// A request to an address that we accept on behalf of another host. The packet's window is the data to be sent
    /// back.
    EchoRequest(EchoRequest),
}

/// A datagram for a transport.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Datagram {
    /// Where it came in.
    pub link: LinkId,
    /// The sender.
    pub source: IpAddr,
    /// The receiver: one of our addresses, or a group or broadcast address that we listen to.
    pub destination: IpAddr,
    /// The transport, as in [`inhost_wire::protocol`].
    pub protocol: u8,
    /// The congestion mark it arrived with.
    pub ecn: Ecn,
    /// The hops it had left.
    pub hop_limit: u8,
    /// Sent to us alone, by the IP and by the link's address; TCP takes no other.
    pub to_unicast: bool,
    /// Bytes of IP headers in the headroom, directly before the window.
    // spec: RFC1122 3.2.1.8-2
    pub header_bytes: u16,
    /// Offset of the field that names `protocol`, from the start of the IP header.
    pub protocol_offset: u16,
}

/// The answer to an echo request of ours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EchoReply {
    /// Where it came in.
    pub link: LinkId,
    /// Source of the reply.
    pub source: IpAddr,
    /// Our address.
    pub destination: IpAddr,
    /// As in the request.
    pub identifier: u16,
    /// As in the request.
    pub sequence: u16,
    /// The hops it had left.
    pub hop_limit: u8,
}

/// An echo request to an address that is ours only because the interface takes every address
/// ([`crate::InterfaceConfig::any_address`]). A gateway that acts for that address may answer it with
/// [`crate::Ip::echo_reply`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EchoRequest {
    /// Where it came in.
    pub link: LinkId,
    /// Source of the request.
    pub source: IpAddr,
    /// Destination of the request.
    pub destination: IpAddr,
    /// To be repeated in the answer.
    pub identifier: u16,
    /// To be repeated in the answer.
    pub sequence: u16,
}

/// An ICMP error about a packet that we seem to have sent. It is not verified: the transport accepts it only if the
/// quoted packet matches one in flight (RFC 5927 §4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TransportError {
    /// Where the error came in.
    pub link: LinkId,
    /// Source of the error.
    pub reporter: IpAddr,
    /// The packet it is about; its source is an address of ours.
    pub quoted: Quoted,
    /// Kind of error.
    pub kind: ErrorKind,
    /// Whether it may pass by itself; see [`ErrorKind::is_soft`].
    pub soft: bool,
    /// The next hop's MTU, where `kind` is [`ErrorKind::PacketTooBig`], limited to valid values. It takes effect when
    /// the transport calls [`crate::Paths::path_mtu_confirmed`].
    pub mtu_bytes: Option<u16>,
}

/// A redirect to a better first hop. It is not verified: it takes effect when the transport has found that it sent the
/// quoted packet, and calls [`crate::Paths::redirect_confirmed`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Redirect {
    /// Where it came in.
    pub link: LinkId,
    /// The router that sent it.
    pub from: IpAddr,
    /// The packet that went by a detour; its source is an address of ours.
    pub quoted: Quoted,
    /// Whom to send to instead.
    pub next_hop: IpAddr,
    /// Its link-layer address, if the redirect has it.
    pub hardware: Option<HardwareAddress>,
}

/// Kinds of ICMP errors, common to both families.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub enum ErrorKind {
    /// ICMPv4 codes 0, 6, 11; ICMPv6 code 0: no route to the network.
    NetworkUnreachable,
    /// ICMPv4 codes 1, 5, 7, 8, 12; ICMPv6 codes 2, 3: the host does not answer its router.
    HostUnreachable,
    /// ICMPv4 code 2; ICMPv6 parameter problem code 1: the host does not speak the protocol.
    ProtocolUnreachable,
    /// Port unreachable: ICMPv4 code 3; ICMPv6 code 4.
    PortUnreachable,
    /// ICMPv4 codes 9, 10, 13, 14, 15; ICMPv6 codes 1, 5, 6: forbidden.
    Prohibited,
    /// ICMPv4 code 4, ICMPv6 Packet Too Big.
    PacketTooBig,
    /// Too many hops.
    TimeExceeded,
    /// Fragments did not all arrive in time.
    ReassemblyTimeExceeded,
    /// A field of our header was not understood.
    ParameterProblem,
}

impl ErrorKind {
    /// Whether the trouble may pass by itself. RFC 1122 §4.2.3.9 names unreachable codes 2 to 4 as hard and 0, 1, 5,
    /// time exceeded and parameter problem as soft; `PacketTooBig` is path-MTU discovery and not fatal
    /// (RFC 1191). Prohibition is taken as soft in synchronised states like the rest of the unreachable codes
    /// (RFC 5461 §3).
    // spec: RFC1122 3.2.2.1-4
    pub const fn is_soft(self) -> bool {
        !matches!(self, ErrorKind::ProtocolUnreachable | ErrorKind::PortUnreachable)
    }
}
