//! One entry of the socket table, of any kind.

use crate::demux::{Name, binding, echo_binding};
use crate::listen::Listener;
use crate::tcp::{TcpSocket, TcpSocketFlags};
use alloc::boxed::Box;
use inhost_base::{Endpoint, Ipv6Addr, LinkId};
use inhost_datagram::{Datagrams, EchoSocket, ProbeMethod, ProbeSocket, UdpSocket};
use inhost_wire::protocol;

/// One entry. Connections are stored inline; sockets of other kinds are few, and boxed.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // Connections are what there are many of.
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) enum Socket {
    Tcp(TcpSocket),
    Listener(Box<Listener>),
    Udp(Box<UdpSocket>),
    Echo(Box<EchoSocket>),
    Probe(Box<ProbeSocket>),
}

// This size decides the memory of a million connections.
const _: () = assert!(size_of::<Socket>() <= 432);

impl Socket {
    /// The name of a socket that is found by its two ends.
    pub(crate) fn flow_name(&self) -> Option<Name> {
        match self {
            Socket::Tcp(flow) => (!flow.has(TcpSocketFlags::UNLISTED)).then(|| flow.name()),
            Socket::Udp(udp) => {
                let remote = udp.remote().filter(|_| !udp.is_closed())?;
                Some(Name { protocol: protocol::UDP, local: udp.local(), remote })
            }
            Socket::Listener(_) | Socket::Echo(_) | Socket::Probe(_) => None,
        }
    }
    /// Our end of it and the other, where it has these.
    pub(crate) fn endpoints(&self) -> Option<(Endpoint, Option<Endpoint>)> {
        match self {
            Socket::Tcp(flow) => Some((flow.local(), Some(flow.remote()))),
            Socket::Listener(listener) => Some((listener.local(), None)),
            Socket::Udp(udp) => Some((udp.local(), udp.remote())),
            Socket::Echo(_) | Socket::Probe(_) => None,
        }
    }
    /// The queues of a UDP, echo or probe socket.
    pub(crate) fn datagrams(&self) -> Option<&Datagrams> {
        match self {
            Socket::Udp(udp) => Some(udp.datagrams()),
            Socket::Echo(echo) => Some(echo.datagrams()),
            Socket::Probe(prober) => Some(prober.datagrams()),
            Socket::Tcp(_) | Socket::Listener(_) => None,
        }
    }
    pub(crate) fn datagrams_mut(&mut self) -> Option<&mut Datagrams> {
        match self {
            Socket::Udp(udp) => Some(udp.datagrams_mut()),
            Socket::Echo(echo) => Some(echo.datagrams_mut()),
            Socket::Probe(prober) => Some(prober.datagrams_mut()),
            Socket::Tcp(_) | Socket::Listener(_) => None,
        }
    }
    /// Memory that its data pins, with the records of it.
    pub(crate) fn held_bytes(&self) -> usize {
        match self {
            Socket::Tcp(flow) => flow.connection().held_bytes(),
            _ => self.datagrams().map_or(0, Datagrams::held_bytes),
        }
    }
    /// The one link that it uses.
    pub(crate) fn bound_link(&self) -> Option<LinkId> {
        match self {
            Socket::Listener(listener) => listener.options().link,
            Socket::Udp(udp) => udp.options().link,
            Socket::Tcp(_) | Socket::Echo(_) | Socket::Probe(_) => None,
        }
    }
    /// The name of a socket that takes from anybody.
    pub(crate) fn binding_name(&self) -> Option<Name> {
        Some(match self {
            Socket::Listener(listener) => {
                binding(protocol::TCP, listener.local(), listener.options().any_address)
            }
            Socket::Udp(udp) if udp.is_closed() => return None,
            Socket::Udp(udp) => binding(protocol::UDP, udp.bound(), udp.options().any_address),
            Socket::Echo(echo) => echo_binding(echo.identifier()),
            Socket::Probe(prober) => probe_binding(prober),
            Socket::Tcp(_) => return None,
        })
    }
}

/// The name of a probe socket in the table of bindings.
fn probe_binding(prober: &ProbeSocket) -> Name {
    let any = |port| Endpoint::new(Ipv6Addr::UNSPECIFIED, port);
    match prober.method() {
        ProbeMethod::Echo => echo_binding(prober.port()),
        ProbeMethod::Datagram { .. } => binding(protocol::UDP, any(prober.port()), false),
        // It receives segments to any port without a socket.
        ProbeMethod::Call { .. } => binding(protocol::TCP, any(0), true),
    }
}
