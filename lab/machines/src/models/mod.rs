//! What work costs on each machine: a table of constants a machine, and one processor that reads it.

mod alpha;
mod foreign;
mod ibm_3033;
mod ibm_pc;
mod vpi;

use inhost_base::Duration;
use inhost_sim::{FrameWork, Processor, Spent, Step, Work};

use crate::setup::Machine;

/// The protocol number of UDP.
const UDP: u8 = 17;

/// A cost with a part for each byte.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    pub(crate) fixed: Duration,
    pub(crate) ns_per_byte: u64,
}

impl Cost {
    const fn new(fixed_us: u64, ns_per_byte: u64) -> Cost {
        Cost { fixed: Duration::from_micros(fixed_us), ns_per_byte }
    }
    pub(crate) fn of(self, bytes: usize) -> Duration {
        self.fixed + Duration::from_nanos(self.ns_per_byte * bytes as u64)
    }
}

/// The costs of a machine. Those of an ideal one are nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Costs {
    /// A frame with data goes up.
    pub(crate) input: Cost,
    /// A frame without data goes up.
    pub(crate) input_bare: Cost,
    /// A frame with data goes down.
    pub(crate) output: Cost,
    /// A frame without data goes down.
    pub(crate) output_bare: Cost,
    /// The application writes.
    pub(crate) write: Cost,
    /// The application reads.
    pub(crate) read: Cost,
    /// A frame of a UDP datagram goes up, or down; one for each fragment.
    pub(crate) datagram_input: Cost,
    pub(crate) datagram_output: Cost,
    /// The application sends a datagram.
    pub(crate) datagram_write: Cost,
    /// The application receives one.
    pub(crate) datagram_read: Cost,
    /// Between the application and a terminal: a message of an interaction.
    pub(crate) interact: Cost,
    /// A character of plain text is written on the screen.
    pub(crate) print: Duration,
    /// What comes on top for each character of a text with a carriage return for each 82.
    pub(crate) scroll: Duration,
    /// An octet of a serial line interrupts.
    pub(crate) octet_interrupt: Duration,
    /// Frames that the card holds.
    pub(crate) card_frames: usize,
    /// Whether output waits for the line.
    pub(crate) waits_for_line: bool,
    /// Whether a small segment waits while data is in flight.
    pub(crate) nagle: bool,
    /// Whether each write leaves in packets of its own, as with TCP's push.
    pub(crate) pushes: bool,
    /// What goes first.
    pub(crate) order: [Step; 3],
    /// Whether output goes first when one frame is left in the card (MIT §7.1).
    pub(crate) answers_before_last: bool,
}

/// Costs of a machine whose work takes no time.
const NOTHING: Costs = Costs {
    input: Cost::new(0, 0),
    input_bare: Cost::new(0, 0),
    output: Cost::new(0, 0),
    output_bare: Cost::new(0, 0),
    write: Cost::new(0, 0),
    read: Cost::new(0, 0),
    datagram_input: Cost::new(0, 0),
    datagram_output: Cost::new(0, 0),
    datagram_write: Cost::new(0, 0),
    datagram_read: Cost::new(0, 0),
    interact: Cost::new(0, 0),
    print: Duration::ZERO,
    scroll: Duration::ZERO,
    octet_interrupt: Duration::ZERO,
    card_frames: 32,
    waits_for_line: false,
    nagle: true,
    pushes: false,
    order: [Step::Input, Step::Tasks, Step::Output],
    answers_before_last: false,
};

/// The costs of a machine.
pub(crate) fn costs(machine: Machine) -> Costs {
    match machine {
        Machine::Ideal {} => NOTHING,
        Machine::IbmPc {} => ibm_pc::COSTS,
        Machine::IbmPcWithProcedures {} => ibm_pc::WITH_PROCEDURES,
        Machine::Alpha {} => alpha::COSTS,
        Machine::AlphaBefore {} => alpha::BEFORE,
        Machine::Csr {} => foreign::CSR,
        Machine::Comet {} => foreign::COMET,
        Machine::Xx {} => foreign::XX,
        Machine::Multics {} => foreign::MULTICS,
        Machine::Dell310 {} => vpi::DELL_310,
        Machine::Ps2 {} => vpi::PS2,
        Machine::Dec5000 {} => vpi::DECSTATION_5000,
        Machine::MacIiSlowed {} => vpi::MAC_II_SLOWED,
        Machine::MacIi {} => vpi::MAC_II,
        Machine::Dec5000Slowed {} => vpi::DECSTATION_5000_SLOWED,
        Machine::Dec2100 {} => vpi::DECSTATION_2100,
        Machine::Ibm3033 {} => ibm_3033::COSTS,
        Machine::Ibm3033Loopback {} => ibm_3033::LOOPBACK,
        Machine::Ibm3033LoopbackWithoutChecksum {} => ibm_3033::LOOPBACK_WITHOUT_CHECKSUM,
    }
}

impl Costs {
    /// What the application pays to write `characters` on the screen.
    pub(crate) fn print(&self, characters: usize, scrolls: bool) -> Duration {
        let each = self.print + if scrolls { self.scroll } else { Duration::ZERO };
        each.times(characters as u64)
    }
}

impl Processor for Costs {
    fn cost(&mut self, work: &Work, spent: &mut Spent) {
        let (kind, frame, [data, bare, datagram]) = match *work {
            Work::Input(frame) => ("input", frame, [self.input, self.input_bare, self.datagram_input]),
            Work::Output(frame) => ("output", frame, [self.output, self.output_bare, self.datagram_output]),
            // Tasks charge for their calls.
            Work::Tasks { .. } => return,
        };
        let cost = match frame {
            FrameWork { protocol: UDP, .. } => datagram,
            FrameWork { data_bytes: 0, .. } => bare,
            FrameWork { .. } => data,
        };
        spent.add(kind, cost.of(frame.data_bytes));
    }
    fn order(&self, waiting_frames: usize) -> [Step; 3] {
        match self.answers_before_last && waiting_frames == 1 {
            true => [Step::Output, Step::Input, Step::Tasks],
            false => self.order,
        }
    }
    fn card_frames(&self) -> usize {
        self.card_frames
    }
    fn octet_interrupt(&self) -> Duration {
        self.octet_interrupt
    }
    fn waits_for_line(&self) -> bool {
        self.waits_for_line
    }
}
