//! Input: a batch of received frames, on the fast path, the direct path or the slow path.

use crate::input::direct::opens_or_closes;
use crate::parts::Parts;
use crate::sockets::TcpSocketId;
use inhost_base::{Instant, LinkId};
use inhost_buf::Batch;
use inhost_event::{Mask, Sink};
use inhost_tcp::Outcome;
use inhost_wire::packet::NextSegment;

mod direct;
mod fast;
mod frame;
mod scatter;

/// The GRO state of a batch: consecutive segments of one connection, whose consequences are applied once, after the
/// last.
#[derive(Debug, Default)]
struct Gro {
    key: Option<TcpSocketId>,
    outcome: Outcome,
    /// The next segment, if it may be merged with the last.
    next: Option<NextSegment>,
    /// Segments that were merged, and the bytes of their frames.
    merged: u32,
    merged_bytes: u64,
}

/// The reception of a batch of frames that came in by one link.
pub(crate) struct Reception<'a> {
    parts: &'a mut Parts,
    link: LinkId,
    /// The events that the sink wants.
    mask: Mask,
    gro: bool,
    now: Instant,
    sink: &'a mut dyn Sink,
    merge: Gro,
}

impl<'a> Reception<'a> {
    pub(crate) fn new(
        parts: &'a mut Parts,
        link: LinkId,
        now: Instant,
        sink: &'a mut dyn Sink,
    ) -> Reception<'a> {
        let (mask, gro) = (sink.mask(), parts.links.gro(link));
        Reception { parts, link, mask, gro, now, sink, merge: Gro::default() }
    }
    /// Whether the sink is told the layers.
    #[inline(always)]
    fn marks(&self) -> bool {
        self.parts.marks_layers
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
            let is_taken = if opens_or_closes(&packet) {
                self.commit_merged();
                false
            } else {
                self.fast_input(&mut packet, &mut [], more)
            };
            if !is_taken || !self.gro {
                self.apply_predicted();
            }
            if !is_taken && !self.direct_input(&mut packet) {
                self.frame(packet);
            }
        }
        self.commit_merged();
        self.apply_predicted();
    }
}
