//! Our information structure by the names that scripts use, which are its own.

use crate::side::Figure;
use inhost_base::Duration;
use inhost_tcp::Info;

/// The figure called `name`.
pub(super) fn figure(info: &Info, name: &str) -> Result<Figure, String> {
    let number = |n: usize| Figure::Number(n as f64);
    let wide = |n: u32| Figure::Number(f64::from(n));
    let small = |n: u8| Figure::Number(f64::from(n));
    let long = |n: u64| Figure::Number(n as f64);
    Ok(match name {
        "state" => Figure::Word(info.state.text().to_owned()),
        "send_window_bytes" => wide(info.send_window_bytes),
        "send_window_scale" => small(info.send_window_scale),
        "send_segment_bytes" => wide(info.send_segment_bytes.into()),
        "send_queue_bytes" => number(info.send_queue_bytes),
        "in_flight_bytes" => wide(info.in_flight_bytes),
        "receive_window_bytes" => wide(info.receive_window_bytes),
        "receive_window_scale" => small(info.receive_window_scale),
        "receive_queue_bytes" => number(info.receive_queue_bytes),
        "reassembly_pieces" => number(info.reassembly_pieces),
        "reassembly_bytes" => number(info.reassembly_bytes),
        "urgent_ahead_bytes" => number(info.urgent_ahead_bytes.unwrap_or(0)),
        "smoothed_round_trip" => info.smoothed_round_trip.unwrap_or(Duration::ZERO).into(),
        "round_trip_variation" => info.round_trip_variation.into(),
        "retransmission_timeout" => info.retransmission_timeout.into(),
        "retransmission_backoff" => small(info.retransmission_backoff),
        "congestion_control" => Figure::Word(info.congestion_control.to_owned()),
        "congestion_window_bytes" => wide(info.congestion_window_bytes),
        "slow_start_threshold_bytes" => wide(info.slow_start_threshold_bytes),
        "timestamps" => info.timestamps.into(),
        "sent_bytes" => long(info.sent_bytes),
        "received_bytes" => long(info.received_bytes),
        "retransmitted_segments" => wide(info.retransmitted_segments),
        "timeouts" => wide(info.timeouts),
        "idle" => info.idle.into(),
        "window_scaling" => info.window_scaling.into(),
        "sack" => info.sack.into(),
        "ecn" => info.ecn.into(),
        "retransmitted_bytes" => long(info.retransmitted_bytes),
        "recovery" => Figure::Word(info.recovery.text().replace(' ', "-")),
        "sacked_bytes" => wide(info.sacked_bytes),
        "lost_bytes" => wide(info.lost_bytes),
        "reordering_segments" => wide(info.reordering_segments.into()),
        "duplicate_sacks" => wide(info.duplicate_sacks),
        "delivered_bytes" => long(info.delivered_bytes),
        "congestion_marks" => wide(info.congestion_marks),
        "min_round_trip" => info.min_round_trip.unwrap_or(Duration::ZERO).into(),
        "delivery_rate_bytes_per_second" => long(info.delivery_rate_bytes_per_second),
        "pacing_rate_bytes_per_second" => long(info.pacing_rate_bytes_per_second),
        "not_sent_bytes" => number(info.not_sent_bytes),
        "send_buffer_bytes" => number(info.send_buffer_bytes),
        "receive_buffer_bytes" => number(info.receive_buffer_bytes),
        "path_segment_bytes" => wide(info.path_segment_bytes.into()),
        "peer_segment_bytes" => wide(info.peer_segment_bytes.into()),
        "busy" => info.busy.into(),
        "receive_window_limited" => info.receive_window_limited.into(),
        "send_buffer_limited" => info.send_buffer_limited.into(),
        "fast_open" => Figure::Word(info.fast_open.text().replace(' ', "-")),
        "age" => info.age.into(),
        "soft_error" => Figure::Word(format!("{:?}", info.soft_error).to_lowercase()),
        "send_cause" => Figure::Word(format!("{:?}", info.send_cause)),
        "receive_cause" => Figure::Word(format!("{:?}", info.receive_cause)),
        other => return Err(format!("the information structure has no {other}")),
    })
}
