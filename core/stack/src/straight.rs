//! The straight road of a frame to its connection: one look at the headers, one look-up, one set of marks. It takes
//! what an established connection gets unless something is out of the ordinary; everything else, and everything
//! doubtful, is left untouched for the general road (DEC §4).

use crate::parts::{Parts, tcp_environment};
use crate::sockets::{ConnectionFlags, TcpSocketId};
use inhost_base::{Endpoint, Instant, LinkId};
use inhost_buf::{Checksum, Packet};
use inhost_event::{Event, FrameReceived, Mask, Sink};
use inhost_tcp::{Environment, Outcome};
use inhost_wire::straight::{Following, Straight};

/// Segments for one connection that came one after another: what follows from them is done once, after the last.
#[derive(Debug, Default)]
pub(crate) struct Run {
    key: Option<TcpSocketId>,
    outcome: Outcome,
    /// What the next segment looks like, if it is like the last.
    following: Option<Following>,
    /// Segments that were, and the bytes of their frames.
    followed: u32,
    followed_bytes: u64,
}

/// What a batch of frames is received for.
#[derive(Clone, Copy)]
pub(crate) struct Reception {
    pub(crate) link: LinkId,
    /// What the sink wants to hear of.
    pub(crate) mask: Mask,
    /// Whether the next segment may belong to the run.
    pub(crate) more: bool,
    pub(crate) now: Instant,
}

