//! IP forwarding, from link to link in one pass (RFC 1812, RFC 8200).

mod redirect;
mod v4;
mod v6;

use crate::IpEnvironment;
use crate::config::Forwarding;
use crate::forward_queue::Waiting;
use crate::output::Output;
use crate::output::errors::IcmpError;
use crate::routing::RouteDecision;
use inhost_base::LinkId;
use inhost_buf::Packet;
use inhost_event::Drop;

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
        let waiting = Waiting { from, next_hop: route.next_hop, packet };
        let queued = interface.forward(waiting, limit, env.now(), env.pool());
        let has_actions = interface.has_actions();
        let is_queued = queued.map_err(|packet| self.unreachable(from, packet, env))?;
        if has_actions {
            self.output.paths_mut().run_actions(route.link, env);
        }
        if is_queued { Ok(()) } else { Err(Drop::QueueFull) }
    }
    /// Sends packets that waited for neighbours on `link` that are resolved now, and an ICMP error for those that
    /// failed.
    pub(crate) fn update(&mut self, link: LinkId, env: &mut IpEnvironment<'_>) {
        let limit = self.forwarding.queue_packets;
        let Some(interface) = self.output.paths_mut().interface_mut(link) else { return };
        for waiting in interface.take_forwarded() {
            let Some(interface) = self.output.paths_mut().interface_mut(link) else { return };
            let from = waiting.from;
            let why = match interface.forward_again(waiting, limit, env.pool()) {
                Ok(true) => continue,
                Ok(false) => Drop::QueueFull,
                Err(packet) => self.unreachable(from, packet, env),
            };
            self.output.paths_mut().count_drop(from, why, env);
        }
    }
    /// Drops a packet that came in by `from`, because its next hop does not answer.
    fn unreachable(&mut self, from: LinkId, packet: Packet, env: &mut IpEnvironment<'_>) -> Drop {
        let why = self.output.refuse(from, Drop::NoRoute, IcmpError::HostUnreachable, &packet, env);
        env.pool().give(packet);
        why
    }
}
