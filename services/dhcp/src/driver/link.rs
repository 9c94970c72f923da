//! One link of a host: its clients, and what was done to it for them.

use super::View;
use crate::client::{Client, Config, Remembered};
use crate::identity::{Duid, Identity};
use crate::lease::Settings;
use crate::stateless::{Information, Stateless};
use inhost_base::{Cidr, HardwareAddress, Instant, IpAddr, LinkId};
use inhost_ip::{AddressState, InterfaceView, PREFERENCE_LEASED, Route, RouteOrigin};
use inhost_socket::Host;
use inhost_stack::Medium;

/// It.
pub(super) struct Link {
    pub id: LinkId,
    pub name: String,
    card: HardwareAddress,
    /// The link's own, which a lease may make less.
    mtu_bytes: u16,
    /// `None` until what is kept was read.
    pub clients: Option<Clients>,
    /// Addresses that were given to the link, and whether it is known that they are ours.
    addresses: Vec<(Cidr, bool)>,
    settings: Option<Settings>,
    pub refused: u64,
}

/// The two machines.
pub(super) struct Clients {
    pub v4: Client,
    pub v6: Stateless,
}

/// Result of duplicate address detection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    Settled(IpAddr),
    Conflict(IpAddr),
}

impl Link {
    /// The link `id` of `host`; `None` when it has no card.
    pub fn find(host: &Host, id: LinkId) -> Option<Link> {
        host.with_stack(|stack, _| {
            let config = stack.ip().interface(id)?.config();
            let Medium::Ethernet(card) = config.medium else { return None };
            let (name, mtu_bytes) = (config.name.clone(), config.mtu_bytes);
            let (clients, settings) = (None, None);
            Some(Link { id, name, card, mtu_bytes, clients, addresses: Vec::new(), settings, refused: 0 })
        })
    }
    /// Starts the clients.
    pub fn begin(
        &mut self,
        duid: &Duid,
        host_name: Option<&str>,
        remembered: Remembered,
        now: Instant,
        word: u64,
    ) {
        let identity = Identity::new(duid.clone(), &self.name);
        let host_name = host_name.map(str::to_owned);
        let config = Config { longest_bytes: self.mtu_bytes, host_name, ..Config::new(self.card, &identity) };
        let v4 = Client::new(config, remembered, now, word);
        self.clients = Some(Clients { v4, v6: Stateless::new(duid.clone()) });
    }
    /// When a client has something to do.
    pub fn deadline(&self) -> Instant {
        self.clients
            .as_ref()
            .map_or(Instant::FAR_FUTURE, |clients| clients.v4.deadline().min(clients.v6.deadline()))
    }
    /// Lease configuration in force.
    pub fn settings(&self) -> Option<&Settings> {
        self.settings.as_ref()
    }
    /// What DHCPv6 has said.
    pub fn information(&self) -> Option<&Information> {
        self.clients.as_ref()?.v6.information()
    }
    pub fn has_address(&self) -> bool {
        self.addresses.iter().any(|&(_, settled)| settled)
    }
    pub fn view(&self, now: Instant) -> View {
        let status = self.clients.as_ref().map(|clients| clients.v4.status());
        let lease = status.as_ref().and_then(|status| status.lease.cloned());
        let until = |at: Instant| (at != Instant::FAR_FUTURE).then(|| at.since(now));
        let information = self.information().cloned().unwrap_or_default();
        View {
            link: self.id,
            state: status.as_ref().map_or("init", |status| status.state),
            expires_in: lease.as_ref().and_then(|lease| until(lease.expires_at())),
            renews_in: lease.as_ref().and_then(|lease| until(lease.renew_at())),
            lease,
            link_local: status.and_then(|status| status.link_local),
            stateless: self.clients.as_ref().map_or("off", |clients| clients.v6.state()),
            name_servers_v6: information.name_servers,
            search_v6: information.search,
            refused: self.refused,
        }
    }

