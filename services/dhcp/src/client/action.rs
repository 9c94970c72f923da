//! Actions that a client requests.

use crate::lease::Settings;
use inhost_base::{Cidr, Duration, Ipv4Addr};

/// Something to do, in this order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// A datagram is to be sent from the client's port to the servers'. When it cannot be, it is as if it was lost.
    Send(Datagram),
    /// The link is to have this address, once it is known that nobody else has it (RFC 5227). The result is reported by
    /// [`super::Client::settled`] or [`super::Client::conflict`].
    Assign(Cidr),
    /// The link loses this address.
    Unassign(Ipv4Addr),
    /// These settings hold from now on, in place of those before.
    Configure(Box<Settings>),
    /// No settings hold any more.
    Unconfigure,
    /// The state to keep across restarts has changed: [`super::Client::remembered`] says it.
    Remember,
    /// For a person.
    Tell(News),
}

/// A datagram to servers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Datagram {
    /// Its content.
    pub bytes: Vec<u8>,
    /// Its addressing.
    pub destination: Destination,
}

/// From which address to which.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Destination {
    /// From 0.0.0.0 to everybody.
    Unaddressed,
    /// From our address to everybody.
    Broadcast {
        /// Ours.
        from: Ipv4Addr,
    },
    /// From our address to one server.
    Unicast {
        /// Ours.
        from: Ipv4Addr,
        /// Its.
        to: Ipv4Addr,
    },
}

/// News for the user.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum News {
    /// An address is ours.
    Leased {
        /// The address.
        address: Cidr,
        /// The DHCP server.
        server: Ipv4Addr,
        /// For how long; `None` for ever.
        time: Option<Duration>,
    },
    /// No server answers, and what was lent before the restart is used while it lasts.
    Unconfirmed {
        /// The address.
        address: Ipv4Addr,
    },
    /// A server says that the address is not ours.
    Refused {
        /// The address.
        address: Ipv4Addr,
        /// The server.
        server: Ipv4Addr,
    },
    /// Another host has the address.
    Conflict {
        /// The address.
        address: Ipv4Addr,
    },
    /// The lease has ended.
    Expired {
        /// The address.
        address: Ipv4Addr,
    },
    /// The lease was given back.
    Released {
        /// The address.
        address: Ipv4Addr,
    },
    /// No server answers; an address of the link's own is tried.
    Unanswered,
    /// An address of the link's own is ours.
    LinkLocal {
        /// The address.
        address: Ipv4Addr,
    },
}

impl core::fmt::Display for News {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            News::Leased { address, server, time: Some(time) } => {
                write!(f, "{address} leased from {server} for {} s", time.as_secs())
            }
            News::Leased { address, server, time: None } => {
                write!(f, "{address} leased from {server} for ever")
            }
            News::Unconfirmed { address } => {
                write!(f, "no DHCP server answers; {address}, leased before, is used while its lease lasts")
            }
            News::Refused { address, server } => write!(f, "{server} refuses {address}; asking for another"),
            News::Conflict { address } => write!(f, "another host has {address}; it is given up"),
            News::Expired { address } => write!(f, "the lease of {address} has ended; asking for another"),
            News::Released { address } => write!(f, "{address} is given back"),
            News::Unanswered => {
                f.write_str("no DHCP server answers; trying an address of the link's own, and asking on")
            }
            News::LinkLocal { address } => {
                write!(f, "{address} on this link alone, until a DHCP server answers")
            }
        }
    }
}
