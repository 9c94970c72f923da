//! An owned packet, in memory of its own or in shared memory.

#[cfg(feature = "freeze")]
pub(crate) mod freeze;
pub(crate) mod shared;

use alloc::boxed::Box;
use alloc::sync::Arc;
use shared::Shared;

/// The state of a received packet's transport checksum.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub enum Checksum {
    /// Nothing: the receiver computes it.
    #[default]
    Unknown,
    /// The device verified it, or the packet never left this program.
    Verified,
    /// The data is good, but the field holds only the pseudo-header's sum. A forwarder must complete it.
    Partial,
}

impl Checksum {
    /// Whether the receiver may skip verification.
    pub fn is_good(self) -> bool {
        self != Checksum::Unknown
    }
}

/// An owned buffer with a visible window. Trimming moves the window and never the bytes, so headers that were parsed
/// stay in the buffer, before the window, until the packet returns to its pool.
///
/// `Packet::default()` owns no memory; `take` leaves it behind.
///
/// A payload in shared memory ([`crate::Frame::share`]) is a packet without headroom or tailroom.
///
/// ```
/// use inhost_buf::Pool;
/// let mut pool = Pool::new(1 << 20);
/// let mut packet = pool.take(1500).unwrap();
/// packet.append(b"header payload");
/// packet.trim_front(7);
/// assert_eq!(packet.bytes(), b"payload");
/// assert_eq!(packet.prepend(7).unwrap(), b"header ");
/// pool.give(packet);
/// ```
#[derive(Debug, Default)]
pub struct Packet {
    storage: Storage,
    // Half a machine word each: a packet moves often, and no buffer is so long.
    start: u32,
    end: u32,
    /// The initial length of the window on shared memory.
    span: u32,
    /// A [`Checksum`] as a number. The enum's unused values would stand for the `None` of an `Option<Packet>`, which then
    /// would be moved in pieces that overlap: a processor waits for each of them.
    checksum: u8,
    segment_bytes: u16,
    /// The number of packets that follow these headers with the frame's payload; see [`crate::Frame::share`].
    pieces: u8,
}

/// The memory of a packet.
#[derive(Debug)]
pub(crate) enum Storage {
    /// Memory of its own.
    Own(Box<[u8]>),
    /// Read-only memory with other readers.
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
    /// The writable bytes: none in shared memory.
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
        Packet { storage, start, end: start, span: 0, checksum: 0, segment_bytes: 0, pieces: 0 }
    }
    /// `length` bytes of `held`, from `start` on; `held` is at least that long.
    pub(crate) fn shared(held: Arc<Shared>, start: usize, length: usize) -> Self {
        let (start, span) = (start as u32, length as u32);
        let storage = Storage::Shared(held);
        Packet { storage, start, end: start + span, span, checksum: 0, segment_bytes: 0, pieces: 0 }
    }
    /// The state of the transport checksum.
    #[inline]
    pub fn checksum(&self) -> Checksum {
        match self.checksum {
            0 => Checksum::Unknown,
            1 => Checksum::Verified,
            _ => Checksum::Partial,
        }
    }
    /// Sets the state of the transport checksum.
    #[inline]
    pub fn set_checksum(&mut self, checksum: Checksum) {
        self.checksum = checksum as u8;
    }
    /// GRO size: the payload of each segment but the last, where the device merged several; 0 otherwise.
    #[inline]
    pub fn segment_bytes(&self) -> u16 {
        self.segment_bytes
    }
    /// Notes the GRO size that the device gives.
    #[inline]
    pub fn set_segment_bytes(&mut self, segment_bytes: u16) {
        self.segment_bytes = segment_bytes;
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
    /// The visible bytes, mutable; empty for shared memory.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let window = self.window();
        self.storage.own_mut().get_mut(window).unwrap_or_default()
    }
    /// Number of visible bytes.
    #[inline]
    pub fn len(&self) -> usize {
        (self.end - self.start) as usize
    }
    /// Whether nothing is visible.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }
    /// Memory held, visible or not, which is what limits count. For shared memory, the initial length.
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
    /// The number of packets that follow these headers with the frame's payload.
    #[inline]
    pub fn pieces(&self) -> usize {
        usize::from(self.pieces)
    }
    /// Makes these the headers of a frame whose payload follows in as many packets.
    pub(crate) fn set_pieces(&mut self, pieces: u8) {
        self.pieces = pieces;
    }
    /// Whether the memory is shared.
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
    /// Extends the window to the front by `bytes`, and returns them; `None` when the headroom is shorter.
    pub fn prepend(&mut self, bytes: usize) -> Option<&mut [u8]> {
        if bytes > self.headroom() {
            return None;
        }
        self.start -= bytes as u32;
        let start = self.start as usize;
        self.storage.own_mut().get_mut(start..start + bytes)
    }
    /// Extends the window at the end by `bytes`, and returns them to be filled in; `None` when the tailroom is shorter.
    pub fn extend(&mut self, bytes: usize) -> Option<&mut [u8]> {
        if bytes > self.tailroom() {
            return None;
        }
        let from = self.end as usize;
        self.end += bytes as u32;
        self.storage.own_mut().get_mut(from..from + bytes)
    }
    /// Appends as much of `bytes` as fits, and returns how much.
    #[inline]
    pub fn append(&mut self, bytes: &[u8]) -> usize {
        let room = self.spare_mut();
        let fits = bytes.len().min(room.len());
        crate::copy(&mut room[..fits], &bytes[..fits]);
        self.end += fits as u32;
        fits
    }
    /// Appends what `write` writes to the front of the tailroom, and returns its length, as `write` does.
    #[inline]
    pub fn append_with(&mut self, write: impl FnOnce(&mut [u8]) -> usize) -> usize {
        let written = write(self.spare_mut());
        self.extend(written);
        written
    }
    /// [`Packet::append`] that returns the [`crate::sum`] of the bytes it copied.
    #[inline]
    pub(crate) fn append_and_sum(&mut self, bytes: &[u8]) -> u16 {
        let room = self.spare_mut();
        let fits = bytes.len().min(room.len());
        let sum = crate::copy_and_sum(&mut room[..fits], &bytes[..fits]);
        self.end += fits as u32;
        sum
    }
    /// Empties the window, with all memory behind it.
    #[inline]
    pub(crate) fn restart(&mut self) {
        (self.start, self.end) = (0, 0);
    }
    /// The tailroom, for a device to read into. Call [`Packet::extend`] with the number of bytes read.
    #[inline]
    pub fn spare_mut(&mut self) -> &mut [u8] {
        self.storage.own_mut().get_mut(self.end as usize..).unwrap_or_default()
    }
    /// Whether the sender left work to the device, so that the packet cannot be forwarded as it is.
    pub fn is_unfinished(&self) -> bool {
        self.segment_bytes > 0 || self.checksum() == Checksum::Partial
    }
    /// Moves the packet out and leaves an empty one that owns no memory.
    pub fn take(&mut self) -> Packet {
        core::mem::take(self)
    }
}
