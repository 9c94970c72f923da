//! The SACK option that we send (RFC 2018 §4, RFC 2883 §4).

use super::Receiver;
use crate::Header;
use crate::common::Common;
use crate::flags::ConnectionFlags;
use inhost_base::Offset;
use inhost_buf::Pool;
use inhost_wire::tcp::{MAX_SACK_BLOCKS, SackBlocks};

/// Length of the option with a number of blocks, padded; none without blocks.
pub(crate) fn sack_option_bytes(blocks: u32) -> u32 {
    if blocks == 0 { 0 } else { 4 + 8 * blocks }
}

impl Receiver {
    /// Adds the SACK blocks: a duplicate first, then the most recent blocks of out-of-order data.
    // spec: RFC2018 4-1, 4-3
    pub fn add_sack(&self, common: &Common, header: &mut Header) {
        if self.has_sack_news(common) {
            for &(start, end) in self.sack_blocks(common).iter() {
                header.options.sack.push((self.space.sequence(start), self.space.sequence(end)));
            }
        }
    }
    // spec: RFC2018 4-2
    #[inline]
    pub fn has_sack_news(&self, common: &Common) -> bool {
        self.buffers.as_ref().is_some_and(|buffers| buffers.reassembly.has_news())
            && common.has(ConnectionFlags::SACK)
    }
    // spec: RFC2018 4-5, 4-6
    pub fn sack_blocks(&self, common: &Common) -> SackBlocks<Offset> {
        let mut blocks = SackBlocks::new();
        let Some(buffers) = &self.buffers else { return blocks };
        // Timestamps leave room for three.
        let most = MAX_SACK_BLOCKS - usize::from(common.has(ConnectionFlags::TIMESTAMPS));
        if let Some(duplicate) = buffers.reassembly.duplicate()
            && common.config().duplicate_sack
        {
            blocks.push(duplicate);
        }
        for (start, end) in buffers.reassembly.recent() {
            // A block that is acknowledged already appears only first, as a D-SACK report.
            let is_ahead = self.space.next() < start;
            if blocks.len() < most && (is_ahead || blocks.is_empty()) {
                blocks.push((start, end));
            }
        }
        blocks
    }
    /// Bytes that the SACK option takes in a segment sent now.
    #[inline]
    pub fn sack_bytes(&self, common: &Common) -> u32 {
        if !self.has_sack_news(common) {
            return 0;
        }
        sack_option_bytes(self.sack_blocks(common).len() as u32)
    }
    /// The data from `start` to `end` was a duplicate: a D-SACK block reports it (RFC 2883 §4).
    pub fn note_repeated(&mut self, common: &Common, start: Offset, end: Offset) {
        if common.has(ConnectionFlags::SACK) && common.config().duplicate_sack && start < end {
            self.buffers.get_or_insert_default().reassembly.note_duplicate(start, end);
        }
    }
    /// The SACK option was sent.
    pub fn sack_sent(&mut self, common: &Common, pool: &mut Pool) {
        if let Some(buffers) = &mut self.buffers {
            buffers.reassembly.forget_duplicate();
            if common.peer_has_closed() {
                buffers.reassembly.clear(pool);
            }
        }
    }
}
