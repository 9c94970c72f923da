//! How datagrams are sent and received, and what comes with one.

use inhost_base::{Endpoint, IpAddr, LinkId};
use inhost_wire::Ecn;

/// Information received with a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct DatagramInfo {
    /// Its length in bytes; more than were copied when the place was too small, and the rest is lost.
    pub length_bytes: usize,
    /// The sender.
    pub from: Endpoint,
    /// Where it was sent to: our address, a group, a broadcast address, or any address at a gateway.
    pub to: Endpoint,
    /// Where it came in.
    pub link: LinkId,
    /// The hops it had left.
    pub hop_limit: u8,
    /// The congestion mark it arrived with.
    pub ecn: Ecn,
}

/// How datagrams are sent by one call, for `UdpSockets::send_with` of the stack. Begin with [`SendDatagrams::default`].
///
/// ```
/// use inhost_base::{Endpoint, Ipv4Addr};
/// use inhost_datagram::SendDatagrams;
/// use inhost_wire::Ecn;
/// let mut how = SendDatagrams::to(Endpoint::new(Ipv4Addr::LOCALHOST, 443));
/// how.ecn = Ecn::Capable0;
/// how.segment_bytes = 1200;
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct SendDatagrams {
    /// The destination. Default: where the socket is connected.
    pub to: Option<Endpoint>,
    /// The source, where the socket's own end leaves that open. Default: as bound, or as the route says.
    pub from: Option<Endpoint>,
    /// GSO size: the payload of each datagram but the last, when the call sends several. Default: 0, one datagram.
    pub segment_bytes: u16,
    /// The congestion mark of each. Default: none.
    pub ecn: Ecn,
}

impl SendDatagrams {
    /// One datagram from `from` to `to`, as far as they are given.
    pub fn between(from: Option<Endpoint>, to: Option<Endpoint>) -> SendDatagrams {
        SendDatagrams { to, from, ..SendDatagrams::default() }
    }
    /// One datagram to `to`.
    pub fn to(to: Endpoint) -> SendDatagrams {
        SendDatagrams { to: Some(to), ..SendDatagrams::default() }
    }
}

/// An echo reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct EchoInfo {
    /// Bytes of data; more than were copied when the place was too small.
    pub length_bytes: usize,
    /// Source of the reply.
    pub from: IpAddr,
    /// The number of the request.
    pub sequence: u16,
    /// The hops it had left.
    pub hop_limit: u8,
}

/// How a UDP socket behaves. Begin with [`UdpOptions::default`].
///
/// ```
/// use inhost_datagram::UdpOptions;
/// let mut options = UdpOptions::default();
/// options.broadcast = true;
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct UdpOptions {
    /// Receive datagrams to any destination address on links with [`inhost_ip::InterfaceConfig::any_address`], with
    /// port 0 on any port, and send from any address there. For gateways. Default: no.
    pub any_address: bool,
    /// Whether broadcast destinations are allowed, and binding to a broadcast address, where the socket receives only
    /// datagrams to that address. Default: no.
    pub broadcast: bool,
    /// Whether an ICMP error about a datagram of an unconnected socket is reported, too. Default: no, for one
    /// destination's error says nothing about the next one's.
    pub report_unconnected_errors: bool,
    /// Memory that received datagrams may pin, in bytes of buffer capacity. Default: 256 KiB.
    pub receive_limit_bytes: usize,
    /// Memory that datagrams on their way out may pin, in bytes of buffer capacity. Default: 256 KiB.
    pub send_limit_bytes: usize,
    /// Hops that datagrams may take. Default: the path's.
    pub hop_limit: Option<u8>,
    /// Differentiated services, six bits. Default: 0.
    pub differentiated_services: u8,
    /// Whether don't-fragment is set. Default: no. Datagrams longer than the path MTU are then refused.
    pub dont_fragment: bool,
    /// Whether routers are kept from fragmenting what fits the path, and the host fragments what does not, as on Linux
    /// (IP_PMTUDISC_WANT). Default: no.
    pub fragments_at_source: bool,
    /// Whether errors after which another datagram may arrive (the network or the host cannot be reached, a time is
    /// exceeded) are reported only where `report_unconnected_errors` asks for every error, as on Linux. Default: no, a
    /// connected socket gets all of them (RFC 1122 §4.1.3.3).
    pub soft_errors_on_request: bool,
    /// Whether datagrams may be longer than the path MTU, up to the link MTU: probes of the path, which
    /// [`UdpOptions::dont_fragment`] goes with (RFC 4821 §9). Default: no.
    pub beyond_path_mtu: bool,
    /// Whether all that the socket sends answers somebody who wrote first, to another socket: a server's socket for one
    /// exchange. Routers' redirects and "packet too big" about it then change no path, since the one who wrote
    /// first may have forged the address. Default: no; a socket knows by itself whom it answers.
    pub answers_strangers: bool,
    /// The only link to use. Default: whichever leads there.
    pub link: Option<LinkId>,
}

impl Default for UdpOptions {
    fn default() -> Self {
        UdpOptions {
            any_address: false,
            broadcast: false,
            report_unconnected_errors: false,
            receive_limit_bytes: 256 << 10,
            send_limit_bytes: 256 << 10,
            hop_limit: None,
            differentiated_services: 0,
            dont_fragment: false,
            fragments_at_source: false,
            soft_errors_on_request: false,
            beyond_path_mtu: false,
            answers_strangers: false,
            link: None,
        }
    }
}

impl UdpOptions {
    /// As a current Linux with default settings.
    pub fn linux() -> Self {
        UdpOptions { fragments_at_source: true, soft_errors_on_request: true, ..UdpOptions::default() }
    }
}
