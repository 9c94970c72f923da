//! Buffers of a host: packets with headroom, the pool that owns their memory, the queues of a
//! stream (what is to be sent, what came in order, what came out of order), and the frame lent to a device.
//!
//! On input a [`Packet`] is owned and moves up the stack by value; its last owner returns it to the [`Pool`]. On output
//! nothing is owned: a [`Frame`] lends headers and payload for one call. This crate uses no operating system and knows no
//! protocol.
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
#![cfg_attr(not(test), no_std)]
#![deny(unsafe_code)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod batch;
mod frame;
mod kernel;
mod memory;
mod packet;
mod pool;
mod reassembly_queue;
mod receive_queue;
mod ring;
mod send_queue;
mod size_class;
mod slices;

/// Freezing: what is done with the packets of a thawed stack.
#[cfg(feature = "freeze")]
pub mod freeze {
    pub use crate::packet::freeze::ThawPacket;
}

pub use batch::Batch;
pub use frame::{Device, Frame, Full, GsoType, Offers, Offload};
pub use kernel::{copy, copy_and_sum, fold_sum, join_sums, prefetch, prefetch_behind, sum};
pub use memory::Memory;
pub use packet::{Checksum, Packet};
pub use pool::{MOST_RESERVE_BYTES, Pool, Pressure};
pub use reassembly_queue::ReassemblyQueue;
pub use receive_queue::{COPY_BELOW_BYTES, ReceiveQueue};
pub use ring::ByteRing;
pub use send_queue::{BlockLayout, SendQueue, Shareable};
pub use size_class::HEADROOM_BYTES;
pub use slices::Slices;
