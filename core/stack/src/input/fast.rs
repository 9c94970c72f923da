//! The fast path of input (header prediction): one parse of the headers, one look-up, one set of flags. It takes
//! in-order data and new acknowledgments of established connections. Any other frame is left untouched for the
//! direct or the slow path (DEC §4).

use crate::input::Reception;
use crate::parts::{Parts, tcp_environment};
use crate::sockets::{TcpSocketFlags, TcpSocketId};
use inhost_base::Endpoint;
use inhost_buf::{Checksum, Packet};
use inhost_event::{Event, FrameReceived, Layer, Mask, Sink};
use inhost_tcp::Environment;
use inhost_wire::packet::{IpFront, NextSegment, PlainPacket};

impl Reception<'_> {
    /// GRO: takes a frame if it is the next segment of the merged connection. False leaves the packet as it was.
    #[inline(always)]
    pub(super) fn gro_input(&mut self, packet: &mut Packet) -> bool {
        let (Some(next), Some(key)) = (&mut self.merge.next, self.merge.key) else { return false };
        let bytes = packet.bytes();
        let (from, end) = next.payload();
        let Parts { memory, sockets, marks_layers, .. } = &mut *self.parts;
        let pool = memory.pool_mut();
        let Some(flow) = sockets.tcp_mut(key) else { return false };
        let ordinary = next.is_next(bytes)
            && !pool.is_under_pressure()
            && flow.connection().receiver().has_room_for(end - from)
            && (packet.checksum != Checksum::Unknown
                || match marks_layers {
                    false => next.checksum_ok(bytes),
                    true => next_is_good(next, bytes, &mut *self.sink),
                });
        if !ordinary {
            return false;
        }
        self.merge.merged_bytes += packet.len() as u64;
        packet.truncate(end);
        packet.trim_front(from);
        flow.connection_mut().receive_following(packet.take(), pool);
        next.advance();
        self.merge.merged += 1;
        true
    }
    /// Takes a frame on the fast path, and lets GRO merge the next ones with it. With `pieces`, `packet` has only the
    /// headers, and they have the payload. False leaves the packets as they were.
    #[inline(always)]
    pub(super) fn fast_input(&mut self, packet: &mut Packet, pieces: &mut [Packet], more: bool) -> bool {
        let (link, mask, now) = (self.link, self.mask, self.now);
        self.commit_merged();
        let Some(at) = self.parts.ip.plain_offset(link, packet.bytes()) else { return false };
        let Some(bytes) = packet.bytes().get(at..) else { return false };
        let Some(plain) = PlainPacket::of_front(bytes) else { return false };
        if !is_complete(&plain, bytes, pieces) {
            return false;
        }
        let Some(key) = self.fast_flow(&plain) else { return false };
        self.parts.demux.remember_last_flow(key);
        if self.merge.key.is_some_and(|last| last != key) {
            self.apply_predicted();
        }
        let Parts { ip, links, memory, random, sockets, marks_layers, .. } = &mut *self.parts;
        let pool = memory.pool_mut();
        let Some(flow) = sockets.tcp_mut(key) else { return false };
        // That the addresses are good for this link was checked when the flow's path was found.
        let ordinary = !flow.has(TcpSocketFlags::CHECK_INPUT)
            && flow.has_path_of(ip.paths().generation())
            && flow.link() == link
            && !pool.is_under_pressure()
            && flow.connection().is_predicted(&plain.header, plain.payload_bytes())
            && (packet.checksum != Checksum::Unknown
                || match marks_layers {
                    false => plain.ip.checksum_ok(bytes),
                    true => is_good(plain.ip, bytes, &mut *self.sink),
                });
        if !ordinary {
            return false;
        }
        self.merge.key = Some(key);
        let length_bytes = length_of(packet, pieces) as u32;
        links.count_received(link, 1, u64::from(length_bytes));
        ip.count_delivered(link, 1);
        if mask.wants(Mask::LINK) {
            self.sink.emit(Mask::LINK, now, || Event::FrameReceived(FrameReceived { link, length_bytes }));
        }
        let PlainPacket { header, header_bytes, ip: IpFront { total_bytes, .. }, .. } = plain;
        let untold = !mask.wants(Mask::LINK) && !mask.wants(Mask::SEGMENT);
        if more
            && untold
            && pieces.is_empty()
            && flow.connection().receiver().may_be_followed(plain.payload_bytes())
        {
            self.merge.next = NextSegment::new(packet.bytes(), at, &plain);
        }
        packet.truncate(at + total_bytes);
        packet.trim_front(at + header_bytes);
        let tells = mask.wants(Mask::SEGMENT);
        let (socket, sink) = (key.key(), &mut *self.sink);
        let mut environment =
            Environment { now, socket, pool: &mut *pool, random, sink, marks_layers: *marks_layers };
        let payload = if pieces.is_empty() { core::slice::from_mut(packet) } else { pieces };
        flow.connection_mut().receive_predicted(
            &header,
            payload,
            tells,
            &mut environment,
            &mut self.merge.outcome,
        );
        if packet.capacity() > 0 {
            pool.give(packet.take());
        }
        true
    }
    /// The connection of a packet, in most cases that of the previous packet.
    #[inline]
    fn fast_flow(&self, plain: &PlainPacket<'_>) -> Option<TcpSocketId> {
        match self.merge.key.or(self.parts.demux.last_flow()) {
            Some(key) if self.is_flow_of(key, plain) => Some(key),
            _ => self.look_up_flow(plain),
        }
    }
    #[inline(never)]
    fn look_up_flow(&self, plain: &PlainPacket<'_>) -> Option<TcpSocketId> {
        let (source, destination) = plain.ip.addresses();
        let local = Endpoint { address: destination, port: plain.destination_port };
        let remote = Endpoint { address: source, port: plain.source_port };
        let hash = self.parts.demux.tcp_hash(local, remote);
        self.parts.demux.find_tcp_hashed(&self.parts.sockets, hash, |flow| {
            flow.matches(&plain.ip, plain.source_port, plain.destination_port)
        })
    }
    #[inline]
    fn is_flow_of(&self, key: TcpSocketId, plain: &PlainPacket<'_>) -> bool {
        match self.parts.sockets.tcp(key) {
            Some(flow) => {
                flow.matches(&plain.ip, plain.source_port, plain.destination_port)
                    && !flow.has(TcpSocketFlags::UNLISTED)
            }
            None => false,
        }
    }
    /// Accounts for the segments that GRO merged since the last one that went through the fast path.
    #[inline]
    pub(super) fn commit_merged(&mut self) {
        let Some(next) = self.merge.next.take() else { return };
        let segments = core::mem::take(&mut self.merge.merged);
        let frame_bytes = core::mem::take(&mut self.merge.merged_bytes);
        let Some(flow) = self.merge.key.and_then(|key| self.parts.sockets.tcp_mut(key)) else { return };
        if segments > 0 {
            flow.connection_mut().received_following(next.header(), self.now);
            self.parts.links.count_received(self.link, u64::from(segments), frame_bytes);
            self.parts.ip.count_delivered(self.link, u64::from(segments));
        }
    }
    /// Applies the outcome of the segments that the fast path took since the last call, merged or not. This must precede any
    /// other change of their connection.
    #[inline]
    pub(crate) fn apply_predicted(&mut self) {
        let Some(key) = self.merge.key.take() else { return };
        self.parts.demux.remember_last_flow(key);
        let outcome = core::mem::take(&mut self.merge.outcome);
        let Some(flow) = self.parts.sockets.tcp_mut(key) else { return };
        flow.connection_mut().received_predicted(&mut tcp_environment!(
            self.parts,
            self.now,
            key,
            &mut *self.sink
        ));
        self.parts.apply(key, outcome, self.now, &mut *self.sink);
    }
}

