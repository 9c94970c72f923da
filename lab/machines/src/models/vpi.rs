//! The machines of VPI: the Dell 310 and the PS/2 with MD-DOS/IP, and the Macintosh II and the DECstations 2100 and 5000
//! with Unix.
//!
//! Dell 310, for 1,024 bytes where the paper has no other size:
//!
//! - `output`: 647 us of TCP and IP (table 10), of which the checksum is 0.4 us a byte, since checksum and copy are 33 and 36
//!   percent of 1,460 bytes (§4.3.2.1). The driver takes the rest of the 3,182 us that a segment of 1,460 bytes takes in
//!   figure 13: 0.2 ms, as for an acknowledgment, and 1.47 us a byte.
//! - `write`: 1 ms less what the loop takes, for 1,024 bytes in figure 13; of it 0.44 us a byte for the copy.
//! - `input_bare`: 476 us from an acknowledgment to the next segment (figure 13).
//! - `input` and `read`: 3,469 us together; `output_bare`: 477 us (§4.4.2).
//!
//! The others are scaled by the rates at which they send UDP datagrams of 1,024 bytes (§4.4.2). Nothing is fitted on a rate of
//! TCP or on the idle share.

use inhost_sim::Step;

use super::{Cost, Costs, NOTHING};

/// Costs of a machine that takes `percent` of the time of a Dell 310.
const fn scaled(percent: u64) -> Costs {
    const fn part(us: u64, ns_per_byte: u64, percent: u64) -> Cost {
        Cost::new(us * percent / 100, ns_per_byte * percent / 100)
    }
    Costs {
        input: part(389, 2567, percent),
        input_bare: part(476, 0, percent),
        output: part(437, 1870, percent),
        output_bare: part(477, 0, percent),
        write: part(450, 440, percent),
        read: part(0, 440, percent),
        // The paper takes the rates of UDP for those of TCP (§4.4.2).
        datagram_input: part(389, 2567, percent),
        datagram_output: part(437, 1870, percent),
        datagram_write: part(450, 440, percent),
        datagram_read: part(0, 440, percent),
        // The second segment of a window, 588 bytes, does not wait for the first one's acknowledgment (figure 13).
        nagle: false,
        // The paper does not say how many frames a card holds.
        card_frames: 4,
        ..NOTHING
    }
}

/// A machine with Unix: its TCP is BSD's, with Nagle's rule.
const fn unix(percent: u64) -> Costs {
    Costs { nagle: true, card_frames: 32, order: KERNEL_FIRST, ..scaled(percent) }
}

/// Unix answers an acknowledgment with the next segment before it lets the program go on.
const KERNEL_FIRST: [Step; 3] = [Step::Input, Step::Output, Step::Tasks];

/// It sends 1,024 bytes in 3,252 us.
pub(super) const DELL_310: Costs = scaled(100);
/// 2.596 Mbit/s are 3,156 us for 1,024 bytes.
pub(super) const PS2: Costs = scaled(97);
/// 8.192 Mbit/s are 1,000 us.
pub(super) const DECSTATION_5000: Costs = unix(31);
/// 0.552 Mbit/s are 14,841 us. The program was slowed down between its writes.
pub(super) const MAC_II_SLOWED: Costs = Costs { write: Cost::new(450 + 11_589, 440), ..unix(100) };
/// 2.074 Mbit/s are 3,950 us (figure 18).
pub(super) const MAC_II: Costs = unix(121);
/// 3.9 Mbit/s are 2,101 us (figure 18). The program was slowed down between its writes.
pub(super) const DECSTATION_5000_SLOWED: Costs =
    Costs { write: Cost::new((450 * 31) / 100 + 1093, 136), ..DECSTATION_5000 };
/// It takes 4.2 Mbit/s (figure 18): 1,951 us, where a Dell 310 takes 3,469 us for a segment and 477 us for each second one's
/// acknowledgment.
pub(super) const DECSTATION_2100: Costs = unix(53);