    /// Gives the link an address; false when it cannot have it.
    pub fn assign(&mut self, host: &Host, address: Cidr) -> bool {
        let id = self.id;
        let added = host.with_stack_and_sink(|stack, now, sink| {
            stack.with_ip(now, sink, |ip, env| ip.add_leased_address(id, address, env))
        });
        self.addresses.push((address, false));
        added.is_ok()
    }
    pub fn unassign(&mut self, host: &Host, address: IpAddr) {
        let id = self.id;
        self.addresses.retain(|(own, _)| own.address() != address);
        host.with_stack_and_sink(|stack, now, sink| {
            // One that could not be given is not there.
            let _ = stack.with_ip(now, sink, |ip, env| ip.remove_address(id, address, env));
        });
    }
    /// Address results since the last call.
    pub fn verdicts(&mut self, host: &Host) -> Vec<Verdict> {
        let id = self.id;
        let mut verdicts = Vec::new();
        host.with_stack(|stack, _| {
            let there = stack.ip().interface(id).map_or(&[][..], InterfaceView::addresses);
            for (cidr, settled) in &mut self.addresses {
                let address = cidr.address();
                let Some(assigned) = there.iter().find(|assigned| assigned.address() == address) else {
                    continue;
                };
                match assigned.state() {
                    AddressState::Tentative => {}
                    AddressState::Duplicate => verdicts.push(Verdict::Conflict(address)),
                    AddressState::Preferred | AddressState::Deprecated => {
                        if !core::mem::replace(settled, true) {
                            verdicts.push(Verdict::Settled(address));
                        }
                    }
                }
            }
        });
        verdicts
    }
    /// Puts the settings of a lease in force, or takes them back.
    pub fn configure(&mut self, host: &Host, settings: Option<Settings>) {
        let (id, own_mtu_bytes) = (self.id, self.mtu_bytes);
        host.with_stack(|stack, _| {
            let ip = stack.ip_mut();
            let of_lease = |route: &&Route| route.link == id && route.origin == RouteOrigin::Leased;
            let old: Vec<Route> = ip.paths().routes().iter().filter(of_lease).copied().collect();
            for route in &old {
                // It was in the list a moment ago.
                let _ = ip.remove_route(route);
            }
            let wanted = settings.as_ref().map_or(&[][..], |settings| &settings.routes);
            for (place, leased) in wanted.iter().enumerate() {
                let route = Route {
                    destination: leased.destination,
                    link: id,
                    gateway: leased.gateway.map(IpAddr::V4),
                    preference: PREFERENCE_LEASED + place as u32,
                    origin: RouteOrigin::Leased,
                };
                let is_same = |other: &Route| {
                    other.destination == route.destination
                        && other.link == id
                        && other.gateway == route.gateway
                };
                // Configured routes stay, and invalid routes are ignored.
                if !ip.paths().routes().iter().any(is_same) {
                    let _ = ip.add_route(route);
                }
            }
            let mtu_bytes = settings.as_ref().and_then(|settings| settings.mtu_bytes);
            // A link that speaks IPv6 refuses less than 1280, and keeps its own then.
            let _ = ip.set_mtu(id, mtu_bytes.unwrap_or(own_mtu_bytes).min(own_mtu_bytes));
        });
        self.settings = settings;
    }
    /// The address from which DHCPv6 may ask, when a router says that there is something to ask for.
    pub fn asks_v6_from(&self, host: &Host) -> Option<IpAddr> {
        host.with_stack(|stack, _| {
            let link = stack.ip().interface(self.id)?;
            let is_local = |address: IpAddr| matches!(address, IpAddr::V6(a) if a.is_unicast_link_local());
            let usable = link.addresses().iter().find(|own| own.is_usable() && is_local(own.address()))?;
            link.is_dhcpv6_advertised().then(|| usable.address())
        })
    }
}
