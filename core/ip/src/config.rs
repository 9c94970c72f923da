//! Configuration of a host's IP and of its links.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use inhost_base::{Cidr, Duration, HardwareAddress, IpAddr};

/// Hops that our packets may take until a router says otherwise (RFC 1700 as RFC 1122 §3.2.1.7 points to it).
pub(crate) const DEFAULT_HOP_LIMIT: u8 = 64;

/// The least that a link must carry without fragmentation (RFC 791 §3.2). The 576 bytes that every IPv4 host must take may
/// come in fragments; a noisy serial line wants packets that are shorter.
pub(crate) const LEAST_MTU_BYTES: u16 = 68;

/// Configuration of a host's IP. Begin with [`IpConfig::default`] or [`IpConfig::linux`].
///
/// ```
/// use inhost_ip::{Forwarding, IpConfig};
/// let mut config = IpConfig::default();
/// config.forwarding = Some(Forwarding::default());
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct IpConfig {
    /// The secret behind stable addresses (RFC 7217 §5). `None`, the default: drawn anew, so that the addresses are
    /// others after every start of the host, unless its seed is the same.
    pub stable_secret: Option<[u8; 16]>,
    /// Hops that packets may take where neither a transport nor a router says otherwise; at least 1. Default: 64.
    // spec: RFC1122 3.2.1.7-4
    pub hop_limit: u8,
    /// Whether source-routed datagrams are accepted, and answered along the reversed route (RFC 1122 §3.2.1.8).
    /// Default: no, as RFC 7126 §4.3 advises. Cost: any host named as a hop can answer for the source's address.
    pub accept_source_routes: bool,
    /// Whether our address and our time are written into options that record routes and times (RFC 791 §3.1), and an
    /// echo or timestamp reply repeats them. Default: no; they are ignored then.
    pub record_options: bool,
    /// Whether an ICMP timestamp request is answered (RFC 1122 §3.2.2.8); see [`crate::Ip::set_time_of_day`]. Default: yes.
    pub answer_timestamps: bool,
    /// Whether an ICMP echo request to a broadcast address or to an IPv4 group is answered, within the rate limit of
    /// ICMP errors (RFC 1122 §3.2.2.6). Default: no. Cost: a forged source address is flooded by every host that
    /// answers.
    pub answer_broadcast_echoes: bool,
    /// How many ICMP errors one destination gets, beside the limit of the whole host. `None`, the default: as many as
    /// that allows.
    pub errors_each: Option<ErrorPace>,
    /// Whether the ICMP errors of a host have the precedence of routers' over IPv4, as on Linux. Default: no (RFC 1122
    /// §3.2.2).
    pub errors_have_precedence: bool,
    /// Forwarding, which makes the host a router. Default: `None`, a host that forwards nothing (RFC 1122 §3.1 (a)).
    pub forwarding: Option<Forwarding>,
}

impl Default for IpConfig {
    fn default() -> Self {
        IpConfig {
            stable_secret: None,
            hop_limit: DEFAULT_HOP_LIMIT,
            accept_source_routes: false,
            record_options: false,
            answer_timestamps: true,
            answer_broadcast_echoes: false,
            errors_each: None,
            errors_have_precedence: false,
            forwarding: None,
        }
    }
}

impl IpConfig {
    /// As a current Linux with default settings.
    pub fn linux() -> Self {
        IpConfig {
            // XRLIM_BURST_FACTOR, net.ipv4.icmp_ratelimit and net.ipv6.icmp.ratelimit.
            errors_each: Some(ErrorPace {
                burst: 6,
                interval_v4: Duration::from_secs(1),
                interval_v6: Duration::from_millis(100),
            }),
            errors_have_precedence: true,
            ..IpConfig::default()
        }
    }
}

/// How many ICMP errors one destination gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct ErrorPace {
    /// Errors that may follow each other at once.
    pub burst: u32,
    /// One more is allowed after so long, over IPv4.
    pub interval_v4: Duration,
    /// The same over IPv6.
    pub interval_v6: Duration,
}

/// How a router forwards.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct Forwarding {
    /// Whether a sender on the same link as the next hop gets a redirect (RFC 1812 §5.2.7.2, RFC 4861 §8.2). Default:
    /// yes.
    pub redirects: bool,
    /// Whether packets that name us as a hop of their source route go on (RFC 1122 §3.3.5). Default: no, as RFC 7126
    /// §4.3 advises.
    pub source_routes: bool,
    /// Most packets that wait for the device of one link. Default: 256. Cost: waiting packets hold memory of the pool.
    pub queue_packets: usize,
}

