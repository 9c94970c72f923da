//! A bounded ring of bytes.

use std::collections::VecDeque;

/// First in, first out, at most `limit` bytes.
#[derive(Debug)]
pub struct ByteRing {
    bytes: VecDeque<u8>,
    limit: usize,
}

impl ByteRing {
    /// An empty ring of at most `limit` bytes; memory is taken as it fills.
    pub fn new(limit: usize) -> Self {
        ByteRing { bytes: VecDeque::new(), limit }
    }
    /// Bytes held.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }
    /// Whether none is held.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
    /// Bytes that fit.
    pub fn free(&self) -> usize {
        self.limit.saturating_sub(self.bytes.len())
    }
    /// Takes as much of `bytes` as fits and says how much.
    pub fn write(&mut self, bytes: &[u8]) -> usize {
        let n = bytes.len().min(self.free());
        self.bytes.extend(&bytes[..n]);
        n
    }
    /// Moves bytes from the front into `into`; gives their number.
    pub fn read(&mut self, into: &mut [u8]) -> usize {
        let n = self.front().len().min(into.len());
        into[..n].copy_from_slice(&self.front()[..n]);
        self.discard(n);
        let more = self.front().len().min(into.len() - n);
        into[n..n + more].copy_from_slice(&self.front()[..more]);
        self.discard(more);
        n + more
    }
    /// The first bytes that lie in one piece.
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
    /// Changes the limit; what is held stays. An empty ring gives the memory beyond it back.
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
        let n = ring.read(&mut rest);
        assert_eq!((&out, &rest[..n]), (b"abcde", &b"fghklmno"[..]));
    }
}
