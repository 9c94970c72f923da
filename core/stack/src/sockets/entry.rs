//! One entry of the socket table, of any kind.

use crate::demux::{ANY_ADDRESS, Name, binding, echo_binding};
use crate::icmp::{Echo, Prober, Requests};
use crate::listen::Listener;
use crate::tcp::TcpSocket;
use crate::udp::Udp;
use alloc::boxed::Box;
use inhost_base::{Endpoint, IpAddr, LinkId};
use inhost_wire::protocol;

/// One entry. Connections are stored inline; sockets of other kinds are few, and boxed.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // Connections are what there are many of.
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) enum Socket {
    Tcp(TcpSocket),
    Listener(Box<Listener>),
    Udp(Box<Udp>),
    Echo(Box<Echo>),
    Probe(Box<Prober>),
}

// This size decides the memory of a million connections.
const _: () = assert!(size_of::<Socket>() <= 432);

impl Socket {
    /// The name of a socket that talks with one other end.
    pub(crate) fn flow_name(&self) -> Option<Name> {
        match self {
            Socket::Tcp(flow) => {
                Some(Name { protocol: protocol::TCP, local: flow.local(), remote: flow.remote() })
            }
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
    /// Whether it receives packets to any address.
    pub(crate) fn is_any_address(&self) -> bool {
        self.binding_name().is_some_and(|name| name.protocol & ANY_ADDRESS != 0)
    }
    /// Where its next packet goes first, for those that wait for a neighbour.
    pub(crate) fn next_hop(&self) -> Option<IpAddr> {
        match self {
            Socket::Tcp(flow) => Some(flow.path().next_hop),
            Socket::Udp(udp) => udp.first().map(|(_, datagram)| datagram.path.next_hop),
            Socket::Echo(_) | Socket::Probe(_) | Socket::Listener(_) => {
                self.requests()?.first().map(|(_, request)| request.path.next_hop)
            }
        }
    }
    /// The requests of an echo or a probe socket.
    pub(crate) fn requests(&self) -> Option<&Requests> {
        match self {
            Socket::Echo(echo) => Some(echo.requests()),
            Socket::Probe(prober) => Some(prober.requests()),
            _ => None,
        }
    }
    pub(super) fn requests_mut(&mut self) -> Option<&mut Requests> {
        match self {
            Socket::Echo(echo) => Some(echo.requests_mut()),
            Socket::Probe(prober) => Some(prober.requests_mut()),
            _ => None,
        }
    }
    pub(super) fn takes_datagrams(&self) -> bool {
        matches!(self, Socket::Udp(_) | Socket::Echo(_) | Socket::Probe(_))
    }
    /// Memory that its data pins, with the records of it.
    pub(crate) fn held_bytes(&self) -> usize {
        match self {
            Socket::Tcp(flow) => flow.connection().held_bytes(),
            Socket::Udp(udp) => udp.held_bytes(),
            Socket::Echo(echo) => echo.held_bytes(),
            Socket::Probe(prober) => prober.held_bytes(),
            Socket::Listener(_) => 0,
        }
    }
    /// Whether it receives packets of `link`.
    pub(crate) fn is_open_to(&self, link: LinkId) -> bool {
        let bound = match self {
            Socket::Listener(listener) => listener.options().link,
            Socket::Udp(udp) => udp.options().link,
            Socket::Tcp(_) | Socket::Echo(_) | Socket::Probe(_) => None,
        };
        bound.is_none_or(|bound| bound == link)
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
            Socket::Probe(prober) => prober.binding(),
            Socket::Tcp(_) => return None,
        })
    }
}
