//! IP forwarding, from link to link in one pass (RFC 1812, RFC 8200).

mod redirect;
mod v4;
mod v6;

use crate::IpEnvironment;
use crate::neighbour::cache::Lookup;
use crate::output::Output;
use crate::output::errors::IcmpError;
use crate::path::LinkHeader;
use crate::routing::RouteDecision;
use inhost_base::LinkId;
use inhost_buf::Packet;
use inhost_event::Drop;

/// How a router forwards.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
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

/// The forwarding of packets by a router, from the link on which they arrive to the queue of the link of their route.
pub(crate) struct Forwarder<'a> {
    output: &'a mut Output,
    forwarding: Forwarding,
    /// Whether our address and our time are written into options that record routes and times.
    record_options: bool,
}

impl<'a> Forwarder<'a> {
    pub(crate) fn new(output: &'a mut Output, forwarding: Forwarding, record_options: bool) -> Forwarder<'a> {
        Forwarder { output, forwarding, record_options }
    }
    /// Queues a packet, from its IP header on, for the device of its route, or to wait for its next hop. `from` is where it
    /// came in.
    // spec: RFC1122 2.3.2.2-1
    fn send_on(
        &mut self,
        from: LinkId,
        route: RouteDecision,
        packet: Packet,
        env: &mut IpEnvironment<'_>,
    ) -> Result<(), Drop> {
        let limit = self.forwarding.queue_packets;
        let Some(interface) = self.output.paths_mut().interface_mut(route.link) else {
            env.pool().give(packet);
            return Err(Drop::NoRoute);
        };
        let header = match interface.hardware() {
            None => Some(LinkHeader::NONE),
            Some(_) => match interface.neighbours.resolve(route.next_hop, env.now()) {
                Lookup::Known(hardware) => Some(interface.header_to(hardware, route.next_hop.is_ipv6())),
                Lookup::Pending => None,
                Lookup::Failed => {
                    self.output.send_error(from, IcmpError::HostUnreachable, packet.bytes(), env);
                    env.pool().give(packet);
                    return Err(Drop::NoRoute);
                }
            },
        };
        let queue = &mut interface.forward;
        let queued = match header {
            Some(header) => queue.push_ready(header, packet, limit, env.pool()),
            None => queue.push_waiting(from, route.next_hop, packet, env.pool()),
        };
        interface.counters.forwarded_datagrams += u64::from(queued);
        if interface.neighbours.has_actions() {
            self.output.paths_mut().run_actions(route.link, env);
        }
        if queued { Ok(()) } else { Err(Drop::QueueFull) }
    }
    /// Sends packets that waited for neighbours on `link` that are resolved now, and an ICMP error for those that
    /// failed.
    pub(crate) fn update(&mut self, link: LinkId, env: &mut IpEnvironment<'_>) {
        let limit = self.forwarding.queue_packets;
        let Some(interface) = self.output.paths_mut().interface_mut(link) else { return };
        for waiting in interface.forward.take_waiting() {
            let Some(interface) = self.output.paths_mut().interface_mut(link) else { return };
            match interface.neighbours.peek(waiting.next_hop) {
                Some(Lookup::Known(hardware)) => {
                    let header = interface.header_to(hardware, waiting.next_hop.is_ipv6());
                    if !interface.forward.push_ready(header, waiting.packet, limit, env.pool()) {
                        self.output.paths_mut().count_drop(waiting.from, Drop::QueueFull, env);
                    }
                }
                Some(Lookup::Pending) => interface.forward.still_waiting(waiting),
                Some(Lookup::Failed) | None => {
                    self.output.send_error(
                        waiting.from,
                        IcmpError::HostUnreachable,
                        waiting.packet.bytes(),
                        env,
                    );
                    env.pool().give(waiting.packet);
                    self.output.paths_mut().count_drop(waiting.from, Drop::NoRoute, env);
                }
            }
        }
    }
}
