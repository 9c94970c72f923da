//! The straight road of a frame to its connection: one look at the headers, one look-up, one set of marks. It takes
//! what an established connection gets unless something is out of the ordinary; everything else, and everything
//! doubtful, is left untouched for the general road (DEC §4).

use crate::entry::{Marks, Socket};
use crate::stack::{Stack, tcp_environment};
use crate::table::Name;
use inhost_base::{Endpoint, Instant, Key, LinkId};
use inhost_buf::{Checksum, Packet};
use inhost_event::{Event, FrameReceived, Mask, Sink};
use inhost_tcp::Outcome;
use inhost_wire::protocol;
use inhost_wire::straight::Straight;

/// Segments for one connection that came one after another: what follows from them is done once, after the last.
#[derive(Debug, Default)]
pub(crate) struct Run {
    key: Option<Key>,
    outcome: Outcome,
}

impl Stack {
    /// Takes a frame that came in on `link` and continues `run`, or begins another. False leaves everything as it was.
    #[inline]
    pub(crate) fn straight_input(
        &mut self,
        link: LinkId,
        packet: &mut Packet,
        run: &mut Run,
        mask: Mask,
        now: Instant,
        sink: &mut dyn Sink,
    ) -> bool {
        let Some(at) = self.ip.plain_offset(link, packet.bytes()) else { return false };
        let Some(bytes) = packet.bytes().get(at..) else { return false };
        let Some(straight) = Straight::of(bytes) else { return false };
        let Some(key) = self.straight_flow(run, &straight) else { return false };
        let payload_bytes = straight.payload_bytes();
        let generation = self.ip.generation();
        let pressed = self.pool.is_under_pressure();
        let Some(Socket::Flow(flow)) = self.sockets.at_mut(key) else { return false };
        // That the addresses are good for this link was found out when the flow's way was.
        let ordinary = !flow.marks.any(Marks::CHECK_INPUT)
            && flow.generation == generation
            && flow.link() == link
            && !pressed
            && flow.connection.is_predicted(&straight.header, payload_bytes)
            && (packet.checksum != Checksum::Unknown || straight.checksum_ok(bytes));
        if !ordinary {
            return false;
        }
        if run.key != Some(key) {
            self.end_run(run, now, sink);
            run.key = Some(key);
        }
        self.count_straight(link, packet.len(), mask, now, sink);
        packet.truncate(at + straight.total_bytes);
        packet.trim_front(at + straight.header_bytes);
        let Some(Socket::Flow(flow)) = self.sockets.at_mut(key) else { return false };
        let mut environment = tcp_environment!(self, now, key, sink);
        let tells = mask.wants(Mask::SEGMENT);
        flow.connection.receive_predicted(
            &straight.header,
            packet,
            tells,
            &mut environment,
            &mut run.outcome,
        );
        if packet.capacity() > 0 {
            self.pool.give(packet.take());
        }
        true
    }
    /// The flow of a packet: mostly that of the last, be it of the batch before.
    #[inline]
    fn straight_flow(&self, run: &Run, straight: &Straight) -> Option<Key> {
        let local = Endpoint { address: straight.destination, port: straight.destination_port };
        let remote = Endpoint { address: straight.source, port: straight.source_port };
        let is_it = |key: Key| match self.sockets.at(key) {
            Some(Socket::Flow(flow)) => flow.is_between(local, remote) && !flow.marks.any(Marks::UNLISTED),
            _ => false,
        };
        if let Some(key) = run.key.or(self.last_flow)
            && is_it(key)
        {
            return Some(key);
        }
        self.flows.find_where(&Name { protocol: protocol::TCP, local, remote }, is_it)
    }
    #[inline]
    fn count_straight(&mut self, link: LinkId, bytes: usize, mask: Mask, now: Instant, sink: &mut dyn Sink) {
        if let Some(link) = self.links.get_mut(usize::from(link.0)) {
            link.counters.received_frames += 1;
            link.counters.received_bytes += bytes as u64;
        }
        self.ip.count_delivered(link);
        if mask.wants(Mask::LINK) {
            let length_bytes = bytes as u32;
            sink.emit(Mask::LINK, now, || Event::FrameReceived(FrameReceived { link, length_bytes }));
        }
    }
    /// Does what the segments of `run` made due. Nothing else may happen to its flow before that.
    #[inline]
    pub(crate) fn end_run(&mut self, run: &mut Run, now: Instant, sink: &mut dyn Sink) {
        let Some(key) = run.key.take() else { return };
        self.last_flow = Some(key);
        let mut outcome = core::mem::take(&mut run.outcome);
        let Some(Socket::Flow(flow)) = self.sockets.at_mut(key) else { return };
        flow.connection.received_predicted(&mut tcp_environment!(self, now, key, sink), &mut outcome);
        self.apply(key, outcome, now, sink);
    }
}
