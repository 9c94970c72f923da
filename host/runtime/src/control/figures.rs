//! Connection information as JSON. Times are in nanoseconds.

use inhost_base::Duration;
use inhost_tcp::Info;
use serde_json::{Map, Value, json};

/// Every figure of a connection, both ledgers with it.
pub(super) fn connection(info: &Info) -> Value {
    json!({
        "age_ns": ns(info.age),
        "idle_ns": ns(info.idle),
        "send": send(info),
        "receive": receive(info),
        "smoothed_round_trip_ns": info.smoothed_round_trip.map(ns),
        "round_trip_variation_ns": ns(info.round_trip_variation),
        "min_round_trip_ns": info.min_round_trip.map(ns),
        "receive_round_trip_ns": info.receive_round_trip.map(ns),
        "retransmission_timeout_ns": ns(info.retransmission_timeout),
        "retransmission_backoff": info.retransmission_backoff,
        "retransmitted_segments": info.retransmitted_segments,
        "retransmitted_bytes": info.retransmitted_bytes,
        "timeouts": info.timeouts,
        "recovery": recovery(info),
        "rates": rates(info),
        "limited": limited(info),
        "agreed": agreed(info),
        "congestion_control": info.congestion_control,
        "congestion_window_bytes": info.congestion_window_bytes,
        "slow_start_threshold_bytes": info.slow_start_threshold_bytes,
        "timestamps": info.timestamps,
        "error": info.error.map(|error| error.to_string()),
        "soft_error": info.soft_error.map(|error| error.to_string()),
    })
}

fn ns(time: Duration) -> Value {
    Value::from(time.as_nanos())
}

fn send(info: &Info) -> Value {
    let ledger: Map<String, Value> =
        info.ledgers.send.iter().map(|(cause, time)| (cause.text().to_owned(), ns(time))).collect();
    json!({
        "unacknowledged": info.send_unacknowledged.0,
        "next": info.send_next.0,
        "window_bytes": info.send_window_bytes,
        "window_scale": info.send_window_scale,
        "segment_bytes": info.send_segment_bytes,
        "path_segment_bytes": info.path_segment_bytes,
        "peer_segment_bytes": info.peer_segment_bytes,
        "queue_bytes": info.send_queue_bytes,
        "queue_capacity_bytes": info.send_queue_capacity_bytes,
        "buffer_bytes": info.send_buffer_bytes,
        "not_sent_bytes": info.not_sent_bytes,
        "in_flight_bytes": info.in_flight_bytes,
        "bytes": info.sent_bytes,
        "delivered_bytes": info.delivered_bytes,
        "unanswered_probes": info.unanswered_probes,
        "cause": info.send_cause.text(),
        "ledger_ns": ledger,
    })
}

fn receive(info: &Info) -> Value {
    let ledger: Map<String, Value> =
        info.ledgers.receive.iter().map(|(cause, time)| (cause.text().to_owned(), ns(time))).collect();
    json!({
        "next": info.receive_next.0,
        "window_bytes": info.receive_window_bytes,
        "window_scale": info.receive_window_scale,
        "segment_bytes": info.receive_segment_bytes,
        "offered_segment_bytes": info.offered_segment_bytes,
        "queue_bytes": info.receive_queue_bytes,
        "queue_capacity_bytes": info.receive_queue_capacity_bytes,
        "buffer_bytes": info.receive_buffer_bytes,
        "reassembly_pieces": info.reassembly_pieces,
        "reassembly_bytes": info.reassembly_bytes,
        "urgent_ahead_bytes": info.urgent_ahead_bytes,
        "bytes": info.received_bytes,
        "since_data_ns": ns(info.since_data_received),
        "cause": info.receive_cause.text(),
        "ledger_ns": ledger,
    })
}

/// State and counters of loss recovery.
fn recovery(info: &Info) -> Value {
    json!({
        "state": info.recovery.text(),
        "sacked_bytes": info.sacked_bytes,
        "lost_bytes": info.lost_bytes,
        "retransmitted_in_flight_bytes": info.retransmitted_in_flight_bytes,
        "reordering_segments": info.reordering_segments,
        "reorderings": info.reorderings,
        "duplicate_sacks": info.duplicate_sacks,
        "congestion_marks": info.congestion_marks,
    })
}

fn rates(info: &Info) -> Value {
    json!({
        "delivery_bytes_per_second": info.delivery_rate_bytes_per_second,
        "delivery_is_application_limited": info.delivery_rate_is_application_limited,
        "pacing_bytes_per_second": info.pacing_rate_bytes_per_second,
    })
}

/// Time per cause of waiting.
fn limited(info: &Info) -> Value {
    json!({
        "busy_ns": ns(info.busy),
        "receive_window_ns": ns(info.receive_window_limited),
        "send_buffer_ns": ns(info.send_buffer_limited),
    })
}

/// Options negotiated with the SYNs.
fn agreed(info: &Info) -> Value {
    json!({
        "timestamps": info.timestamps,
        "window_scaling": info.window_scaling,
        "sack": info.sack,
        "ecn": info.ecn,
        "fast_open": info.fast_open.text(),
    })
}
