//! The fast path of input (header prediction): one parse of the headers, one look-up, one set of flags. It takes
//! in-order data and new acknowledgments of established connections. Any other frame is left untouched for the
//! direct or the slow path (DEC §4).

use crate::flows::tell;
use crate::input::{Reception, count_frame};
use crate::sockets::Target;
use crate::tcp::TcpSocketFlags;
use inhost_buf::Packet;
use inhost_event::Mask;
use inhost_wire::packet::{NextSegment, PlainPacket};

impl Reception<'_, '_> {
    /// GRO: takes a frame if it is the next segment of the merged connection. False leaves the packet as it was.
    #[inline(always)]
    pub(super) fn gro_input(&mut self, packet: &mut Packet) -> bool {
        let (Some(next), Some(key)) = (&mut self.merge.next, self.merge.key) else { return false };
        let bytes = packet.bytes();
        let (from, end) = next.payload();
        let Some(flow) = self.sockets.tcp_mut(key) else { return false };
        let ordinary = next.is_next(bytes)
            && !self.env.pool().is_under_pressure()
            && flow.connection().receiver().has_room_for(end - from)
            && self.env.is_good(packet.checksum(), || next.checksum_ok(bytes));
        if !ordinary {
            return false;
        }
        self.merge.merged_bytes += packet.len() as u64;
        packet.truncate(end);
        packet.trim_front(from);
        flow.connection_mut().receive_following(packet.take(), self.env.pool());
        next.advance();
        self.merge.merged += 1;
        true
    }
    /// Takes a frame on the fast path, and lets GRO merge the next ones with it. With `pieces`, `packet` has only the
    /// headers, and they have the payload. An error leaves the packets as they were, and says whose the segment is, if that
    /// was looked up.
    #[inline(always)]
    pub(super) fn fast_input(
        &mut self,
        packet: &mut Packet,
        pieces: &mut [Packet],
        more: bool,
    ) -> Result<(), Option<Target>> {
        let link = self.link;
        self.commit_merged();
        let frame = packet.bytes();
        let Some(at) = self.env.network().ip().plain_offset(link, frame) else { return Err(None) };
        let Some(bytes) = frame.get(at..) else { return Err(None) };
        let Some(plain) = PlainPacket::of_front(bytes) else { return Err(None) };
        if !is_complete(&plain, bytes, pieces) {
            return Err(None);
        }
        let whose = self.sockets.whose(&plain.ip, plain.source_port, plain.destination_port);
        let Ok(key) = whose else { return Err(Some(whose)) };
        if self.merge.key.is_some_and(|last| last != key) {
            self.apply_predicted();
        }
        let Some(flow) = self.sockets.tcp_mut(key) else { return Err(None) };
        // That the addresses are good for this link was checked when the flow's path was found.
        let ordinary = !flow.has(TcpSocketFlags::CHECK_INPUT)
            && flow.has_path_of(self.env.paths().generation())
            && flow.link() == link
            && !self.env.pool().is_under_pressure()
            && flow.connection().is_predicted(&plain.header, plain.payload_bytes())
            && self.env.is_good(packet.checksum(), move || plain.ip.checksum_ok(bytes));
        if !ordinary {
            return Err(Some(whose));
        }
        self.merge.key = Some(key);
        let PlainPacket { header, header_bytes, ip, .. } = plain;
        let untold = !self.mask.intersects(Mask::LINK) && !self.mask.intersects(Mask::SEGMENT);
        if more
            && untold
            && pieces.is_empty()
            && flow.connection().receiver().may_be_followed(plain.payload_bytes())
        {
            self.merge.next = NextSegment::new(packet.bytes(), at, &plain);
        }
        count_frame(link, length_of(packet, pieces), self.mask, self.env);
        self.env.network_mut().ip_mut().count_delivered(link, 1);
        packet.truncate(at + ip.total_bytes());
        packet.trim_front(at + header_bytes);
        let payload = if pieces.is_empty() { core::slice::from_mut(packet) } else { pieces };
        let env = &mut self.env.tcp(key.key());
        flow.connection_mut().receive_predicted(&header, payload, self.mask.intersects(Mask::SEGMENT), env);
        // Such segments are neither dropped nor answered by a reset.
        self.merge.changes |= env.changes();
        if packet.capacity() > 0 {
            self.give(packet.take());
        }
        Ok(())
    }
    /// Accounts for the segments that GRO merged since the last one that went through the fast path.
    #[inline]
    pub(super) fn commit_merged(&mut self) {
        let Some(next) = self.merge.next.take() else { return };
        let segments = core::mem::take(&mut self.merge.merged);
        let frame_bytes = core::mem::take(&mut self.merge.merged_bytes);
        let Some(flow) = self.merge.key.and_then(|key| self.sockets.tcp_mut(key)) else { return };
        if segments > 0 {
            flow.connection_mut().received_following(next.header(), self.env.now());
            self.env.network_mut().links_mut().count_received(self.link, u64::from(segments), frame_bytes);
            self.env.network_mut().ip_mut().count_delivered(self.link, u64::from(segments));
        }
    }
    /// Applies the outcome of the segments that the fast path took since the last call, merged or not. This must precede any
    /// other change of their connection.
    #[inline]
    pub(crate) fn apply_predicted(&mut self) {
        let Some(key) = self.merge.key.take() else { return };
        let changes = core::mem::take(&mut self.merge.changes);
        let (now, env) = (self.env.now(), &mut self.env.tcp(key.key()));
        self.sockets.change(key, now, |connection| connection.update(env));
        if !changes.is_empty() {
            tell(self.sockets, key, changes, self.env);
        }
    }
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
        return plain.ip.total_bytes() <= bytes.len();
    }
    let payload_bytes: usize = pieces.iter().map(Packet::len).sum();
    bytes.len() == plain.header_bytes && plain.ip.total_bytes() == bytes.len() + payload_bytes
}
