//! What the application writes: how much the queue takes, what of it waits, and what is urgent (RFC 9293 §3.9.1, §3.7.4,
//! §3.8.5).

use super::Sender;
use crate::common::Common;
use crate::flags::{ConnectionFlags, SenderFlags};
use crate::sender::burst::WriteBoundary;
use crate::{Environment, Header, SendHow, StreamError};
use bytes::Bytes;
use inhost_base::{Instant, Offset};
use inhost_event::Layer;
use inhost_wire::tcp::Flags;

impl Sender {
    /// Bytes that [`Connection::send`] would take now, memory permitting.
    #[inline]
    pub fn writable_bytes(&self, common: &Common) -> usize {
        if !common.may_send() || common.has(ConnectionFlags::CLOSE_AFTER_OPEN) {
            return 0;
        }
        self.room(common)
    }
    /// The same where the application may write.
    #[inline]
    fn room(&self, common: &Common) -> usize {
        let room = self.send_buffer_bytes(common).saturating_sub(self.queued_bytes() as usize);
        // A write may go beyond the low water, so that it is not cut up; the next waits.
        let low_water = common.config().not_sent_low_water_bytes;
        if low_water != usize::MAX && self.not_sent_bytes(common) as usize >= low_water { 0 } else { room }
    }
    /// Adds as many of `bytes` to the queue as there is room for.
    #[inline]
    pub fn write(&mut self, common: &Common, bytes: &[u8], env: &mut Environment<'_>) -> usize {
        let fits = bytes.get(..self.room(common)).unwrap_or(bytes);
        if fits.is_empty() {
            return 0;
        }
        let layout = self.block_layout(common);
        env.begin_layer(if layout.summed { Layer::WriteAndSum } else { Layer::Write });
        let taken = self.buffers_mut().send.write(fits, layout, env.pool());
        env.end_layer();
        taken
    }
    /// Adds the front of `bytes` to the queue, by reference.
    pub fn lend(&mut self, common: &Common, bytes: &mut Bytes) -> usize {
        let taken = self.room(common).min(bytes.len());
        if taken > 0 {
            let layout = self.block_layout(common);
            self.buffers_mut().send.lend(bytes.split_to(taken), layout);
        }
        taken
    }
    /// `taken` of `length` bytes of a write were added to the queue.
    #[inline]
    pub fn added(
        &mut self,
        common: &Common,
        (taken, length): (usize, usize),
        how: SendHow,
        now: Instant,
    ) -> Result<usize, StreamError> {
        // A write that exactly filled the buffer also waits for WRITABLE: an application that checks for room before it writes
        // never makes the write that fails.
        if taken < length || self.room(common) == 0 {
            self.flags.insert(SenderFlags::WRITER_WAITS);
        }
        if taken == 0 && length > 0 {
            return Err(StreamError::WouldBlock);
        }
        self.flags.remove(SenderFlags::LINK_REFUSED);
        let end = self.end_of_queue(common);
        if how.urgent && taken == length && taken > 0 {
            self.space.urge_to(end);
            self.flags.insert(SenderFlags::ANNOUNCE_URGENT);
        }
        if how.end_of_record && taken == length && taken > 0 {
            let unacknowledged = self.space.unacknowledged();
            self.buffers_mut().add_boundary(end, WriteBoundary::Record, unacknowledged);
        }
        // Promotion: one mark, at the end of what is queued (UCLA §2.4). Bytes without push wait for more, and a
        // write that was cut short is followed by the rest.
        let pushed = how.push && !how.more && taken == length;
        if pushed {
            self.space.push_to(end);
        }
        let held = !pushed || self.flags.contains(SenderFlags::CORKED);
        if taken > 0 && held {
            // spec: RFC9293 SHLD-27 (the time for which they are held back begins, unless it runs)
            let until = now + common.config().aggregation_delay;
            self.buffers_mut().aggregate_until.bring_forward(until);
        }
        Ok(taken)
    }
    /// Sets URG and the pointer while urgent data lies ahead of the segment's first byte.
    // spec: RFC9293 MUST-30 (the mechanism is there)
    // spec: RFC9293 MUST-31 (urgent data of any length: what the pointer cannot reach, later segments tell)
    // spec: RFC9293 MUST-62 (to the first byte that is not urgent)
    pub fn announce_urgent(&self, common: &Common, first: Offset, header: &mut Header) {
        let urgent = self.space.urgent();
        let outstanding = self.space.unacknowledged() < urgent && !common.opens();
        if outstanding && first < urgent {
            header.flags |= Flags::URG;
            header.urgent_pointer = urgent.since(first).min(0xffff) as u16;
        }
    }
    /// The data queued so far ends a burst. `pushed`: its last segment bears PSH.
    pub fn end_burst(&mut self, common: &Common, pushed: bool) {
        let (end, unacknowledged) = (self.end_of_queue(common), self.space.unacknowledged());
        if let Some(buffers) = &mut self.buffers {
            let boundary = if pushed { WriteBoundary::Push } else { WriteBoundary::Burst };
            buffers.add_boundary(end, boundary, unacknowledged);
        }
    }
    /// What was queued without push goes now.
    pub fn push(&mut self, common: &Common) {
        if self.queued_bytes() > 0 {
            self.space.push_to(self.end_of_queue(common));
            self.buffers_mut().aggregate_until.stop();
        }
    }
    /// Nothing more follows what is queued, or not soon: it goes now, whether the link refused it before or not.
    pub fn push_all(&mut self) {
        self.space.push_to(self.stream_end());
        self.flags.remove(SenderFlags::LINK_REFUSED);
    }
    /// Small segments are held back, or no longer.
    pub fn cork(&mut self, on: bool) {
        self.flags.set(SenderFlags::CORKED, on);
    }
    /// Nagle's algorithm holds what is queued no longer.
    pub fn override_nagle(&mut self) {
        if self.space.next() < self.stream_end() {
            self.flags.insert(SenderFlags::OVERRIDE_SWS);
        }
    }
}
