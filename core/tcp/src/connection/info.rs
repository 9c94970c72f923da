//! All figures of a connection, for instruments.

use super::Connection;
use crate::Info;
use crate::flags::ConnectionFlags;
use inhost_base::{Duration, Instant};
use inhost_event::SendCause;

impl Connection {
    /// All figures as they stand at `now`.
    pub fn info(&self, now: Instant) -> Info {
        let Connection { common, sender, receiver, accounts } = self;
        let ledgers = accounts.at(now);
        let buffers = sender.buffers();
        let received = receiver.buffers();
        let rate = buffers.and_then(|buffers| buffers.rate);
        let (history, congestion) = (sender.history(), sender.congestion());
        Info {
            state: common.state(),
            age: ledgers.send.total(),
            send_unacknowledged: sender.space().sequence(sender.space().unacknowledged()),
            send_next: sender.space().sequence(sender.space().next()),
            send_window_bytes: sender.space().window(),
            send_window_scale: sender.scale(),
            send_segment_bytes: sender.segment_bytes() as u16,
            send_queue_bytes: buffers.map_or(0, |b| b.send.len()),
            send_queue_capacity_bytes: buffers.map_or(0, |b| b.send.capacity_bytes()),
            in_flight_bytes: sender.in_flight_bytes(),
            receive_next: receiver.space().next_sequence(),
            receive_window_bytes: receiver.space().window(),
            receive_window_scale: receiver.space().scale(),
            receive_queue_bytes: received.map_or(0, |b| b.receive.len()),
            receive_queue_capacity_bytes: received.map_or(0, |b| b.receive.capacity_bytes()),
            reassembly_pieces: received.map_or(0, |b| b.reassembly.pieces()),
            reassembly_bytes: received.map_or(0, |b| b.reassembly.bytes()),
            urgent_ahead_bytes: self.receiver().urgent_ahead(),
            urgent_has_come: self.receiver().urgent_has_come(),
            smoothed_round_trip: common.round_trip().smoothed(),
            round_trip_variation: common.round_trip().variation(),
            retransmission_timeout: common.timeout(),
            retransmission_backoff: common.round_trip().backoff(),
            congestion_control: congestion.name(),
            congestion_window_bytes: congestion.window.window_bytes,
            slow_start_threshold_bytes: congestion.window.threshold_bytes,
            timestamps: common.has(ConnectionFlags::TIMESTAMPS),
            window_scaling: common.has(ConnectionFlags::SCALING),
            sack: common.has(ConnectionFlags::SACK),
            ecn: common.has(ConnectionFlags::ECN),
            sent_bytes: sender.acknowledged_bytes(),
            received_bytes: receiver.space().received_bytes(),
            retransmitted_segments: history.retransmitted_segments,
            retransmitted_bytes: history.retransmitted_bytes,
            timeouts: history.timeouts,
            recovery: sender.recovery_state(),
            fast_open: common.fast_open(),
            sacked_bytes: sender.sacked_bytes(),
            lost_bytes: buffers.map_or(0, |b| b.flight.lost_bytes()),
            reorderings: history.reorderings,
            delivered_segments: u32::from(!common.opens())
                .wrapping_add(accounts.delivered_segments())
                .wrapping_add(buffers.map_or(0, |b| b.flight.delivered_segments)),
            syn_data_taken: common.has(ConnectionFlags::SYN_DATA),
            bursts_in_flight: buffers.map_or(0, |b| b.flight.bursts()),
            retransmitted_in_flight_bytes: buffers.map_or(0, |b| b.flight.retransmitted_in_flight_bytes()),
            unanswered_probes: sender.unanswered_probes(common),
            since_data_received: receiver.since_data(now),
            receive_segment_bytes: receiver.space().segment_bytes(),
            offered_segment_bytes: common.offered_mss(),
            reordering_segments: sender.reordering_segments(common) as u16,
            duplicate_sacks: history.duplicate_sacks,
            delivered_bytes: sender.acknowledged_bytes() + u64::from(sender.sacked_bytes()),
            congestion_marks: history.congestion_marks,
            min_round_trip: buffers.and_then(|b| b.flight.rack.least_round_trip()),
            delivery_rate_bytes_per_second: rate.map_or(0, |rate| rate.bytes_per_s()),
            delivery_rate_is_application_limited: rate.is_some_and(|rate| rate.application_limited),
            pacing_rate_bytes_per_second: buffers.map_or(0, |b| b.pacing_rate()),
            receive_round_trip: received.and_then(|b| b.sizing.round_trip()),
            not_sent_bytes: self.sender().not_sent_bytes() as usize,
            send_buffer_bytes: sender.send_buffer_bytes(common),
            receive_buffer_bytes: receiver.receive_buffer_bytes(common),
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
        }
    }
}

/// Time with something to send or to have acknowledged.
fn busy_of(send: &crate::SendLedger) -> Duration {
    let idle = send.of(SendCause::Opening) + send.of(SendCause::ApplicationIdle) + send.of(SendCause::Closed);
    send.total() - idle
}
