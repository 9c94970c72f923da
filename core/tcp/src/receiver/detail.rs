//! The receiver's figures, for instruments, and its state, for debuggers.

use super::Receiver;
use crate::Info;
use crate::common::Common;
use crate::detail::{LISTED, ReceiveDetail, ns};
use crate::flags::ReceiverFlags;
use crate::offset::Offset;
use alloc::vec::Vec;
use inhost_base::{Duration, Instant};
use inhost_event::ReceiveCause;

impl Receiver {
    /// Writes the receiver's figures into `info`, as they stand at `now`.
    pub fn tell(&self, common: &Common, info: &mut Info, now: Instant) {
        let space = &self.space;
        info.receive_next = space.next_sequence();
        info.receive_window_bytes = space.window();
        info.receive_window_scale = space.scale();
        info.receive_segment_bytes = space.segment_bytes();
        info.received_bytes = space.received_bytes();
        info.receive_buffer_bytes = self.receive_buffer_bytes(common);
        info.receive_round_trip = self.measured_round_trip();
        info.since_data_received = self.ack_timing.since_data(now);
        if let Some(buffers) = &self.buffers {
            info.receive_queue_bytes = buffers.receive.len();
            info.receive_queue_capacity_bytes = buffers.receive.capacity_bytes();
            info.reassembly_pieces = buffers.reassembly.pieces();
            info.reassembly_bytes = buffers.reassembly.bytes();
        }
    }
    pub fn detail(&self, common: &Common, cause: ReceiveCause, now: Instant) -> ReceiveDetail {
        let (receiver, space) = (self, &self.space);
        let buffers = receiver.buffers.as_deref();
        let block = |(start, end): (Offset, Offset)| (start.count(), end.count());
        ReceiveDetail {
            initial: space.initial().0,
            next: space.next().count(),
            window_bytes: space.window(),
            window_scale: space.scale(),
            acknowledged: space.acknowledged().count(),
            urgent: (self.read_position(common) < space.urgent()).then(|| space.urgent().count()),
            segment_bytes: space.segment_bytes(),
            queue_bytes: buffers.map_or(0, |buffers| buffers.receive.len()),
            queue_capacity_bytes: buffers.map_or(0, |buffers| buffers.receive.capacity_bytes()),
            buffer_bytes: receiver.receive_buffer_bytes(common),
            received_bytes: receiver.space.received_bytes(),
            since_received_ns: ns(now.since(receiver.received_at)),
            reassembly_bytes: buffers.map_or(0, |buffers| buffers.reassembly.bytes()),
            reassembly_pieces: buffers.map_or(0, |buffers| buffers.reassembly.pieces()),
            reassembly: buffers.map_or_else(Vec::new, |buffers| {
                buffers.reassembly.blocks().take(LISTED).map(block).collect()
            }),
            sack: receiver.sack_blocks(common).iter().copied().map(block).collect(),
            acknowledgment_is_due: receiver.flags.contains(ReceiverFlags::ACKNOWLEDGE),
            is_quick: receiver.ack_timing.is_quick(),
            cause: cause.text(),
        }
    }
    /// The round trip as the receiver measures it.
    pub fn measured_round_trip(&self) -> Option<Duration> {
        self.buffers.as_deref().and_then(|buffers| buffers.sizing.round_trip())
    }
}
