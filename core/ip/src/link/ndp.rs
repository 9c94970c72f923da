//! Neighbour discovery (RFC 4861) and stateless address autoconfiguration (RFC 4862): the host part.

use super::Link;
use crate::address_state::{AddressOrigin, Assigned};
use crate::arrival::Arrival;
use crate::interface::Interface;
use crate::neighbour::cache::Claim;
use crate::routing::advertised::end_of;
use crate::{IpEnvironment, scope};
use inhost_base::{Cidr, HardwareAddress, IpAddr, Ipv6Addr};
use inhost_buf::{Packet, Pool};
use inhost_event::Drop;
use inhost_wire::ethernet::EtherType;
use inhost_wire::icmpv6::Icmpv6Message;
use inhost_wire::ipv6::{self, Ipv6Header};
use inhost_wire::ndp::{self, NdpMessage, NdpOptions, PrefixInformation, solicited_node_multicast};
use inhost_wire::protocol;

/// Addresses that were taken by others before no other is made (RFC 7217 §6 `IDGEN_RETRIES`).
const STABLE_ATTEMPTS: u8 = 3;

/// A message as a packet, with the hop limit that proves that it comes from this link; `None` without memory.
fn compose(
    interface: &mut Interface,
    source: Ipv6Addr,
    destination: Ipv6Addr,
    message: NdpMessage<'_>,
    pool: &mut Pool,
) -> Option<Packet> {
    let message = Icmpv6Message::Ndp(message);
    let length = message.length();
    let mut packet = interface.take_packet(ipv6::LENGTH + length, pool)?;
    let header = Ipv6Header {
        hop_limit: ndp::HOP_LIMIT,
        ..Ipv6Header::new(source, destination, protocol::ICMPV6, length as u16)
    };
    packet.append_with(|into| header.emit(into));
    packet.append_with(|into| message.emit(source, destination, into));
    Some(packet)
}

/// Queues a message for a card.
fn send(
    interface: &mut Interface,
    source: Ipv6Addr,
    destination: Ipv6Addr,
    message: NdpMessage<'_>,
    to: HardwareAddress,
    pool: &mut Pool,
) {
    if let Some(packet) = compose(interface, source, destination, message, pool) {
        interface.push_frame(packet, EtherType::IPV6, to, pool);
    }
}

/// To a multicast group.
fn send_to_group(
    interface: &mut Interface,
    source: Ipv6Addr,
    group: Ipv6Addr,
    message: NdpMessage<'_>,
    pool: &mut Pool,
) {
    send(interface, source, group, message, scope::group_hardware(group.into()), pool);
}

/// Asks where `target` is: its group, or the card where it was.
// spec: RFC4861 7.2.2
pub(crate) fn send_solicitation(
    interface: &mut Interface,
    target: Ipv6Addr,
    at: Option<HardwareAddress>,
    pool: &mut Pool,
) {
    let chosen = crate::select::select_source(interface, target.into(), None).map(|a| a.address());
    let Some(IpAddr::V6(source)) = chosen.or_else(|| interface.link_local().map(IpAddr::V6)) else { return };
    let options = NdpOptions { source_link_layer: interface.hardware(), ..NdpOptions::default() };
    let message = NdpMessage::NeighbourSolicitation { target, options };
    match at {
        Some(hardware) => send(interface, source, target, message, hardware, pool),
        None => send_to_group(interface, source, solicited_node_multicast(target), message, pool),
    }
}

/// Asks whether anybody has `target`.
// spec: RFC4862 5.4.2
pub(crate) fn send_duplicate_test(interface: &mut Interface, target: Ipv6Addr, pool: &mut Pool) {
    let message = NdpMessage::NeighbourSolicitation { target, options: NdpOptions::default() };
    let group = solicited_node_multicast(target);
    send_to_group(interface, Ipv6Addr::UNSPECIFIED, group, message, pool);
}

/// Sends an unsolicited advertisement of `target` to all nodes.
// spec: RFC4861 7.2.6
pub(crate) fn send_defence(interface: &mut Interface, target: Ipv6Addr, pool: &mut Pool) {
    let message = advertisement(interface, target, false);
    send_to_group(interface, target, scope::ALL_NODES, message, pool);
}

