//! A link as IP sees it (configuration, addresses, neighbours, counters), and the table of links.

use crate::address_state::{ADDRESS_LIMIT, AddressState, Assigned};
use crate::control_queue::ControlQueue;
use crate::counters::InterfaceCounters;
use crate::forward_queue::ForwardQueue;
use crate::group::Groups;
use crate::neighbour::cache::Cache;
use crate::neighbour::discovery::Discovery;
use crate::path::LinkHeader;
use crate::scope;
use crate::table::Keyed;
use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use inhost_base::{Cidr, HardwareAddress, Instant, IpAddr, LinkId};
use inhost_buf::{Packet, Pool};
use inhost_wire::ethernet::{EtherType, EthernetHeader};
use inhost_wire::ipv6;

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

/// Hops that our packets may take until a router says otherwise (RFC 1700 as RFC 1122 §3.2.1.7 points to it).
pub(crate) const DEFAULT_HOP_LIMIT: u8 = 64;

/// One link, with all that belongs to it alone.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Interface {
    pub link: LinkId,
    pub config: InterfaceConfig,
    /// At most the link's own; a router may have advertised less (RFC 4861 §6.3.4).
    pub ipv6_mtu_bytes: u16,
    /// For IPv4, as configured.
    pub ipv4_hop_limit: u8,
    /// For IPv6; a router may have advertised it (RFC 4861 §6.3.4).
    pub ipv6_hop_limit: u8,
    pub addresses: Vec<Assigned>,
    pub neighbours: Cache,
    pub groups: Groups,
    pub control: ControlQueue,
    pub forward: ForwardQueue,
    /// The host forwards, and says so to its neighbours.
    pub is_router: bool,
    pub discovery: Discovery,
    pub counters: InterfaceCounters,
}

/// The links of a host, in the order of their numbers.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Interfaces(Vec<Interface>);

impl Interfaces {
    pub fn new(loopback: Interface) -> Self {
        Interfaces(vec![loopback])
    }
    #[inline]
    pub fn get(&self, link: LinkId) -> Option<&Interface> {
        self.0.get(usize::from(link.0))
    }
    #[inline]
    pub fn get_mut(&mut self, link: LinkId) -> Option<&mut Interface> {
        self.0.get_mut(usize::from(link.0))
    }
    pub fn iter(&self) -> core::slice::Iter<'_, Interface> {
        self.0.iter()
    }
    pub fn iter_mut(&mut self) -> core::slice::IterMut<'_, Interface> {
        self.0.iter_mut()
    }
    pub fn len(&self) -> usize {
        self.0.len()
    }
    /// Adds the link whose number is the next one.
    pub fn push(&mut self, interface: Interface) {
        self.0.push(interface);
    }
    /// Takes the last link away again.
    pub fn pop(&mut self) -> Option<Interface> {
        self.0.pop()
    }
    /// Whether `address` is one of ours, on any link, the loopback included.
    pub fn is_local(&self, address: IpAddr) -> bool {
        scope::is_loopback(address) || self.0.iter().any(|interface| interface.owns(address))
    }
    /// Whether `address` is under test for a duplicate on any link.
    pub fn is_tentative(&self, address: IpAddr) -> bool {
        let is_tentative = |assigned: &Assigned| assigned.state() == AddressState::Tentative;
        self.0.iter().any(|interface| interface.assigned(address).is_some_and(is_tentative))
    }
    /// Whether `address` is ours on some link, and means the same on every one.
    pub fn is_reachable_own(&self, address: IpAddr) -> bool {
        !scope::is_loopback(address)
            && !scope::is_link_local(address)
            && self.0.iter().any(|interface| interface.owns(address))
    }
    /// Whether `address` is a broadcast address of any link.
    pub fn is_broadcast(&self, address: IpAddr) -> bool {
        self.0.iter().any(|interface| interface.is_broadcast(address))
    }
    /// The next instant at which something on a link is due.
    pub fn deadline(&self) -> Instant {
        self.0.iter().map(Interface::deadline).min().unwrap_or(Instant::FAR_FUTURE)
    }
}

