//! The IBM 3033 with OS/MVS and the ACP on an 1822 interface (UCLA).
//!
//! The paper gives what a segment and a byte cost to send and receive: A and B of §3.1, with a real interface, with one in
//! software, and without the checksum of TCP. It assumes that both ends cost the same. With a real interface a segment
//! takes three completions of I/O: the write, the read, and the read of the RFNM; what A is larger by is theirs. Nothing is
//! fitted here.

use super::{Cost, Costs, NOTHING};

/// A and half of B in software: microseconds a segment, nanoseconds a byte at each end.
const fn in_software(segment_us: u64, ns_per_byte: u64) -> Costs {
    let half = Cost::new(segment_us / 2, 0);
    Costs {
        input: Cost::new(segment_us / 2, ns_per_byte),
        input_bare: half,
        output: Cost::new(segment_us / 2, ns_per_byte),
        output_bare: half,
        // UDP is as TCP here; the paper has no figure for it.
        datagram_input: Cost::new(segment_us / 2, ns_per_byte),
        datagram_output: Cost::new(segment_us / 2, ns_per_byte),
        interact: Cost::new(VTAM_US, 0),
        card_frames: 64,
        // The ACK waits until a process that waits for the data has taken it (UCLA §2.4): tasks go before output.
        // ASEND with push: a segment for each (figure 6).
        nagle: false,
        pushes: true,
        ..NOTHING
    }
}

/// VTF and VTAMAPPL, for each message (UCLA §3.2).
const VTAM_US: u64 = 9000;
/// One completion of I/O: a third of 3.8 ms less 1.05 ms.
const IO_US: u64 = (3800 - 1050) / 3;

/// With a real interface: 3.8 ms a segment and 1.9 us a byte.
pub(super) const COSTS: Costs = Costs {
    // The read.
    input: Cost::new(1050 / 2 + IO_US, 950),
    input_bare: Cost::new(1050 / 2 + IO_US, 0),
    // The write, and the read of the RFNM.
    output: Cost::new(1050 / 2 + 2 * IO_US, 950),
    output_bare: Cost::new(1050 / 2 + 2 * IO_US, 0),
    datagram_input: Cost::new(1050 / 2 + IO_US, 950),
    datagram_output: Cost::new(1050 / 2 + 2 * IO_US, 950),
    ..in_software(1050, 1200)
};
/// With the interface in software: 1.05 ms a segment and 2.4 us a byte.
pub(super) const LOOPBACK: Costs = in_software(1050, 1200);
/// The same without the checksum of TCP: 0.87 ms a segment and 1.2 us a byte.
pub(super) const LOOPBACK_WITHOUT_CHECKSUM: Costs = in_software(870, 600);
