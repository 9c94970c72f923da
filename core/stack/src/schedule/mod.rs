//! The schedule: sockets that want to send, waiting, timed, closing, or with news for the application.

mod list;
mod neighbours;
mod queues;
mod wheel;

pub(crate) use list::Lists;
pub(crate) use queues::Schedule;
