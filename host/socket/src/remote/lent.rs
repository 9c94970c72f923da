//! Packets of a connection that go to the reader as they are, instead of a copy into a ring.

use std::collections::VecDeque;

use inhost_buf::Packet;

use crate::memory::Taken;

/// A packet, and the part of the allowance that counts its memory.
pub(super) struct LentPacket {
    packet: Packet,
    taken: Taken,
}

impl LentPacket {
    pub(super) fn new(packet: Packet, taken: Taken) -> LentPacket {
        LentPacket { packet, taken }
    }
    pub(super) fn packet(&self) -> &Packet {
        &self.packet
    }
    /// The packet, which counts no longer in the allowance.
    pub(super) fn into_packet(self) -> Packet {
        drop(self.taken);
        self.packet
    }
}

/// Packets that wait, in the order of the stream. Most streams have none, and then it is one pointer.
#[derive(Default)]
pub(super) struct Lent(Option<Box<Held>>);

#[derive(Default)]
struct Held {
    packets: VecDeque<LentPacket>,
    /// Their memory.
    waiting_bytes: usize,
    /// Bytes of the first one that were read.
    read_bytes: usize,
    /// Packets that were read to their end, for the host to use again.
    used: Vec<LentPacket>,
}

impl Lent {
    pub(super) fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(|held| held.packets.is_empty())
    }
    /// The memory that waits to be read.
    pub(super) fn waiting_bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |held| held.waiting_bytes)
    }
    pub(super) fn push(&mut self, packet: LentPacket) {
        let held = self.0.get_or_insert_default();
        held.waiting_bytes += packet.packet.capacity();
        held.packets.push_back(packet);
    }
    /// Takes over all that waits in `other`; this one is empty.
    pub(super) fn take_over(&mut self, other: &mut Lent) {
        if let Some(other) = &mut other.0 {
            let held = self.0.get_or_insert_default();
            std::mem::swap(&mut held.packets, &mut other.packets);
            std::mem::swap(&mut held.waiting_bytes, &mut other.waiting_bytes);
        }
    }
    /// Copies bytes out; how many.
    pub(super) fn read(&mut self, into: &mut [u8]) -> usize {
        let Some(held) = &mut self.0 else { return 0 };
        let mut count = 0;
        while count < into.len()
            && let Some(front) = held.packets.front()
        {
            let bytes = &front.packet.bytes()[held.read_bytes..];
            let part = bytes.len().min(into.len() - count);
            into[count..count + part].copy_from_slice(&bytes[..part]);
            count += part;
            held.read_bytes += part;
            if part == bytes.len() {
                held.waiting_bytes -= front.packet.capacity();
                held.used.extend(held.packets.pop_front());
                held.read_bytes = 0;
            }
        }
        count
    }
    /// Copies bytes, and leaves them; how many.
    pub(super) fn peek(&self, into: &mut [u8]) -> usize {
        let Some(held) = &self.0 else { return 0 };
        let (mut count, mut skipped) = (0, held.read_bytes);
        for lent in &held.packets {
            let bytes = &lent.packet.bytes()[skipped..];
            let part = bytes.len().min(into.len() - count);
            into[count..count + part].copy_from_slice(&bytes[..part]);
            (count, skipped) = (count + part, 0);
        }
        count
    }
    /// What was read to its end.
    pub(super) fn take_used(&mut self) -> Vec<LentPacket> {
        self.0.as_mut().map(|held| std::mem::take(&mut held.used)).unwrap_or_default()
    }
    /// Gives what was read to its end to `other`.
    pub(super) fn move_used(&mut self, other: &mut Lent) {
        if let Some(held) = self.0.as_mut().filter(|held| !held.used.is_empty()) {
            other.0.get_or_insert_default().used.append(&mut held.used);
        }
    }
    /// Gives back the memory of an empty one.
    pub(super) fn release(&mut self) {
        self.0.take_if(|held| held.packets.is_empty() && held.used.is_empty());
    }
}
