//! The receiver's state, for debuggers.

use super::{ReceiveBuffers, Receiver};
use crate::common::Common;
use crate::detail::{LISTED, ns};
use crate::flags::ReceiverFlags;
use alloc::vec::Vec;
use inhost_base::{Instant, Offset};
use inhost_event::ReceiveCause;
use serde_json::{Value, json};

impl Receiver {
    /// The receiving half: `RCV.*`, the receive queue, and the reassembly queue.
    pub fn detail(&self, common: &Common, cause: ReceiveCause, now: Instant) -> Value {
        let (space, buffers) = (&self.space, self.buffers.as_deref());
        let block = |(start, end): (Offset, Offset)| (start.count(), end.count());
        let blocks = |buffers: &ReceiveBuffers| -> Vec<_> {
            buffers.reassembly.blocks().take(LISTED).map(block).collect()
        };
        json!({
            "initial": space.sequence(Offset::SYN).0,
            "next": space.next().count(),
            "window_bytes": space.window(),
            "window_scale": space.scale(),
            "acknowledged": space.acknowledged().count(),
            "urgent": (self.read_position(common) < space.urgent()).then(|| space.urgent().count()),
            "segment_bytes": space.segment_bytes(),
            "queue_bytes": buffers.map_or(0, |buffers| buffers.receive.len()),
            "queue_capacity_bytes": buffers.map_or(0, |buffers| buffers.receive.capacity_bytes()),
            "buffer_bytes": self.receive_buffer_bytes(common),
            "received_bytes": space.received_bytes(),
            "since_received_ns": ns(now.since(self.received_at)),
            "reassembly_bytes": buffers.map_or(0, |buffers| buffers.reassembly.bytes()),
            "reassembly_pieces": buffers.map_or(0, |buffers| buffers.reassembly.pieces()),
            "reassembly": buffers.map_or_else(Vec::new, blocks),
            "sack": self.sack_blocks(common).iter().copied().map(block).collect::<Vec<_>>(),
            "acknowledgment_is_due": self.flags.contains(ReceiverFlags::ACKNOWLEDGE),
            "is_quick": self.ack_timing.is_quick(),
            "cause": cause.text(),
        })
    }
}
