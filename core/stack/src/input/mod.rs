//! Input: frames of a batch on their way to IP, to connections, and to the other sockets.

use crate::input::direct::opens_or_closes;
use crate::parts::Parts;
use crate::sockets::TcpSocketId;
use inhost_base::{Instant, LinkId};
use inhost_buf::Batch;
use inhost_event::{Mask, Sink};
use inhost_tcp::Outcome;
use inhost_wire::straight::Following;

mod direct;
mod fast;
mod frame;
mod scatter;

/// Segments for one connection that came one after another: what follows from them is done once, after the last.
#[derive(Debug, Default)]
struct Run {
    key: Option<TcpSocketId>,
    outcome: Outcome,
    /// What the next segment looks like, if it is like the last.
    following: Option<Following>,
    /// Segments that were, and the bytes of their frames.
    followed: u32,
    followed_bytes: u64,
}

/// The reception of a batch of frames that came in by one link.
pub(crate) struct Reception<'a> {
    parts: &'a mut Parts,
    link: LinkId,
    /// What the sink wants to be told of.
    mask: Mask,
    coalesces: bool,
    now: Instant,
    sink: &'a mut dyn Sink,
    run: Run,
}

impl<'a> Reception<'a> {
    pub(crate) fn new(
        parts: &'a mut Parts,
        link: LinkId,
        now: Instant,
        sink: &'a mut dyn Sink,
    ) -> Reception<'a> {
        let (mask, coalesces) = (sink.mask(), parts.links.coalesces(link));
        Reception { parts, link, mask, coalesces, now, sink, run: Run::default() }
    }
    /// Takes all frames of a batch.
    pub(crate) fn batch(mut self, batch: &mut Batch) {
        while let Some(mut packet) = batch.pop() {
            if self.following_input(&mut packet) {
                continue;
            }
            let more = self.coalesces && !batch.is_empty();
            if packet.pieces() > 0 {
                self.scattered(packet, more, &mut || batch.pop());
                if !self.coalesces {
                    self.end_run();
                }
                continue;
            }
            let is_taken = if opens_or_closes(&packet) {
                self.end_following();
                false
            } else {
                self.fast_input(&mut packet, &mut [], more)
            };
            if !is_taken || !self.coalesces {
                self.end_run();
            }
            if !is_taken && !self.direct_input(&mut packet) {
                self.frame(packet);
            }
        }
        self.end_following();
        self.end_run();
    }
}
