//! Memory that a sender and a receiver in one program share by reference count, without a copy.

use super::Packet;
use bytes::Bytes;

/// Bytes of a stream that a sender keeps until they are acknowledged, and a receiver until they are read.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) enum Shared {
    /// Bytes that were copied into a buffer. It returns to the sender's pool if the sender is the last holder.
    Written(Packet),
    /// Bytes that the application handed over by reference.
    Lent(#[cfg_attr(feature = "freeze", serde(with = "lent"))] Bytes),
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
}

/// For `#[serde(with)]`: bytes kept by reference.
#[cfg(feature = "freeze")]
pub(crate) mod lent {
    use alloc::vec::Vec;
    use bytes::Bytes;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(bytes: &Bytes, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(bytes)
    }
    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
        Vec::<u8>::deserialize(deserializer).map(Bytes::from)
    }
}

/// For `#[serde(with)]`: shared memory. Its other holders are of another stack or a device, so that a thawed one has it
/// alone.
#[cfg(feature = "freeze")]
pub(crate) mod unshared {
    use super::Shared;
    use alloc::sync::Arc;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(held: &Arc<Shared>, serializer: S) -> Result<S::Ok, S::Error> {
        held.as_ref().serialize(serializer)
    }
    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<Shared>, D::Error> {
        Shared::deserialize(deserializer).map(Arc::new)
    }
}
