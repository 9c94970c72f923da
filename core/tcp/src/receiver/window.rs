//! The window that we advertise: its size, when it moves, and when a window update is due (RFC 9293 §3.8.6.2.2, MIT §7.1).

use super::Receiver;
use crate::Config;
use crate::common::{Common, MAX_SCALE};
use crate::flags::ReceiverFlags;
use inhost_buf::Pool;

/// Largest window that the field can carry unscaled.
const FIELD_BYTES: usize = 0xffff;

/// Memory that is not worth denying: two full segments in their buffers.
const LEAST_CAPACITY_BYTES: usize = 2 * 2048;

/// The least shift with which the whole window can be advertised (RFC 7323 §2.3).
// spec: RFC7323 2.3-2
pub(crate) fn scale_for(config: &Config) -> u8 {
    let mut scale = 0;
    while scale < MAX_SCALE && FIELD_BYTES << scale < config.receive_buffer_limit_bytes / 2 {
        scale += 1;
    }
    scale
}

impl Receiver {
    /// The window when nothing waits, with a receive buffer of `buffer_bytes`.
    fn most_window(&self, buffer_bytes: usize) -> u32 {
        (buffer_bytes / 2).min(FIELD_BYTES << self.space.scale()) as u32
    }
    /// The window now, with a receive buffer of `buffer_bytes`.
    #[inline]
    fn free_window(&self, buffer_bytes: usize) -> u32 {
        // Half the free memory: a buffer holds half its size at least (`Pool::tighten`).
        let free_bytes = buffer_bytes.saturating_sub(self.used_bytes()) / 2;
        (free_bytes as u32).min(self.most_window(buffer_bytes))
    }
    /// Memory that waiting data pins.
    fn used_bytes(&self) -> usize {
        self.buffers.as_ref().map_or(0, |buffers| buffers.received_capacity_bytes())
    }
    /// The window that memory allows now.
    pub fn window_space(&self, common: &Common) -> u32 {
        self.free_window(self.receive_buffer_bytes(common))
    }
    /// Our SYN-ACK was sent. Its field is never scaled (RFC 7323 §2.2).
    pub fn syn_was_answered(&mut self, common: &Common) {
        self.space.acknowledge();
        self.space.offer(self.window_space(common).min(FIELD_BYTES as u32));
    }
    /// The window field of a segment sent now.
    // spec: RFC9293 MUST-39 (no silly windows: the edge moves by a segment, or a good part of the buffer, or not)
    // spec: RFC7323 2.4-2, 2.4-3; RFC9293 SHLD-14
    #[inline]
    pub fn window_to_offer(&self, common: &Common, pool: &Pool) -> u16 {
        let held = self.space.window();
        let buffer_bytes = self.receive_buffer_bytes(common);
        let now_bytes = self.free_window(buffer_bytes);
        let advance = now_bytes.saturating_sub(held);
        let least = u32::from(self.space.segment_bytes()).min(self.most_window(buffer_bytes) / 2);
        let wanted = match advance > 0 && advance >= least {
            true if !pool.is_under_pressure() => held + advance,
            // The minimum window, advertised even when memory is short: otherwise a connection that holds almost nothing
            // would wait for the others.
            true if self.used_bytes() <= LEAST_CAPACITY_BYTES => {
                held.max((2 * u32::from(self.space.segment_bytes())).min(held + advance))
            }
            _ => held,
        };
        let scale = self.space.scale();
        // Rounded down, so that memory suffices for it; but not below the window advertised before, as long as memory
        // allows that, so that the right edge does not move back by a part of the unit (RFC 7323 §2.4).
        let mut field = wanted >> scale;
        if (field << scale) < held && held <= now_bytes {
            field += 1;
        }
        field.min(FIELD_BYTES as u32) as u16
    }
    /// After a read, the receiver's silly-window avoidance (RFC 9293 §3.8.6.2.2): sends a window update if the window has grown by
    /// two segments and by a quarter, more than [`Receiver::window_to_offer`] asks of a segment that is sent anyway. It is sent
    /// early, while there is data left to read, so that the peer's next data arrives before the queue is empty and the two do not
    /// move in lock step (MIT §7.1).
    #[inline]
    pub fn consider_window_update(&mut self, common: &Common) {
        if !common.expects_data() {
            return;
        }
        let buffer_bytes = self.receive_buffer_bytes(common);
        let limit = self.most_window(buffer_bytes);
        // Mostly the window is open further than that.
        if limit.saturating_sub(self.space.window()) < limit / 4 {
            return;
        }
        let enough = (2 * u32::from(self.space.segment_bytes())).min(limit / 2).max(limit / 4);
        if self.free_window(buffer_bytes).saturating_sub(self.space.window()) >= enough {
            self.flags.insert(ReceiverFlags::ACKNOWLEDGE);
        }
    }
    /// What reading makes due; true when that is an acknowledgment.
    #[inline]
    pub fn was_read(&mut self, common: &Common) -> bool {
        let was_due = self.flags.contains(ReceiverFlags::ACKNOWLEDGE);
        // `RCV.UP` never lies behind the read position.
        self.space.urge_to(self.read_position(common));
        self.acknowledge_what_was_read(common);
        // A read behind the last byte takes the FIN, and acknowledges nothing.
        self.flags.remove(ReceiverFlags::FIN_UNREAD);
        self.consider_window_update(common);
        was_due != self.flags.contains(ReceiverFlags::ACKNOWLEDGE)
    }
}
