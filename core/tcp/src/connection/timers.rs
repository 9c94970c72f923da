//! The deadline of a connection: the earliest of its timers.

use crate::Connection;
use inhost_base::{Deadline, Duration, Instant};

/// The boxed queues are freed after this time without data and without a segment.
pub(crate) const SHRINK_AFTER: Duration = Duration::from_secs(1);

impl Connection {
    /// When [`Connection::timeout`] is due next; [`Instant::FAR_FUTURE`] for never.
    #[inline(always)]
    pub fn deadline(&self) -> Instant {
        let buffers = match (self.sender.buffers(), self.receiver.buffers()) {
            (Some(buffers), _) if !buffers.are_empty() => buffers.deadline(),
            (sending, Some(buffers)) if !buffers.are_empty() => {
                sending.map(|buffers| buffers.deadline()).unwrap_or_default()
            }
            (None, None) => Deadline::NEVER,
            _ => Deadline::at(self.last_segment_at() + SHRINK_AFTER),
        };
        self.sender
            .timer()
            .min(self.receiver.acknowledge_at())
            .min(self.common.linger_at())
            .min(self.sender.keep_alive_at(&self.common, self.last_segment_at()))
            .min(buffers)
            .instant()
    }
    /// When a segment came or left.
    pub(super) fn last_segment_at(&self) -> Instant {
        self.receiver.received_at().max(self.sender.sent_at())
    }
}
