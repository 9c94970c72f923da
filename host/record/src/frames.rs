//! The ring of frames' heads.

use inhost_base::{Instant, LinkId};

/// Bytes that are kept of a frame: an Ethernet header, an IPv6 header, and a TCP header with all but 2 bytes of its options.
pub(crate) const HEAD_BYTES: usize = 112;
/// Chunks in which a head is copied: of known size, so that no call is made for it.
const LARGE: usize = 64;
const SMALL: usize = 32;
/// Heads for which memory is taken at a time.
const GROWTH: usize = 64;
const ETHERNET_BYTES: usize = 14;
const IPV6_BYTES: usize = 40;

/// The head of a frame.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    at: Instant,
    link: LinkId,
    is_sent: bool,
    captured: u8,
    bytes: [u8; HEAD_BYTES],
}

impl Head {
    pub(crate) fn at(&self) -> Instant {
        self.at
    }
    pub(crate) fn link(&self) -> LinkId {
        self.link
    }
    pub(crate) fn is_sent(&self) -> bool {
        self.is_sent
    }
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.captured).min(HEAD_BYTES)]
    }
    /// Bytes of the whole frame: what its IP header says. It is not counted when the frame passes, which would cost more
    /// than the copy.
    pub(crate) fn frame_bytes(&self, is_ethernet: bool) -> u32 {
        let head = self.bytes();
        let front = if is_ethernet { ETHERNET_BYTES } else { 0 };
        let packet = head.get(front..).unwrap_or(&[]);
        let field = |at: usize| match packet.get(at..at + 2) {
            Some(&[high, low]) => usize::from(u16::from_be_bytes([high, low])),
            _ => 0,
        };
        let length = match packet.first().map(|octet| octet >> 4) {
            Some(4) => field(2),
            Some(6) => IPV6_BYTES + field(4),
            _ => 0,
        };
        head.len().max(front + length) as u32
    }
}

/// The latest heads. They are numbered from 0.
#[derive(Debug)]
pub(crate) struct Frames {
    heads: Vec<Head>,
    /// A power of two.
    limit: usize,
    next: u64,
    /// Places that [`Frames::quick`] may use.
    ready: usize,
    looks: bool,
}

impl Frames {
    /// A ring of at most `memory_bytes`; nothing is taken before it is used.
    pub(crate) fn new(memory_bytes: usize) -> Frames {
        let fit = (memory_bytes / size_of::<Head>()).max(1);
        let limit = if fit.is_power_of_two() { fit } else { fit.next_power_of_two() / 2 };
        Frames { heads: Vec::with_capacity(limit), limit, next: 0, ready: 0, looks: false }
    }
    /// The number that the next frame gets.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }
    /// The oldest number that is held.
    pub(crate) fn oldest(&self) -> u64 {
        self.next.saturating_sub(self.limit as u64)
    }
    pub(crate) fn find(&self, number: u64) -> Option<&Head> {
        let is_held = (self.oldest()..self.next).contains(&number);
        is_held.then(|| &self.heads[number as usize & (self.limit - 1)])
    }
    /// Whether each frame is to be looked at, so that [`Frames::quick`] takes none.
    pub(crate) fn set_looks(&mut self, looks: bool) {
        self.looks = looks;
        self.ready = if looks { 0 } else { self.heads.len() };
    }
    /// Adds the head of a frame; false, and nothing done, where that takes more than a copy.
    #[inline]
    pub(crate) fn quick(&mut self, at: Instant, link: LinkId, is_sent: bool, head: &[u8]) -> bool {
        let place = self.next as usize & (self.limit - 1);
        if place >= self.ready || head.len() < SMALL {
            return false;
        }
        let Some(slot) = self.heads.get_mut(place) else { return false };
        self.next += 1;
        (slot.at, slot.link, slot.is_sent) = (at, link, is_sent);
        slot.captured = copy(&mut slot.bytes, head) as u8;
        true
    }
    /// Adds the head of any frame.
    #[cold]
    pub(crate) fn add(&mut self, at: Instant, link: LinkId, is_sent: bool, head: &[u8]) {
        const EMPTY: Head =
            Head { at: Instant::ZERO, link: LinkId(0), is_sent: false, captured: 0, bytes: [0; HEAD_BYTES] };
        let place = self.next as usize & (self.limit - 1);
        if place >= self.heads.len() {
            let more = GROWTH.min(self.limit - self.heads.len());
            self.heads.resize(self.heads.len() + more, EMPTY);
            self.set_looks(self.looks);
        }
        let Some(slot) = self.heads.get_mut(place) else { return };
        self.next += 1;
        (slot.at, slot.link, slot.is_sent) = (at, link, is_sent);
        let captured = head.len().min(HEAD_BYTES);
        slot.bytes[..captured].copy_from_slice(&head[..captured]);
        slot.captured = captured as u8;
    }
}

/// Copies the front of a frame of [`SMALL`] bytes at least; how much.
#[inline]
fn copy(to: &mut [u8; HEAD_BYTES], from: &[u8]) -> usize {
    if let Some(head) = from.first_chunk::<HEAD_BYTES>() {
        *to = *head;
        return HEAD_BYTES;
    }
    // Two chunks that overlap.
    if let (Some(front), Some(back)) = (from.first_chunk::<LARGE>(), from.last_chunk::<LARGE>()) {
        to[..LARGE].copy_from_slice(front);
        to[from.len() - LARGE..from.len()].copy_from_slice(back);
    } else if let (Some(front), Some(back)) = (from.first_chunk::<SMALL>(), from.last_chunk::<SMALL>()) {
        to[..SMALL].copy_from_slice(front);
        to[from.len() - SMALL..from.len()].copy_from_slice(back);
    }
    from.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_copied_whole_at_every_length() {
        let frame: Vec<u8> = (0..200).collect();
        for length in SMALL..200 {
            let mut to = [0xff; HEAD_BYTES];
            let captured = copy(&mut to, &frame[..length]);
            assert_eq!(to[..captured], frame[..length.min(HEAD_BYTES)], "{length}");
        }
    }

    #[test]
    fn the_oldest_are_overwritten() {
        let mut frames = Frames::new(4 * size_of::<Head>());
        for number in 0..7u8 {
            frames.add(Instant::ZERO, LinkId(0), false, &[number]);
        }
        let held: Vec<u8> = (0..9).filter_map(|number| Some(frames.find(number)?.bytes()[0])).collect();
        assert_eq!((held, frames.oldest(), frames.next()), (vec![3, 4, 5, 6], 3, 7));
    }
}
