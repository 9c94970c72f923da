//! What both kinds of remote sockets have: what can be done without waiting, and options that wait to be set.

use std::task::{Context, Poll, Waker};

use inhost_stack::SocketOption;

use crate::waiters::WakerSet;

/// What the outer end can do without waiting.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StreamReadiness {
    /// A read gives data, the end of the stream or an error.
    pub readable: bool,
    /// No data will come beyond what can be read now.
    pub read_closed: bool,
    /// A write takes bytes or gives an error.
    pub writable: bool,
    /// Every write gives an error.
    pub write_closed: bool,
    /// The connection, or its sending half, has failed; a datagram socket has an error to report.
    pub failed: bool,
    /// Urgent data is ahead.
    pub urgent: bool,
}

impl StreamReadiness {
    /// Ready if `holds`; else a task is registered for what that waits for, which may be one direction's alone. Gives the
    /// tasks that had to make room, too.
    pub(super) fn poll(
        self,
        holds: impl Fn(StreamReadiness) -> bool,
        context: &Context<'_>,
        readers: &mut WakerSet,
        writers: &mut WakerSet,
    ) -> (Poll<StreamReadiness>, std::iter::Flatten<std::array::IntoIter<Option<Waker>, 2>>) {
        if holds(self) {
            return (Poll::Ready(self), [None, None].into_iter().flatten());
        }
        let read = StreamReadiness { readable: true, read_closed: true, urgent: true, failed: true, ..self };
        let written = StreamReadiness { writable: true, write_closed: true, failed: true, ..self };
        let by_reading = holds(read).then(|| readers.register(context)).flatten();
        let by_writing = holds(written).then(|| writers.register(context)).flatten();
        (Poll::Pending, [by_reading, by_writing].into_iter().flatten())
    }
}

/// Adds an option that is to be set, in place of an earlier one of its kind.
pub(super) fn replace_option(options: &mut Vec<SocketOption>, option: SocketOption) {
    let kind = std::mem::discriminant(&option);
    options.retain(|other| std::mem::discriminant(other) != kind);
    options.push(option);
}
