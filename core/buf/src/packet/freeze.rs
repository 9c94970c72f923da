//! Freezing: how a packet is written, and how a thawed one gets its memory back.

use super::shared::Shared;
use super::{Checksum, Packet, Storage};
use crate::size_class::CLASSES_BYTES;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use bytes::Bytes;
use inhost_base::freeze::{Invalid, require};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What is done with each packet of a thawed stack: [`Packet::thaw`], and counting.
pub type ThawPacket<'a> = &'a mut dyn FnMut(&mut Packet) -> Result<(), Invalid>;

/// A packet as it is written: its window alone. What lies before and after the window is room, and nothing reads it.
#[derive(Serialize, Deserialize)]
struct Frozen<'a> {
    /// Capacity of a buffer of its own, or the initial length of a window on shared memory.
    capacity: u32,
    /// Of a buffer of its own: bytes before the window.
    start: Option<u32>,
    #[serde(borrow, serialize_with = "as_bytes")]
    window: &'a [u8],
    checksum: Checksum,
    segment_bytes: u16,
    pieces: u8,
}

/// In one piece, where serde would go byte by byte.
fn as_bytes<S: Serializer>(window: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_bytes(window)
}

impl Serialize for Packet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Frozen {
            capacity: self.capacity() as u32,
            start: (!self.is_shared()).then_some(self.start),
            window: self.bytes(),
            checksum: self.checksum(),
            segment_bytes: self.segment_bytes,
            pieces: self.pieces,
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Packet {
    /// A packet without its room: [`Packet::thaw`] must follow.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Frozen { capacity, start, window, checksum, segment_bytes, pieces } =
            Frozen::deserialize(deserializer)?;
        let length = u32::try_from(window.len()).map_err(serde::de::Error::custom)?;
        let storage = match start {
            Some(_) => Storage::Own(window.into()),
            None => Storage::Shared(Arc::new(Shared::Lent(Bytes::copy_from_slice(window)))),
        };
        let start = start.unwrap_or(0);
        let end = start.checked_add(length).ok_or_else(|| serde::de::Error::custom("a packet's end"))?;
        Ok(Packet { storage, start, end, span: capacity, checksum: checksum as u8, segment_bytes, pieces })
    }
}

impl Packet {
    /// The capacity of a thawed packet that has not got its memory back.
    pub fn frozen_capacity(&self) -> usize {
        self.span as usize
    }
    /// Gives a thawed packet its memory back. No packet may be used before.
    pub fn thaw(&mut self) -> Result<(), Invalid> {
        let capacity = self.frozen_capacity();
        let (start, end) = (self.start as usize, self.end as usize);
        let Storage::Own(window) = &mut self.storage else {
            return require(end <= capacity, "a packet's window");
        };
        require(capacity == 0 || CLASSES_BYTES.contains(&capacity), "a buffer's size")?;
        require(end <= capacity, "a packet's window")?;
        let mut storage: Box<[u8]> = vec![0; capacity].into();
        crate::copy(storage.get_mut(start..end).unwrap_or_default(), window);
        *window = storage;
        self.span = 0;
        Ok(())
    }
}
