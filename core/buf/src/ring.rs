//! A bounded ring of bytes.

use alloc::collections::VecDeque;

/// A first-in, first-out queue of at most `limit` bytes.
///
/// ```
/// use inhost_buf::ByteRing;
/// let mut ring = ByteRing::new(4);
/// assert_eq!(ring.write(b"hello"), 4);
/// let mut into = [0; 8];
/// assert_eq!(ring.read(&mut into), 4);
/// assert_eq!(&into[..4], b"hell");
/// ```
#[derive(Debug)]
pub struct ByteRing {
    bytes: VecDeque<u8>,
    limit: usize,
}

impl ByteRing {
    /// An empty ring of at most `limit` bytes. Memory is allocated as it fills.
    pub fn new(limit: usize) -> Self {
        ByteRing { bytes: VecDeque::new(), limit }
    }
    /// Bytes held.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }
    /// Whether the ring is empty.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
    /// Bytes that fit.
    pub fn free(&self) -> usize {
        self.limit.saturating_sub(self.bytes.len())
    }
    /// Appends as much of `bytes` as fits, and returns how much.
    pub fn write(&mut self, bytes: &[u8]) -> usize {
        let n = bytes.len().min(self.free());
        self.bytes.extend(&bytes[..n]);
        n
    }
    /// Copies bytes from the front into `into`, and returns their number; they stay.
    pub fn peek(&self, into: &mut [u8]) -> usize {
        let (first, second) = self.bytes.as_slices();
        let count = first.len().min(into.len());
        into[..count].copy_from_slice(&first[..count]);
        let more = second.len().min(into.len() - count);
        into[count..count + more].copy_from_slice(&second[..more]);
        count + more
    }
    /// Moves bytes from the front into `into`, and returns their number.
    pub fn read(&mut self, into: &mut [u8]) -> usize {
        let count = self.peek(into);
        self.discard(count);
        count
    }
    /// The first contiguous bytes.
    pub fn front(&self) -> &[u8] {
        match self.bytes.as_slices() {
            ([], second) => second,
            (first, _) => first,
        }
    }
    /// Drops up to `n` bytes from the front.
    pub fn discard(&mut self, n: usize) {
        self.bytes.drain(..n.min(self.bytes.len()));
    }
    /// Changes the limit. Bytes held stay; an empty ring frees the memory above the new limit.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
        if self.bytes.is_empty() && self.bytes.capacity() > limit {
            self.bytes = VecDeque::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_holds_its_limit_and_its_order() {
        let mut ring = ByteRing::new(8);
        assert_eq!(ring.write(b"abcdefghij"), 8);
        let mut out = [0; 5];
        assert_eq!(ring.read(&mut out), 5);
        assert_eq!(ring.write(b"klmno"), 5);
        let mut rest = [0; 20];
        assert_eq!((ring.peek(&mut rest[..6]), &rest[..6]), (6, &b"fghklm"[..]));
        let n = ring.read(&mut rest);
        assert_eq!((&out, &rest[..n]), (b"abcde", &b"fghklmno"[..]));
    }
}
