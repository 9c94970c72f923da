//! One packet that somebody owns, and a bounded batch of them.

use crate::shared::Shared;
use crate::{Pool, Slices};
use std::collections::VecDeque;
use std::sync::Arc;

/// What is known of the transport checksum of a received packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Checksum {
    /// Nothing: the receiver computes it.
    #[default]
    Unknown,
    /// The device, or the memory it came through, vouches for it.
    Verified,
    /// The data is good, but the field holds the pseudo-header's sum only: whoever sends the packet on finishes it.
    Partial,
}

impl Checksum {
    /// Whether the receiver may trust the data without a look.
    pub fn is_good(self) -> bool {
        self != Checksum::Unknown
    }
}

/// An owned buffer of which a window is visible. Trimming moves the window and never the bytes, so the headers that
/// were read stay in the buffer, before the window, until the packet is given back.
///
/// `Packet::default()` owns no memory; `take` leaves it behind.
///
/// A payload that lies in memory which others read, too ([`crate::Frame::share`]) is a packet without room around it.
#[derive(Debug, Default)]
pub struct Packet {
    storage: Storage,
    // Half a machine word each: a packet moves often, and no buffer is so long.
    start: u32,
    end: u32,
    /// Of shared memory, the bytes that were shown at first.
    span: u32,
    /// What is known of the transport checksum.
    pub checksum: Checksum,
    /// Of several segments that the device has put together, the payload of each but the last; 0 of a packet that came
    /// as it is.
    pub segment_bytes: u16,
    /// Of a frame's headers, in how many packets its payload follows them; see [`crate::Frame::share`].
    pub(crate) pieces: u8,
}

/// Where a packet's bytes lie.
#[derive(Debug)]
pub(crate) enum Storage {
    /// In memory of its own.
    Own(Box<[u8]>),
    /// In memory that others read, too, and nobody changes.
    Shared(Arc<Shared>),
}

impl Default for Storage {
    fn default() -> Self {
        Storage::Own(Box::default())
    }
}

impl Storage {
    #[inline]
    fn bytes(&self) -> &[u8] {
        match self {
            Storage::Own(own) => own,
            Storage::Shared(held) => held.bytes(),
        }
    }
    /// Those that may be written: none of shared memory.
    #[inline]
    fn own(&self) -> &[u8] {
        match self {
            Storage::Own(own) => own,
            Storage::Shared(_) => &[],
        }
    }
    #[inline]
    fn own_mut(&mut self) -> &mut [u8] {
        match self {
            Storage::Own(own) => own,
            Storage::Shared(_) => &mut [],
        }
    }
}

