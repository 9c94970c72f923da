//! An open file as a [`Source`].

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use super::{LocalFuture, Source, StorageResult};

/// An open file.
pub(super) struct Plain {
    pub(super) file: Arc<File>,
    pub(super) size_bytes: u64,
}

impl Source for Plain {
    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }
    fn read_at(&self, position: u64, mut buffer: Vec<u8>) -> LocalFuture<(Vec<u8>, StorageResult<usize>)> {
        let file = self.file.clone();
        Box::pin(blocking::unblock(move || {
            let mut filled = 0;
            while filled < buffer.len() {
                match file.read_at(&mut buffer[filled..], position + filled as u64) {
                    Ok(0) => break,
                    Ok(count) => filled += count,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return (buffer, Err(error.into())),
                }
            }
            (buffer, Ok(filled))
        }))
    }
}
