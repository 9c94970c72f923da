//! The IBM PC of MIT's thesis: an 8088 at 4.77 MHz. All figures are from MIT table 6-1; nothing is fitted.

use inhost_base::Duration;

use super::{Cost, Costs, NOTHING};

/// Half of the overhead of a packet sent and received, 10 ms (table 6-1, OOF); the paper gives each side half of it.
const FIXED_US: u64 = 5000;
/// Half of the overhead of a data byte sent and received, 154 us (table 6-1, OOV; 38.4 ms for 500 bytes in table 6-2).
const NS_PER_BYTE: u64 = 77_000;

/// The costs.
pub(super) const COSTS: Costs = Costs {
    input: Cost::new(FIXED_US, 0),
    input_bare: Cost::new(FIXED_US, 0),
    output: Cost::new(FIXED_US, NS_PER_BYTE),
    output_bare: Cost::new(FIXED_US, 0),
    // The paper counts the part for each byte after the first character was printed (table 6-5).
    read: Cost::new(0, NS_PER_BYTE),
    // UDP is as TCP here; the paper has no figure for it.
    datagram_input: Cost::new(FIXED_US, 0),
    datagram_output: Cost::new(FIXED_US, NS_PER_BYTE),
    datagram_read: Cost::new(0, NS_PER_BYTE),
    // Table 6-1, PCO and CRO.
    print: Duration::from_micros(692),
    scroll: Duration::from_micros(392),
    // Table 6-1, INT.
    octet_interrupt: Duration::from_micros(231),
    // MIT §5.4.
    card_frames: 32,
    // MIT §5.3: the routine that sends runs a loop until the packet is on the line.
    waits_for_line: true,
    ..NOTHING
};

/// The same with the scheduler that calls procedures: 65 us less for a packet that comes, and 200 us less for one that goes
/// (MIT §4.2.4).
pub(super) const WITH_PROCEDURES: Costs = Costs {
    input: Cost::new(FIXED_US - 65, 0),
    input_bare: Cost::new(FIXED_US - 65, 0),
    output: Cost::new(FIXED_US - 200, NS_PER_BYTE),
    output_bare: Cost::new(FIXED_US - 200, 0),
    ..COSTS
};