/// Whether the checksum of the next segment is right, for a sink that is told the layers. A function of its own, so that what
/// it takes stays in registers where nothing is told.
#[cold]
#[inline(never)]
fn next_is_good(next: &NextSegment, bytes: &[u8], sink: &mut dyn Sink) -> bool {
    sink.within(true, Layer::Checksum, |_| next.checksum_ok(bytes))
}
/// The same for any segment.
#[cold]
#[inline(never)]
pub(super) fn is_good(ip: IpFront<'_>, bytes: &[u8], sink: &mut dyn Sink) -> bool {
    sink.within(true, Layer::Checksum, |_| ip.checksum_ok(bytes))
}

/// Bytes of a frame.
#[inline]
fn length_of(packet: &Packet, pieces: &[Packet]) -> usize {
    packet.len() + pieces.iter().map(Packet::len).sum::<usize>()
}

/// Whether a packet that begins with `bytes` is all there: in `bytes`, or with its headers there, and all of its payload in
/// `pieces`.
#[inline]
fn is_complete(plain: &PlainPacket<'_>, bytes: &[u8], pieces: &[Packet]) -> bool {
    if pieces.is_empty() {
        return plain.ip.total_bytes <= bytes.len();
    }
    let payload_bytes: usize = pieces.iter().map(Packet::len).sum();
    bytes.len() == plain.header_bytes && plain.ip.total_bytes == bytes.len() + payload_bytes
}
