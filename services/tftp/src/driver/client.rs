//! Client operations: fetch a file from a server, or store one.

use inhost_base::{Duration, Endpoint};
use inhost_common::storage::{Storage, StorageError, Store, VirtualPath};

use super::carry::{Arriving, Progress, carry};
use super::{Clock, Datagrams};
use crate::codec::{ErrorCode, Mode, Request};
use crate::machine::{Settings, Summary, Transfer, TransferError};

/// Permission bits that a file which came does not get.
const UMASK: u32 = 0o022;
/// Dally time of a client.
const DALLY: Duration = Duration::from_millis(250);

/// Fetches what `request` names from `server` to `path`. The file has another name until it is whole.
pub async fn get<D: Datagrams, C: Clock>(
    mut request: Request,
    server: Endpoint,
    (storage, path): (&dyn Storage, &VirtualPath),
    settings: Settings,
    (datagrams, clock): (&D, &C),
    progress: &dyn Progress,
) -> Result<Summary, TransferError> {
    request.is_write = false;
    let storing = storage.store(path, Store::Replace, UMASK).await.map_err(|error| here(path, &error))?;
    let settings = Settings { dally: DALLY, ..settings };
    let transfer = Transfer::ask(request, server, settings, clock.now());
    carry(transfer, datagrams, clock, Arriving::Sink(storing.sink), progress).await
}

/// Sends `path` to `server`, as what `request` names.
pub async fn put<D: Datagrams, C: Clock>(
    mut request: Request,
    server: Endpoint,
    (storage, path): (&dyn Storage, &VirtualPath),
    settings: Settings,
    (datagrams, clock): (&D, &C),
    progress: &dyn Progress,
) -> Result<Summary, TransferError> {
    request.is_write = true;
    let source = storage.retrieve(path).await.map_err(|error| here(path, &error))?;
    // RFC 2349: in text nobody knows how long it will be.
    let size = (request.mode == Mode::Octet).then_some(source.size_bytes());
    request.options.transfer_size = request.options.transfer_size.and(size);
    let transfer = Transfer::ask(request, server, settings, clock.now());
    carry(transfer, datagrams, clock, Arriving::Source(source), progress).await
}

/// Why a file at this end cannot be had.
fn here(path: &VirtualPath, error: &StorageError) -> TransferError {
    TransferError::Here { code: ErrorCode::OTHER, message: format!("{}: {error}", path.relative()) }
}