fn advertisement(interface: &Interface, target: Ipv6Addr, solicited: bool) -> NdpMessage<'static> {
    let options = NdpOptions { target_link_layer: interface.hardware(), ..NdpOptions::default() };
    let router = interface.is_router();
    NdpMessage::NeighbourAdvertisement { router, solicited, override_cache: true, target, options }
}

/// Asks for routers when that is due.
// spec: RFC4861 6.3.7
pub(crate) fn solicit_routers(interface: &mut Interface, env: &mut IpEnvironment<'_>) {
    if !interface.solicits_routers(env.now()) {
        return;
    }
    let source = interface.link_local().unwrap_or(Ipv6Addr::UNSPECIFIED);
    let source_link_layer = interface.hardware().filter(|_| !source.is_unspecified());
    let options = NdpOptions { source_link_layer, ..NdpOptions::default() };
    let message = NdpMessage::RouterSolicitation { options };
    send_to_group(interface, source, scope::ALL_ROUTERS, message, env.pool());
}

impl Link<'_> {
    /// Takes a message of neighbour discovery.
    // spec: RFC4861 6.1, 7.1, 8.1, RFC6980 5
    pub(crate) fn receive_ndp(
        &mut self,
        arrival: &Arrival,
        (source, destination): (Ipv6Addr, Ipv6Addr),
        message: &NdpMessage<'_>,
        env: &mut IpEnvironment<'_>,
    ) -> Result<(), Drop> {
        let is_acceptable = message.acceptable(arrival.hop_limit, source, destination).is_ok();
        if arrival.was_fragmented || !is_acceptable {
            return Err(Drop::NotCredible);
        }
        let claims_group = [message.options().source_link_layer, message.options().target_link_layer]
            .into_iter()
            .flatten()
            .any(|hardware| !hardware.is_unicast());
        if claims_group {
            return Err(Drop::NotCredible);
        }
        match message {
            NdpMessage::NeighbourSolicitation { target, options } => {
                self.receive_solicitation(source, *target, options, env)
            }
            NdpMessage::NeighbourAdvertisement { .. } => self.receive_advertisement(message, env),
            NdpMessage::RouterAdvertisement { .. } => self.receive_router(source.into(), message, env),
            // Redirects are verified elsewhere. As a router we send no advertisements (RFC 4861 §6.2.1 allows that).
            NdpMessage::Redirect { .. } | NdpMessage::RouterSolicitation { .. } => Ok(()),
        }
    }
    // spec: RFC4861 7.2.3, 7.2.4, RFC4862 5.4.3
    fn receive_solicitation(
        &mut self,
        source: Ipv6Addr,
        target: Ipv6Addr,
        options: &NdpOptions<'_>,
        env: &mut IpEnvironment<'_>,
    ) -> Result<(), Drop> {
        let interface = &mut *self.interface;
        let Some(assigned) = interface.assigned(target.into()) else { return Err(Drop::NotForUs) };
        let (is_tested, is_usable) = (assigned.is_tested(), assigned.is_usable());
        if is_tested && source.is_unspecified() {
            self.address_conflict(target.into(), env);
            return Ok(());
        }
        if !is_usable {
            return Err(Drop::NotForUs);
        }
        if source.is_unspecified() {
            send_defence(interface, target, env.pool());
            return Ok(());
        }
        if let Some(hardware) = options.source_link_layer
            && interface.is_on_link(source.into())
        {
            interface.claim(source.into(), Claim::of_option(hardware, None), env.now());
        }
        let message = advertisement(interface, target, true);
        if let Some(hardware) = options.source_link_layer {
            send(interface, target, source, message, hardware, env.pool());
        } else if let Some(packet) = compose(interface, target, source, message, env.pool()) {
            // It gave no link-layer address; the answer waits for resolution.
            interface.push_packet(source.into(), packet, env.now(), env.pool());
        }
        Ok(())
    }
    // spec: RFC4861 7.2.5, RFC4862 5.4.4
    fn receive_advertisement(
        &mut self,
        message: &NdpMessage<'_>,
        env: &mut IpEnvironment<'_>,
    ) -> Result<(), Drop> {
        let NdpMessage::NeighbourAdvertisement { router, solicited, override_cache, target, options } =
            *message
        else {
            return Err(Drop::NotCredible);
        };
        let interface = &mut *self.interface;
        let address = IpAddr::V6(target);
        if interface.assigned(address).is_some() {
            self.address_conflict(address, env);
            return Ok(());
        }
        if !interface.has_neighbour(address) {
            // An unsolicited advertisement creates no entry.
            return Err(Drop::NotCredible);
        }
        let claim = Claim {
            hardware: options.target_link_layer,
            solicited,
            overrides: override_cache,
            is_router: Some(router),
            creates: false,
        };
        interface.claim(address, claim, env.now());
        // A neighbour that advertises that it is not a router is not a gateway any more.
        if !router && self.routing.forget_router(interface.link(), address) {
            self.routing.changed();
        }
        Ok(())
    }
    // spec: RFC4861 6.3.4
    fn receive_router(
        &mut self,
        router: IpAddr,
        message: &NdpMessage<'_>,
        env: &mut IpEnvironment<'_>,
    ) -> Result<(), Drop> {
        let NdpMessage::RouterAdvertisement { router_lifetime_s, options, .. } = message else {
            return Err(Drop::NotCredible);
        };
        let Link { interface, routing, .. } = self;
        if interface.take_advertisement(message, env.random()).ok_or(Drop::NotCredible)? {
            routing.changed();
        }
        if let Some(hardware) = options.source_link_layer {
            interface.claim(router, Claim::of_option(hardware, Some(true)), env.now());
        }
        routing.learn_router(interface.link(), router, *router_lifetime_s, env.now());
        for prefix in options.prefixes.iter() {
            self.learn_prefix(router, prefix, env);
        }
        Ok(())
    }
    // spec: RFC4861 6.3.4, RFC4862 5.5.3
    fn learn_prefix(&mut self, router: IpAddr, prefix: &PrefixInformation, env: &mut IpEnvironment<'_>) {
        let is_wrong = prefix.prefix.is_unicast_link_local()
            || !scope::is_unicast(prefix.prefix.into())
            || prefix.prefix_bits == 0
            || prefix.preferred_lifetime_s > prefix.valid_lifetime_s;
        if is_wrong {
            return;
        }
        if prefix.on_link {
            self.routing.learn_prefix(self.interface.link(), prefix, env.now());
        }
        if prefix.autonomous && prefix.prefix_bits == 64 {
            self.learn_autonomous(router, prefix, env);
        }
    }
    // spec: RFC4862 5.5.3
    fn learn_autonomous(&mut self, router: IpAddr, prefix: &PrefixInformation, env: &mut IpEnvironment<'_>) {
        let now = env.now();
        let (preferred_until, valid_until) =
            (end_of(prefix.preferred_lifetime_s, now), end_of(prefix.valid_lifetime_s, now));
        let Ok(network) = Cidr::new(prefix.prefix, 64) else { return };
        if self.interface.renew_autoconfigured(network, preferred_until, valid_until, now) {
            return;
        }
        if prefix.valid_lifetime_s == 0 {
            return;
        }
        let Some(address) = self.make_stable_address(prefix.prefix, 0, env) else { return };
        if let Some(assigned) = self.interface.assigned_mut(address) {
            assigned.set_router(Some(router));
            assigned.set_lifetimes(preferred_until, valid_until, now);
        }
    }
    /// A stable address is a duplicate: another is made, a limited number of times.
    // spec: RFC7217 6
    pub(crate) fn try_next_stable(&mut self, lost: Assigned, env: &mut IpEnvironment<'_>) {
        let IpAddr::V6(address) = lost.address() else { return };
        if lost.origin() != AddressOrigin::Autoconfigured || lost.attempts() >= STABLE_ATTEMPTS {
            return;
        }
        if self.remove_address(lost.address(), env).is_err() {
            return;
        }
        let Some(next) = self.make_stable_address(address, lost.attempts() + 1, env) else { return };
        if let Some(assigned) = self.interface.assigned_mut(next) {
            assigned.set_router(lost.router());
            assigned.set_lifetimes(lost.preferred_until(), lost.valid_until(), env.now());
        }
    }
}
