//! The files of a transfer.

use std::rc::Rc;

use inhost_common::storage::{Sink, Source, Storage, StorageError, Store, VirtualPath};

use crate::server::{FileAction, FileAnswer};

/// Permission bits that a new file does not get.
const UMASK: u32 = 0o077;

/// The file that is open.
#[derive(Default)]
pub(super) struct Files {
    storage: Option<Rc<dyn Storage>>,
    source: Option<Box<dyn Source>>,
    sink: Option<Box<dyn Sink>>,
}

impl Files {
    /// The files that the session may use.
    pub(super) fn of(storage: Option<Rc<dyn Storage>>) -> Files {
        Files { storage, ..Files::default() }
    }
    /// Does what a session wants.
    pub(super) async fn act(&mut self, action: FileAction) -> FileAnswer {
        self.try_act(action).await.unwrap_or_else(|error| FileAnswer::Failed(error.to_string()))
    }
    async fn try_act(&mut self, action: FileAction) -> Result<FileAnswer, StorageError> {
        let storage = self.storage.clone().ok_or(StorageError::Denied)?;
        match action {
            FileAction::OpenRead { name } => {
                self.source = Some(storage.retrieve(&VirtualPath::root().join(&name)).await?);
                Ok(FileAnswer::Opened { position: 0 })
            }
            FileAction::Read { position, length } => {
                let source = self.source.as_ref().ok_or(StorageError::NotFound)?;
                let (mut buffer, count) = source.read_at(position, vec![0; length]).await;
                buffer.truncate(count?);
                Ok(FileAnswer::Data(buffer))
            }
            FileAction::OpenWrite { name, is_append } => {
                let how = if is_append { Store::Append } else { Store::Replace };
                let storing = storage.store(&VirtualPath::root().join(&name), how, UMASK).await?;
                self.sink = Some(storing.sink);
                Ok(FileAnswer::Opened { position: storing.position })
            }
            FileAction::Write { position, data } => {
                let sink = self.sink.as_ref().ok_or(StorageError::NotFound)?;
                let (_, outcome) = sink.write_at(position, data).await;
                outcome.map(|()| FileAnswer::Done)
            }
            FileAction::Commit { size_bytes } => {
                let sink = self.sink.take().ok_or(StorageError::NotFound)?;
                sink.commit(size_bytes).await.map(|()| FileAnswer::Done)
            }
            FileAction::Discard => {
                if let Some(sink) = self.sink.take() {
                    sink.discard().await;
                }
                Ok(FileAnswer::Done)
            }
        }
    }
}
