//! A connection's whole state, read from both halves.

use super::Connection;
use super::timers::SHRINK_AFTER;
use crate::detail::{
    AgreedDetail, CongestionDetail, Detail, LISTED, OptionsDetail, ReceiveDetail, RecoveryDetail,
    RoundTripDetail, SendDetail, Spent, Timer, Transmission,
};
use crate::flags::{ConnectionFlags, ReceiverFlags};
use crate::offset::Offset;
use crate::state::Allows;
use alloc::string::ToString;
use alloc::vec::Vec;
use inhost_base::{Duration, Instant};
use inhost_event::{ReceiveCause, SendCause, TcpState};

impl Connection {
    /// The whole state as it stands at `now`, for a debugger. It costs a list of at most [`LISTED`] transmissions.
    pub fn detail(&self, now: Instant) -> Detail<'_> {
        let ledgers = self.accounts.at(now);
        Detail {
            now_ns: now.as_nanos(),
            age_ns: ns(ledgers.send.total()),
            state: self.common.state.text(),
            error: self.common.error.map(|error| error.to_string()),
            soft_error: self.common.soft_error.map(|error| error.to_string()),
            send: self.send_detail(now),
            receive: self.receive_detail(now),
            round_trip: self.round_trip_detail(),
            congestion: self.congestion_detail(),
            recovery: self.recovery_detail(),
            timers: self.timers(),
            scoreboard: self.scoreboard(),
            agreed: self.agreed_detail(),
            options: self.options_detail(),
            policy: &self.common.config.policy,
            send_ledger: SendCause::ALL
                .iter()
                .map(|&cause| Spent { cause: cause.text(), time_ns: ns(ledgers.send.of(cause)) })
                .collect(),
            receive_ledger: ReceiveCause::ALL
                .iter()
                .map(|&cause| Spent { cause: cause.text(), time_ns: ns(ledgers.receive.of(cause)) })
                .collect(),
        }
    }
    fn send_detail(&self, now: Instant) -> SendDetail {
        let (sender, space) = (&self.sender, &self.sender.space);
        let buffers = sender.buffers.as_deref();
        let history = sender.history.as_deref().copied().unwrap_or_default();
        let ahead = |at: Offset| (space.unacknowledged() < at).then(|| at.count());
        SendDetail {
            initial: space.initial.0,
            unacknowledged: space.unacknowledged().count(),
            next: space.next().count(),
            window_bytes: space.window,
            window_scale: sender.scale,
            window_edge: space.edge().count(),
            largest_window_bytes: space.largest_window,
            urgent: ahead(space.urgent()),
            pushed: ahead(space.push()),
            segment_bytes: sender.segment_bytes(),
            queue_bytes: buffers.map_or(0, |buffers| buffers.send.len()),
            queue_capacity_bytes: buffers.map_or(0, |buffers| buffers.send.capacity_bytes()),
            buffer_bytes: sender.send_buffer_bytes(&self.common),
            not_sent_bytes: sender.not_sent_bytes(&self.common),
            in_flight_bytes: sender.in_flight_bytes(),
            oldest_in_flight_ns: buffers
                .and_then(|buffers| buffers.flight.first())
                .map(|first| ns(now.since(first.sent_at))),
            since_sent_ns: ns(now.since(sender.sent_at)),
            acknowledged_bytes: sender.acknowledged_bytes(),
            retransmitted_segments: history.retransmitted_segments,
            retransmitted_bytes: history.retransmitted_bytes,
            is_corked: self.sender().is_corked(),
            cause: self.accounts.send_cause().text(),
        }
    }
    fn receive_detail(&self, now: Instant) -> ReceiveDetail {
        let (receiver, space) = (&self.receiver, &self.receiver.space);
        let buffers = receiver.buffers.as_deref();
        let block = |(start, end): (Offset, Offset)| (start.count(), end.count());
        ReceiveDetail {
            initial: space.initial.0,
            next: space.next().count(),
            window_bytes: space.window(),
            window_scale: space.scale,
            acknowledged: space.acknowledged().count(),
            urgent: self.receiver().urgent_ahead().map(|_| space.urgent.count()),
            segment_bytes: space.segment_bytes,
            queue_bytes: buffers.map_or(0, |buffers| buffers.receive.len()),
            queue_capacity_bytes: buffers.map_or(0, |buffers| buffers.receive.capacity_bytes()),
            buffer_bytes: receiver.receive_buffer_bytes(&self.common),
            received_bytes: receiver.space.received_bytes(),
            since_received_ns: ns(now.since(receiver.received_at)),
            reassembly_bytes: buffers.map_or(0, |buffers| buffers.reassembly.bytes()),
            reassembly_pieces: buffers.map_or(0, |buffers| buffers.reassembly.pieces()),
            reassembly: buffers.map_or_else(Vec::new, |buffers| {
                buffers.reassembly.blocks().take(LISTED).map(block).collect()
            }),
            sack: receiver.sack_blocks(&self.common).iter().copied().map(block).collect(),
            acknowledgment_is_due: receiver.flags.has(ReceiverFlags::ACKNOWLEDGE),
            is_quick: receiver.ack_timing.is_quick(),
            cause: self.accounts.receive_cause().text(),
        }
    }
    fn round_trip_detail(&self) -> RoundTripDetail {
        let round_trip = &self.sender.timer.round_trip;
        let least = self.sender.buffers.as_deref().and_then(|buffers| buffers.flight.rack.least_round_trip());
        let receiver = self.receiver.buffers.as_deref().and_then(|buffers| buffers.sizing.round_trip());
        RoundTripDetail {
            smoothed_ns: round_trip.smoothed().map(ns),
            variation_ns: ns(round_trip.variation()),
            least_ns: least.map(ns),
            receiver_ns: receiver.map(ns),
            timeout_ns: ns(round_trip.timeout(&self.common.config)),
            backoff: round_trip.backoff,
        }
    }
    fn congestion_detail(&self) -> CongestionDetail<'_> {
        let (congestion, buffers) = (&self.sender.congestion, self.sender.buffers.as_deref());
        let window = &congestion.window;
        let rate = buffers.and_then(|buffers| buffers.rate);
        CongestionDetail {
            algorithm: congestion.name(),
            window_bytes: window.window_bytes,
            threshold_bytes: (!window.is_unexplored()).then_some(window.threshold_bytes),
            in_slow_start: window.in_slow_start(),
            pacing_bytes_per_second: buffers.map_or(0, |buffers| buffers.pacing_rate()),
            delivery_bytes_per_second: rate.map_or(0, |rate| rate.bytes_per_s()),
            own: (!congestion.is_custom()).then_some(congestion),
        }
    }
    fn recovery_detail(&self) -> RecoveryDetail {
        let (sender, recovery) = (&self.sender, &self.sender.recovery);
        let buffers = sender.buffers.as_deref();
        let history = sender.history.as_deref().copied().unwrap_or_default();
        let smoothed = sender.timer.round_trip.smoothed().unwrap_or(Duration::ZERO);
        let window = buffers.map(|b| b.flight.rack.reordering_window(recovery.state.has_end(), smoothed));
        RecoveryDetail {
            state: recovery.state.text(),
            until: recovery.state.has_end().then(|| recovery.recover.count()),
            duplicate_acknowledgments: recovery.duplicates,
            timeouts: history.timeouts,
            sacked_bytes: sender.sacked_bytes(),
            lost_bytes: buffers.map_or(0, |buffers| buffers.flight.lost_bytes()),
            retransmitted_in_flight_bytes: buffers
                .map_or(0, |buffers| buffers.flight.retransmitted_in_flight_bytes()),
            reordering_segments: sender.reordering_segments(&self.common),
            reordering_window_ns: window.map_or(0, ns),
            reordering_was_seen: buffers.is_some_and(|buffers| buffers.flight.rack.reordering_seen),
            reorderings: history.reorderings,
            duplicate_sacks: history.duplicate_sacks,
            tests_timeout: recovery.forward,
            tail_probe_is_out: buffers.is_some_and(|buffers| buffers.tail_probe.is_out()),
            rate_reduction_bytes: buffers
                .filter(|_| recovery.reduces())
                .map(|buffers| buffers.reduction.figures()),
        }
    }
    /// Every timer that runs, by when it is due.
    fn timers(&self) -> Vec<Timer> {
        let (state, buffers) = (self.common.state, self.sender.buffers.as_deref());
        let persists = self.sender.space.window == 0 && !state.opens();
        let lingering = match state {
            TcpState::TimeWait => "time-wait",
            TcpState::FinWait2 => "fin-wait-2",
            _ => "orphan",
        };
        let buffered =
            |at: fn(&crate::sender::buffers::SendBuffers) -> Instant| buffers.map_or(Instant::FAR_FUTURE, at);
        let last = self.receiver.received_at.max(self.sender.sent_at);
        let holds_memory = self.has_buffers() && self.holds_nothing();
        let release_at = if holds_memory { last + SHRINK_AFTER } else { Instant::FAR_FUTURE };
        let all = [
            (if persists { "persist" } else { "retransmission" }, self.sender.timer.at),
            ("delayed acknowledgment", self.receiver.acknowledge_at),
            (lingering, self.common.linger_at),
            ("keep-alive", self.keep_alive_at()),
            ("reordering", buffered(|buffers| buffers.reorder_at)),
            ("tail loss probe", buffered(|buffers| buffers.tail_probe.at)),
            ("pacing", buffered(|buffers| buffers.pace_at)),
            ("aggregation", buffered(|buffers| buffers.aggregate_until)),
            ("memory release", release_at),
        ];
        let running = all.into_iter().filter(|(_, at)| *at != Instant::FAR_FUTURE);
        let mut timers: Vec<Timer> =
            running.map(|(name, at)| Timer { name, due_ns: at.as_nanos() }).collect();
        timers.sort_by_key(|timer| timer.due_ns);
        timers
    }
    fn scoreboard(&self) -> Vec<Transmission> {
        let Some(buffers) = self.sender.buffers.as_deref() else { return Vec::new() };
        let transmission = |record: &crate::sender::flight::Record| Transmission {
            start: record.start.count(),
            end: record.end.count(),
            state: record.state.text(),
            sent_ns: record.sent_at.as_nanos(),
            retransmitted: record.retransmitted,
        };
        buffers.flight.records().take(LISTED).map(transmission).collect()
    }
    fn agreed_detail(&self) -> AgreedDetail {
        let common = &self.common;
        let has = |flag| common.flags.has(flag);
        AgreedDetail {
            active: has(ConnectionFlags::ACTIVE_OPEN),
            timestamps: has(ConnectionFlags::TIMESTAMPS),
            window_scaling: has(ConnectionFlags::SCALING),
            sack: has(ConnectionFlags::SACK),
            ecn: has(ConnectionFlags::ECN),
            fast_open: common.fast_open.text(),
            peer_segment_bytes: common.peer_mss,
            path_segment_bytes: common.path_mss,
            offered_segment_bytes: common.offered_mss.min(common.config.mss_limit_bytes),
        }
    }
    fn options_detail(&self) -> OptionsDetail {
        let config = &self.common.config;
        OptionsDetail {
            nagle: config.nagle,
            pacing: config.pacing,
            rack: config.rack,
            tail_loss_probe: config.tail_loss_probe,
            forward_rto: config.forward_rto,
            proportional_rate_reduction: config.proportional_rate_reduction,
            undo: config.undo,
            initial_window_segments: config.initial_window_segments,
            acknowledgment_delay_ns: ns(config.acknowledgment_delay),
            min_retransmission_timeout_ns: ns(config.min_retransmission_timeout),
            max_retransmission_timeout_ns: ns(config.max_retransmission_timeout),
            user_timeout_ns: ns(config.user_timeout),
            time_wait_ns: ns(config.time_wait),
            keep_alive_idle_ns: config.keep_alive.map(|keep_alive| ns(keep_alive.idle)),
            send_buffer_limit_bytes: config.send_buffer_limit_bytes,
            receive_buffer_limit_bytes: config.receive_buffer_limit_bytes,
            segment_limit_bytes: config.mss_limit_bytes,
        }
    }
}

fn ns(duration: Duration) -> u64 {
    duration.as_nanos()
}
