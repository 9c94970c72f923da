//! The retransmission timer, the persist timer, and how long the peer may be silent (RFC 6298, RFC 9293 §3.8).

use super::Sender;
use crate::common::Common;
use crate::flags::SenderFlags;
use crate::offset::Offset;
use crate::sender::next::Next;
use inhost_base::Instant;
use inhost_event::SendCause;

impl Sender {
    /// The application has closed the socket. Until our FIN is acknowledged, the orphan timer checks that the peer accepts the
    /// remaining data.
    pub fn orphaned(&mut self, common: &mut Common, now: Instant) {
        if common.has_fin_outstanding() {
            common.linger_at = now + common.config.orphan_timeout;
            let acknowledged_bytes = self.acknowledged_bytes();
            self.buffers_mut().orphan_from_bytes = acknowledged_bytes;
        }
    }
    /// A segment of the peer's shows that it is there.
    #[inline]
    pub fn peer_answers(&mut self) {
        self.keep_alive_probes = 0;
        self.flags.remove(SenderFlags::CLEARED_ON_ARRIVAL);
    }
    /// Probes, of the window or of an idle peer, that the peer has not answered.
    pub fn unanswered_probes(&self, common: &Common) -> u8 {
        let probes_window = self.space.window == 0 && !common.opens();
        if probes_window { common.round_trip.backoff } else { self.keep_alive_probes }
    }
    /// The path is broken and not congested: the time-out need not have been doubled (RFC 6069).
    pub fn revert_back_off(&mut self, common: &mut Common, at: Offset, now: Instant) {
        let oldest = self.buffers.as_ref().and_then(|buffers| buffers.flight.first());
        let Some(oldest) = oldest.filter(|oldest| oldest.start == at && !common.opens()) else {
            return;
        };
        if common.round_trip.backoff > 0 && at == self.space.unacknowledged() {
            common.round_trip.backoff -= 1;
            self.timer.at = (oldest.sent_at + common.round_trip.timeout(&common.config)).max(now);
        }
    }
    /// What sending waits for, with `next` to be sent and `before` as the cause so far. Starts the persist timer where the
    /// peer's window is the cause.
    #[inline]
    pub fn cause(
        &mut self,
        common: &Common,
        next: Result<Next, SendCause>,
        before: SendCause,
        now: Instant,
    ) -> SendCause {
        match next {
            // Before ESTABLISHED both ledgers stay at Opening, even while Fast Open sends data (RFC 7413).
            _ if common.opens() => SendCause::Opening,
            // An acknowledgment holds no data up: what data waits for is what it was.
            Ok(Next::Acknowledge) => match before {
                SendCause::Opening => SendCause::ApplicationIdle,
                cause => cause,
            },
            // A segment is ready and `transmit` was not called: it waits for the link, or for the end of the round.
            Ok(_) => SendCause::Link,
            Err(cause) => {
                if matches!(cause, SendCause::ClosedWindow | SendCause::ReceiverWindow)
                    && !self.space.has_outstanding()
                    && !self.timer.is_running()
                {
                    self.timer.progress_at = now;
                    self.timer.arm(common, now);
                }
                cause
            }
        }
    }
}
