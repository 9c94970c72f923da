//! Bytes on their way through a host: packet buffers with headroom, the pool that owns their memory, the queues
//! that hold a stream's bytes, and the frame that is lent to a device.
//!
//! A [`Packet`] is owned and moves up the stack by value: whoever keeps it, keeps it; whoever is done with it gives
//! it back to the [`Pool`]. On the way down nothing is owned: a [`Frame`] lends header and payload for one call.
//! This crate never touches an operating system and knows no protocol.
//!
//! ```
//! use inhost_buf::Pool;
//! let mut pool = Pool::new(1 << 20);
//! let mut packet = pool.take(1500).unwrap();
//! packet.append(b"hello");
//! packet.prepend(2).unwrap().copy_from_slice(b"> ");
//! assert_eq!(packet.bytes(), b"> hello");
//! pool.give(packet);
//! assert_eq!(pool.outstanding_bytes(), 0);
//! ```
#![deny(unsafe_code)]

mod frame;
mod kernel;
mod packet;
mod pool;
mod receive_queue;
mod ring;
mod send_queue;
mod shared;

pub use frame::{Device, Frame, Full, Large, Offers, Offload, Slices};
pub use kernel::{copy, copy_and_sum, fold_sum, join_sums, prefetch, prefetch_behind, sum};
pub use packet::{Batch, Checksum, Packet};
pub use pool::{HEADROOM_BYTES, Pool, Pressure};
pub use receive_queue::{COPY_BELOW_BYTES, ReceiveQueue};
pub use ring::ByteRing;
pub use send_queue::{Cells, SendQueue, Shareable};
