//! The IBM PC of MIT's thesis: an 8088 at 4.77 MHz. All figures are from MIT table 6-1; nothing is fitted.

use inhost_base::Duration;
use inhost_sim::{FrameWork, Processor, Spent, Work};

/// Fixed overhead of one packet sent and one received (table 6-1, OOF). The paper gives each half of it.
const FIXED: Duration = Duration::from_millis(10);
/// Overhead of a data byte sent and received (table 6-1, OOV): 38.4 ms is half of it for 500 bytes. The table has
/// 0.0357 s for 466 bytes as half of it, which is 154 us per byte, sent plus received.
const VARIABLE_NS_PER_BYTE: u64 = 154_000;
/// Time to write a character on the screen (table 6-1, PCO).
const PRINT_NS: u64 = 692_000;
/// Time of carriage returns, spread over all characters of a text with one for each 82 (table 6-1, CRO).
const SCROLL_NS: u64 = 392_000;
/// Interrupt for an octet of the serial line (table 6-1, INT).
const INTERRUPT: Duration = Duration::from_micros(231);
/// Packet buffers (MIT §5.4).
const BUFFERS: usize = 32;

/// The processor.
pub(crate) struct IbmPc;

impl Processor for IbmPc {
    fn cost(&mut self, work: &Work, spent: &mut Spent) {
        match *work {
            Work::Input(_) => spent.add("input", FIXED.divided_by(2)),
            Work::Output(FrameWork { data_bytes, .. }) => {
                spent.add("output", FIXED.divided_by(2));
                spent.add("output data", variable(data_bytes));
            }
            Work::Tasks { .. } => {}
        }
    }
    fn card_frames(&self) -> usize {
        BUFFERS
    }
    fn octet_interrupt(&self) -> Duration {
        INTERRUPT
    }
    fn waits_for_line(&self) -> bool {
        // MIT §5.3: the routine that sends runs a loop until the packet is on the line.
        true
    }
}

/// Half of the variable overhead of so many bytes: what sending or receiving them costs.
fn variable(bytes: usize) -> Duration {
    Duration::from_nanos(bytes as u64 * VARIABLE_NS_PER_BYTE / 2)
}

/// What the application pays to take `bytes` of data. The paper's table 6-5 counts it after the first character was
/// printed.
pub(crate) fn take(bytes: usize) -> Duration {
    variable(bytes)
}

/// What the application pays to write `characters` on the screen, of a text with carriage returns or without.
pub(crate) fn print(characters: usize, scrolls: bool) -> Duration {
    let each_ns = PRINT_NS + if scrolls { SCROLL_NS } else { 0 };
    Duration::from_nanos(characters as u64 * each_ns)
}
