//! ARP (RFC 826): requests, replies, cache updates, and address conflict detection (RFC 5227).

use super::Link;
use crate::interface::Interface;
use crate::neighbour::cache::Claim;
use crate::{IpEnvironment, scope};
use inhost_base::{HardwareAddress, Instant, IpAddr, Ipv4Addr};
use inhost_buf::Pool;
use inhost_event::Drop;
use inhost_wire::arp::{self, ArpOperation, ArpPacket, ArpView};
use inhost_wire::ethernet::EtherType;

const NOBODY: HardwareAddress = HardwareAddress([0; 6]);

/// Queues a packet.
fn send(interface: &mut Interface, packet: &ArpPacket, to: HardwareAddress, pool: &mut Pool) {
    let Some(mut frame) = interface.take_packet(arp::LENGTH, pool) else { return };
    frame.append_with(|into| packet.emit(into));
    interface.push_frame(frame, EtherType::ARP, to, pool);
}

/// Asks where `address` is: everyone, or the card where it was (RFC 1122 §2.3.2.1 (2)).
// spec: RFC1122 2.3.3-5; RFC826
pub(crate) fn send_request(
    interface: &mut Interface,
    address: Ipv4Addr,
    at: Option<HardwareAddress>,
    pool: &mut Pool,
) {
    let near = interface.own_ipv4(|assigned| assigned.cidr().contains(address.into()));
    let Some(own) = near.or_else(|| interface.own_ipv4(|_| true)) else { return };
    ask(interface, own, address, at.unwrap_or(HardwareAddress::BROADCAST), pool);
}

/// Asks whether anybody has `address`, without claiming it.
// spec: RFC5227 2.1.1
pub(crate) fn send_probe(interface: &mut Interface, address: Ipv4Addr, pool: &mut Pool) {
    ask(interface, Ipv4Addr::UNSPECIFIED, address, HardwareAddress::BROADCAST, pool);
}

/// States that `address` is ours.
// spec: RFC5227 2.3
pub(crate) fn send_announcement(interface: &mut Interface, address: Ipv4Addr, pool: &mut Pool) {
    ask(interface, address, address, HardwareAddress::BROADCAST, pool);
}

/// Queues a request for `address` in the name of `own`.
fn ask(interface: &mut Interface, own: Ipv4Addr, address: Ipv4Addr, to: HardwareAddress, pool: &mut Pool) {
    let Some(hardware) = interface.hardware() else { return };
    let packet = ArpPacket {
        operation: ArpOperation::Request,
        sender_hardware: hardware,
        sender_protocol: own,
        target_hardware: NOBODY,
        target_protocol: address,
    };
    send(interface, &packet, to, pool);
}

impl Link<'_> {
    /// Takes an ARP packet from the card `from`.
    ///
    /// Cache updates: a request *for us* creates or refreshes the sender's entry; a reply *to us* fills an entry that
    /// we asked for. Nothing else creates an entry, and nothing replaces a known hardware address at once: after a
    /// claim of another address the known one is asked first. So a forger must answer faster than the neighbour, or
    /// silence it.
    // spec: RFC826, RFC5227 2.1.1, 2.4
    pub(crate) fn receive_arp(
        &mut self,
        from: HardwareAddress,
        bytes: &[u8],
        env: &mut IpEnvironment<'_>,
    ) -> Result<(), Drop> {
        let view = ArpView::new(bytes).map_err(|_| Drop::Malformed)?;
        let packet = ArpPacket::parse(&view);
        let interface = &mut *self.interface;
        let own_hardware = interface.hardware().ok_or(Drop::NotForUs)?;
        if packet.sender_hardware == own_hardware {
            // Our own packet, or one with our hardware address: nothing to learn.
            return Ok(());
        }
        let sender = IpAddr::V4(packet.sender_protocol);
        let target = IpAddr::V4(packet.target_protocol);
        let is_probe = packet.sender_protocol.is_unspecified();
        if packet.sender_hardware != from
            || !from.is_unicast()
            || from == NOBODY
            || !is_probe
                && (!scope::is_unicast(sender) || sender.is_loopback() || interface.is_broadcast(sender))
        {
            return Err(Drop::NotCredible);
        }
        if interface.assigned(sender).is_some() {
            self.address_conflict(sender, env);
            return Ok(());
        }
        let is_tested = interface.assigned(target).is_some_and(|assigned| assigned.is_tested());
        if is_probe && is_tested && packet.operation == ArpOperation::Request {
            // Two hosts test one address at the same time: neither may have it.
            self.address_conflict(target, env);
            return Ok(());
        }
        learn(interface, &packet, env.now());
        if interface.owns(target) && packet.operation == ArpOperation::Request {
            let reply = ArpPacket {
                operation: ArpOperation::Reply,
                sender_hardware: own_hardware,
                sender_protocol: packet.target_protocol,
                target_hardware: packet.sender_hardware,
                target_protocol: packet.sender_protocol,
            };
            send(interface, &reply, packet.sender_hardware, env.pool());
        }
        Ok(())
    }
}

/// Updates the cache from a credible packet.
// spec: RFC826
fn learn(interface: &mut Interface, packet: &ArpPacket, now: Instant) {
    let sender = IpAddr::V4(packet.sender_protocol);
    if sender.is_unspecified() {
        return;
    }
    let is_for_us = interface.owns(packet.target_protocol.into());
    let is_request = packet.operation == ArpOperation::Request;
    let claim = Claim {
        hardware: Some(packet.sender_hardware),
        solicited: packet.operation == ArpOperation::Reply
            && Some(packet.target_hardware) == interface.hardware()
            && is_for_us,
        overrides: false,
        is_router: None,
        creates: is_for_us && is_request && interface.is_on_link(sender),
    };
    let is_known = interface.has_neighbour(sender);
    if claim.creates || is_known && (claim.solicited || is_request) {
        interface.claim(sender, claim, now);
    }
}
