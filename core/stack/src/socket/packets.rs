//! A queue of packets that a socket holds, with what each is, and the memory that they pin.

use alloc::collections::VecDeque;
use inhost_buf::{Packet, Pool};

/// Packets in order, each with what it is.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Packets<T> {
    queue: VecDeque<(Packet, T)>,
    /// Memory that they pin.
    capacity_bytes: usize,
}

impl<T> Packets<T> {
    pub(crate) fn new() -> Packets<T> {
        Packets { queue: VecDeque::new(), capacity_bytes: 0 }
    }
    /// Calls `act` with each packet of a thawed queue, and checks the queue.
    #[cfg(feature = "freeze")]
    pub(crate) fn thaw(&mut self, act: crate::ThawPacket<'_>) -> Result<(), crate::Invalid> {
        self.queue.iter_mut().map(|(packet, _)| packet).try_for_each(act)?;
        let capacity_bytes: usize = self.queue.iter().map(|(packet, _)| packet.capacity()).sum();
        crate::require(capacity_bytes == self.capacity_bytes, "the memory of a queue")
    }
    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
    /// Memory that they pin.
    pub(crate) fn capacity_bytes(&self) -> usize {
        self.capacity_bytes
    }
    /// Bytes in them.
    pub(crate) fn bytes(&self) -> usize {
        self.queue.iter().map(|(packet, _)| packet.len()).sum()
    }
    pub(crate) fn front(&self) -> Option<&(Packet, T)> {
        self.queue.front()
    }
    pub(crate) fn front_mut(&mut self) -> Option<&mut (Packet, T)> {
        self.queue.front_mut()
    }
    pub(crate) fn push(&mut self, packet: Packet, of: T) {
        self.capacity_bytes += packet.capacity();
        self.queue.push_back((packet, of));
    }
    pub(crate) fn pop(&mut self) -> Option<(Packet, T)> {
        let (packet, of) = self.queue.pop_front()?;
        self.capacity_bytes -= packet.capacity();
        Some((packet, of))
    }
    /// Takes the first for the application: as much of its data as `into` has room for.
    pub(crate) fn read(&mut self, into: &mut [u8], pool: &mut Pool) -> Option<T> {
        let (packet, of) = self.pop()?;
        inhost_buf::copy(into, packet.bytes());
        pool.give(packet);
        Some(of)
    }
    /// Gives all their memory back.
    pub(crate) fn clear(&mut self, pool: &mut Pool) {
        self.queue.drain(..).for_each(|(packet, _)| pool.give(packet));
        self.capacity_bytes = 0;
    }
}
