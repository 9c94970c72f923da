//! Size classes of a pool's buffers.

/// Headroom of a packet, enough for the headers of any link.
pub const HEADROOM_BYTES: usize = 128;

/// Capacity of the smallest buffer.
pub(crate) const LEAST_BUFFER_BYTES: usize = (2048 + HEADROOM_BYTES) / 4;

/// Size classes of buffers, headroom included. A request gets the smallest that fits. Each class is twice the one
/// before, so every length above the smallest fills at least half of its buffer. The third class holds an Ethernet frame,
/// the last 64 KiB.
pub(crate) const CLASSES_BYTES: [usize; 8] = {
    let third = 4 * LEAST_BUFFER_BYTES;
    [LEAST_BUFFER_BYTES, third / 2, third, third * 2, third * 4, third * 8, third * 16, third * 32]
};