impl Default for Forwarding {
    fn default() -> Self {
        Forwarding { redirects: true, source_routes: false, queue_packets: 256 }
    }
}

/// The medium of a link, and so its neighbour protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub enum Medium {
    /// Ethernet II frames; the address is ours. Neighbours are found by ARP and neighbour discovery.
    Ethernet(HardwareAddress),
    /// Bare IP packets between two ends (tun, serial, user, memory): nothing is resolved.
    Ip,
    /// The host itself.
    Loopback,
}

/// Whether a new address is tested for a double on the link (RFC 5227, RFC 4862 §5.4). Only an Ethernet is tested.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub enum DuplicateDetection {
    /// The address is used after the test has passed, as the RFCs require: 1 to 2 s for IPv6, 4 to 7 s for IPv4.
    #[default]
    BeforeUse,
    /// The address is used at once and tested meanwhile; it is given up if a duplicate is found.
    WhileInUse,
    /// The address is used at once and not tested. Later conflicts are still detected and counted.
    Off,
}

/// How a link is configured. Begin with [`InterfaceConfig::new`].
///
/// ```
/// use inhost_base::Ipv4Addr;
/// use inhost_ip::{InterfaceConfig, Medium};
/// let mut config = InterfaceConfig::new("link0", Medium::Ip)
///     .with_address("10.9.0.2/24".parse().unwrap())
///     .with_gateway(Ipv4Addr::new(10, 9, 0, 1));
/// config.mtu_bytes = 1280;
/// assert_eq!((config.addresses.len(), config.gateways.len()), (1, 1));
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct InterfaceConfig {
    /// Name for display; also an input of stable addresses (RFC 7217: `Net_Iface`).
    pub name: String,
    /// Medium of the link.
    pub medium: Medium,
    /// The largest packet, IP header included and link header not. 1500 by default; at least 68. Below 1280 the
    /// link carries no IPv6.
    pub mtu_bytes: u16,
    /// Our addresses with the prefixes that are reached directly; none by default, 16 at most.
    pub addresses: Vec<Cidr>,
    /// Gateways for everything that no other route covers, the preferred first; none by default.
    pub gateways: Vec<IpAddr>,
    /// Whether the link speaks IPv6 at all. Default: yes.
    pub ipv6: bool,
    /// Whether to make a link-local address (RFC 7217) when none is configured. Default: on an Ethernet.
    pub link_local: bool,
    /// Whether to solicit and believe routers (RFC 4861 §6.3): gateways, prefixes, addresses, MTU. Default: on an
    /// Ethernet. Cost: any host on the link can become the gateway.
    pub accept_router_advertisements: bool,
    /// Whether to believe ICMP redirects from the current gateway (RFC 1122 §3.2.2.2). Default: on an Ethernet.
    pub accept_redirects: bool,
    /// Whether every unicast destination is accepted as local, and any source address may be used: for a gateway that
    /// terminates connections on behalf of other hosts. Default: no.
    pub any_address: bool,
    /// Whether echo requests to any destination are answered, too, where each is accepted as local. Default: no.
    pub answer_any_echo: bool,
    /// Whether new addresses are tested. Default: before use.
    pub duplicate_detection: DuplicateDetection,
    /// Generic segmentation offload: a transport decides on several full segments at once. They are split in software
    /// above a device that cannot. Default: on.
    pub gso: bool,
    /// Generic receive offload: consecutive segments of a batch are merged, and the transport acts on them once. Default:
    /// on. Cost: merged segments are acknowledged as one.
    pub gro: bool,
}

impl InterfaceConfig {
    /// A link of 1500 bytes without addresses, and the defaults above for its medium.
    pub fn new(name: &str, medium: Medium) -> Self {
        let ethernet = matches!(medium, Medium::Ethernet(_));
        InterfaceConfig {
            name: name.to_owned(),
            medium,
            mtu_bytes: 1500,
            addresses: Vec::new(),
            gateways: Vec::new(),
            ipv6: true,
            link_local: ethernet,
            accept_router_advertisements: ethernet,
            accept_redirects: ethernet,
            any_address: false,
            answer_any_echo: false,
            duplicate_detection: DuplicateDetection::BeforeUse,
            gso: true,
            gro: true,
        }
    }
    /// With one more address.
    #[must_use]
    pub fn with_address(mut self, address: Cidr) -> Self {
        self.addresses.push(address);
        self
    }
    /// With one more gateway, less preferred than those before it.
    #[must_use]
    pub fn with_gateway(mut self, gateway: impl Into<IpAddr>) -> Self {
        self.gateways.push(gateway.into());
        self
    }
}
