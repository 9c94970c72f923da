//! All figures of a connection, for instruments.

use crate::{ConnectionError, Ledgers, SoftError};
use inhost_base::{Duration, Sequence};
use inhost_event::{ReceiveCause, SendCause, TcpPhase};

/// A connection's figures at one instant.
#[derive(Clone, Debug)]
#[allow(missing_docs)] // The names, with their units, say it.
pub struct Info {
    pub phase: TcpPhase,
    pub age: Duration,
    pub send_unacknowledged: Sequence,
    pub send_next: Sequence,
    pub send_window_bytes: u32,
    pub send_window_scale: u8,
    pub send_segment_bytes: u16,
    pub send_queue_bytes: usize,
    pub send_queue_capacity_bytes: usize,
    pub in_flight_bytes: u32,
    pub receive_next: Sequence,
    pub receive_window_bytes: u32,
    pub receive_window_scale: u8,
    pub receive_queue_bytes: usize,
    pub receive_queue_capacity_bytes: usize,
    pub reassembly_pieces: usize,
    pub reassembly_bytes: usize,
    pub urgent_ahead_bytes: Option<usize>,
    pub smoothed_round_trip: Option<Duration>,
    pub round_trip_variation: Duration,
    pub retransmission_timeout: Duration,
    pub retransmission_backoff: u8,
    pub congestion_control: &'static str,
    pub congestion_window_bytes: u32,
    pub slow_start_threshold_bytes: u32,
    pub timestamps: bool,
    pub sent_bytes: u64,
    pub received_bytes: u64,
    pub retransmitted_segments: u32,
    pub timeouts: u32,
    pub idle: Duration,
    pub error: Option<ConnectionError>,
    pub soft_error: Option<SoftError>,
    pub send_cause: SendCause,
    pub receive_cause: ReceiveCause,
    pub ledgers: Ledgers,
}
