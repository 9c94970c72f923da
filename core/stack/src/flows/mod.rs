//! The life of TCP connections: rules over the sockets and what they stand upon.

mod close;
mod cookie_answer;
mod handshake;
mod outcome;
mod pressure;
mod segment;
mod timer;

pub(crate) use close::{abort_flow, close_flow, close_listener};
pub(crate) use handshake::IncomingSyn;
pub(crate) use outcome::{apply, tell};
pub(crate) use pressure::sends_more_than_its_share;
pub(crate) use segment::{ask_path, flow_input, flow_segment, yield_time_wait};
pub(crate) use timer::timer_expired;
