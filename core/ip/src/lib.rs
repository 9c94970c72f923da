//! Everything of the Internet Protocol but sockets: interfaces and their addresses, neighbours (ARP and neighbour
//! discovery), routes and gateways, choice of addresses, loopback, groups, fragments, path MTU, and ICMP, for IPv4
//! and IPv6 alike.
//!
//! [`Ip`] does nothing by itself. Frames go in by [`Ip::receive`] and time by [`Ip::timeout`]; `receive` returns
//! datagrams and errors for transports; [`Ip::transmit`] sends IP's own frames. A transport that wants to send asks
//! [`Ip::route`] for a [`Path`] and keeps it, asks [`Ip::resolve`] for the link's header, and writes both with
//! [`Ip::header`] before its own, or hands a datagram over whole to [`Ip::send_datagram`]. IP never queues a
//! transport's packet for a neighbour that is not resolved: the transport is told to wait, and [`Ip::take_resolved`]
//! says when that is over.
//!
//! It knows no transport, reads no clock, and has no randomness of its own. No frame can make it panic, and every table
//! has a limit: see [`limits`].
//!
//! ```
//! use inhost_base::{Instant, Random};
//! use inhost_buf::{Device, Frame, Full, Pool};
//! use inhost_event::Ignore;
//! use inhost_ip::{EchoMessage, InterfaceConfig, Ip, IpConfig, IpEnvironment, Medium, Received, Resolution};
//!
//! /// A wire that remembers its last frame.
//! struct Wire(Vec<u8>);
//! impl Device for Wire {
//!     fn transmit(&mut self, frame: &Frame<'_>) -> Result<(), Full> {
//!         self.0 = vec![0; frame.len()];
//!         frame.write_to(&mut self.0);
//!         Ok(())
//!     }
//! }
//!
//! let (mut pool, mut random, mut sink) = (Pool::new(1 << 20), Random::from_number(1), Ignore);
//! let now = Instant::ZERO;
//! let mut env = IpEnvironment { now, pool: &mut pool, random: &mut random, sink: &mut sink };
//! let mut ip = Ip::new(IpConfig::default(), env.random);
//! let config = InterfaceConfig::new("point to point", Medium::Ip).with_address("10.9.0.2/24".parse()?);
//! ip.add_interface(config, &mut env)?;
//!
//! // An echo request goes out to the other end of the line …
//! let mut wire = Wire(Vec::new());
//! let path = ip.route("10.9.0.1".parse()?, None, None, now)?;
//! assert!(matches!(ip.resolve(&path, &mut env), Resolution::Ready(_)));
//! let echo = EchoMessage { identifier: 7, sequence: 1, data: b"anybody there?" };
//! ip.echo_request(&path, &echo, &mut env, &mut wire)?;
//! assert_eq!(wire.0.len(), 20 + 8 + 14);
//!
//! // … and comes to a host there.
//! let mut other = Ip::new(IpConfig::default(), env.random);
//! let config = InterfaceConfig::new("point to point", Medium::Ip).with_address("10.9.0.1/24".parse()?);
//! let link = other.add_interface(config, &mut env)?;
//! let mut packet = env.pool.take(1500).unwrap();
//! packet.append(&wire.0);
//! assert_eq!(other.receive(link, &mut packet, &mut env), Received::Handled);
//! other.transmit(link, &mut env, 8, &mut wire);
//! packet.truncate(0);
//! packet.append(&wire.0);
//! assert!(matches!(ip.receive(path.link, &mut packet, &mut env), Received::EchoReply(_)));
//! assert_eq!(packet.bytes(), b"anybody there?");
//! env.pool.give(packet);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod address_state;
mod arrival;
mod clock;
mod configure;
mod control_queue;
mod counters;
mod error;
mod finish;
mod forward;
mod fragment;
mod group;
mod icmp;
mod ident;
mod interface;
mod link;
mod neighbour;
mod options;
mod path;
mod paths;
mod reassembly;
mod receive;
mod received;
mod routing;
mod scope;
mod select;
mod table;
mod timeout;
mod transmit;

pub use address_state::{AddressOrigin, AddressState, Assigned};
pub use counters::InterfaceCounters;
pub use error::{ConfigureError, RouteError, SendDatagramError};
pub use forward::Forwarding;
pub use icmp::limits::ErrorPace;
pub use interface::{DuplicateDetection, InterfaceConfig, Medium};
pub use neighbour::cache::Neighbour;
pub use options::{HeaderOptions, Ipv4Options};
pub use path::{HeaderHow, LinkHeader, Path, Resolution};
pub use received::{Datagram, EchoReply, EchoRequest, ErrorKind, Received, Redirect, TransportError};
pub use routing::{PREFERENCE_CONFIGURED, PREFERENCE_LEASED, Route, RouteOrigin};
pub use transmit::EchoMessage;

