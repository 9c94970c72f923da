//! One packet that somebody owns, and a bounded batch of them.

use std::collections::VecDeque;

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
#[derive(Debug, Default)]
pub struct Packet {
    storage: Box<[u8]>,
    // Half a machine word each: a packet moves often, and no buffer is so long.
    start: u32,
    end: u32,
    /// What is known of the transport checksum.
    pub checksum: Checksum,
    /// Of several segments that the device has put together, the payload of each but the last; 0 of a packet that came
    /// as it is.
    pub segment_bytes: u16,
}

impl Packet {
    /// `storage` is shorter than 4 GiB.
    #[inline]
    pub(crate) fn from_storage(storage: Box<[u8]>, headroom: usize) -> Self {
        let start = headroom.min(storage.len()) as u32;
        Packet { storage, start, end: start, checksum: Checksum::Unknown, segment_bytes: 0 }
    }
    #[inline]
    pub(crate) fn into_storage(self) -> Box<[u8]> {
        self.storage
    }
    #[inline]
    fn window(&self) -> core::ops::Range<usize> {
        self.start as usize..self.end as usize
    }
    /// The visible bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.storage[self.window()]
    }
    /// The visible bytes, to change.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let window = self.window();
        &mut self.storage[window]
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
    /// Memory held, visible or not: what limits count.
    pub fn capacity(&self) -> usize {
        self.storage.len()
    }
    /// Bytes before the window: headers already read, or room for headers to come.
    pub fn headroom(&self) -> usize {
        self.start as usize
    }
    /// Bytes after the window.
    pub fn tailroom(&self) -> usize {
        self.storage.len() - self.end as usize
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
        let start = self.headroom().checked_sub(bytes)?;
        self.start = start as u32;
        self.storage.get_mut(start..start + bytes)
    }
    /// Shows `bytes` more after the window, to be filled in; `None` when there are fewer.
    pub fn extend(&mut self, bytes: usize) -> Option<&mut [u8]> {
        if bytes > self.tailroom() {
            return None;
        }
        let from = self.end as usize;
        self.end += bytes as u32;
        self.storage.get_mut(from..from + bytes)
    }
    /// Copies as much of `bytes` behind the window as there is room for, and says how much.
    #[inline]
    pub fn append(&mut self, bytes: &[u8]) -> usize {
        let fits = bytes.len().min(self.tailroom());
        let from = self.end as usize;
        crate::copy(&mut self.storage[from..from + fits], &bytes[..fits]);
        self.end += fits as u32;
        fits
    }
    /// As [`Packet::append`], and gives the [`crate::sum`] of what was copied instead: all of `bytes`, when there is
    /// room for it.
    #[inline]
    pub(crate) fn append_and_sum(&mut self, bytes: &[u8]) -> u16 {
        let fits = bytes.len().min(self.tailroom());
        let from = self.end as usize;
        let sum = crate::copy_and_sum(&mut self.storage[from..from + fits], &bytes[..fits]);
        self.end += fits as u32;
        sum
    }
    /// Shows nothing, with all its memory behind the window.
    #[inline]
    pub(crate) fn restart(&mut self) {
        (self.start, self.end) = (0, 0);
    }
    /// The room behind the window for a device to read into; follow with [`Packet::extend`] by what was read.
    pub fn spare_mut(&mut self) -> &mut [u8] {
        &mut self.storage[self.end as usize..]
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
    /// The oldest packet.
    pub fn pop(&mut self) -> Option<Packet> {
        self.packets.pop_front()
    }
}
