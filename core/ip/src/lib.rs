//! Everything of the Internet Protocol but sockets: interfaces and their addresses, neighbours (ARP and neighbour
//! discovery), routes and gateways, choice of addresses, loopback, groups, fragments, path MTU, and ICMP, for IPv4
//! and IPv6 alike.
//!
//! [`Ip`] does nothing by itself. Frames go in by [`Ip::receive`] and time by [`Ip::timeout`]; `receive` returns
//! datagrams and errors for transports; [`Ip::transmit`] sends IP's own frames. A transport that wants to send asks
//! [`Paths::route`] for a [`Path`] and keeps it, asks [`Paths::resolve`] for the link's header, and writes both with
//! [`Ip::header`] before its own, or hands a datagram over whole to [`Ip::send_datagram`]. IP never queues a
//! transport's packet for a neighbour that is not resolved: the transport waits, and [`Paths::take_resolved`]
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
//! let mut env = IpEnvironment::new(now, &mut pool, &mut random, &mut sink);
//! let mut ip = Ip::new(IpConfig::default(), env.random());
//! let config = InterfaceConfig::new("point to point", Medium::Ip).with_address("10.9.0.2/24".parse()?);
//! ip.add_interface(config, &mut env)?;
//!
//! // An echo request goes out to the other end of the line …
//! let mut wire = Wire(Vec::new());
//! let path = ip.paths_mut().route("10.9.0.1".parse()?, None, None, now)?;
//! assert!(matches!(ip.paths_mut().resolve(&path, &mut env), Resolution::Ready(_)));
//! let echo = EchoMessage { identifier: 7, sequence: 1, data: b"anybody there?" };
//! ip.echo_request(&path, &echo, &mut env, &mut wire)?;
//! assert_eq!(wire.0.len(), 20 + 8 + 14);
//!
//! // … and comes to a host there.
//! let mut other = Ip::new(IpConfig::default(), env.random());
//! let config = InterfaceConfig::new("point to point", Medium::Ip).with_address("10.9.0.1/24".parse()?);
//! let link = other.add_interface(config, &mut env)?;
//! let mut packet = env.pool().take(1500).unwrap();
//! packet.append(&wire.0);
//! assert_eq!(other.receive(link, &mut packet, &mut env), Received::Handled);
//! other.transmit(link, &mut env, 8, &mut wire);
//! packet.truncate(0);
//! packet.append(&wire.0);
//! assert!(matches!(ip.receive(path.link, &mut packet, &mut env), Received::EchoReply(_)));
//! assert_eq!(packet.bytes(), b"anybody there?");
//! env.pool().give(packet);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod address_state;
mod arrival;
mod calls;
mod clock;
mod config;
mod configure;
mod control_queue;
mod counters;
mod environment;
mod error;
mod forward;
mod forward_queue;
mod fragment;
#[cfg(feature = "freeze")]
mod freeze;
mod group;
mod ident;
mod input;
mod interface;
mod link;
mod neighbour;
mod options;
mod output;
mod path;
mod paths;
mod reassembly;
mod received;
mod routing;
mod scope;
mod select;
mod table;
mod view;

pub use address_state::{AddressOrigin, AddressState, Assigned};
pub use config::{DuplicateDetection, ErrorPace, Forwarding, InterfaceConfig, IpConfig, Medium};
pub use counters::InterfaceCounters;
pub use environment::IpEnvironment;
pub use error::{ConfigureError, RouteError, SendDatagramError};
pub use neighbour::cache::Neighbour;
pub use options::{HeaderOptions, Ipv4Options};
pub use output::EchoMessage;
pub use output::errors::Unreachable;
pub use path::{HeaderHow, LinkHeader, Path, Resolution};
pub use paths::Paths;
pub use received::{Datagram, EchoReply, EchoRequest, ErrorKind, Received, Redirect, TransportError};
pub use routing::{PREFERENCE_CONFIGURED, PREFERENCE_LEASED, Route, RouteOrigin};
pub use view::InterfaceView;

use inhost_base::{Instant, LinkId};
pub use inhost_wire::ipv4::SourceRoute;
use input::Input;
use output::Output;

