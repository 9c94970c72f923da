//! A queue in order. What it cannot take is dropped before it gets here.

use std::collections::VecDeque;

use inhost_buf::Packet;

use super::Waiting;

pub(super) fn push(frames: &mut VecDeque<Waiting>, waiting: Waiting) {
    frames.push_back(waiting);
}

pub(super) fn pop(frames: &mut VecDeque<Waiting>) -> Option<Packet> {
    frames.pop_front().map(|waiting| waiting.frame)
}

#[cfg(test)]
mod tests {
    use crate::buffers::Buffers;
    use crate::link::{LinkStatistics, Losses};
    use crate::queue::{Around, Queue, QueueConfig, QueueLimit};
    use inhost_base::Instant;

    /// How many of ten frames of 100 bytes each are kept.
    fn kept(limit: QueueLimit) -> (usize, u64) {
        let config = QueueConfig { limit, ..QueueConfig::tail_drop(0) };
        let (mut buffers, mut statistics) = (Buffers::default(), LinkStatistics::default());
        let mut losses = Losses::default();
        let (buffers, statistics, losses) = (&mut buffers, &mut statistics, &mut losses);
        let mut around = Around { buffers, statistics, losses, is_ethernet: false };
        let mut queue = Queue::new(&config, 0);
        for number in 0..10 {
            let frame = around.buffers.copy(&[number; 100]);
            queue.push(frame, Instant::ZERO, &config, &mut around);
        }
        let mut count = 0;
        while let Some(frame) = queue.pop(Instant::ZERO, &mut around) {
            assert_eq!(usize::from(frame.bytes()[0]), count, "out of order");
            count += 1;
        }
        assert!(queue.is_empty());
        (count, statistics.overflowed)
    }

    #[test]
    fn packets_and_bytes_limit_what_waits_and_the_last_are_dropped() {
        assert_eq!(kept(QueueLimit::Packets(4)), (4, 6));
        assert_eq!(kept(QueueLimit::Bytes(399)), (3, 7));
        assert_eq!(kept(QueueLimit::Bytes(400)), (4, 6));
        // One frame always fits, or nothing would ever pass.
        assert_eq!(kept(QueueLimit::Bytes(50)), (1, 9));
    }
}
