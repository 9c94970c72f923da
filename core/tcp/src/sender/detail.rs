//! The sender's state, for debuggers.

use super::{SendBuffers, Sender};
use crate::common::Common;
use crate::detail::{LISTED, ns};
use crate::flags::SenderFlags;
use alloc::vec::Vec;
use inhost_base::{Deadline, Duration, Instant, Offset};
use inhost_event::SendCause;
use serde_json::{Value, json};

impl Sender {
    pub fn detail(&self, common: &Common, cause: SendCause, now: Instant) -> Value {
        let (sender, space) = (self, &self.space);
        let buffers = sender.buffers.as_deref();
        let history = sender.history();
        let ahead = |at: Offset| (space.unacknowledged() < at).then(|| at.count());
        json!({
            "initial": space.sequence(Offset::SYN).0,
            "unacknowledged": space.unacknowledged().count(),
            "next": space.next().count(),
            "window_bytes": space.window(),
            "window_scale": sender.scale,
            "window_edge": space.edge().count(),
            "largest_window_bytes": space.largest_window(),
            "urgent": ahead(space.urgent()),
            "pushed": ahead(space.push()),
            "segment_bytes": sender.segment_bytes(),
            "queue_bytes": buffers.map_or(0, |buffers| buffers.send.len()),
            "queue_capacity_bytes": buffers.map_or(0, |buffers| buffers.send.capacity_bytes()),
            "buffer_bytes": sender.send_buffer_bytes(common),
            "not_sent_bytes": sender.not_sent_bytes(common),
            "in_flight_bytes": sender.in_flight_bytes(),
            "oldest_in_flight_ns": buffers.and_then(|b| b.flight.records().front()).map(|one| ns(now.since(one.sent_at))),
            "since_sent_ns": ns(now.since(sender.sent_at)),
            "acknowledged_bytes": sender.acknowledged_bytes(),
            "retransmitted_segments": history.retransmitted_segments,
            "retransmitted_bytes": history.retransmitted_bytes,
            "is_corked": self.flags.contains(SenderFlags::CORKED),
            "cause": cause.text(),
        })
    }
    pub fn congestion_detail(&self) -> Value {
        let (congestion, buffers) = (&self.congestion, self.buffers.as_deref());
        let window = congestion.window();
        let rate = buffers.and_then(|buffers| buffers.rate);
        json!({
            "algorithm": congestion.name(),
            "window_bytes": window.window_bytes,
            "threshold_bytes": (!window.is_unexplored()).then_some(window.threshold_bytes),
            "in_slow_start": window.in_slow_start(),
            "pacing_bytes_per_second": buffers.map_or(0, |buffers| buffers.pacing_rate()),
            "delivery_bytes_per_second": rate.map_or(0, |rate| rate.bytes_per_s()),
            "own": (!congestion.is_custom()).then_some(congestion),
        })
    }
    pub fn recovery_detail(&self, common: &Common) -> Value {
        let (sender, recovery) = (self, &self.recovery);
        let buffers = sender.buffers.as_deref();
        let history = sender.history();
        let smoothed = common.round_trip().smoothed().unwrap_or(Duration::ZERO);
        let window = buffers.map(|b| b.flight.rack().reordering_window(recovery.state.has_end(), smoothed));
        json!({
            "state": recovery.state.text(),
            "until": recovery.state.has_end().then(|| recovery.recover.count()),
            "duplicate_acknowledgments": recovery.duplicates,
            "timeouts": history.timeouts,
            "sacked_bytes": sender.sums().sacked_bytes,
            "lost_bytes": sender.sums().lost_bytes,
            "retransmitted_in_flight_bytes": sender.sums().resent_bytes,
            "reordering_segments": sender.reordering_segments(common),
            "reordering_window_ns": window.map_or(0, ns),
            "reordering_was_seen": buffers.is_some_and(|buffers| buffers.flight.rack().has_seen_reordering()),
            "reorderings": history.reorderings,
            "duplicate_sacks": history.duplicate_sacks,
            "tests_timeout": recovery.forward,
            "tail_probe_is_out": buffers.is_some_and(|buffers| buffers.tail_probe.is_out()),
            "rate_reduction_bytes": buffers.filter(|_| recovery.reduces()).map(|b| b.reduction.figures()),
        })
    }
    pub fn round_trip_detail(&self, common: &Common, receiver: Option<Duration>) -> Value {
        let round_trip = common.round_trip();
        let least = self.buffers.as_deref().and_then(|buffers| buffers.flight.rack().least_round_trip());
        json!({
            "smoothed_ns": round_trip.smoothed().map(ns),
            "variation_ns": ns(round_trip.variation()),
            "least_ns": least.map(ns),
            "receiver_ns": receiver.map(ns),
            "timeout_ns": ns(round_trip.timeout(common.config())),
            "backoff": round_trip.backoff(),
        })
    }
    /// The sender's timers, in no order; the latest segment came or left at `last`.
    pub fn timers(&self, common: &Common, last: Instant) -> [(&'static str, Deadline); 6] {
        let persists = self.space.window() == 0 && !common.opens();
        let name = match () {
            () if persists => "persist",
            // It stands for both, and the probe comes first.
            () if self.leaves_out_record(common) && self.may_probe_tail(common) => "tail loss probe",
            () => "retransmission",
        };
        let buffered = |at: fn(&SendBuffers) -> Deadline| self.buffers.as_deref().map(at).unwrap_or_default();
        [
            (name, self.timer),
            ("keep-alive", self.keep_alive_at(common, last)),
            ("reordering", buffered(|buffers| buffers.reorder_at)),
            ("tail loss probe", buffered(|buffers| buffers.tail_probe.deadline())),
            ("pacing", buffered(|buffers| buffers.pace_at)),
            ("aggregation", buffered(|buffers| buffers.aggregate_until)),
        ]
    }
    pub fn scoreboard(&self) -> Vec<Value> {
        let Some(buffers) = self.buffers.as_deref() else { return Vec::new() };
        let transmission = |record: &crate::sender::flight::Record| {
            json!({
                "start": record.start.count(),
                "end": record.end.count(),
                "state": record.state.text(),
                "sent_ns": record.sent_at.as_nanos(),
                "retransmitted": record.retransmitted,
            })
        };
        buffers.flight.records().iter().take(LISTED).map(transmission).collect()
    }
}
