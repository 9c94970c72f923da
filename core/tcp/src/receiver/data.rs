//! Data ahead of a hole (RFC 9293 §3.10.7.4, seventh step; RFC 5681 §4.2).

use super::Receiver;
use crate::Environment;
use crate::arrival::Arrival;
use crate::common::Common;
use crate::flags::{ConnectionFlags, ReceiverFlags};
use crate::outcome::Outcome;
use crate::receiver::reassembly::Room;
use inhost_buf::Batch;
use inhost_event::{Drop, TcpState};

/// Least payload ahead of a hole with which the window grows.
const GROWING_AHEAD_BYTES: u32 = 8;
/// Duplicate acknowledgments owed at a time: one for each segment of a batch.
const MOST_DUPLICATES_DUE: u8 = Batch::LIMIT as u8;

impl Receiver {
    /// Data ahead of a hole: kept if there is room, and acknowledged at once either way, so that the sender sees a
    /// duplicate (RFC 5681 §4.2). Each such segment is owed one of its own, for the sender counts them: segments that
    /// come in one batch would otherwise never make three.
    // spec: RFC5681 3.2-1; RFC2018 4-4
    pub fn keep_for_later(
        &mut self,
        common: &Common,
        arrival: &mut Arrival<'_>,
        env: &mut Environment<'_>,
        outcome: &mut Outcome,
    ) {
        self.flags.set(ReceiverFlags::SCHEDULED);
        if !common.acks_adapt() {
            self.flags.set(ReceiverFlags::ACKNOWLEDGE);
            self.ack_timing.duplicates_due =
                self.ack_timing.duplicates_due.saturating_add(1).min(MOST_DUPLICATES_DUE);
        } else if common.flags.has(ConnectionFlags::SACK) && arrival.whole_bytes >= GROWING_AHEAD_BYTES {
            self.grow_window(common, arrival.whole_bytes);
        }
        if env.pool.is_under_pressure() {
            outcome.dropped = Some(Drop::NoMemory);
            return;
        }
        if common.acks_adapt() {
            self.measure_segments(common, arrival.coming());
        }
        // What was offered fits the buffer in force, unless that has shrunk since: then it comes again.
        let limit = self.receive_buffer_bytes(common);
        let pieces = common.config.reassembly_limit_pieces;
        let tells_duplicates = common.flags.has(ConnectionFlags::SACK) && common.config.duplicate_sack;
        let (start, end) = (arrival.start, arrival.start + arrival.payload.len() as u32);
        let fin = arrival.fin;
        let buffers = self.buffers.get_or_insert_default();
        let fin_came_before = fin && buffers.reassembly.ends_by(end);
        let is_new = !fin || buffers.reassembly.insert_fin(start, end);
        if arrival.payload.is_empty() || !is_new {
            if !tells_duplicates {
                buffers.reassembly.duplicate = None;
            }
            return;
        }
        let room = Room { capacity_bytes: limit.saturating_sub(buffers.receive.capacity_bytes()), pieces };
        let packet = arrival.payload.take();
        if !buffers.reassembly.insert(start, packet, room, env.pool) {
            outcome.dropped = Some(Drop::QueueFull);
        }
        if fin {
            buffers.reassembly.repeat_fin(end, fin_came_before);
        }
        if !tells_duplicates {
            buffers.reassembly.duplicate = None;
        }
    }
    /// Whether a FIN says that data is on its way for which nobody is left, as Linux has it.
    pub fn is_fin_of_unread(&self, common: &Common, arrival: &Arrival<'_>) -> bool {
        let is_closed = matches!(common.state, TcpState::FinWait1 | TcpState::FinWait2);
        is_closed
            && common.config.policy.unread_data_has_no_connection
            && self.space.next.precedes(arrival.start)
    }
}
