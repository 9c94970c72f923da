//! The calls of applications, grouped by protocol.

mod instruments;
mod tcp;

pub use instruments::{Instruments, Queued};
pub use tcp::{Refusal, TcpSockets};
