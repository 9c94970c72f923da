//! Input: a batch of received frames, on the fast path, the direct path or the slow path.

use crate::demux::Name;
use crate::environment::Environment;
use crate::socket::TcpSocketId;
use crate::sockets::Sockets;
use inhost_base::{Endpoint, LinkId};
use inhost_buf::{Batch, Packet, Slices};
use inhost_event::{Drop, Event, FrameReceived, Mask};
use inhost_ip::Datagram;
use inhost_tcp::Changes;
use inhost_wire::ipv4;
use inhost_wire::packet::NextSegment;
use inhost_wire::tcp::Flags;

mod direct;
mod fast;
mod frame;
mod icmp;
mod tcp;
mod udp;

/// The GRO state of a batch: consecutive segments of one connection, whose consequences are applied once, after the
/// last.
#[derive(Debug, Default)]
struct Gro {
    key: Option<TcpSocketId>,
    changes: Changes,
    /// The next segment, if it may be merged with the last.
    next: Option<NextSegment>,
    /// Segments that were merged, and the bytes of their frames.
    merged: u32,
    merged_bytes: u64,
}

/// The reception of a batch of frames that came in by one link.
pub(crate) struct Reception<'r, 'e> {
    sockets: &'r mut Sockets,
    link: LinkId,
    /// The events that the sink wants.
    mask: Mask,
    gro: bool,
    env: &'r mut Environment<'e>,
    merge: Gro,
}

impl<'r, 'e> Reception<'r, 'e> {
    pub(crate) fn new(
        sockets: &'r mut Sockets,
        link: LinkId,
        env: &'r mut Environment<'e>,
    ) -> Reception<'r, 'e> {
        let (mask, gro) = (env.sink().mask(), env.network().links().gro(link));
        Reception { sockets, link, mask, gro, env, merge: Gro::default() }
    }
    /// Takes all frames of a batch.
    pub(crate) fn batch(mut self, batch: &mut Batch) {
        while let Some(mut packet) = batch.pop() {
            if self.gro_input(&mut packet) {
                continue;
            }
            let more = self.gro && !batch.is_empty();
            if packet.pieces() > 0 {
                self.scattered(packet, more, &mut || batch.pop());
                if !self.gro {
                    self.apply_predicted();
                }
                continue;
            }
            let taken = if opens_or_closes(&packet) {
                self.commit_merged();
                Err(None)
            } else {
                self.fast_input(&mut packet, &mut [], more)
            };
            if taken.is_err() || !self.gro {
                self.apply_predicted();
            }
            if let Err(whose) = taken
                && !self.direct_input(&mut packet, whose)
            {
                self.frame(packet);
            }
        }
        self.commit_merged();
        self.apply_predicted();
    }
    /// Takes a frame whose headers are in `packet`, and whose payload is in the packets that `next` gives. Only the
    /// fast path takes it without a copy; for every other path it is copied into one packet.
    #[inline(never)]
    pub(crate) fn scattered(
        &mut self,
        mut packet: Packet,
        more: bool,
        next: &mut dyn FnMut() -> Option<Packet>,
    ) {
        let mut pieces: [Packet; Slices::MOST] = Default::default();
        let count = packet.pieces().min(Slices::MOST);
        let pieces = &mut pieces[..count];
        let mut adopted = true;
        for piece in pieces.iter_mut() {
            match next() {
                Some(next) if self.env.pool().adopt(&next) => *piece = next,
                _ => adopted = false,
            }
        }
        let is_taken = adopted && self.fast_input(&mut packet, pieces, more).is_ok();
        if !is_taken {
            self.commit_merged();
            self.apply_predicted();
            let whole = if adopted { packet.joined(pieces.iter(), self.env.pool()) } else { None };
            match whole {
                Some(whole) => self.frame(whole),
                None => self.env.drop_frame(self.link, Drop::NoMemory),
            }
        }
        pieces.iter_mut().for_each(|piece| self.give(piece.take()));
        self.give(packet);
    }
    /// Gives a packet's memory back.
    #[inline]
    fn give(&mut self, packet: Packet) {
        self.env.pool().give(packet);
    }
}

/// Counts and reports a frame.
#[inline(always)]
fn count_frame(link: LinkId, bytes: usize, mask: Mask, env: &mut Environment<'_>) {
    let (now, length_bytes) = (env.now(), bytes as u32);
    env.network_mut().links_mut().count_received(link, 1, u64::from(length_bytes));
    if mask.intersects(Mask::LINK) {
        let event = || Event::FrameReceived(FrameReceived { link, length_bytes });
        env.sink().emit(Mask::LINK, now, event);
    }
}

/// Whether a packet has SYN, FIN or RST at the usual place of TCP's flags. It is only a hint: either path handles the
/// packet.
#[inline]
fn opens_or_closes(packet: &Packet) -> bool {
    const FLAGS_AT: usize = ipv4::LENGTH + 13;
    let flags = (Flags::SYN | Flags::FIN | Flags::RST).bits() as u8;
    match packet.bytes() {
        [0x45, rest @ ..] => rest.get(FLAGS_AT - 1).is_some_and(|bits| bits & flags != 0),
        _ => false,
    }
}

/// The flow that a datagram belongs to.
fn name_of(datagram: &Datagram, source_port: u16, destination_port: u16) -> Name {
    Name {
        protocol: datagram.protocol,
        local: Endpoint { address: datagram.destination, port: destination_port },
        remote: Endpoint { address: datagram.source, port: source_port },
    }
}
