//! Files that are open because they were read or written a short time ago.

use std::collections::BTreeMap;
use std::fs::File;
use std::sync::Arc;

use super::key::FileId;

/// Files that are kept open.
const FILES_LIMIT: usize = 64;

#[derive(Debug)]
struct Open {
    file: Arc<File>,
    used: u64,
}

/// The table; the file that was not used for longest is closed first.
#[derive(Debug, Default)]
pub(super) struct OpenFiles {
    files: BTreeMap<(FileId, bool), Open>,
    uses: u64,
}

impl OpenFiles {
    /// A file that is open to be written, or to be read.
    pub(super) fn find(&mut self, id: FileId, is_write: bool) -> Option<Arc<File>> {
        self.uses += 1;
        let open = self.files.get_mut(&(id, is_write))?;
        open.used = self.uses;
        Some(open.file.clone())
    }
    pub(super) fn keep(&mut self, id: FileId, is_write: bool, file: Arc<File>) {
        self.uses += 1;
        if self.files.len() >= FILES_LIMIT
            && let Some(oldest) = self.files.iter().min_by_key(|(_, open)| open.used).map(|(&id, _)| id)
        {
            self.files.remove(&oldest);
        }
        self.files.insert((id, is_write), Open { file, used: self.uses });
    }
    pub(super) fn forget(&mut self, id: FileId) {
        self.files.remove(&(id, false));
        self.files.remove(&(id, true));
    }
}
