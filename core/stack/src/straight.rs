//! The straight road of a frame to its connection: one look at the headers, one look-up, one set of marks. It takes
//! what an established connection gets unless something is out of the ordinary; everything else, and everything
//! doubtful, is left untouched for the general road (DEC §4).

use crate::entry::{Marks, Socket};
use crate::stack::{Stack, tcp_environment};
use crate::table::Name;
use inhost_base::{Endpoint, Instant, Key, LinkId};
use inhost_buf::{Checksum, Packet};
use inhost_event::{Event, FrameReceived, Mask, Sink};
use inhost_tcp::{Environment, Outcome};
use inhost_wire::protocol;
use inhost_wire::straight::Straight;

/// Segments for one connection that came one after another: what follows from them is done once, after the last.
#[derive(Debug, Default)]
pub(crate) struct Run {
    key: Option<Key>,
    outcome: Outcome,
}

impl Stack {
    /// Takes a frame that came in on `link` and continues `run`, or begins another. False leaves the packet as it was.
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
        if run.key.is_some_and(|last| last != key) {
            self.end_run(run, now, sink);
        }
        let Stack { ip, links, pool, random, sockets, .. } = self;
        let Some(Socket::Flow(flow)) = sockets.at_mut(key) else { return false };
        // That the addresses are good for this link was found out when the flow's way was.
        let ordinary = !flow.marks.any(Marks::CHECK_INPUT)
            && flow.generation == ip.generation()
            && flow.link() == link
            && !pool.is_under_pressure()
            && flow.connection.is_predicted(&straight.header, straight.payload_bytes())
            && (packet.checksum != Checksum::Unknown || straight.checksum_ok(bytes));
        if !ordinary {
            return false;
        }
        run.key = Some(key);
        let length_bytes = packet.len() as u32;
        if let Some(link) = links.get_mut(usize::from(link.0)) {
            link.counters.received_frames += 1;
            link.counters.received_bytes += u64::from(length_bytes);
        }
        ip.count_delivered(link);
        if mask.wants(Mask::LINK) {
            sink.emit(Mask::LINK, now, || Event::FrameReceived(FrameReceived { link, length_bytes }));
        }
        let Straight { header, header_bytes, total_bytes, .. } = straight;
        packet.truncate(at + total_bytes);
        packet.trim_front(at + header_bytes);
        let tells = mask.wants(Mask::SEGMENT);
        let mut environment = Environment { now, socket: key, pool: &mut *pool, random, sink };
        flow.connection.receive_predicted(&header, packet, tells, &mut environment, &mut run.outcome);
        if packet.capacity() > 0 {
            pool.give(packet.take());
        }
        true
    }
    /// The flow of a packet: mostly that of the last, be it of the batch before.
    #[inline]
    fn straight_flow(&self, run: &Run, straight: &Straight<'_>) -> Option<Key> {
        match run.key.or(self.last_flow) {
            Some(key) if self.is_flow_of(key, straight) => Some(key),
            _ => self.look_up_flow(straight),
        }
    }
    #[inline(never)]
    fn look_up_flow(&self, straight: &Straight<'_>) -> Option<Key> {
        let (source, destination) = straight.addresses();
        let local = Endpoint { address: destination, port: straight.destination_port };
        let remote = Endpoint { address: source, port: straight.source_port };
        let name = Name { protocol: protocol::TCP, local, remote };
        self.flows.find_where(&name, |key| self.is_flow_of(key, straight))
    }
    #[inline]
    fn is_flow_of(&self, key: Key, straight: &Straight<'_>) -> bool {
        match self.sockets.at(key) {
            Some(Socket::Flow(flow)) => flow.gets(straight) && !flow.marks.any(Marks::UNLISTED),
            _ => false,
        }
    }
    /// Does what the segments of `run` made due. Nothing else may happen to its flow before that.
    #[inline]
    pub(crate) fn end_run(&mut self, run: &mut Run, now: Instant, sink: &mut dyn Sink) {
        let Some(key) = run.key.take() else { return };
        self.last_flow = Some(key);
        let outcome = core::mem::take(&mut run.outcome);
        let Some(Socket::Flow(flow)) = self.sockets.at_mut(key) else { return };
        flow.connection.received_predicted(&mut tcp_environment!(self, now, key, sink));
        self.apply(key, outcome, now, sink);
    }
}
