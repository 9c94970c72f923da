//! One link at work: its interface, its addresses, and the routes that they change.

pub(crate) mod arp;
mod igmp;
mod mld;
pub(crate) mod ndp;
mod timeout;

use crate::address_state::Assigned;
use crate::ident::write_address;
use crate::interface::{DuplicateDetection, Interface};
use crate::routing::{Route, RouteOrigin, Routing};
use crate::{ConfigureError, IpEnvironment, scope};
use alloc::vec::Vec;
use inhost_base::{Cidr, Instant, IpAddr, Ipv6Addr, SipKey};
use inhost_wire::ndp::solicited_node_multicast;

/// One link's interface with the state of the host that its addresses and routers change. Address assignment, ARP and
/// neighbour discovery need no more of [`crate::Ip`].
pub(crate) struct Link<'a> {
    interface: &'a mut Interface,
    routing: &'a mut Routing,
    stable_key: &'a StableKey,
}

impl<'a> Link<'a> {
    pub(crate) fn new(
        interface: &'a mut Interface,
        routing: &'a mut Routing,
        stable_key: &'a StableKey,
    ) -> Self {
        Link { interface, routing, stable_key }
    }
    pub(crate) fn interface_mut(&mut self) -> &mut Interface {
        self.interface
    }
    /// Adds an address. With `connects` its prefix is on the link.
    // spec: RFC5227 2.1, RFC4862 5.4
    pub(crate) fn assign(
        &mut self,
        mut assigned: Assigned,
        connects: bool,
        env: &mut IpEnvironment<'_>,
    ) -> Result<(), ConfigureError> {
        let (cidr, address) = (assigned.cidr(), assigned.address());
        let Link { interface, routing, .. } = self;
        let link = interface.link;
        // spec: RFC1122 3.2.1.3-5, 3.2.2.9-1, 3.2.2.9-3, 3.3.1.6-1
        let is_wrong = !scope::is_unicast(address)
            || scope::is_loopback(address) != interface.is_loopback()
            || address.is_ipv6() && !interface.config.ipv6
            || address.is_ipv4()
                && cidr.prefix_bits() < 31
                && (cidr.network() == address || cidr.broadcast().map(IpAddr::V4) == Some(address));
        if is_wrong {
            return Err(ConfigureError::Invalid);
        }
        if interface.assigned(address).is_some() {
            return Err(ConfigureError::Exists);
        }
        if !interface.has_address_room() {
            return Err(ConfigureError::Limit);
        }
        if let IpAddr::V6(v6) = address {
            interface.groups.join(solicited_node_multicast(v6).into(), env.now())?;
        }
        match (interface.hardware(), interface.config.duplicate_detection) {
            (None, _) => {}
            (Some(_), DuplicateDetection::Off) => assigned.announce(env.now()),
            (Some(_), how) => {
                assigned.test(how == DuplicateDetection::BeforeUse, env.now(), env.random());
            }
        }
        interface.addresses.push(assigned);
        if connects {
            let network =
                Cidr::new(cidr.network(), cidr.prefix_bits()).map_err(|_| ConfigureError::Invalid)?;
            let route = Route {
                destination: network,
                link,
                gateway: None,
                preference: 0,
                origin: RouteOrigin::Connected,
            };
            if !routing.add(route) {
                return Err(ConfigureError::Limit);
            }
        }
        routing.changed();
        Ok(())
    }
    /// Removes an address. Connections that use it are not notified; they no longer get a path.
    pub(crate) fn remove_address(
        &mut self,
        address: IpAddr,
        env: &mut IpEnvironment<'_>,
    ) -> Result<(), ConfigureError> {
        let Link { interface, routing, .. } = self;
        let link = interface.link;
        let at = interface
            .addresses
            .iter()
            .position(|assigned| assigned.address() == address)
            .ok_or(ConfigureError::Absent)?;
        let gone = interface.addresses.remove(at);
        let still = interface.addresses.iter().any(|other| {
            other.cidr().network() == gone.cidr().network()
                && other.cidr().prefix_bits() == gone.cidr().prefix_bits()
        });
        if let IpAddr::V6(v6) = address {
            interface.leave_group(solicited_node_multicast(v6).into(), env).ok();
        }
        if !still {
            routing.remove_where(|route| {
                route.link == link
                    && route.origin == RouteOrigin::Connected
                    && route.destination.network() == gone.cidr().network()
                    && route.destination.prefix_bits() == gone.cidr().prefix_bits()
            });
        }
        routing.changed();
        Ok(())
    }
    /// Makes a stable address under a /64 prefix (RFC 7217): the same on each visit to a network, different on every
    /// network, and independent of the hardware address. `attempts` counts the addresses that were in use already.
    // spec: RFC7217 5
    pub(crate) fn make_stable_address(
        &mut self,
        prefix: Ipv6Addr,
        attempts: u8,
        env: &mut IpEnvironment<'_>,
    ) -> Option<IpAddr> {
        let [a, b, c, d, ..] = prefix.segments();
        let hash = self.stable_key.hash(prefix, &self.interface.config.name, attempts);
        let bits = u128::from(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0)) | u128::from(hash);
        let address = IpAddr::V6(Ipv6Addr::from(bits));
        let assigned = Assigned::stable(Cidr::new(address, 64).ok()?, attempts);
        let connects = scope::is_link_local(address);
        self.assign(assigned, connects, env).ok().map(|()| address)
    }
    /// An address whose lifetime has ended.
    pub(crate) fn expired_address(&self, now: Instant) -> Option<IpAddr> {
        self.interface.addresses.iter().find(|assigned| assigned.valid_until() <= now).map(Assigned::address)
    }
}

