//! The SACK option that we send (RFC 2018 §4, RFC 2883 §4).

use crate::marks::Marks;
use crate::phase::Allows;
use crate::{Connection, Header};
use inhost_base::Sequence;
use inhost_buf::Pool;
use inhost_wire::tcp::{MAX_SACK_BLOCKS, SackBlocks};

impl Connection {
    /// Tells which data is here beyond the acknowledgment, what came last first, and what came twice before all.
    // spec: RFC2018 4-1, 4-3
    pub(crate) fn add_sack(&self, header: &mut Header) {
        if self.has_sack_news() {
            header.options.sack = self.sack_blocks();
        }
    }
    // spec: RFC2018 4-2
    #[inline]
    pub(crate) fn has_sack_news(&self) -> bool {
        self.receiver.buffers.as_ref().is_some_and(|buffers| buffers.reassembly.has_news())
            && self.common.marks.has(Marks::SACK)
    }
    // spec: RFC2018 4-5, 4-6
    fn sack_blocks(&self) -> SackBlocks {
        let mut blocks = SackBlocks::new();
        let Some(buffers) = &self.receiver.buffers else { return blocks };
        // Timestamps leave room for three.
        let most = MAX_SACK_BLOCKS - usize::from(self.common.marks.has(Marks::TIMESTAMPS));
        if let Some(duplicate) = buffers.reassembly.duplicate
            && self.common.config.duplicate_sack
        {
            blocks.push(duplicate);
        }
        for (start, end) in buffers.reassembly.recent() {
            // What is acknowledged with it stands in the first place only, where it tells of what came twice.
            let is_ahead = self.receiver.space.next.precedes(start);
            if blocks.len() < most && (is_ahead || blocks.is_empty()) {
                blocks.push((start, end));
            }
        }
        blocks
    }
    /// Payload of a full segment that leaves now: what the option takes is not there for data (RFC 9293 §3.7.1).
    #[inline]
    pub(crate) fn payload_limit(&self) -> u32 {
        let segment = self.segment_bytes();
        if !self.has_sack_news() {
            return segment;
        }
        match self.sack_blocks().len() as u32 {
            0 => segment,
            blocks => segment.saturating_sub(4 + 8 * blocks).max(1),
        }
    }
    /// What lies from `start` to `end` came again: the peer is told so (RFC 2883 §4).
    pub(crate) fn note_repeated(&mut self, start: Sequence, end: Sequence) {
        if self.common.marks.has(Marks::SACK) && self.common.config.duplicate_sack && start.precedes(end) {
            self.receiver.buffers_mut().reassembly.duplicate = Some((start, end));
        }
    }
    /// The option left.
    pub(crate) fn sack_told(&mut self, pool: &mut Pool) {
        if let Some(buffers) = &mut self.receiver.buffers {
            buffers.reassembly.duplicate = None;
            if self.common.phase.peer_has_closed() {
                buffers.reassembly.clear(pool);
            }
        }
    }
}
