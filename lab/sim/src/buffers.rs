//! Memory of frames on their way.

use inhost_buf::{Packet, Pool};

/// The buffers of one network. They are of the same sizes as a host's own, so that a frame that arrives changes places
/// with a free buffer of the host, and is not copied.
#[derive(Debug)]
pub(crate) struct Buffers(Pool);

impl Default for Buffers {
    fn default() -> Self {
        Buffers(Pool::new(usize::MAX))
    }
}

impl Buffers {
    /// A packet of `length` bytes, of any content. A link's frame always fits the largest buffer.
    pub(crate) fn take(&mut self, length: usize) -> Packet {
        let mut packet = self.0.take(length).unwrap_or_default();
        packet.extend(length);
        packet
    }
    /// A copy of `bytes`.
    pub(crate) fn copy(&mut self, bytes: &[u8]) -> Packet {
        let mut packet = self.0.take(bytes.len()).unwrap_or_default();
        packet.append(bytes);
        packet
    }
    /// Takes a buffer back.
    pub(crate) fn give(&mut self, packet: Packet) {
        self.0.give(packet);
    }
    /// Moves a frame into memory of `pool`, or loses it when there is none; whether it was moved.
    pub(crate) fn hand_over(&mut self, frame: Packet, pool: &mut Pool) -> Option<Packet> {
        let mut free = pool.take(frame.len());
        let moved = match &mut free {
            Some(free) if free.capacity() == frame.capacity() => {
                let free = std::mem::take(free);
                self.0.give(free);
                return Some(frame);
            }
            Some(other) => {
                other.append(frame.bytes());
                free
            }
            None => None,
        };
        self.0.give(frame);
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_changes_hands_and_both_pools_count_right() {
        let (mut buffers, mut pool) = (Buffers::default(), Pool::new(5000));
        let frame = buffers.copy(&[7; 1500]);
        let given = buffers.hand_over(frame, &mut pool).unwrap();
        assert_eq!((given.bytes(), pool.outstanding_bytes()), (&[7; 1500][..], given.capacity()));
        assert_eq!(buffers.0.outstanding_bytes(), 0);
        let frame = buffers.copy(&[8; 4000]);
        assert!(buffers.hand_over(frame, &mut pool).is_none());
        assert_eq!((buffers.0.outstanding_bytes(), pool.outstanding_bytes()), (0, given.capacity()));
        pool.give(given);
        assert_eq!(pool.outstanding_bytes(), 0);
    }
}
