//! A TCP connection as a socket, and the state that few connections have.

mod optional;
mod segment;
mod socket;

pub(crate) use optional::{OptionalState, Times};
pub(crate) use segment::{can_talk, default_mss, segment_limit};
pub(crate) use socket::{TcpSocket, TcpSocketFlags};
