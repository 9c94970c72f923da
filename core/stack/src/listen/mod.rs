//! Listening: listeners, SYN queues, accept queues, SYN cookies and Fast Open.

mod cookie;
mod fast_open;
mod listener;
mod queues;

pub(crate) use cookie::Terms;
pub(crate) use fast_open::Verdict;
pub(crate) use listener::Listener;
pub(crate) use queues::Listening;