impl Parts {
    /// Takes a frame if it continues `run` and is like the one before it. False leaves the packet as it was.
    #[inline(always)]
    pub(crate) fn following_input(&mut self, packet: &mut Packet, run: &mut Run) -> bool {
        let (Some(following), Some(key)) = (&mut run.following, run.key) else { return false };
        let bytes = packet.bytes();
        let (from, end) = following.payload();
        let Parts { memory, sockets, .. } = self;
        let pool = memory.pool_mut();
        let Some(flow) = sockets.tcp_mut(key) else { return false };
        let ordinary = following.is_next(bytes)
            && !pool.is_under_pressure()
            && flow.connection().has_room_for(end - from)
            && (packet.checksum != Checksum::Unknown || following.checksum_ok(bytes));
        if !ordinary {
            return false;
        }
        run.followed_bytes += packet.len() as u64;
        packet.truncate(end);
        packet.trim_front(from);
        flow.connection_mut().receive_following(packet.take(), pool);
        following.advance();
        run.followed += 1;
        true
    }
    /// Takes a frame that came in by a link and continues `run`, or begins another. Where there are `pieces`, `packet` has
    /// the headers alone, and they have the payload. False leaves the packets as they were.
    #[inline(always)]
    pub(crate) fn straight_input(
        &mut self,
        reception: Reception,
        packet: &mut Packet,
        pieces: &mut [Packet],
        run: &mut Run,
        sink: &mut dyn Sink,
    ) -> bool {
        let Reception { link, mask, more, now } = reception;
        self.end_following(link, run, now);
        let Some(at) = self.ip.plain_offset(link, packet.bytes()) else { return false };
        let Some(bytes) = packet.bytes().get(at..) else { return false };
        let Some(straight) = Straight::of_headers(bytes) else { return false };
        if !is_complete(&straight, bytes, pieces) {
            return false;
        }
        let Some(key) = self.straight_flow(run, &straight) else { return false };
        self.demux.note_tcp(key);
        if run.key.is_some_and(|last| last != key) {
            self.end_run(run, now, sink);
        }
        let Parts { ip, links, memory, random, sockets, .. } = self;
        let pool = memory.pool_mut();
        let Some(flow) = sockets.tcp_mut(key) else { return false };
        // That the addresses are good for this link was found out when the flow's way was.
        let ordinary = !flow.has(ConnectionFlags::CHECK_INPUT)
            && flow.has_path_of(ip.generation())
            && flow.link() == link
            && !pool.is_under_pressure()
            && flow.connection().is_predicted(&straight.header, straight.payload_bytes())
            && (packet.checksum != Checksum::Unknown || straight.checksum_ok(bytes));
        if !ordinary {
            return false;
        }
        run.key = Some(key);
        let length_bytes = length_of(packet, pieces) as u32;
        if let Some(link) = links.get_mut(usize::from(link.0)) {
            link.counters.received_frames += 1;
            link.counters.received_bytes += u64::from(length_bytes);
        }
        ip.count_delivered(link, 1);
        if mask.wants(Mask::LINK) {
            sink.emit(Mask::LINK, now, || Event::FrameReceived(FrameReceived { link, length_bytes }));
        }
        let Straight { header, header_bytes, total_bytes, .. } = straight;
        let untold = !mask.wants(Mask::LINK) && !mask.wants(Mask::SEGMENT);
        if more && untold && pieces.is_empty() && flow.connection().may_be_followed(straight.payload_bytes())
        {
            run.following = Following::new(packet.bytes(), at, &straight);
        }
        packet.truncate(at + total_bytes);
        packet.trim_front(at + header_bytes);
        let tells = mask.wants(Mask::SEGMENT);
        let mut environment = Environment { now, socket: key.key(), pool: &mut *pool, random, sink };
        let payload = if pieces.is_empty() { core::slice::from_mut(packet) } else { pieces };
        flow.connection_mut().receive_predicted(&header, payload, tells, &mut environment, &mut run.outcome);
        if packet.capacity() > 0 {
            pool.give(packet.take());
        }
        true
    }
    /// The connection that a packet is for: mostly that of the last, be it of the batch before.
    #[inline]
    fn straight_flow(&self, run: &Run, straight: &Straight<'_>) -> Option<TcpSocketId> {
        match run.key.or(self.demux.last_flow()) {
            Some(key) if self.is_flow_of(key, straight) => Some(key),
            _ => self.look_up_flow(straight),
        }
    }
    #[inline(never)]
    fn look_up_flow(&self, straight: &Straight<'_>) -> Option<TcpSocketId> {
        let (source, destination) = straight.addresses();
        let local = Endpoint { address: destination, port: straight.destination_port };
        let remote = Endpoint { address: source, port: straight.source_port };
        let hash = self.demux.tcp_hash(local, remote);
        self.demux.find_tcp_hashed(&self.sockets, hash, |flow| flow.gets(straight))
    }
    #[inline]
    fn is_flow_of(&self, key: TcpSocketId, straight: &Straight<'_>) -> bool {
        match self.sockets.tcp(key) {
            Some(flow) => flow.gets(straight) && !flow.has(ConnectionFlags::UNLISTED),
            None => false,
        }
    }
    /// Brings the connection in line with the segments that followed one another by `link`.
    #[inline]
    pub(crate) fn end_following(&mut self, link: LinkId, run: &mut Run, now: Instant) {
        let Some(following) = run.following.take() else { return };
        let segments = core::mem::take(&mut run.followed);
        let frame_bytes = core::mem::take(&mut run.followed_bytes);
        let Some(flow) = run.key.and_then(|key| self.sockets.tcp_mut(key)) else { return };
        if segments > 0 {
            flow.connection_mut().received_following(following.header(), now);
            if let Some(link) = self.links.get_mut(usize::from(link.0)) {
                link.counters.received_frames += u64::from(segments);
                link.counters.received_bytes += frame_bytes;
            }
            self.ip.count_delivered(link, u64::from(segments));
        }
    }
    /// Does what the segments of `run` made due. Nothing else may happen to its flow before that.
    #[inline]
    pub(crate) fn end_run(&mut self, run: &mut Run, now: Instant, sink: &mut dyn Sink) {
        let Some(key) = run.key.take() else { return };
        self.demux.note_tcp(key);
        let outcome = core::mem::take(&mut run.outcome);
        let Some(flow) = self.sockets.tcp_mut(key) else { return };
        flow.connection_mut().received_predicted(&mut tcp_environment!(self, now, key, sink));
        self.apply(key, outcome, now, sink);
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
fn is_complete(straight: &Straight<'_>, bytes: &[u8], pieces: &[Packet]) -> bool {
    if pieces.is_empty() {
        return straight.total_bytes <= bytes.len();
    }
    let payload_bytes: usize = pieces.iter().map(Packet::len).sum();
    bytes.len() == straight.header_bytes && straight.total_bytes == bytes.len() + payload_bytes
}
