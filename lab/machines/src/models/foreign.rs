//! Hosts behind MIT's packet concentrator: how long each takes to answer a character, its network included.
//!
//! Fitted on the column for 19,200 bit/s of MIT table 6-6, less 60.8 ms: 50.0 ms of line and 10.8 ms of the PC. The column for
//! 9,600 bit/s is judged. What they take to send a segment of a screen is not known, and is nothing.

use super::{Cost, Costs, NOTHING};

const fn answers_in(us: u64) -> Costs {
    Costs { read: Cost::new(us, 0), nagle: false, ..NOTHING }
}

/// PDP-11/45 with Unix: 128 ms.
pub(super) const CSR: Costs = answers_in(67_200);
/// VAX-11/750 with Unix: 136 ms.
pub(super) const COMET: Costs = answers_in(75_200);
/// DEC System-20 with Tops-20: 161 ms.
pub(super) const XX: Costs = answers_in(100_200);
/// Honeywell 68/80 with Multics, over the ARPANET: 325 ms.
pub(super) const MULTICS: Costs = answers_in(264_200);
