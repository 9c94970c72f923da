//! The schedule: sockets that want to send, waiting, timed, closing, or with news for the application.

mod neighbours;
mod queues;

pub(crate) use queues::Schedule;
