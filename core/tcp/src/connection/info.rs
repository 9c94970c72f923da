//! All figures of a connection, for instruments.

use super::Connection;
use crate::Info;
use crate::flags::ConnectionFlags;
use crate::state::Allows;
use inhost_base::{Duration, Instant};
use inhost_event::SendCause;

impl Info {
    /// The figures of `connection` at `now`.
    pub(super) fn of(connection: &Connection, now: Instant) -> Info {
        let ledgers = connection.accounts.at(now);
        let buffers = connection.sender.buffers.as_deref();
        let received = connection.receiver.buffers.as_deref();
        let rate = buffers.and_then(|buffers| buffers.rate);
        let history = connection.sender.history.as_deref().copied().unwrap_or_default();
        Info {
            state: connection.common.state,
            age: ledgers.send.total(),
            send_unacknowledged: connection.sender.space.sequence(connection.sender.space.unacknowledged()),
            send_next: connection.sender.space.sequence(connection.sender.space.next()),
            send_window_bytes: connection.sender.space.window,
            send_window_scale: connection.sender.scale,
            send_segment_bytes: connection.sender.segment_bytes() as u16,
            send_queue_bytes: buffers.map_or(0, |b| b.send.len()),
            send_queue_capacity_bytes: buffers.map_or(0, |b| b.send.capacity_bytes()),
            in_flight_bytes: connection.sender.in_flight_bytes(),
            receive_next: connection.receiver.space.sequence(connection.receiver.space.next()),
            receive_window_bytes: connection.receiver.space.window(),
            receive_window_scale: connection.receiver.space.scale,
            receive_queue_bytes: received.map_or(0, |b| b.receive.len()),
            receive_queue_capacity_bytes: received.map_or(0, |b| b.receive.capacity_bytes()),
            reassembly_pieces: received.map_or(0, |b| b.reassembly.pieces()),
            reassembly_bytes: received.map_or(0, |b| b.reassembly.bytes()),
            urgent_ahead_bytes: connection.receiver().urgent_ahead(),
            urgent_has_come: connection.receiver().urgent_has_come(),
            smoothed_round_trip: connection.common.round_trip.smoothed(),
            round_trip_variation: connection.common.round_trip.variation(),
            retransmission_timeout: connection.common.round_trip.timeout(&connection.common.config),
            retransmission_backoff: connection.common.round_trip.backoff,
            congestion_control: connection.sender.congestion.name(),
            congestion_window_bytes: connection.sender.congestion.window.window_bytes,
            slow_start_threshold_bytes: connection.sender.congestion.window.threshold_bytes,
            timestamps: connection.common.flags.contains(ConnectionFlags::TIMESTAMPS),
            window_scaling: connection.common.flags.contains(ConnectionFlags::SCALING),
            sack: connection.common.flags.contains(ConnectionFlags::SACK),
            ecn: connection.common.flags.contains(ConnectionFlags::ECN),
            sent_bytes: connection.sender.acknowledged_bytes(),
            received_bytes: connection.receiver.space.received_bytes(),
            retransmitted_segments: history.retransmitted_segments,
            retransmitted_bytes: history.retransmitted_bytes,
            timeouts: history.timeouts,
            recovery: connection.sender.recovery.state,
            fast_open: connection.common.fast_open,
            sacked_bytes: connection.sender.sacked_bytes(),
            lost_bytes: buffers.map_or(0, |b| b.flight.lost_bytes()),
            reorderings: history.reorderings,
            delivered_segments: u32::from(!connection.common.state.opens())
                .wrapping_add(connection.accounts.delivered_segments)
                .wrapping_add(buffers.map_or(0, |b| b.flight.delivered_segments)),
            syn_data_taken: connection.common.flags.contains(ConnectionFlags::SYN_DATA),
            bursts_in_flight: buffers.map_or(0, |b| b.flight.bursts()),
            retransmitted_in_flight_bytes: buffers.map_or(0, |b| b.flight.retransmitted_in_flight_bytes()),
            unanswered_probes: connection.sender.unanswered_probes(&connection.common),
            since_data_received: connection.receiver.ack_timing.since_data(now),
            receive_segment_bytes: connection.receiver.space.segment_bytes,
            offered_segment_bytes: connection
                .common
                .offered_mss
                .min(connection.common.config.mss_limit_bytes),
            reordering_segments: connection.sender.reordering_segments(&connection.common) as u16,
            duplicate_sacks: history.duplicate_sacks,
            delivered_bytes: connection.sender.acknowledged_bytes()
                + u64::from(connection.sender.sacked_bytes()),
            congestion_marks: history.congestion_marks,
            min_round_trip: buffers.and_then(|b| b.flight.rack.least_round_trip()),
            delivery_rate_bytes_per_second: rate.map_or(0, |rate| rate.bytes_per_s()),
            delivery_rate_is_application_limited: rate.is_some_and(|rate| rate.application_limited),
            pacing_rate_bytes_per_second: buffers.map_or(0, |b| b.pacing_rate()),
            receive_round_trip: received.and_then(|b| b.sizing.round_trip()),
            not_sent_bytes: connection.sender().not_sent_bytes() as usize,
            send_buffer_bytes: connection.sender.send_buffer_bytes(&connection.common),
            receive_buffer_bytes: connection.receiver.receive_buffer_bytes(&connection.common),
            path_segment_bytes: connection.common.path_mss,
            peer_segment_bytes: connection.common.peer_mss,
            busy: busy_of(&ledgers.send),
            receive_window_limited: ledgers.send.of(SendCause::ReceiverWindow)
                + ledgers.send.of(SendCause::ClosedWindow),
            send_buffer_limited: ledgers.send.of(SendCause::SendBuffer),
            idle: now.since(connection.receiver.received_at.max(connection.sender.sent_at)),
            error: connection.common.error,
            soft_error: connection.common.soft_error,
            send_cause: connection.accounts.send_cause(),
            receive_cause: connection.accounts.receive_cause(),
            ledgers,
        }
    }
}

/// Time with something to send or to have acknowledged.
fn busy_of(send: &crate::SendLedger) -> Duration {
    let idle = send.of(SendCause::Opening) + send.of(SendCause::ApplicationIdle) + send.of(SendCause::Closed);
    send.total() - idle
}
