//! ICMP: echo and probe sockets.

mod echo;
mod echo_socket;
mod probe;
mod probe_socket;

pub use echo::EchoSockets;
pub(crate) use echo_socket::Echo;
pub use probe::ProbeSockets;
pub(crate) use probe_socket::Prober;
pub use probe_socket::{Probe, ProbeAnswer, ProbeMethod, ProbeNews};
