//! The part of a file that is in memory: at most one block and what was read behind it.

use std::io::{ErrorKind, Read};

use super::{CaptureError, CaptureErrorKind};

/// Bytes asked of the source at once.
const READ_BYTES: usize = 256 << 10;

/// How much of what was asked for is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fill {
    /// Nothing: the end of the file.
    Empty,
    /// Less.
    Part,
    /// All.
    All,
}

pub(super) struct Window<R: Read> {
    source: R,
    buffer: Vec<u8>,
    from: usize,
    until: usize,
    consumed_bytes: u64,
    is_at_end: bool,
}

impl<R: Read> Window<R> {
    pub(super) fn new(source: R) -> Self {
        Window { source, buffer: Vec::new(), from: 0, until: 0, consumed_bytes: 0, is_at_end: false }
    }
    /// What is in memory and not consumed.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[self.from..self.until]
    }
    /// Reads until `bytes` are there, or the file ends. The buffer grows with what was read, not with what is asked for.
    pub(super) fn fill(&mut self, bytes: usize) -> Result<Fill, CaptureError> {
        while self.until - self.from < bytes && !self.is_at_end {
            if self.from > 0 {
                self.buffer.copy_within(self.from..self.until, 0);
                (self.from, self.until) = (0, self.until - self.from);
            }
            if self.buffer.len() - self.until < READ_BYTES {
                self.buffer.resize((self.buffer.len() * 2).clamp(self.until + READ_BYTES, usize::MAX), 0);
            }
            match self.source.read(&mut self.buffer[self.until..]) {
                Ok(0) => self.is_at_end = true,
                Ok(count) => self.until += count,
                Err(why) if why.kind() == ErrorKind::Interrupted => {}
                Err(why) => return Err(self.error(CaptureErrorKind::Read(why.to_string()))),
            }
        }
        Ok(match self.until - self.from {
            0 => Fill::Empty,
            there if there < bytes => Fill::Part,
            _ => Fill::All,
        })
    }
    pub(super) fn consume(&mut self, bytes: usize) {
        self.take(bytes);
    }
    /// Consumes `bytes`, and shows them.
    pub(super) fn take(&mut self, bytes: usize) -> &[u8] {
        let from = self.from;
        self.from = self.until.min(from + bytes);
        self.consumed_bytes += (self.from - from) as u64;
        &self.buffer[from..self.from]
    }
    pub(super) fn offset_bytes(&self) -> u64 {
        self.consumed_bytes
    }
    /// An error here.
    pub(super) fn error(&self, kind: CaptureErrorKind) -> CaptureError {
        CaptureError { offset_bytes: self.consumed_bytes, kind }
    }
}
