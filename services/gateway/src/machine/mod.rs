//! What the gateway remembers of flows: pure, with time as an argument. TCP and UDP themselves are its stack's.

mod flows;
mod reply_port;

pub(crate) use flows::Flows;
pub(crate) use reply_port::{Pair, ReplyPort, ReplyPorts};
