//! ICMP: echo and probe sockets.

mod echo_socket;
mod probe_socket;

pub(crate) use echo_socket::Echo;
pub(crate) use probe_socket::{CALL_PORTS, Prober};
pub use probe_socket::{Probe, ProbeAnswer, ProbeMethod, ProbeNews};
