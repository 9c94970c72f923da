//! The deadline of a connection: the earliest of its timers.

use crate::Connection;
use inhost_base::{Duration, Instant};
use inhost_event::TcpState;

/// The boxed queues are freed after this time without data and without a segment.
pub(crate) const SHRINK_AFTER: Duration = Duration::from_secs(1);

impl Connection {
    /// When [`Connection::timeout`] is due next; [`Instant::FAR_FUTURE`] for never.
    #[inline(always)]
    pub fn deadline(&self) -> Instant {
        let buffers = match (self.sender.buffers(), self.receiver.buffers()) {
            (Some(buffers), _) if !buffers.are_empty() => buffers.deadline(),
            (sending, Some(buffers)) if !buffers.are_empty() => {
                sending.map_or(Instant::FAR_FUTURE, |buffers| buffers.deadline())
            }
            (None, None) => Instant::FAR_FUTURE,
            _ => self.last_segment_at() + SHRINK_AFTER,
        };
        self.sender
            .timer()
            .at()
            .min(self.receiver.acknowledge_at())
            .min(self.common.linger_at)
            .min(self.keep_alive_at())
            .min(buffers)
    }
    /// When a segment came or left.
    #[inline]
    pub(super) fn last_segment_at(&self) -> Instant {
        self.receiver.received_at().max(self.sender.sent_at())
    }
    /// When the next keep-alive probe is due. One that the link does not take counts: a neighbour that is gone answers no
    /// question for its address either.
    // spec: RFC9293 MUST-24 (the application can ask for it)
    // spec: RFC9293 MUST-26 (only an idle connection is probed)
    #[inline]
    pub(super) fn keep_alive_at(&self) -> Instant {
        let Some(keep_alive) = &self.common.config.keep_alive else { return Instant::FAR_FUTURE };
        let idle =
            matches!(self.common.state, TcpState::Established | TcpState::CloseWait | TcpState::FinWait2)
                && !self.sender.space().has_outstanding()
                && !self.sender.timer().is_running();
        if !idle {
            return Instant::FAR_FUTURE;
        }
        let probes = keep_alive.interval.times(u64::from(self.sender.keep_alive_probes()));
        self.last_segment_at() + keep_alive.idle + probes
    }
}
