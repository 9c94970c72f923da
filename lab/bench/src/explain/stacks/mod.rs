//! Where a situation is made: our stack at both ends in virtual time, our stack and the kernel, the kernel at both ends.

mod kernel;
mod ours;
mod real;
mod sim;

use super::path::Passed;
use super::script::Note;
use super::situation::Situation;
use crate::figures::kernel::emulator::Emulator;
use inhost_base::{Duration, Instant};
use inhost_explain::Known;

pub use kernel::Sample;

/// Port of the client in the connection under test, whichever address it has.
pub const CLIENT_PORT: u16 = 40_000;
/// Port of the server.
pub const SERVER_PORT: u16 = 9;

/// What is at the two ends.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Stack {
    /// Ours at both ends, in virtual time.
    Sim,
    /// Ours at the end that the situation is about, on a TUN device; the kernel at the other.
    Tap,
    /// The kernel at both ends, in two namespaces.
    Kernel,
}

impl Stack {
    /// All, in the order of the table.
    pub const ALL: [Stack; 3] = [Stack::Sim, Stack::Tap, Stack::Kernel];
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Stack::Sim => "sim",
            Stack::Tap => "tap",
            Stack::Kernel => "kernel",
        }
    }
    /// The stack of this name.
    pub fn of(name: &str) -> Result<Stack, String> {
        let found = Stack::ALL.into_iter().find(|stack| stack.name() == name);
        found.ok_or_else(|| format!("no stack is called {name:?}; there are sim, tap, kernel"))
    }
}

/// What a run gave: all that truth is made from, and all that is judged.
pub struct Run {
    /// What became of each packet.
    pub log: Vec<Passed>,
    /// Captures at the client, in the middle and at the server: pcapng.
    pub captures: [Vec<u8>; 3],
    /// What the client's and the server's programs noted.
    pub notes: [Vec<(Instant, Note)>; 2],
    /// The kernel's `TCP_INFO`, where it is that end.
    pub samples: [Vec<(Instant, Sample)>; 2],
    /// What our host knew at the end, where it is that end.
    pub known: [Option<Known>; 2],
    /// How late the emulator was: the 99th percentile.
    pub late: Duration,
}

/// Makes a situation. The emulator is needed for all but `Stack::Sim`.
pub fn run(
    stack: Stack,
    situation: &Situation,
    seed: u64,
    emulator: Option<&Emulator>,
) -> Result<Run, String> {
    match (stack, emulator) {
        (Stack::Sim, _) => sim::run(situation, seed),
        (_, None) => Err("no emulator".to_owned()),
        (Stack::Tap, Some(emulator)) => real::run(situation, seed, emulator, Some(situation.ours)),
        (Stack::Kernel, Some(emulator)) => real::run(situation, seed, emulator, None),
    }
}
