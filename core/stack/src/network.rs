//! What sockets stand upon: IP, the links with their counters, and segments without a connection that wait to leave.

use crate::links::Links;
use crate::output::Replies;
use inhost_base::{Instant, IpAddr, LinkId};
use inhost_ip::{ConfigureError, InterfaceConfig, Ip, IpEnvironment};

/// The network as a host's sockets use it.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Network {
    ip: Ip,
    links: Links,
    replies: Replies,
}

impl Network {
    /// The loopback alone.
    pub(crate) fn new(ip: Ip, resets_per_second: u32, now: Instant) -> Network {
        Network { ip, links: Links::new(), replies: Replies::new(resets_per_second, now) }
    }
    /// Adds a link, and gives how many there are then.
    pub(crate) fn add_link(
        &mut self,
        config: InterfaceConfig,
        environment: &mut IpEnvironment<'_>,
    ) -> Result<(LinkId, usize), ConfigureError> {
        let (gso, gro) = (config.gso, config.gro);
        let link = self.ip.add_interface(config, environment)?;
        Ok((link, self.links.add(link, gso, gro)))
    }
    pub(crate) fn ip(&self) -> &Ip {
        &self.ip
    }
    pub(crate) fn ip_mut(&mut self) -> &mut Ip {
        &mut self.ip
    }
    pub(crate) fn links(&self) -> &Links {
        &self.links
    }
    pub(crate) fn links_mut(&mut self) -> &mut Links {
        &mut self.links
    }
    pub(crate) fn replies_mut(&mut self) -> &mut Replies {
        &mut self.replies
    }
    /// Whether packets of IP's own wait for `link`, and whether replies do.
    pub(crate) fn waiting(&self, link: LinkId) -> (bool, bool) {
        (self.ip.wants_transmit(link), self.replies.waits(link))
    }
    /// Whether an address is the broadcast address of some link.
    pub(crate) fn is_broadcast_somewhere(&self, address: IpAddr) -> bool {
        self.links.ids().any(|link| self.ip.paths().is_broadcast(link, address))
    }
    /// Lets those replies try again that wait for a neighbour, of which one is resolved now, or known not to answer.
    pub(crate) fn take_resolved(&mut self) -> Option<(LinkId, IpAddr)> {
        let (link, neighbour) = self.ip.paths_mut().take_resolved()?;
        self.replies.wake(link);
        Some((link, neighbour))
    }
    /// Checks a thawed network.
    #[cfg(feature = "freeze")]
    pub(crate) fn thaw(
        &mut self,
        act: inhost_buf::freeze::ThawPacket<'_>,
    ) -> Result<(), inhost_base::freeze::Invalid> {
        self.ip.thaw(self.links.len(), act)
    }
}
