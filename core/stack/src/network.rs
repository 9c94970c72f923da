//! What sockets stand upon: IP, and the links with their counters and the replies that wait to leave.

use crate::links::Links;
use inhost_base::{Instant, IpAddr, LinkId, Random, RateLimit};
use inhost_ip::{ConfigureError, InterfaceConfig, Ip, IpEnvironment};

/// The network as a host's sockets use it.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Network {
    ip: Ip,
    links: Links,
    /// On resets in answer to segments for which there is no connection.
    reset_limit: RateLimit,
}

impl Network {
    /// The loopback alone.
    pub(crate) fn new(ip: Ip, resets_per_second: u32, now: Instant) -> Network {
        Network { ip, links: Links::new(), reset_limit: RateLimit::per_second(resets_per_second, now) }
    }
    /// Adds a link.
    pub(crate) fn add_link(
        &mut self,
        config: InterfaceConfig,
        environment: &mut IpEnvironment<'_>,
    ) -> Result<LinkId, ConfigureError> {
        let (gso, gro) = (config.gso, config.gro);
        let link = self.ip.add_interface(config, environment)?;
        self.links.add(link, gso, gro);
        Ok(link)
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
    /// Whether the rate allows a reset in answer to a segment.
    pub(crate) fn admits_reset(&mut self, now: Instant, random: &mut Random) -> bool {
        self.reset_limit.admit_blurred(now, random)
    }
    /// Whether packets of IP's own wait for `link`, and whether replies do.
    pub(crate) fn waiting(&self, link: LinkId) -> (bool, bool) {
        (self.ip.wants_transmit(link), self.links.has_replies(link))
    }
    /// Whether an address is the broadcast address of some link.
    pub(crate) fn is_broadcast_somewhere(&self, address: IpAddr) -> bool {
        self.links.ids().any(|link| self.ip.paths().is_broadcast(link, address))
    }
    /// Lets those replies try again that wait for a neighbour, of which one is resolved now, or known not to answer.
    pub(crate) fn take_resolved(&mut self) -> Option<(LinkId, IpAddr)> {
        let (link, neighbour) = self.ip.paths_mut().take_resolved()?;
        self.links.wake_replies(link);
        Some((link, neighbour))
    }
    /// Checks a thawed network.
    #[cfg(feature = "freeze")]
    pub(crate) fn thaw(&mut self, act: crate::ThawPacket<'_>) -> Result<(), crate::Invalid> {
        self.ip.thaw(self.links.len(), act)
    }
}
