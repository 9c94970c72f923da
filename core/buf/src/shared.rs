//! Memory that a sender and a receiver in one program share by reference count, without a copy.

use crate::{Packet, Pool};
use alloc::sync::Arc;
use bytes::Bytes;

/// Bytes of a stream that a sender keeps until they are acknowledged, and a receiver until they are read.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) enum Shared {
    /// Bytes that were copied into a buffer. It returns to the sender's pool if the sender is the last holder.
    Written(Packet),
    /// Bytes that the application handed over by reference.
    Lent(#[cfg_attr(feature = "freeze", serde(with = "crate::freeze::lent"))] Bytes),
}

impl Shared {
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Shared::Written(packet) => packet.bytes(),
            Shared::Lent(bytes) => bytes,
        }
    }
    /// Memory that the sender's limits count.
    pub(crate) fn capacity(&self) -> usize {
        match self {
            Shared::Written(packet) => packet.capacity(),
            Shared::Lent(bytes) => bytes.len(),
        }
    }
    /// Releases the sender's reference.
    pub(crate) fn release(held: Arc<Shared>, pool: &mut Pool) {
        let written = match &*held {
            Shared::Written(packet) => packet.capacity(),
            Shared::Lent(_) => 0,
        };
        match Arc::try_unwrap(held) {
            Ok(Shared::Written(packet)) => pool.give(packet),
            Ok(Shared::Lent(_)) => {}
            Err(_still_read) => pool.uncharge(written),
        }
    }
}
