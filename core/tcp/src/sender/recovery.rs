//! Where loss recovery stands, and what moves it (RFC 5681 §3, RFC 6582, RFC 6675 §5, RFC 8985, RFC 5682).

use super::{Recovery, Sender};
use crate::RecoveryState;
use crate::common::Common;
use crate::flags::{ConnectionFlags, SenderFlags};
use crate::offset::Offset;
use crate::sender::flight::AckSample;
use inhost_base::{Duration, Instant};
use inhost_congestion::Acknowledged;

impl Recovery {
    pub fn new(initial: Offset) -> Self {
        Recovery {
            state: RecoveryState::Open,
            duplicates: 0,
            forward: false,
            progressed: false,
            recover: initial.back(1),
        }
    }
    /// Nothing is amiss any more.
    pub fn end(&mut self) {
        (self.state, self.duplicates, self.forward) = (RecoveryState::Open, 0, false);
    }
    /// Whether the window is kept by recovery, not by congestion control.
    pub fn reduces(&self) -> bool {
        matches!(self.state, RecoveryState::Recovery | RecoveryState::WindowReduction)
    }
}

impl Sender {
    /// The next new data carries CWR, for any reduction of the window (RFC 3168 §6.1.2).
    pub fn tell_of_reduction(&mut self, common: &Common) {
        self.flags.set(SenderFlags::WINDOW_REDUCED, common.has(ConnectionFlags::ECN));
    }
    /// Reports an acknowledgment to congestion control.
    #[inline]
    pub fn grow(&mut self, common: &Common, bytes: u32, sample: &AckSample, now: Instant) {
        let outstanding = self.space.outstanding_bytes();
        let least = self.buffers.as_ref().and_then(|buffers| buffers.flight.rack().least_round_trip());
        self.congestion.acknowledged(&Acknowledged {
            bytes,
            acknowledged_bytes: self.acknowledged_bytes(),
            sent_bytes: self.acknowledged_bytes() + u64::from(outstanding),
            latest_round_trip: sample.newest_round_trip,
            smoothed_round_trip: common.round_trip().smoothed().unwrap_or(Duration::ZERO),
            least_round_trip: least.unwrap_or(Duration::ZERO),
            in_flight_before_bytes: sample.in_flight_before_bytes,
            recovering: self.recovery.reduces(),
            rate: sample.rate,
            now,
        });
    }
    /// Retransmits what is in flight in segments of more than `bytes`, without a congestion response: the path, or with 0
    /// the peer's window, has refused it.
    pub fn retransmit_longer_than(&mut self, bytes: u32) {
        if let Some(buffers) = &mut self.buffers {
            buffers.flight.mark_lost_where(|record| record.bytes() > bytes);
            buffers.flight.refuse();
        }
    }
    pub fn sacked_bytes(&self) -> u32 {
        self.buffers.as_ref().map_or(0, |buffers| buffers.flight.sacked_bytes())
    }
    /// Segments that may overtake another before that counts as lost.
    pub fn reordering_segments(&self, common: &Common) -> u32 {
        let learned = self.buffers.as_ref().map_or(0, |buffers| buffers.reordering);
        u32::from(learned.max(u16::from(common.config().reordering_segments))).max(1)
    }
}
