//! The connection's hot state and what its caller may do with it.

use super::Sender;
use crate::RecoveryState;
use inhost_base::Sequence;
use inhost_event::SendCause;

impl Sender {
    /// Bytes in the send queue.
    #[inline]
    pub fn queued_bytes(&self) -> u32 {
        self.buffers.as_ref().map_or(0, |buffers| buffers.send.len() as u32)
    }
    /// After the last byte of the stream so far. Meaningful from ESTABLISHED until our FIN is acknowledged.
    #[inline]
    pub fn stream_end(&self) -> Sequence {
        self.space.unacknowledged + self.queued_bytes()
    }
    /// Up to where the peer lets us send. It is counted from the acknowledgment that came with the window, not from
    /// `SND.UNA`, which a segment that was overtaken may have moved since.
    #[inline]
    pub fn send_edge(&self) -> Sequence {
        self.space.window_acknowledgment + self.space.window
    }
    /// Payload of a full segment of ours.
    #[inline]
    pub fn segment_bytes(&self) -> u32 {
        self.congestion.window.segment_bytes
    }
    /// Bytes thought to be in the network.
    // spec: RFC5681 3.2-6; RFC6675 4-3
    #[inline]
    pub fn in_flight_bytes(&self) -> u32 {
        let outstanding = self.space.next.since(self.space.unacknowledged);
        let counted = u32::from(self.recovery.duplicates) * self.segment_bytes();
        let absent = self.buffers.as_ref().map_or(0, |buffers| buffers.flight.absent_bytes());
        outstanding.saturating_sub(absent + counted)
    }
    /// Bytes of the stream ever sent.
    pub fn sent_bytes(&self) -> u64 {
        self.acknowledged_bytes + u64::from(self.space.next.since(self.space.unacknowledged))
    }
    /// Whether something is sent and not acknowledged.
    #[inline]
    pub fn has_outstanding(&self) -> bool {
        self.space.unacknowledged != self.space.next
    }
    /// The cause of waiting while a repair is under way, or `otherwise`.
    pub fn repair_cause_or(&self, otherwise: SendCause) -> SendCause {
        match self.recovery.state {
            RecoveryState::Recovery => SendCause::LossRecovery,
            RecoveryState::Loss => SendCause::Timeout,
            _ if self.buffers.as_ref().is_some_and(|buffers| buffers.flight.lost_bytes() > 0) => {
                SendCause::LossRecovery
            }
            _ => otherwise,
        }
    }
}
