//! Packets of a connection that go to the reader as they are, instead of a copy into a ring.

use std::collections::VecDeque;

use inhost_buf::Packet;

use super::memory::Taken;

/// A packet, and the part of the allowance that counts its memory.
pub(super) struct LentPacket {
    pub(super) packet: Packet,
    pub(super) taken: Taken,
}

/// Packets that wait, in the order of the stream.
#[derive(Default)]
pub(super) struct Lent {
    packets: VecDeque<LentPacket>,
    /// Bytes of the first one that were read.
    read_bytes: usize,
    /// Packets that were read to their end, for the host to use again.
    used: Vec<LentPacket>,
}

impl Lent {
    pub(super) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }
    /// The memory that waits to be read.
    pub(super) fn waiting_bytes(&self) -> usize {
        self.packets.iter().map(|lent| lent.packet.capacity()).sum()
    }
    pub(super) fn push(&mut self, packet: LentPacket) {
        self.packets.push_back(packet);
    }
    /// Takes over all that waits in `other`; this one is empty.
    pub(super) fn take_over(&mut self, other: &mut Lent) {
        std::mem::swap(&mut self.packets, &mut other.packets);
    }
    /// Copies bytes out; how many.
    pub(super) fn read(&mut self, into: &mut [u8]) -> usize {
        let mut count = 0;
        while count < into.len()
            && let Some(front) = self.packets.front()
        {
            let bytes = &front.packet.bytes()[self.read_bytes..];
            let part = bytes.len().min(into.len() - count);
            into[count..count + part].copy_from_slice(&bytes[..part]);
            count += part;
            self.read_bytes += part;
            if part == bytes.len() {
                self.used.extend(self.packets.pop_front());
                self.read_bytes = 0;
            }
        }
        count
    }
    /// Copies bytes, and leaves them; how many.
    pub(super) fn peek(&self, into: &mut [u8]) -> usize {
        let (mut count, mut skipped) = (0, self.read_bytes);
        for lent in &self.packets {
            let bytes = &lent.packet.bytes()[skipped..];
            let part = bytes.len().min(into.len() - count);
            into[count..count + part].copy_from_slice(&bytes[..part]);
            (count, skipped) = (count + part, 0);
        }
        count
    }
    /// What was read to its end.
    pub(super) fn take_used(&mut self) -> Vec<LentPacket> {
        std::mem::take(&mut self.used)
    }
    /// Gives what was read to its end to `other`.
    pub(super) fn move_used(&mut self, other: &mut Lent) {
        other.used.append(&mut self.used);
    }
}
