//! Replies that wait to be sent.

/// Octets of replies that may wait; beyond, no command is understood and no input taken until the client has read some.
pub(super) const OUTPUT_BYTES: usize = 4096;

/// Replies on their way out.
#[derive(Debug, Default)]
pub(super) struct Output {
    octets: Vec<u8>,
    sent: usize,
}

impl Output {
    /// Pending output.
    pub(super) fn pending(&self) -> &[u8] {
        &self.octets[self.sent..]
    }
    /// Buffer for more output.
    pub(super) fn end(&mut self) -> &mut Vec<u8> {
        &mut self.octets
    }
    /// So many octets were sent. Memory of a long reply goes with it, and what was sent is dropped before it outweighs
    /// what was not.
    pub(super) fn sent(&mut self, count: usize) {
        self.sent += count;
        if self.sent >= self.octets.len() {
            self.octets.clear();
            self.sent = 0;
        } else if self.sent >= OUTPUT_BYTES.max(self.octets.len() / 2) {
            self.octets.drain(..self.sent);
            self.sent = 0;
        }
        if self.octets.capacity() > 4 * OUTPUT_BYTES.max(self.octets.len()) {
            self.octets.shrink_to(OUTPUT_BYTES);
        }
    }
    /// Whether more may be said.
    pub(super) fn has_room(&self) -> bool {
        self.pending().len() < OUTPUT_BYTES
    }
    /// Octets of memory.
    pub(super) fn held_bytes(&self) -> usize {
        self.octets.capacity()
    }
}
