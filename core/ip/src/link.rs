//! One link at work: its interface, its addresses, and the routes that they change.

pub(crate) mod arp;
mod igmp;
mod mld;
pub(crate) mod ndp;
mod timeout;

use crate::address_state::Assigned;
use crate::ident::write_address;
use crate::interface::Interface;
use crate::routing::{Route, RouteOrigin, Routing};
use crate::{ConfigureError, IpEnvironment, scope};
use alloc::vec::Vec;
use inhost_base::{Cidr, IpAddr, Ipv6Addr, SipKey};
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
    pub(crate) fn assign(
        &mut self,
        assigned: Assigned,
        connects: bool,
        env: &mut IpEnvironment<'_>,
    ) -> Result<(), ConfigureError> {
        let Link { interface, routing, .. } = self;
        let (cidr, link) = (assigned.cidr(), interface.link());
        interface.assign(assigned, env.now(), env.random())?;
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
        let gone = self.interface.unassign(address)?.cidr();
        let is_same =
            |cidr: Cidr| cidr.network() == gone.network() && cidr.prefix_bits() == gone.prefix_bits();
        if let IpAddr::V6(v6) = address {
            self.leave_group(solicited_node_multicast(v6).into(), env).ok();
        }
        let Link { interface, routing, .. } = self;
        if !interface.addresses().iter().any(|other| is_same(other.cidr())) {
            let link = interface.link();
            routing.remove_where(|route| {
                route.link == link && route.origin == RouteOrigin::Connected && is_same(route.destination)
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
        let hash = self.stable_key.hash(prefix, &self.interface.config().name, attempts);
        let bits = u128::from(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0)) | u128::from(hash);
        let address = IpAddr::V6(Ipv6Addr::from(bits));
        let assigned = Assigned::stable(Cidr::new(address, 64).ok()?, attempts);
        let connects = scope::is_link_local(address);
        self.assign(assigned, connects, env).ok().map(|()| address)
    }
    /// Undoes one [`Interface::join_group`].
    pub(crate) fn leave_group(
        &mut self,
        group: IpAddr,
        env: &mut IpEnvironment<'_>,
    ) -> Result<(), ConfigureError> {
        if self.interface.leave_group(group, env.now())? {
            match group {
                IpAddr::V4(group) => igmp::send_leave(self.interface, group, env.pool()),
                IpAddr::V6(group) => mld::send_done(self.interface, group, env.pool()),
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
