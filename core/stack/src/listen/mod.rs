//! Listening: SYN queues, accept queues, SYN cookies and Fast Open.

mod accept;
mod cookie;
mod cookie_answer;
mod fast_open;
mod handshake;
mod listener;
mod queues;

pub(crate) use handshake::IncomingSyn;
pub(crate) use listener::Listener;
pub(crate) use queues::Listening;