/// The limits of IP's tables.
pub mod limits {
    /// Links of a host, loopback included.
    pub const INTERFACES: usize = 64;
    /// Addresses of one link.
    pub const ADDRESSES: usize = crate::address_state::ADDRESS_LIMIT;
    /// Neighbours of one link.
    pub const NEIGHBOURS: usize = crate::neighbour::cache::NEIGHBOUR_LIMIT;
    /// Destinations whose ICMP errors are counted one by one.
    pub const ERROR_DESTINATIONS: usize = crate::output::limits::DESTINATION_LIMIT;
    /// Routes.
    pub const ROUTES: usize = crate::routing::ROUTE_LIMIT;
    /// Routers that advertise themselves, of one link.
    pub const ADVERTISED_ROUTERS: usize = crate::routing::advertised::ROUTER_LIMIT;
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
    pub const FORWARDED_WAITING: usize = crate::forward_queue::WAITING_LIMIT;
    /// Of those, for one neighbour.
    pub const FORWARDED_WAITING_FOR_ONE: usize = crate::forward_queue::WAITING_FOR_ONE_LIMIT;
    /// Forwarding decisions in a router's cache.
    pub const FORWARDING_DECISIONS: usize = crate::routing::DECISION_LIMIT;
    /// Pending notices of resolved neighbours. Further ones are dropped, so a waiting transport needs a timer, too.
    pub const RESOLVED: usize = crate::paths::RESOLVED_LIMIT;
}

/// The Internet Protocol of one host.
///
/// Any call may be made at any time; a call for which nothing is due does nothing. After calls that take an
/// [`IpEnvironment`], and after [`Paths::confirm`] and [`Paths::suspect`], ask [`Ip::wants_transmit`], [`Paths::take_resolved`]
/// and [`Ip::deadline`] anew.
///
/// ```
/// use inhost_base::{Instant, Random};
/// use inhost_buf::Pool;
/// use inhost_event::Ignore;
/// use inhost_ip::{InterfaceConfig, Ip, IpConfig, IpEnvironment, Medium};
///
/// let (mut pool, mut random, mut sink) = (Pool::new(1 << 20), Random::from_number(1), Ignore);
/// let mut ip = Ip::new(IpConfig::default(), &mut random);
/// let mut env = IpEnvironment::new(Instant::ZERO, &mut pool, &mut random, &mut sink);
/// let link = ip.add_interface(InterfaceConfig::new("line", Medium::Ip), &mut env)?;
/// ip.add_address(link, "10.9.0.2/24".parse()?, &mut env)?;
/// assert!(ip.paths().is_local("10.9.0.2".parse()?));
/// assert_eq!(ip.interfaces().count(), 2); // The loopback is link 0.
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct Ip {
    output: Output,
    input: Input,
    hop_limit: u8,
    keyed: table::Keyed,
}

impl Ip {
    /// The routes of the host, and the paths that follow from them.
    #[inline]
    pub fn paths(&self) -> &Paths {
        self.output.paths()
    }
    /// The same, to ask for paths and to report what became of them.
    #[inline]
    pub fn paths_mut(&mut self) -> &mut Paths {
        self.output.paths_mut()
    }
    /// A link: its configuration, addresses, neighbours, groups and counters.
    pub fn interface(&self, link: LinkId) -> Option<InterfaceView<'_>> {
        self.paths().interface(link).map(InterfaceView::new)
    }
    /// The links, in order.
    pub fn interfaces(&self) -> impl Iterator<Item = InterfaceView<'_>> {
        self.paths().interfaces().iter().map(InterfaceView::new)
    }
    /// Whether no address is under duplicate address detection any more.
    pub fn addresses_are_tested(&self) -> bool {
        !self.paths().interfaces().iter().any(|link| link.has_tentative(false) || link.has_tentative(true))
    }
    /// Datagrams being put together from fragments, and the memory that they hold in bytes.
    pub fn reassemblies(&self) -> (usize, usize) {
        let reassembly = self.input.reassembly();
        (reassembly.len(), reassembly.memory_bytes())
    }
    /// The next instant at which [`Ip::timeout`] has something to do.
    #[inline]
    pub fn deadline(&self) -> Instant {
        self.paths().deadline(|| self.input.reassembly().deadline())
    }
}