use inhost_base::{Duration, HardwareAddress, Instant, IpAddr, LinkId, Random};
use inhost_buf::Pool;
use inhost_event::Sink;
pub use inhost_wire::ipv4::SourceRoute;
use interface::{Interface, Interfaces};
use std::cell::Cell;
use std::collections::VecDeque;

/// The limits of IP's tables.
pub mod limits {
    /// Links of a host, loopback included.
    pub const INTERFACES: usize = 64;
    /// Addresses of one link.
    pub const ADDRESSES: usize = crate::address_state::ADDRESS_LIMIT;
    /// Neighbours of one link.
    pub const NEIGHBOURS: usize = crate::neighbour::cache::NEIGHBOUR_LIMIT;
    /// Destinations whose ICMP errors are counted one by one.
    pub const ERROR_DESTINATIONS: usize = crate::icmp::limits::DESTINATION_LIMIT;
    /// Routes.
    pub const ROUTES: usize = crate::routing::ROUTE_LIMIT;
    /// Routers that advertise themselves, of one link.
    pub const ADVERTISED_ROUTERS: usize = crate::routing::ROUTER_LIMIT;
    /// Gateways watched for their health.
    pub const GATEWAYS: usize = crate::routing::GATEWAY_LIMIT;
    /// Redirects accepted at a time.
    pub const REDIRECTS: usize = crate::routing::REDIRECT_LIMIT;
    /// Destinations whose path MTU is remembered.
    pub const PATH_MTUS: usize = crate::routing::PATH_MTU_LIMIT;
    /// Groups of one link.
    pub const GROUPS: usize = crate::group::GROUP_LIMIT;
    /// Datagrams being put together from fragments.
    pub const REASSEMBLIES: usize = crate::reassembly::DATAGRAM_LIMIT;
    /// Of those, from one source.
    pub const REASSEMBLIES_OF_ONE_SOURCE: usize = crate::reassembly::SOURCE_LIMIT;
    /// Memory that they hold, in bytes.
    pub const REASSEMBLY_BYTES: usize = crate::reassembly::MEMORY_LIMIT_BYTES;
    /// Own frames that wait for one link's device.
    pub const CONTROL_FRAMES: usize = crate::control_queue::READY_LIMIT;
    /// Own packets that wait for a neighbour of one link.
    pub const CONTROL_PACKETS_WAITING: usize = crate::control_queue::WAITING_LIMIT;
    /// Packets of others that wait for neighbours of one link.
    pub const FORWARDED_WAITING: usize = crate::forward::WAITING_LIMIT;
    /// Of those, for one neighbour.
    pub const FORWARDED_WAITING_FOR_ONE: usize = crate::forward::WAITING_FOR_ONE_LIMIT;
    /// Forwarding decisions in a router's cache.
    pub const WAYS: usize = crate::routing::DECISION_LIMIT;
    /// Pending notices of resolved neighbours. Further ones are dropped, so a waiting transport needs a timer, too.
    pub const RESOLVED: usize = 1024;
}

/// The environment that calls on packets borrow.
pub struct IpEnvironment<'a> {
    /// The time.
    pub now: Instant,
    /// The pool of packet memory.
    pub pool: &'a mut Pool,
    /// The host's randomness.
    pub random: &'a mut Random,
    /// The sink of events.
    pub sink: &'a mut dyn Sink,
}

/// Configuration of a host's IP.
#[derive(Clone, Debug)]
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
    /// Whether an ICMP timestamp request is answered (RFC 1122 §3.2.2.8); see [`Ip::set_time_of_day`]. Default: yes.
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
            hop_limit: interface::DEFAULT_HOP_LIMIT,
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

/// The Internet Protocol of one host.
///
/// Any call may be made at any time; a call for which nothing is due does nothing. After calls that take an
/// [`IpEnvironment`], and after [`Ip::confirm`] and [`Ip::suspect`], ask [`Ip::wants_transmit`], [`Ip::take_resolved`]
/// and [`Ip::deadline`] anew.
#[derive(Debug)]
pub struct Ip {
    interfaces: Interfaces,
    routing: routing::Routing,
    reassembly: reassembly::Reassembly,
    identifications: ident::Identifications,
    error_limit: icmp::limits::ErrorLimit,
    errors_each: icmp::limits::ErrorLimits,
    errors_have_precedence: bool,
    resolved: VecDeque<(LinkId, IpAddr)>,
    stable_key: link::StableKey,
    forwarding: Option<Forwarding>,
    hop_limit: u8,
    accept_source_routes: bool,
    record_options: bool,
    answer_timestamps: bool,
    answer_broadcast_echoes: bool,
    clock: clock::Clock,
    arrived: arrival::Arrived,
    keyed: table::Keyed,
    /// Where the frame that was received last came from.
    sender: Option<(LinkId, HardwareAddress)>,
    deadline: Cell<Option<Instant>>,
}