impl Packet {
    /// `storage` is shorter than 4 GiB.
    #[inline]
    pub(crate) fn from_storage(storage: Box<[u8]>, headroom: usize) -> Self {
        let start = headroom.min(storage.len()) as u32;
        let storage = Storage::Own(storage);
        Packet {
            storage,
            start,
            end: start,
            span: 0,
            checksum: Checksum::Unknown,
            segment_bytes: 0,
            pieces: 0,
        }
    }
    /// `length` bytes of `held`, from `start` on, which are there.
    pub(crate) fn shared(held: Arc<Shared>, start: usize, length: usize) -> Self {
        let (start, span) = (start as u32, length as u32);
        let storage = Storage::Shared(held);
        let (end, checksum) = (start + span, Checksum::Unknown);
        Packet { storage, start, end, span, checksum, segment_bytes: 0, pieces: 0 }
    }
    #[inline]
    pub(crate) fn into_storage(self) -> Storage {
        self.storage
    }
    #[inline]
    fn window(&self) -> core::ops::Range<usize> {
        self.start as usize..self.end as usize
    }
    /// The visible bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.storage.bytes()[self.window()]
    }
    /// The visible bytes, to change; none of shared memory.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let window = self.window();
        self.storage.own_mut().get_mut(window).unwrap_or_default()
    }
    /// Visible bytes.
    #[inline]
    pub fn len(&self) -> usize {
        (self.end - self.start) as usize
    }
    /// Whether nothing is visible.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }
    /// Memory held, visible or not: what limits count. Of shared memory, what was visible at first.
    #[inline]
    pub fn capacity(&self) -> usize {
        match &self.storage {
            Storage::Own(own) => own.len(),
            Storage::Shared(_) => self.span as usize,
        }
    }
    /// Bytes before the window: headers already read, or room for headers to come.
    pub fn headroom(&self) -> usize {
        match &self.storage {
            Storage::Own(_) => self.start as usize,
            Storage::Shared(_) => 0,
        }
    }
    /// Bytes after the window.
    pub fn tailroom(&self) -> usize {
        self.storage.own().len().saturating_sub(self.end as usize)
    }
    /// Of a frame's headers, in how many packets its payload follows them.
    #[inline]
    pub fn pieces(&self) -> usize {
        usize::from(self.pieces)
    }
    /// The frame that has its headers here and its payload in `pieces`, copied together; `None` when `pool` has no memory.
    pub fn joined<'a>(
        &self,
        pieces: impl Iterator<Item = &'a Packet> + Clone,
        pool: &mut Pool,
    ) -> Option<Packet> {
        let mut whole = pool.take(self.len() + pieces.clone().map(Packet::len).sum::<usize>())?;
        (whole.checksum, whole.segment_bytes) = (self.checksum, self.segment_bytes);
        whole.append(self.bytes());
        for piece in pieces {
            whole.append(piece.bytes());
        }
        Some(whole)
    }
    /// Whether others read the same memory.
    pub fn is_shared(&self) -> bool {
        matches!(self.storage, Storage::Shared(_))
    }
    /// Hides the first `bytes` of the window (all of it when it is shorter).
    #[inline]
    pub fn trim_front(&mut self, bytes: usize) {
        self.start += bytes.min(self.len()) as u32;
    }
    /// Keeps the first `bytes` of the window.
    #[inline]
    pub fn truncate(&mut self, bytes: usize) {
        self.end = self.start + bytes.min(self.len()) as u32;
    }
    /// Shows `bytes` of what was hidden or reserved before the window, or `None` when there are fewer.
    pub fn prepend(&mut self, bytes: usize) -> Option<&mut [u8]> {
        if bytes > self.headroom() {
            return None;
        }
        self.start -= bytes as u32;
        let start = self.start as usize;
        self.storage.own_mut().get_mut(start..start + bytes)
    }
    /// Shows `bytes` more after the window, to be filled in; `None` when there are fewer.
    pub fn extend(&mut self, bytes: usize) -> Option<&mut [u8]> {
        if bytes > self.tailroom() {
            return None;
        }
        let from = self.end as usize;
        self.end += bytes as u32;
        self.storage.own_mut().get_mut(from..from + bytes)
    }
    /// Copies as much of `bytes` behind the window as there is room for, and says how much.
    #[inline]
    pub fn append(&mut self, bytes: &[u8]) -> usize {
        let room = self.spare_mut();
        let fits = bytes.len().min(room.len());
        crate::copy(&mut room[..fits], &bytes[..fits]);
        self.end += fits as u32;
        fits
    }
    /// As [`Packet::append`], and gives the [`crate::sum`] of what was copied instead: all of `bytes`, when there is
    /// room for it.
    #[inline]
    pub(crate) fn append_and_sum(&mut self, bytes: &[u8]) -> u16 {
        let room = self.spare_mut();
        let fits = bytes.len().min(room.len());
        let sum = crate::copy_and_sum(&mut room[..fits], &bytes[..fits]);
        self.end += fits as u32;
        sum
    }
    /// Shows nothing, with all its memory behind the window.
    #[inline]
    pub(crate) fn restart(&mut self) {
        (self.start, self.end) = (0, 0);
    }
    /// The room behind the window for a device to read into; follow with [`Packet::extend`] by what was read.
    #[inline]
    pub fn spare_mut(&mut self) -> &mut [u8] {
        self.storage.own_mut().get_mut(self.end as usize..).unwrap_or_default()
    }
    /// Whether its sender left something to the device, so that it cannot be sent on as it is.
    pub fn is_unfinished(&self) -> bool {
        self.segment_bytes > 0 || self.checksum == Checksum::Partial
    }
    /// Takes the packet and leaves an empty one that owns no memory.
    pub fn take(&mut self) -> Packet {
        core::mem::take(self)
    }
}

/// Packets on their way up, at most [`Batch::LIMIT`].
#[derive(Debug, Default)]
pub struct Batch {
    packets: VecDeque<Packet>,
}

impl Batch {
    /// Most packets in a batch.
    pub const LIMIT: usize = 64;

    /// An empty batch; it keeps its memory between rounds.
    pub fn new() -> Self {
        Batch::default()
    }
    /// Packets held.
    pub fn len(&self) -> usize {
        self.packets.len()
    }
    /// Whether none is held.
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }
    /// Whether the limit is reached.
    pub fn is_full(&self) -> bool {
        self.packets.len() >= Batch::LIMIT
    }
    /// Adds a packet, or hands it back when the batch is full.
    pub fn push(&mut self, packet: Packet) -> Result<(), Packet> {
        if self.is_full() {
            return Err(packet);
        }
        self.packets.push_back(packet);
        Ok(())
    }
    /// Whether one more frame of any kind has room, in pieces or not.
    pub fn has_room(&self) -> bool {
        self.packets.len() + Slices::MOST < Batch::LIMIT
    }
    /// The oldest packet, which may be the headers of a frame whose payload follows: [`Packet::pieces`].
    pub fn pop(&mut self) -> Option<Packet> {
        self.packets.pop_front()
    }
    /// The oldest frame in one packet: its pieces are copied together, into memory of `pool`'s. One that the pool has no
    /// memory for is lost.
    pub fn pop_whole(&mut self, pool: &mut Pool) -> Option<Packet> {
        while let Some(packet) = self.pop() {
            if packet.pieces == 0 {
                return Some(packet);
            }
            let pieces = packet.pieces().min(self.packets.len());
            let whole = packet.joined(self.packets.range(..pieces), pool);
            self.packets.drain(..pieces);
            pool.give(packet);
            if whole.is_some() {
                return whole;
            }
        }
        None
    }
}
