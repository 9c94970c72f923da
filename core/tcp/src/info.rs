//! All figures of a connection, for instruments.

use crate::{ConnectionError, FastOpenState, Ledgers, SoftError};
use inhost_base::{Duration, Sequence};
use inhost_event::{ReceiveCause, SendCause, TcpState};

/// Where loss recovery stands, named as Linux does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub enum RecoveryState {
    /// Nothing is amiss.
    #[default]
    Open,
    /// Something is missing or overtaken; whether it is lost shows soon.
    Disorder,
    /// The window shrinks because a router said so.
    WindowReduction,
    /// Fast recovery: a loss was found, and lost segments are retransmitted.
    Recovery,
    /// The retransmission timer expired.
    Loss,
}

impl RecoveryState {
    /// Its name in words.
    pub const fn text(self) -> &'static str {
        match self {
            RecoveryState::Open => "open",
            RecoveryState::Disorder => "disorder",
            RecoveryState::WindowReduction => "window reduction",
            RecoveryState::Recovery => "recovery",
            RecoveryState::Loss => "loss",
        }
    }
    /// Whether a point is known whose acknowledgment ends it.
    pub(crate) const fn has_end(self) -> bool {
        !matches!(self, RecoveryState::Open | RecoveryState::Disorder)
    }
}

/// A connection's figures at one instant.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs)] // The names, with their units, say it.
pub struct Info {
    pub state: TcpState,
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
    /// Whether the last urgent byte is here, be it ahead of a gap.
    pub urgent_has_come: bool,
    pub smoothed_round_trip: Option<Duration>,
    pub round_trip_variation: Duration,
    pub retransmission_timeout: Duration,
    pub retransmission_backoff: u8,
    pub congestion_control: &'static str,
    pub congestion_window_bytes: u32,
    pub slow_start_threshold_bytes: u32,
    pub timestamps: bool,
    /// Both sides agreed on window scaling.
    pub window_scaling: bool,
    /// Both sides agreed on selective acknowledgments.
    pub sack: bool,
    /// Both sides agreed on explicit congestion notification.
    pub ecn: bool,
    /// Stream bytes that the peer acknowledged.
    pub sent_bytes: u64,
    /// Stream bytes that arrived in order.
    pub received_bytes: u64,
    pub retransmitted_segments: u32,
    pub retransmitted_bytes: u64,
    pub timeouts: u32,
    /// Where loss recovery stands.
    pub recovery: RecoveryState,
    /// What came of opening fast (RFC 7413).
    pub fast_open: FastOpenState,
    /// Bytes beyond the acknowledgment that the peer says it has.
    pub sacked_bytes: u32,
    /// Bytes thought lost and not sent again yet.
    pub lost_bytes: u32,
    /// Transmissions that the peer got; its answer to our SYN, or ours to its, is one.
    pub delivered_segments: u32,
    /// The data of a SYN, ours or the peer's, was taken with it.
    pub syn_data_taken: bool,
    /// Bursts that are out; see [`crate::Policy::pushes_writes_and_bursts`].
    pub bursts_in_flight: usize,
    /// Bytes that left again and are not acknowledged.
    pub retransmitted_in_flight_bytes: u32,
    /// How often data overtook other data of ours on its way.
    pub reorderings: u32,
    /// Probes of the peer's window, or of an idle peer, without answer.
    pub unanswered_probes: u8,
    /// Time since data came.
    pub since_data_received: Duration,
    /// Payload of what counts as a full-sized segment of the peer's.
    pub receive_segment_bytes: u16,
    /// Payload that we said we take.
    pub offered_segment_bytes: u16,
    /// Segments that may overtake another before that counts as lost.
    pub reordering_segments: u16,
    /// How often the peer reported data that came twice.
    pub duplicate_sacks: u32,
    /// Bytes that the peer has, in order or not, of all that was ever sent.
    pub delivered_bytes: u64,
    /// Reductions of the window that congestion marks asked for.
    pub congestion_marks: u32,
    /// The least round trip seen of late.
    pub min_round_trip: Option<Duration>,
    /// The latest sample of the rate of delivery.
    pub delivery_rate_bytes_per_second: u64,
    /// The application, not the network, limited that sample.
    pub delivery_rate_is_application_limited: bool,
    /// What pacing allows; 0 without pacing.
    pub pacing_rate_bytes_per_second: u64,
    /// The receiver's own estimate of the round trip.
    pub receive_round_trip: Option<Duration>,
    /// Bytes queued and not sent yet.
    pub not_sent_bytes: usize,
    /// What the send buffer takes at most now.
    pub send_buffer_bytes: usize,
    /// What memory received data may pin now.
    pub receive_buffer_bytes: usize,
    /// Payload that the path takes, options not counted.
    pub path_segment_bytes: u16,
    /// Payload that the peer said it takes.
    pub peer_segment_bytes: u16,
    /// Time with data to send, in flight or not: all but opening, idle and closed.
    pub busy: Duration,
    /// Time for which the peer's window held data back.
    pub receive_window_limited: Duration,
    /// Time for which the send buffer held the application back.
    pub send_buffer_limited: Duration,
    pub idle: Duration,
    pub error: Option<ConnectionError>,
    pub soft_error: Option<SoftError>,
    pub send_cause: SendCause,
    pub receive_cause: ReceiveCause,
    pub ledgers: Ledgers,
}
