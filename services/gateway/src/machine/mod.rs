//! Flow table of the gateway: pure, with time as an argument. Its stack handles TCP and UDP.

mod flows;
mod reply_port;

pub(crate) use flows::Flows;
pub(crate) use reply_port::{Pair, ReplyPort, ReplyPorts};
