//! Multicast groups of a remote socket.

use std::io;

use inhost_base::{IpAddr, LinkId};
use inhost_stack::ConfigureError;

use super::RemoteUdpSocket;
use super::shared::{Shared, leave};
use crate::errno::Errno;
use crate::error::DatagramError;
use crate::host::Host;

/// The link on which a group is joined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GroupLink {
    /// The one over which the group is reached.
    Any,
    /// The one that has this address.
    Address(IpAddr),
    /// This one.
    Link(LinkId),
}

impl RemoteUdpSocket {
    /// Joins a multicast group, until it is [left](RemoteUdpSocket::leave_group) or the socket is closed. A socket that
    /// is bound to an unspecified address gets what is sent to the group; the whole host has joined it. It runs on the
    /// host's thread; see [`RemoteHost::call_now`](super::RemoteHost::call_now).
    ///
    /// # Errors
    /// Of kind `AddrInUse` when the socket has joined it on that link.
    pub fn join_group(&self, group: IpAddr, on: GroupLink) -> io::Result<()> {
        self.on_host(move |host, shared| {
            let link = link_of(host, group, on)?;
            if !shared.add_group(link, group) {
                return Err(io::ErrorKind::AddrInUse.into());
            }
            let joined = host.with_stack_and_sink(|stack, now, sink| {
                stack.with_ip(now, sink, |ip, environment| ip.join_group(link, group, environment))
            });
            joined.map_err(|why| {
                shared.remove_group(link, group);
                configure_error(why)
            })
        })
    }
    /// Leaves a multicast group that the socket has joined.
    ///
    /// # Errors
    /// Of kind `AddrNotAvailable` when it has not.
    pub fn leave_group(&self, group: IpAddr, on: GroupLink) -> io::Result<()> {
        self.on_host(move |host, shared| {
            let link = link_of(host, group, on)?;
            match shared.remove_group(link, group) {
                true => leave(host, link, group).map_err(configure_error),
                false => Err(io::ErrorKind::AddrNotAvailable.into()),
            }
        })
    }
    fn on_host(
        &self,
        work: impl FnOnce(&Host, &Shared) -> io::Result<()> + Send + 'static,
    ) -> io::Result<()> {
        let shared = self.outer.0.clone();
        let done = self.host.call_now(move |host| work(host, &shared));
        done.unwrap_or_else(|_| Err(DatagramError::Stopped.into_io()))
    }
}

fn link_of(host: &Host, group: IpAddr, on: GroupLink) -> io::Result<LinkId> {
    let source = match on {
        GroupLink::Link(link) => return Ok(link),
        GroupLink::Address(address) => Some(address),
        GroupLink::Any => None,
    };
    let route = host.with_stack(|stack, now| stack.ip_mut().paths_mut().route(group, source, None, now));
    route.map(|path| path.link).map_err(|why| DatagramError::Stack(why.into()).into_io())
}

fn configure_error(why: ConfigureError) -> io::Error {
    let kind = match why {
        ConfigureError::NoLink => io::ErrorKind::NotFound,
        ConfigureError::Absent => io::ErrorKind::AddrNotAvailable,
        ConfigureError::Limit => io::ErrorKind::QuotaExceeded,
        _ => io::ErrorKind::InvalidInput,
    };
    io::Error::new(kind, why)
}