impl Interface {
    /// Joins a group; calls add up.
    pub(crate) fn join_group(&mut self, group: IpAddr, now: Instant) -> Result<(), ConfigureError> {
        if group.is_ipv6() && !self.config.ipv6 {
            return Err(ConfigureError::Invalid);
        }
        self.groups.join(group, now)
    }
    /// Undoes one [`Interface::join_group`].
    pub(crate) fn leave_group(
        &mut self,
        group: IpAddr,
        env: &mut IpEnvironment<'_>,
    ) -> Result<(), ConfigureError> {
        if self.groups.leave(group, env.now())? {
            match group {
                IpAddr::V4(group) => igmp::send_leave(self, group, env.pool()),
                IpAddr::V6(group) => mld::send_done(self, group, env.pool()),
            }
        }
        Ok(())
    }
}

/// Inputs of stable addresses (RFC 7217).
#[derive(Clone, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct StableKey {
    key: SipKey,
    secret: Option<[u8; 16]>,
}

impl StableKey {
    pub(crate) fn new(key: SipKey, secret: Option<[u8; 16]>) -> StableKey {
        StableKey { key, secret }
    }
    #[cfg(feature = "freeze")]
    pub(crate) fn rekey(&mut self, key: SipKey) {
        self.key = key;
    }
    fn hash(&self, prefix: Ipv6Addr, name: &str, attempts: u8) -> u64 {
        let mut bytes = Vec::with_capacity(64);
        bytes.extend_from_slice(self.secret.as_ref().map_or(&[], |secret| secret.as_slice()));
        let mut octets = [0; 16];
        write_address(&mut octets, IpAddr::V6(prefix));
        bytes.extend_from_slice(&octets);
        bytes.push(attempts);
        bytes.extend_from_slice(name.as_bytes());
        match self.secret {
            // With a secret of the owner's the key must not be this start's.
            Some(_) => keyed_by_secret(&bytes),
            None => self.key.hash(&bytes),
        }
    }
}

/// A hash of bytes that begin with a secret of 16.
fn keyed_by_secret(bytes: &[u8]) -> u64 {
    use core::hash::Hasher;
    let mut key = [0; 16];
    inhost_buf::copy(&mut key, bytes);
    let mut hasher = siphasher::sip::SipHasher24::new_with_key(&key);
    hasher.write(bytes.get(16..).unwrap_or(&[]));
    hasher.finish()
}
