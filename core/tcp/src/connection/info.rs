//! All figures of a connection, for instruments.

use super::Connection;
use crate::Info;
use crate::flags::ConnectionFlags;
use inhost_base::{Duration, Instant};
use inhost_event::SendCause;

impl Connection {
    /// All figures as they stand at `now`.
    pub fn info(&self, now: Instant) -> Info {
        let Connection { common, accounts, .. } = self;
        let ledgers = accounts.at(now);
        let mut info = Info {
            state: common.state(),
            age: ledgers.send.total(),
            urgent_ahead_bytes: self.receiver().urgent_ahead(),
            urgent_has_come: self.receiver().urgent_has_come(),
            smoothed_round_trip: common.round_trip().smoothed(),
            round_trip_variation: common.round_trip().variation(),
            retransmission_timeout: common.timeout(),
            retransmission_backoff: common.round_trip().backoff(),
            timestamps: common.has(ConnectionFlags::TIMESTAMPS),
            window_scaling: common.has(ConnectionFlags::SCALING),
            sack: common.has(ConnectionFlags::SACK),
            ecn: common.has(ConnectionFlags::ECN),
            fast_open: common.fast_open(),
            delivered_segments: u32::from(!common.opens()).wrapping_add(accounts.delivered_segments()),
            syn_data_taken: common.has(ConnectionFlags::SYN_DATA),
            offered_segment_bytes: common.offered_mss(),
            path_segment_bytes: common.path_mss(),
            peer_segment_bytes: common.peer_mss(),
            busy: busy_of(&ledgers.send),
            receive_window_limited: ledgers.send.of(SendCause::ReceiverWindow)
                + ledgers.send.of(SendCause::ClosedWindow),
            send_buffer_limited: ledgers.send.of(SendCause::SendBuffer),
            idle: now.since(self.last_segment_at()),
            error: common.error(),
            soft_error: common.soft_error(),
            send_cause: accounts.send_cause(),
            receive_cause: accounts.receive_cause(),
            ledgers,
            ..Info::default()
        };
        self.sender.tell(common, &mut info);
        self.receiver.tell(common, &mut info, now);
        info
    }
}

/// Time with something to send or to have acknowledged.
fn busy_of(send: &crate::SendLedger) -> Duration {
    let idle = send.of(SendCause::Opening) + send.of(SendCause::ApplicationIdle) + send.of(SendCause::Closed);
    send.total() - idle
}
