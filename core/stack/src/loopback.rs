//! The link from the host to itself: a bounded queue, and no device.

use crate::stack::Stack;
use crate::straight::{Reception, Run};
use inhost_base::{Duration, Instant, LinkId};
use inhost_buf::{Device, Frame, Full, Offers, Packet, Pool, Shareable};
use inhost_event::Sink;
use std::collections::VecDeque;

/// Frames that may wait.
const QUEUE_FRAMES: usize = 256;
/// Frames of one pass.
const PASS_FRAMES: usize = 16;
/// Passes of one call. What is left makes the deadline pass at once.
const PASSES_PER_CALL: usize = 16;
/// How long it waits when no memory is to be had.
const STALL: Duration = Duration::from_millis(20);
/// Frames of at most this length get a small buffer.
const SMALL_BYTES: usize = 2048;
const LINK: LinkId = LinkId(0);

/// The queue, and buffers that were taken in advance, because a device has no pool at hand.
#[derive(Debug, Default)]
pub(crate) struct Loopback {
    queue: VecDeque<Packet>,
    small: Vec<Packet>,
    large: Vec<Packet>,
    pub(crate) refused: u64,
    /// No memory was to be had: until when nothing is tried.
    stalled_until: Option<Instant>,
}

impl Loopback {
    /// Takes buffers for a pass over a link of `mtu_bytes`.
    fn fill(&mut self, mtu_bytes: usize, pool: &mut Pool) {
        let room = QUEUE_FRAMES.saturating_sub(self.queue.len()).min(PASS_FRAMES);
        while self.small.len() < room
            && let Some(packet) = pool.take(SMALL_BYTES)
        {
            self.small.push(packet);
        }
        while mtu_bytes > SMALL_BYTES
            && self.large.len() < room
            && let Some(packet) = pool.take(mtu_bytes)
        {
            self.large.push(packet);
        }
    }
    /// Gives the buffers back that were not used.
    fn empty(&mut self, pool: &mut Pool) {
        self.small.drain(..).chain(self.large.drain(..)).for_each(|packet| pool.give(packet));
    }
}

impl Device for Loopback {
    fn transmit(&mut self, frame: &Frame<'_>) -> Result<(), Full> {
        let length = frame.len();
        let from = if length <= SMALL_BYTES { &mut self.small } else { &mut self.large };
        let Some(mut packet) = from.pop_if(|packet| packet.tailroom() >= length) else {
            self.refused += 1;
            return Err(Full);
        };
        let _ = frame.write_to(packet.spare_mut());
        let _ = packet.extend(length);
        // It never leaves this memory.
        packet.checksum = frame.vouched_checksum();
        self.queue.push_back(packet);
        Ok(())
    }
    fn transmit_shared(&mut self, frame: &Frame<'_>, payload: Shareable<'_>) -> Result<(), Full> {
        let Some(mut head) = self.small.pop() else { return self.transmit(frame) };
        head.checksum = frame.vouched_checksum();
        let shared = frame.share(payload, head, |packet| self.queue.push_back(packet));
        shared.or_else(|head| {
            self.small.push(head);
            self.transmit(frame)
        })
    }
    fn offers(&self) -> Offers {
        Offers { checksum: true, sharing: true, ..Offers::NONE }
    }
}

impl Stack {
    /// Whether something waits to go round.
    #[inline]
    pub(crate) fn loopback_waits(&self) -> bool {
        !self.loopback.queue.is_empty() || self.has_output(LINK)
    }
    /// Whether there is no memory to go on with.
    pub(crate) fn loopback_is_stalled(&self) -> bool {
        self.loopback.queue.is_empty() && self.loopback.stalled_until.is_some()
    }
    /// When a stalled loopback tries again.
    pub(crate) fn loopback_stalls_until(&self) -> Option<Instant> {
        self.loopback.stalled_until.filter(|_| self.loopback_waits())
    }
    /// Sends and receives on the loopback until it is quiet, or the limit of one call is reached.
    #[inline(always)]
    pub(crate) fn run_loopback(&mut self, now: Instant, sink: &mut dyn Sink) {
        if self.loopback.stalled_until.is_some() || self.loopback_waits() {
            self.run_busy_loopback(now, sink);
        }
    }
    #[inline(never)]
    fn run_busy_loopback(&mut self, now: Instant, sink: &mut dyn Sink) {
        if self.loopback.stalled_until.is_some_and(|until| until <= now) {
            self.loopback.stalled_until = None;
        }
        for _ in 0..PASSES_PER_CALL {
            if !self.loopback_waits() || self.loopback_is_stalled() {
                return;
            }
            let mut loopback = core::mem::take(&mut self.loopback);
            if self.has_output(LINK) {
                loopback.fill(LARGEST_BYTES, &mut self.pool);
                let done = self.transmit_on(LINK, now, PASS_FRAMES, &mut loopback, sink);
                if done.frames == 0 && done.device_full && loopback.queue.is_empty() {
                    loopback.stalled_until = Some(now + STALL);
                }
                loopback.empty(&mut self.pool);
            }
            self.counters.loopback_full += core::mem::take(&mut loopback.refused);
            self.loopback = loopback;
            for _ in 0..PASS_FRAMES {
                let Some(packet) = self.loopback.queue.pop_front() else { break };
                if packet.pieces() == 0 {
                    self.frame(LINK, packet, now, sink);
                    continue;
                }
                let mut run = Run::default();
                let mut queue = core::mem::take(&mut self.loopback.queue);
                let reception = Reception { link: LINK, mask: sink.mask(), more: false, now };
                self.pieces_input(reception, packet, &mut || queue.pop_front(), &mut run, sink);
                self.end_run(&mut run, now, sink);
                self.loopback.queue = queue;
            }
        }
    }
}

/// The largest frame: any IP packet.
const LARGEST_BYTES: usize = 65_535;
