//! ICMP: echo and probe sockets.

mod echo_socket;
mod probe_socket;

pub(crate) use echo_socket::{Echo, Request};
pub(crate) use probe_socket::{CALL_PORTS, Outgoing, Prober};
pub use probe_socket::{Probe, ProbeAnswer, ProbeMethod, ProbeNews};
