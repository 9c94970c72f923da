//! Configuration calls: links, addresses, routes, gateways, groups.

use crate::address_state::{AddressOrigin, Assigned};
use crate::config::{InterfaceConfig, LEAST_MTU_BYTES, Medium};
use crate::ident::Identifications;
use crate::input::Input;
use crate::interface::{Interface, Interfaces};
use crate::link::StableKey;
use crate::output::Output;
use crate::output::limits::ErrorLimits;
use crate::paths::Paths;
use crate::reassembly::Reassembly;
use crate::routing::{PREFERENCE_CONFIGURED, Route, RouteOrigin, Routing};
use crate::table::Keyed;
use crate::{ConfigureError, Ip, IpConfig, IpEnvironment, limits, scope};
use inhost_base::{Cidr, IpAddr, Ipv4Addr, Ipv6Addr, LinkId, Random};
use inhost_buf::Pool;

impl Ip {
    /// A host with nothing but its loopback, link 0, which has 127.0.0.1 and ::1.
    pub fn new(config: IpConfig, random: &mut Random) -> Ip {
        let keyed = Keyed::new(random);
        let routing = Routing::new(config.forwarding.is_some(), keyed);
        let reassembly = Reassembly::new(keyed);
        let identifications = Identifications::new(random);
        let stable_key = StableKey::new(random.private_key(), config.stable_secret);
        let paths = Paths::new(Interfaces::new(Interface::loopback(keyed)), routing, stable_key);
        let error_limits = ErrorLimits::new(config.errors_each, keyed);
        Ip {
            output: Output::new(paths, identifications, error_limits, config.errors_have_precedence),
            input: Input::new(&config, reassembly),
            hop_limit: config.hop_limit.max(1),
            keyed,
        }
    }
    /// Adds a link. Its first frames (address tests, solicitations, reports) come out of [`Ip::transmit`].
    pub fn add_interface(
        &mut self,
        config: InterfaceConfig,
        env: &mut IpEnvironment<'_>,
    ) -> Result<LinkId, ConfigureError> {
        if self.paths().interfaces().len() >= limits::INTERFACES {
            return Err(ConfigureError::Limit);
        }
        if config.mtu_bytes < LEAST_MTU_BYTES || config.medium == Medium::Loopback {
            return Err(ConfigureError::Invalid);
        }
        let link = LinkId(self.paths().interfaces().len() as u16);
        let (addresses, gateways) = (config.addresses.clone(), config.gateways.clone());
        let is_router = self.paths().is_router();
        let interface = Interface::new(link, config, self.hop_limit, is_router, self.keyed);
        self.paths_mut().interfaces_mut().push(interface);
        let configured = self.set_up(link, &addresses, &gateways, env);
        if let Err(error) = configured {
            self.paths_mut().routing_mut().remove_where(|route| route.link == link);
            self.paths_mut().changed();
            if let Some(mut interface) = self.paths_mut().interfaces_mut().pop() {
                interface.clear(env.pool());
            }
            return Err(error);
        }
        self.paths_mut().run_actions(link, env);
        Ok(link)
    }
    fn set_up(
        &mut self,
        link: LinkId,
        addresses: &[Cidr],
        gateways: &[IpAddr],
        env: &mut IpEnvironment<'_>,
    ) -> Result<(), ConfigureError> {
        let Some(interface) = self.paths_mut().interface_mut(link) else {
            return Err(ConfigureError::NoLink);
        };
        let InterfaceConfig { ipv6, link_local, .. } = *interface.config();
        interface.start(env.now(), env.random())?;
        for address in addresses {
            self.add_address(link, *address, env)?;
        }
        let has_link_local =
            addresses.iter().any(|cidr| cidr.address().is_ipv6() && scope::is_link_local(cidr.address()));
        if ipv6 && link_local && !has_link_local {
            let prefix = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0);
            if let Some(mut link) = self.paths_mut().link(link) {
                link.make_stable_address(prefix, 0, env);
            }
        }
        for (index, gateway) in gateways.iter().enumerate() {
            self.add_gateway(link, *gateway, PREFERENCE_CONFIGURED + index as u32)?;
        }
        Ok(())
    }
    /// Adds an address and the route to its prefix.
    pub fn add_address(
        &mut self,
        link: LinkId,
        address: Cidr,
        env: &mut IpEnvironment<'_>,
    ) -> Result<(), ConfigureError> {
        let assigned = Assigned::new(address, AddressOrigin::Configured);
        self.paths_mut().link(link).ok_or(ConfigureError::NoLink)?.assign(assigned, true, env)
    }
    /// Adds an address that a server lends, or that was drawn from the link-local block, as [`Ip::add_address`] does. It
    /// is given up when another host insists on it: then it stays, of no use, as [`crate::AddressState::Duplicate`].
    pub fn add_leased_address(
        &mut self,
        link: LinkId,
        address: Cidr,
        env: &mut IpEnvironment<'_>,
    ) -> Result<(), ConfigureError> {
        let assigned = Assigned::new(address, AddressOrigin::Leased);
        self.paths_mut().link(link).ok_or(ConfigureError::NoLink)?.assign(assigned, true, env)
    }
    /// Removes an address. Connections that use it are not notified; they no longer get a path.
    pub fn remove_address(
        &mut self,
        link: LinkId,
        address: IpAddr,
        env: &mut IpEnvironment<'_>,
    ) -> Result<(), ConfigureError> {
        self.paths_mut().link(link).ok_or(ConfigureError::NoLink)?.remove_address(address, env)
    }
    /// Adds a gateway for everything that no other route covers. Those of lower preference are tried first.
    pub fn add_gateway(
        &mut self,
        link: LinkId,
        gateway: IpAddr,
        preference: u32,
    ) -> Result<(), ConfigureError> {
        let everything = match gateway {
            IpAddr::V4(_) => Cidr::new(Ipv4Addr::UNSPECIFIED, 0),
            IpAddr::V6(_) => Cidr::new(Ipv6Addr::UNSPECIFIED, 0),
        };
        let destination = everything.map_err(|_| ConfigureError::Invalid)?;
        let origin = RouteOrigin::Configured;
        self.add_route(Route { destination, link, gateway: Some(gateway), preference, origin })
    }
    /// Adds a route, or changes the one with the same destination, link and gateway.
    pub fn add_route(&mut self, route: Route) -> Result<(), ConfigureError> {
        let interface = self.paths().interface(route.link).ok_or(ConfigureError::NoLink)?;
        if let Some(gateway) = route.gateway {
            let is_wrong = gateway.is_ipv4() != route.destination.address().is_ipv4()
                || !scope::is_unicast(gateway)
                || scope::is_loopback(gateway)
                || interface.owns(gateway);
            if is_wrong {
                return Err(ConfigureError::Invalid);
            }
        }
        if !self.paths_mut().routing_mut().add(route) {
            return Err(ConfigureError::Limit);
        }
        self.paths_mut().changed();
        Ok(())
    }
    /// Removes the route with the same destination, link and gateway.
    pub fn remove_route(&mut self, route: &Route) -> Result<(), ConfigureError> {
        if !self.paths_mut().routing_mut().remove(route) {
            return Err(ConfigureError::Absent);
        }
        self.paths_mut().changed();
        Ok(())
    }
    /// Listens to a group on a link; calls add up.
    pub fn join_group(
        &mut self,
        link: LinkId,
        group: IpAddr,
        env: &mut IpEnvironment<'_>,
    ) -> Result<(), ConfigureError> {
        self.paths_mut()
            .link(link)
            .ok_or(ConfigureError::NoLink)?
            .interface_mut()
            .join_group(group, env.now())
    }
    /// Takes back one [`Ip::join_group`].
    pub fn leave_group(
        &mut self,
        link: LinkId,
        group: IpAddr,
        env: &mut IpEnvironment<'_>,
    ) -> Result<(), ConfigureError> {
        self.paths_mut().link(link).ok_or(ConfigureError::NoLink)?.leave_group(group, env)
    }
    /// Changes the largest packet that a link takes, IP header included: at least 68, and 1280 where the link speaks
    /// IPv6. Paths are to be asked for anew.
    pub fn set_mtu(&mut self, link: LinkId, mtu_bytes: u16) -> Result<(), ConfigureError> {
        self.paths_mut().interface_mut(link).ok_or(ConfigureError::NoLink)?.set_mtu(mtu_bytes)?;
        self.paths_mut().changed();
        Ok(())
    }
    /// Gives all packet memory back, before the host is dropped.
    pub fn clear(&mut self, pool: &mut Pool) {
        for interface in self.paths_mut().interfaces_mut().iter_mut() {
            interface.clear(pool);
        }
        self.input.clear(pool);
        self.paths_mut().deadline_moved();
    }
}
