//! Memory of frames on their way, kept for the next ones.

/// Buffers kept.
const KEPT: usize = 4096;

/// Free buffers of one network.
#[derive(Debug, Default)]
pub(crate) struct Buffers(Vec<Vec<u8>>);

impl Buffers {
    /// A buffer of `length` bytes, of any content.
    pub(crate) fn take(&mut self, length: usize) -> Vec<u8> {
        let mut buffer = self.0.pop().unwrap_or_default();
        buffer.resize(length, 0);
        buffer
    }
    /// A copy of `bytes`.
    pub(crate) fn copy(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut buffer = self.0.pop().unwrap_or_default();
        buffer.clear();
        buffer.extend_from_slice(bytes);
        buffer
    }
    /// Takes a buffer back.
    pub(crate) fn give(&mut self, buffer: Vec<u8>) {
        if self.0.len() < KEPT {
            self.0.push(buffer);
        }
    }
}
