//! The calls of applications, grouped by protocol.

#[cfg(feature = "detail")]
mod detail;
mod icmp;
mod instruments;
mod tcp;
mod udp;

pub use instruments::{Instruments, Queued};

use crate::environment::Environment;
use crate::socket::{EchoSocketId, ProbeSocketId, TcpSocketId, UdpSocketId};
use crate::sockets::Sockets;
use core::marker::PhantomData;

/// The calls on sockets that have this kind of identifier, at one instant.
pub struct Calls<'a, Id> {
    sockets: &'a mut Sockets,
    env: Environment<'a>,
    of: PhantomData<Id>,
}

impl<'a, Id> Calls<'a, Id> {
    #[inline]
    pub(crate) fn new((sockets, env): (&'a mut Sockets, Environment<'a>)) -> Calls<'a, Id> {
        Calls { sockets, env, of: PhantomData }
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
/// let listener = host.tcp(now, &mut Ignore).listen(here, ListenOptions::default()).unwrap();
/// host.tcp(now, &mut Ignore).connect(here, ConnectOptions::default()).unwrap();
/// host.timeout(now, &mut Ignore); // The handshake, over the loopback.
/// assert!(host.tcp(now, &mut Ignore).accept(listener).unwrap().is_some());
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
/// let server = host.udp(now, &mut Ignore).bind(here, UdpOptions::default()).unwrap();
/// let any_port = Endpoint::new(Ipv4Addr::LOCALHOST, 0);
/// let client = host.udp(now, &mut Ignore).bind(any_port, UdpOptions::default()).unwrap();
/// host.udp(now, &mut Ignore).send_to(client, b"ping", Some(here), None).unwrap();
/// host.timeout(now, &mut Ignore); // Delivery over the loopback.
/// let mut place = [0; 16];
/// let info = host.udp(now, &mut Ignore).receive_from(server, &mut place).unwrap();
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
/// let socket = host.echo(now, &mut Ignore).open().unwrap();
/// host.echo(now, &mut Ignore).send(socket, Ipv4Addr::LOCALHOST.into(), 1, b"anybody there?").unwrap();
/// host.timeout(now, &mut Ignore); // The request and its reply, over the loopback.
/// let mut place = [0; 64];
/// assert_eq!(host.echo(now, &mut Ignore).receive(socket, &mut place).unwrap().sequence, 1);
/// ```
pub type EchoSockets<'a> = Calls<'a, EchoSocketId>;

/// Calls on probe sockets (traceroute): see [`crate::Stack::probe`].
///
/// ```
/// use inhost_base::Instant;
/// use inhost_event::Ignore;
/// use inhost_stack::{ProbeMethod, Stack, StackConfig};
///
/// let now = Instant::ZERO;
/// let mut host = Stack::new(StackConfig::default(), [7; 32], now);
/// let socket = host.probe(now, &mut Ignore).open(ProbeMethod::Echo).unwrap();
/// assert!(host.probe(now, &mut Ignore).receive(socket).is_err()); // Nothing was sent.
/// ```
pub type ProbeSockets<'a> = Calls<'a, ProbeSocketId>;