impl Ip {
    /// Changes whenever a [`Path`] asked for earlier may be no longer right.
    pub fn generation(&self) -> u32 {
        self.routing.generation()
    }
    /// Whether [`Ip::take_resolved`] returns a notice.
    #[inline]
    pub fn has_resolved(&self) -> bool {
        !self.resolved.is_empty()
    }
    /// Takes a notice that a neighbour became reachable or failed. Call until `None`.
    pub fn take_resolved(&mut self) -> Option<(LinkId, IpAddr)> {
        self.resolved.pop_front()
    }
    /// The next instant at which [`Ip::timeout`] has something to do.
    #[inline]
    pub fn deadline(&self) -> Instant {
        self.deadline.get().unwrap_or_else(|| self.next_deadline())
    }
    #[cold]
    fn next_deadline(&self) -> Instant {
        let deadline =
            self.interfaces.deadline().min(self.routing.deadline()).min(self.reassembly.deadline());
        self.deadline.set(Some(deadline));
        deadline
    }
    /// The counters of a link.
    pub fn counters(&self, link: LinkId) -> Option<&InterfaceCounters> {
        self.interface(link).map(|interface| &interface.counters)
    }
    /// The links, in order.
    pub fn links(&self) -> impl Iterator<Item = LinkId> + '_ {
        self.interfaces.iter().map(|interface| interface.link)
    }
    /// The configuration of a link.
    pub fn config(&self, link: LinkId) -> Option<&InterfaceConfig> {
        self.interface(link).map(|interface| &interface.config)
    }
    /// The addresses of a link, in the order in which they came.
    pub fn addresses(&self, link: LinkId) -> &[Assigned] {
        self.interface(link).map_or(&[], |interface| &interface.addresses)
    }
    /// Whether no address is still being tested for a double.
    pub fn addresses_are_tested(&self) -> bool {
        let is_tentative = |assigned: &Assigned| assigned.state() == AddressState::Tentative;
        !self.interfaces.iter().any(|interface| interface.addresses.iter().any(is_tentative))
    }
    /// Whether a router of the link has last said that there is configuration to be had by DHCPv6 (RFC 4861 §4.2: its
    /// M or O flag).
    pub fn is_dhcpv6_advertised(&self, link: LinkId) -> bool {
        self.interface(link).is_some_and(|interface| interface.discovery.dhcpv6)
    }
    /// The neighbours of a link, by address.
    pub fn neighbours(&self, link: LinkId) -> Vec<Neighbour> {
        self.interface(link).map_or(Vec::new(), |interface| interface.neighbours.list())
    }
    /// The routes, in the order in which they are tried.
    pub fn routes(&self) -> &[Route] {
        self.routing.routes()
    }
    /// The groups that are listened to on a link.
    pub fn groups(&self, link: LinkId) -> Vec<IpAddr> {
        self.interface(link).map_or(Vec::new(), |interface| interface.groups.list().collect())
    }
    /// Redirects in force.
    pub fn redirects(&self) -> usize {
        self.routing.redirects()
    }
    /// Datagrams being put together from fragments, and the memory that they hold in bytes.
    pub fn reassemblies(&self) -> (usize, usize) {
        (self.reassembly.len(), self.reassembly.memory_bytes())
    }
    /// Whether `address` is a broadcast address on `link`: the limited one, or that of a network of the link.
    pub fn is_broadcast(&self, link: LinkId, address: IpAddr) -> bool {
        self.interface(link).is_some_and(|interface| interface.is_broadcast(address))
    }
    /// Whether `address` is one of ours, on any link, the loopback included.
    pub fn is_local(&self, address: IpAddr) -> bool {
        self.interfaces.is_local(address)
    }
    /// Whether `address` is one of ours, or becomes one when its test for a double has passed. A socket may be bound to it
    /// before.
    pub fn is_local_or_tentative(&self, address: IpAddr) -> bool {
        self.is_local(address) || self.interfaces.is_tentative(address)
    }

    #[inline]
    pub(crate) fn interface(&self, link: LinkId) -> Option<&Interface> {
        self.interfaces.get(link)
    }
    pub(crate) fn interface_mut(&mut self, link: LinkId) -> Option<&mut Interface> {
        self.interfaces.get_mut(link)
    }
    /// One link, to be changed. Its deadlines are computed anew afterwards.
    pub(crate) fn link(&mut self, link: LinkId) -> Option<link::Link<'_>> {
        self.deadline.set(None);
        let Ip { interfaces, routing, stable_key, .. } = self;
        Some(link::Link { interface: interfaces.get_mut(link)?, routing, stable_key })
    }
    /// A path given earlier may be wrong now.
    pub(crate) fn paths_changed(&mut self) {
        self.routing.changed();
        self.deadline_moved();
    }
    /// The next deadline may be another.
    pub(crate) fn deadline_moved(&mut self) {
        self.deadline.set(None);
    }
}
