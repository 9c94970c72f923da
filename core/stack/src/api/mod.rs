//! The calls of applications, grouped by protocol.

mod detail;
mod echo;
mod instruments;
mod probe;
mod tcp;
mod udp;

pub use detail::{HostQueues, LinkQueues};
pub use instruments::{Instruments, Queued};

use crate::network::Network;
use crate::resources::Resources;
use crate::socket::{EchoSocketId, ProbeSocketId, TcpSocketId, UdpSocketId};
use crate::sockets::Sockets;
use core::marker::PhantomData;

/// The calls on sockets that have this kind of identifier.
#[derive(Debug)]
pub struct Calls<'a, Id> {
    sockets: &'a mut Sockets,
    network: &'a mut Network,
    resources: &'a mut Resources,
    of: PhantomData<Id>,
}

impl<'a, Id> Calls<'a, Id> {
    #[inline]
    pub(crate) fn new(
        sockets: &'a mut Sockets,
        network: &'a mut Network,
        resources: &'a mut Resources,
    ) -> Calls<'a, Id> {
        Calls { sockets, network, resources, of: PhantomData }
    }
}

/// Calls on TCP connections and listeners: see [`crate::Stack::tcp`].
///
/// ```
/// use inhost_base::{Instant, Ipv4Addr};
/// use inhost_event::Ignore;
/// use inhost_stack::{ConnectOptions, Endpoint, ListenOptions, Stack, StackConfig};
///
/// let now = Instant::ZERO;
/// let mut host = Stack::new(StackConfig::default(), [7; 32], now);
/// let here = Endpoint::new(Ipv4Addr::LOCALHOST, 7);
/// let listener = host.tcp().listen(here, ListenOptions::default(), now).unwrap();
/// host.tcp().connect(here, ConnectOptions::default(), now, &mut Ignore).unwrap();
/// host.timeout(now, &mut Ignore); // The handshake, over the loopback.
/// assert!(host.tcp().accept(listener, now).unwrap().is_some());
/// ```
pub type TcpSockets<'a> = Calls<'a, TcpSocketId>;

/// Calls on UDP sockets: see [`crate::Stack::udp`].
///
/// ```
/// use inhost_base::{Endpoint, Instant, Ipv4Addr};
/// use inhost_event::Ignore;
/// use inhost_stack::{Stack, StackConfig, UdpOptions};
///
/// let now = Instant::ZERO;
/// let mut host = Stack::new(StackConfig::default(), [7; 32], now);
/// let here = Endpoint::new(Ipv4Addr::LOCALHOST, 7);
/// let server = host.udp().bind(here, UdpOptions::default(), now).unwrap();
/// let any_port = Endpoint::new(Ipv4Addr::LOCALHOST, 0);
/// let client = host.udp().bind(any_port, UdpOptions::default(), now).unwrap();
/// host.udp().send_to(client, b"ping", Some(here), None, now).unwrap();
/// host.timeout(now, &mut Ignore); // Delivery over the loopback.
/// let mut place = [0; 16];
/// let info = host.udp().receive_from(server, &mut place, now).unwrap();
/// assert_eq!(&place[..info.length_bytes], b"ping");
/// ```
pub type UdpSockets<'a> = Calls<'a, UdpSocketId>;

/// Calls on echo sockets (ping): see [`crate::Stack::echo`].
///
/// ```
/// use inhost_base::{Instant, Ipv4Addr};
/// use inhost_event::Ignore;
/// use inhost_stack::{Stack, StackConfig};
///
/// let now = Instant::ZERO;
/// let mut host = Stack::new(StackConfig::default(), [7; 32], now);
/// let socket = host.echo().open(now).unwrap();
/// host.echo().send(socket, Ipv4Addr::LOCALHOST.into(), 1, b"anybody there?", now).unwrap();
/// host.timeout(now, &mut Ignore); // The request and its reply, over the loopback.
/// let mut place = [0; 64];
/// assert_eq!(host.echo().receive(socket, &mut place, now).unwrap().sequence, 1);
/// ```
pub type EchoSockets<'a> = Calls<'a, EchoSocketId>;

/// Calls on probe sockets (traceroute): see [`crate::Stack::probe`].
///
/// ```
/// use inhost_base::Instant;
/// use inhost_stack::{ProbeMethod, Stack, StackConfig};
///
/// let now = Instant::ZERO;
/// let mut host = Stack::new(StackConfig::default(), [7; 32], now);
/// let socket = host.probe().open(ProbeMethod::Echo, now).unwrap();
/// assert!(host.probe().receive(socket, now).is_err()); // Nothing was sent.
/// ```
pub type ProbeSockets<'a> = Calls<'a, ProbeSocketId>;
