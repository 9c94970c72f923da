//! A link as the user of IP sees it.

use crate::address_state::Assigned;
use crate::config::InterfaceConfig;
use crate::counters::InterfaceCounters;
use crate::interface::Interface;
use crate::neighbour::cache::Neighbour;
use alloc::vec::Vec;
use inhost_base::{IpAddr, LinkId};

/// The state of one link: configuration, addresses, neighbours, groups, counters. [`crate::Ip::interface`] gives it.
///
/// ```
/// use inhost_base::{LinkId, Random};
/// use inhost_ip::{Ip, IpConfig};
///
/// let ip = Ip::new(IpConfig::default(), &mut Random::from_number(1));
/// let loopback = ip.interface(LinkId(0)).unwrap();
/// assert_eq!((loopback.addresses().len(), loopback.neighbours().len()), (2, 0));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct InterfaceView<'a> {
    interface: &'a Interface,
}

impl<'a> InterfaceView<'a> {
    pub(crate) fn new(interface: &'a Interface) -> InterfaceView<'a> {
        InterfaceView { interface }
    }
    /// The number of the link.
    pub fn link(self) -> LinkId {
        self.interface.link()
    }
    /// The configuration in force.
    pub fn config(self) -> &'a InterfaceConfig {
        self.interface.config()
    }
    /// The addresses, in the order in which they came.
    pub fn addresses(self) -> &'a [Assigned] {
        self.interface.addresses()
    }
    /// The neighbours, by address.
    pub fn neighbours(self) -> Vec<Neighbour> {
        self.interface.neighbours()
    }
    /// The groups that are listened to.
    pub fn groups(self) -> Vec<IpAddr> {
        self.interface.groups()
    }
    /// The counters.
    pub fn counters(self) -> &'a InterfaceCounters {
        self.interface.counters()
    }
    /// Whether a router of the link has last advertised that configuration is available by DHCPv6 (RFC 4861 §4.2: its
    /// M or O flag).
    pub fn is_dhcpv6_advertised(self) -> bool {
        self.interface.is_dhcpv6_advertised()
    }
}