impl Interface {
    pub fn new(link: LinkId, mut config: InterfaceConfig, keyed: Keyed) -> Self {
        if usize::from(config.mtu_bytes) < ipv6::MINIMUM_MTU_BYTES {
            config.ipv6 = false;
        }
        Interface {
            link,
            ipv6_mtu_bytes: config.mtu_bytes,
            config,
            ipv4_hop_limit: DEFAULT_HOP_LIMIT,
            ipv6_hop_limit: DEFAULT_HOP_LIMIT,
            addresses: Vec::new(),
            neighbours: Cache::new(keyed),
            groups: Groups::default(),
            control: ControlQueue::default(),
            forward: ForwardQueue::default(),
            is_router: false,
            discovery: Discovery::default(),
            counters: InterfaceCounters::default(),
        }
    }
    /// Our card's address, on an Ethernet.
    pub fn hardware(&self) -> Option<HardwareAddress> {
        match self.config.medium {
            Medium::Ethernet(hardware) => Some(hardware),
            Medium::Ip | Medium::Loopback => None,
        }
    }
    pub fn is_loopback(&self) -> bool {
        self.config.medium == Medium::Loopback
    }
    pub fn mtu_bytes(&self, is_ipv6: bool) -> u16 {
        if is_ipv6 { self.ipv6_mtu_bytes } else { self.config.mtu_bytes }
    }
    // spec: RFC1122 3.2.1.7-1
    pub fn hop_limit(&self, is_ipv6: bool) -> u8 {
        if is_ipv6 { self.ipv6_hop_limit } else { self.ipv4_hop_limit }
    }
    /// Whether routers tell us anything: not when we are one (RFC 4861 §6.2.7).
    pub fn listens_to_routers(&self) -> bool {
        self.config.accept_router_advertisements && !self.is_router
    }
    pub fn has_address_room(&self) -> bool {
        self.addresses.len() < ADDRESS_LIMIT
    }
    pub fn assigned(&self, address: IpAddr) -> Option<&Assigned> {
        self.addresses.iter().find(|assigned| assigned.address() == address)
    }
    pub fn assigned_mut(&mut self, address: IpAddr) -> Option<&mut Assigned> {
        self.addresses.iter_mut().find(|assigned| assigned.address() == address)
    }
    /// Whether packets to `address` are for us here.
    pub fn owns(&self, address: IpAddr) -> bool {
        self.assigned(address).is_some_and(Assigned::is_usable)
    }
    /// Whether `address` is the limited broadcast address, or that of a network of ours (RFC 1122 §3.3.6), in either
    /// of its forms.
    // spec: RFC1122 3.3.6-1
    pub fn is_broadcast(&self, address: IpAddr) -> bool {
        let IpAddr::V4(v4) = address else { return false };
        v4.is_broadcast()
            || self.addresses.iter().any(|assigned| {
                assigned.cidr().broadcast() == Some(v4)
                    || assigned.cidr().prefix_bits() < 31
                        && assigned.cidr().address().is_ipv4()
                        && assigned.cidr().network() == address
            })
    }
    /// Whether a neighbour can have this address: it is in a prefix of the link, or link-local.
    pub fn is_on_link(&self, address: IpAddr) -> bool {
        address.is_ipv6() && scope::is_link_local(address)
            || self.addresses.iter().any(|assigned| assigned.cidr().contains(address))
    }
    /// The usable link-local IPv6 address.
    pub fn link_local(&self) -> Option<IpAddr> {
        let fits = |assigned: &&Assigned| {
            assigned.is_usable() && assigned.address().is_ipv6() && scope::is_link_local(assigned.address())
        };
        self.addresses.iter().find(fits).map(Assigned::address)
    }
    /// Whether an address of this family is still being tested.
    pub fn has_tentative(&self, is_ipv6: bool) -> bool {
        self.addresses.iter().any(|assigned| {
            assigned.state() == AddressState::Tentative && assigned.address().is_ipv6() == is_ipv6
        })
    }
    /// The header of frames to a card, for IP of the family of `address`.
    pub fn header_to(&self, hardware: HardwareAddress, is_ipv6: bool) -> LinkHeader {
        match self.hardware() {
            Some(source) => {
                let ethertype = if is_ipv6 { EtherType::IPV6 } else { EtherType::IPV4 };
                LinkHeader::ethernet(&EthernetHeader { destination: hardware, source, ethertype })
            }
            None => LinkHeader::NONE,
        }
    }
    /// The card that a destination maps to without asking anybody.
    pub fn mapped_hardware(&self, next_hop: IpAddr) -> Option<HardwareAddress> {
        if self.is_broadcast(next_hop) {
            Some(HardwareAddress::BROADCAST)
        } else if next_hop.is_multicast() {
            Some(scope::group_hardware(next_hop))
        } else {
            None
        }
    }
    /// Queues a packet for a hardware address, which a link without hardware addresses ignores.
    pub fn push_frame(
        &mut self,
        mut packet: Packet,
        ethertype: EtherType,
        destination: HardwareAddress,
        pool: &mut Pool,
    ) {
        if let Some(source) = self.hardware() {
            let header = LinkHeader::ethernet(&EthernetHeader { destination, source, ethertype });
            match packet.prepend(header.bytes().len()) {
                Some(place) => inhost_buf::copy(place, header.bytes()),
                None => {
                    pool.give(packet);
                    self.counters.lost_control_frames += 1;
                    return;
                }
            }
        }
        if !self.control.push_ready(packet, pool) {
            self.counters.lost_control_frames += 1;
        }
    }
    /// The next instant at which something on this link is due.
    pub fn deadline(&self) -> Instant {
        let addresses = self.addresses.iter().map(Assigned::deadline).min();
        addresses
            .unwrap_or(Instant::FAR_FUTURE)
            .min(self.neighbours.deadline())
            .min(self.groups.deadline())
            .min(self.discovery.deadline())
    }
}
