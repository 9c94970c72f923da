//! The calls of applications, grouped by protocol.

mod detail;
mod instruments;
mod tcp;

pub use detail::{HostQueues, LinkQueues};
pub use instruments::{Instruments, Queued};
pub use tcp::{Refusal, TcpSockets};
