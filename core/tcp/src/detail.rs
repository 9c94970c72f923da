//! A connection's whole state at one instant as JSON, for debuggers: besides what [`Info`](crate::Info) has, the numbers of both
//! windows, the scoreboard, the blocks out of order, each timer, and what was configured. Each part of the connection tells its
//! own.

use crate::common::Common;
use crate::flags::ConnectionFlags;
use inhost_base::Duration;
use serde_json::{Value, json};

/// Transmissions of the scoreboard, and blocks out of order, that are listed; their counts say how many there are.
pub const LISTED: usize = 256;

/// What the SYNs agreed on.
pub(crate) fn agreed(common: &Common) -> Value {
    json!({
        "active": common.has(ConnectionFlags::ACTIVE_OPEN),
        "timestamps": common.has(ConnectionFlags::TIMESTAMPS),
        "window_scaling": common.has(ConnectionFlags::SCALING),
        "sack": common.has(ConnectionFlags::SACK),
        "ecn": common.has(ConnectionFlags::ECN),
        "fast_open": common.fast_open().text(),
        "peer_segment_bytes": common.peer_mss(),
        "path_segment_bytes": common.path_mss(),
        "offered_segment_bytes": common.offered_mss(),
    })
}

/// What was configured, as far as it decides when something is sent.
pub(crate) fn options(common: &Common) -> Value {
    let config = common.config();
    json!({
        "nagle": config.nagle,
        "pacing": config.pacing,
        "rack": config.rack,
        "tail_loss_probe": config.tail_loss_probe,
        "forward_rto": config.forward_rto,
        "proportional_rate_reduction": config.proportional_rate_reduction,
        "undo": config.undo,
        "initial_window_segments": config.initial_window_segments,
        "acknowledgment_delay_ns": ns(config.acknowledgment_delay),
        "min_retransmission_timeout_ns": ns(config.min_retransmission_timeout),
        "max_retransmission_timeout_ns": ns(config.max_retransmission_timeout),
        "user_timeout_ns": ns(config.user_timeout),
        "time_wait_ns": ns(config.time_wait),
        "keep_alive_idle_ns": config.keep_alive.map(|keep_alive| ns(keep_alive.idle)),
        "send_buffer_limit_bytes": config.send_buffer_limit_bytes,
        "receive_buffer_limit_bytes": config.receive_buffer_limit_bytes,
        "segment_limit_bytes": config.mss_limit_bytes,
    })
}

pub(crate) fn ns(duration: Duration) -> u64 {
    duration.as_nanos()
}
