//! The calls of applications, grouped by protocol.

mod detail;
mod echo;
mod instruments;
mod probe;
mod tcp;
mod udp;

pub use detail::{HostQueues, LinkQueues};
pub use echo::EchoSockets;
pub use instruments::{Instruments, Queued};
pub use probe::ProbeSockets;
pub use tcp::{Refusal, TcpSockets};
pub use udp::UdpSockets;
