//! What a receiver keeps only while it has data: one box, made when needed and freed when idle.

use crate::receiver::reassembly::Reassembly;
use crate::receiver::sizing::Sizing;
use inhost_buf::ReceiveQueue;

/// The receive queues, and the measurement of the receive rate.
#[derive(Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct ReceiveBuffers {
    /// In order, for the application.
    pub receive: ReceiveQueue,
    /// Out-of-order data.
    pub reassembly: Reassembly,
    pub sizing: Sizing,
}

impl ReceiveBuffers {
    /// Whether nothing is held.
    pub fn are_empty(&self) -> bool {
        self.receive.is_empty() && self.reassembly.is_empty()
    }
    /// Memory that received data pins.
    pub fn received_capacity_bytes(&self) -> usize {
        self.receive.capacity_bytes() + self.reassembly.capacity_bytes()
    }
    /// All memory that is held, by capacity.
    pub fn held_bytes(&self) -> usize {
        size_of::<ReceiveBuffers>() + self.receive.capacity_bytes() + self.reassembly.held_bytes()
    }
}
