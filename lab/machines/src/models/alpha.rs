//! The DEC 3000 AXP Model 500 with OSF/1 1.2 and the adapter DEFTA for FDDI.
//!
//! The paper gives no table of costs. What is fitted, and on what:
//!
//! - `datagram_write` and `datagram_output`: on the peer's sending rates in DEC table 1 (throughput over the share that was
//!   not lost: 7,000 messages a second of 128 bytes, 5,700 of 512, 5,720 of 1,024), and on 149 Mbit/s over two adapters with
//!   messages of 8,192 bytes, 440 us each. A message costs 140 us and 34 ns a byte, a second fragment 21 us more.
//! - The split of that between copy (20 ns a byte) and checksum (14 ns a byte): the copy touches memory twice.
//! - `write` and `output`: on "approximately 60 percent" of the processor at messages of 8 KB and 94.5 Mbit/s, which is
//!   416 us a message.
//! - `input` and `read` for TCP: assumed, as `write` and `output` and some 40 us more for an interrupt and a wake-up; no figure of
//!   the paper fixes them. They keep the receiver below saturation, as the paper says it was.
//! - The latency of the adapter: on 72.6 Mbit/s with a window of 32 KB in half-duplex. The other TCP figures are judged.
//! - `datagram_input`: on the row of 512 bytes after the changes. Before them: on the rows of 512 and 4,096 bytes.

use inhost_sim::Step;

use super::{Cost, Costs, NOTHING};

/// Copy between user and kernel.
const COPY_NS_PER_BYTE: u64 = 20;
/// Checksum.
const CHECKSUM_NS_PER_BYTE: u64 = 14;

/// The costs.
pub(super) const COSTS: Costs = Costs {
    input: Cost::new(80, CHECKSUM_NS_PER_BYTE),
    input_bare: Cost::new(36, 0),
    output: Cost::new(36, CHECKSUM_NS_PER_BYTE),
    output_bare: Cost::new(36, 0),
    write: Cost::new(40, COPY_NS_PER_BYTE),
    read: Cost::new(80, COPY_NS_PER_BYTE),
    // The checksum is left to the application's call.
    datagram_input: Cost::new(112, 0),
    datagram_output: Cost::new(21, CHECKSUM_NS_PER_BYTE),
    datagram_write: Cost::new(119, COPY_NS_PER_BYTE),
    datagram_read: Cost::new(80, COPY_NS_PER_BYTE + CHECKSUM_NS_PER_BYTE),
    // Half of a megabyte of packet buffers is for receiving: 120 frames of 4 KB. The queue of IP takes 512.
    card_frames: 120,
    order: [Step::Input, Step::Output, Step::Tasks],
    ..NOTHING
};

/// The costs before UDP was changed.
pub(super) const BEFORE: Costs =
    Costs { datagram_input: Cost::new(155, 42), datagram_read: Cost::new(80, COPY_NS_PER_BYTE), ..COSTS };
