//! The loopback link: a bounded queue without a device.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use inhost_base::{Duration, Instant};
use inhost_buf::{Device, Frame, Full, Offers, Packet, Pool, Shareable};

/// Frames that may wait.
const QUEUE_FRAMES: usize = 256;
/// Frames of one pass.
pub(crate) const PASS_FRAMES: usize = 16;
/// How long it waits when no memory is to be had.
const STALL: Duration = Duration::from_millis(20);
/// Frames of at most this length get a small buffer.
const SMALL_BYTES: usize = 2048;
/// The largest frame: any IP packet.
const LARGEST_BYTES: usize = 65_535;

/// The queue, and buffers that were taken in advance, because a device has no pool at hand.
#[derive(Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Loopback {
    queue: VecDeque<Packet>,
    small: Vec<Packet>,
    large: Vec<Packet>,
    refused: u64,
    /// No memory was to be had: until when nothing is tried.
    stalled_until: Option<Instant>,
}

impl Loopback {
    /// Calls `act` with each packet of a thawed loopback.
    #[cfg(feature = "freeze")]
    pub(crate) fn thaw(&mut self, act: crate::ThawPacket<'_>) -> Result<(), crate::Invalid> {
        self.queue.iter_mut().chain(&mut self.small).chain(&mut self.large).try_for_each(act)
    }
    /// The next frame that goes round.
    pub(crate) fn pop(&mut self) -> Option<Packet> {
        self.queue.pop_front()
    }
    /// Whether frames wait.
    #[inline]
    pub(crate) fn has_frames(&self) -> bool {
        !self.queue.is_empty()
    }
    /// Whether there is no memory to go on with.
    pub(crate) fn is_stalled(&self) -> bool {
        self.queue.is_empty() && self.stalled_until.is_some()
    }
    /// Until when nothing is tried, for want of memory.
    #[inline]
    pub(crate) fn stalled_until(&self) -> Option<Instant> {
        self.stalled_until
    }
    /// Ends a stall whose time is over.
    pub(crate) fn resume(&mut self, now: Instant) {
        if self.stalled_until.is_some_and(|until| until <= now) {
            self.stalled_until = None;
        }
    }
    /// Nothing could be sent for want of memory.
    pub(crate) fn stall(&mut self, now: Instant) {
        self.stalled_until = Some(now + STALL);
    }
    /// The number of frames, since this was last asked, for which there was no room.
    pub(crate) fn take_refused(&mut self) -> u64 {
        core::mem::take(&mut self.refused)
    }
    /// Takes buffers for a pass.
    pub(crate) fn fill(&mut self, pool: &mut Pool) {
        let room = QUEUE_FRAMES.saturating_sub(self.queue.len()).min(PASS_FRAMES);
        while self.small.len() < room
            && let Some(packet) = pool.take(SMALL_BYTES)
        {
            self.small.push(packet);
        }
        while self.large.len() < room
            && let Some(packet) = pool.take(LARGEST_BYTES)
        {
            self.large.push(packet);
        }
    }
    /// Gives the buffers back that were not used.
    pub(crate) fn empty(&mut self, pool: &mut Pool) {
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
        // It never leaves this host, so checksums are not needed.
        packet.set_checksum(frame.verified_checksum());
        self.queue.push_back(packet);
        Ok(())
    }
    fn transmit_shared(&mut self, frame: &Frame<'_>, payload: Shareable<'_>) -> Result<(), Full> {
        let Some(mut head) = self.small.pop() else { return self.transmit(frame) };
        head.set_checksum(frame.verified_checksum());
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
