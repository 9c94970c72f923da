//! IP forwarding, from link to link in one pass (RFC 1812, RFC 8200).

mod queue;
mod redirect;
mod v4;
mod v6;

pub(crate) use queue::{ForwardQueue, WAITING_FOR_ONE_LIMIT, WAITING_LIMIT};

use crate::icmp::errors::IcmpError;
use crate::neighbour::cache::Lookup;
use crate::path::LinkHeader;
use crate::received::Received;
use crate::routing::RouteDecision;
use crate::{Ip, IpEnvironment, scope};
use inhost_base::{IpAddr, LinkId};
use inhost_buf::Packet;
use inhost_event::Drop;

/// How a router forwards.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Forwarding {
    /// Whether a sender on the same link as the next hop gets a redirect (RFC 1812 §5.2.7.2, RFC 4861 §8.2). Default:
    /// yes.
    pub redirects: bool,
    /// Whether packets that name us as a hop of their source route go on (RFC 1122 §3.3.5). Default: no, as RFC 7126
    /// §4.3 advises.
    pub source_routes: bool,
    /// Most packets that wait for the device of one link. Default: 256. Cost: waiting packets hold memory of the pool.
    pub queue_packets: usize,
}

impl Default for Forwarding {
    fn default() -> Self {
        Forwarding { redirects: true, source_routes: false, queue_packets: 256 }
    }
}

impl Ip {
    /// Whether we are a router, and a packet that came in by `link` to our card may go on from `source` to `destination`.
    // spec: RFC1812 5.3.7, 5.3.4, 4.2.2.11; RFC1122 3.1-1, 3.1-2, 3.1-3
    pub(crate) fn may_forward(&self, link: LinkId, source: IpAddr, destination: IpAddr) -> bool {
        self.forwarding.is_some()
            && link != LinkId(0)
            && is_of_the_net(source)
            && is_of_the_net(destination)
            && !self.is_local(source)
            && !self.interfaces.is_broadcast(destination)
    }
    /// Whether packets to `destination` went on before, and nothing that they were checked against has changed.
    pub(crate) fn has_forwarded(&self, link: LinkId, source: IpAddr, destination: IpAddr) -> bool {
        link != LinkId(0) && is_of_the_net(source) && self.routing.has_decision(destination)
    }
    /// Queues a packet, from its IP header on, for the device of its route, or to wait for its next hop. `from` is where it
    /// came in.
    // spec: RFC1122 2.3.2.2-1
    pub(crate) fn send_on(
        &mut self,
        from: LinkId,
        route: RouteDecision,
        packet: Packet,
        env: &mut IpEnvironment<'_>,
    ) -> Result<(), Drop> {
        let Some(limit) = self.forwarding.map(|forwarding| forwarding.queue_packets) else {
            env.pool.give(packet);
            return Err(Drop::NotForUs);
        };
        let Some(interface) = self.interface_mut(route.link) else {
            env.pool.give(packet);
            return Err(Drop::NoRoute);
        };
        let header = match interface.hardware() {
            None => Some(LinkHeader::NONE),
            Some(_) => match interface.neighbours.resolve(route.next_hop, env.now) {
                Lookup::Known(hardware) => Some(interface.header_to(hardware, route.next_hop.is_ipv6())),
                Lookup::Pending => None,
                Lookup::Failed => {
                    self.send_error(from, IcmpError::HostUnreachable, packet.bytes(), env);
                    env.pool.give(packet);
                    return Err(Drop::NoRoute);
                }
            },
        };
        let queue = &mut interface.forward;
        let queued = match header {
            Some(header) => queue.push_ready(header, packet, limit, env.pool),
            None => queue.push_waiting(from, route.next_hop, packet, env.pool),
        };
        interface.counters.forwarded_datagrams += u64::from(queued);
        if interface.neighbours.has_actions() {
            self.run_actions(route.link, env);
        }
        if queued { Ok(()) } else { Err(Drop::QueueFull) }
    }
    /// Sends packets that waited for neighbours on `link` that are resolved now, and an ICMP error for those that
    /// failed.
    pub(crate) fn update_forwarding(&mut self, link: LinkId, env: &mut IpEnvironment<'_>) {
        let Some(limit) = self.forwarding.map(|forwarding| forwarding.queue_packets) else { return };
        let Some(interface) = self.interface_mut(link) else { return };
        for waiting in interface.forward.take_waiting() {
            let Some(interface) = self.interface_mut(link) else { return };
            match interface.neighbours.peek(waiting.next_hop) {
                Some(Lookup::Known(hardware)) => {
                    let header = interface.header_to(hardware, waiting.next_hop.is_ipv6());
                    if !interface.forward.push_ready(header, waiting.packet, limit, env.pool) {
                        self.count_drop(waiting.from, Drop::QueueFull, env);
                    }
                }
                Some(Lookup::Pending) => interface.forward.still_waiting(waiting),
                Some(Lookup::Failed) | None => {
                    self.send_error(waiting.from, IcmpError::HostUnreachable, waiting.packet.bytes(), env);
                    env.pool.give(waiting.packet);
                    self.count_drop(waiting.from, Drop::NoRoute, env);
                }
            }
        }
    }
    /// Drops a packet that cannot be forwarded, and sends an ICMP error.
    fn refuse_to_forward(
        &mut self,
        link: LinkId,
        why: Drop,
        error: IcmpError,
        packet: &Packet,
        env: &mut IpEnvironment<'_>,
    ) -> Result<Received, Drop> {
        self.send_error(link, error, packet.bytes(), env);
        Err(why)
    }
}

/// Whether an address means the same on every link, so that packets may cross from one to another with it.
// spec: RFC1812 5.3.7, RFC4291 2.5.6, RFC3927 2.6.2
fn is_of_the_net(address: IpAddr) -> bool {
    scope::is_unicast(address) && !scope::is_loopback(address) && !scope::is_link_local(address)
}
