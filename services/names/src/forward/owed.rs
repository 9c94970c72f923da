//! The replies that a connection is owed, and those of them that wait to be written.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

/// Replies that one connection is owed; with so many no further question of it is read.
const REPLIES_OWED: usize = 64;
/// Memory of replies that wait; with so much no further question is read.
const READ_BELOW_BYTES: usize = 32 * 1024;
/// Memory of replies that one connection may have waiting: what it asked for before it stopped reading. With more it is
/// reset.
pub(super) const WAITING_LIMIT_BYTES: usize = 256 * 1024;

/// The replies of one connection that wait to be written.
pub(super) struct Line {
    /// Memory of the replies that wait in all connections.
    all: Rc<Cell<usize>>,
    state: RefCell<Waiting>,
}

#[derive(Default)]
struct Waiting {
    /// Messages behind their lengths.
    bytes: VecDeque<Vec<u8>>,
    count_bytes: usize,
    /// Replies that are still to come.
    owed: usize,
    /// No further question comes.
    is_read: bool,
    /// More waits than may.
    is_over: bool,
    /// Of the one task that reads and writes.
    waker: Option<Waker>,
}

/// One reply that a connection is owed: counted until it is given, or will never be.
pub(super) struct Owed(Rc<Line>);

impl Owed {
    pub(super) fn new(line: &Rc<Line>) -> Owed {
        line.state.borrow_mut().owed += 1;
        Owed(line.clone())
    }
    /// The reply. One that is too long for TCP's length is lost; none is.
    pub(super) fn give(self, message: Vec<u8>) {
        let Ok(length) = u16::try_from(message.len()) else { return };
        let mut framed = Vec::with_capacity(2 + message.len());
        framed.extend_from_slice(&length.to_be_bytes());
        framed.extend_from_slice(&message);
        let mut state = self.0.state.borrow_mut();
        if state.count_bytes + framed.capacity() > WAITING_LIMIT_BYTES {
            state.is_over = true;
            return;
        }
        state.count_bytes += framed.capacity();
        self.0.all.set(self.0.all.get() + framed.capacity());
        state.bytes.push_back(framed);
    }
}

impl Drop for Owed {
    fn drop(&mut self) {
        let mut state = self.0.state.borrow_mut();
        state.owed = state.owed.saturating_sub(1);
        state.waker.take().into_iter().for_each(Waker::wake);
    }
}

/// Next step of the writer.
#[derive(PartialEq, Debug)]
pub(super) enum Next {
    Write(Vec<u8>),
    End,
    Reset,
}

impl Line {
    pub(super) fn new(all: Rc<Cell<usize>>) -> Rc<Line> {
        Rc::new(Line { all, state: RefCell::default() })
    }
    /// Waits until a further question may be read: TCP's window slows down a client that sends faster than it reads.
    pub(super) async fn has_room(&self) {
        poll_fn(|context| {
            let mut state = self.state.borrow_mut();
            if state.owed < REPLIES_OWED && state.count_bytes < READ_BELOW_BYTES {
                return Poll::Ready(());
            }
            state.waker = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }
    pub(super) fn no_more_questions(&self) {
        let mut state = self.state.borrow_mut();
        state.is_read = true;
        state.waker.take().into_iter().for_each(Waker::wake);
    }
    /// All that waits, in one piece.
    pub(super) async fn next(&self) -> Next {
        poll_fn(|context| {
            let mut state = self.state.borrow_mut();
            if state.is_over {
                return Poll::Ready(Next::Reset);
            }
            if !state.bytes.is_empty() {
                let waits: Vec<Vec<u8>> = std::mem::take(&mut state.bytes).into();
                return Poll::Ready(Next::Write(waits.concat()));
            }
            if state.is_read && state.owed == 0 {
                return Poll::Ready(Next::End);
            }
            state.waker = Some(context.waker().clone());
            Poll::Pending
        })
        .await
    }
    /// The output of [`Line::next`] was written.
    pub(super) fn written(&self) {
        let mut state = self.state.borrow_mut();
        let waits: usize = state.bytes.iter().map(Vec::capacity).sum();
        let gone = state.count_bytes.saturating_sub(waits);
        self.release(gone);
        state.count_bytes = waits;
        state.waker.take().into_iter().for_each(Waker::wake);
    }
    fn release(&self, bytes: usize) {
        self.all.set(self.all.get().saturating_sub(bytes));
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.release(self.state.borrow().count_bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_lite::future::block_on;

    #[test]
    fn what_waits_is_written_in_one_piece_and_what_is_owed_is_waited_for() {
        let line = Line::new(Rc::default());
        let (first, second) = (Owed::new(&line), Owed::new(&line));
        first.give(vec![1; 3]);
        second.give(vec![2; 2]);
        let third = Owed::new(&line);
        line.no_more_questions();
        assert_eq!(block_on(line.next()), Next::Write(vec![0, 3, 1, 1, 1, 0, 2, 2, 2]));
        line.written();
        assert_eq!(line.all.get(), 0);
        drop(third);
        assert_eq!(block_on(line.next()), Next::End);
    }

    #[test]
    fn a_peer_that_reads_nothing_is_kept_in_bounds() {
        let line = Line::new(Rc::default());
        for _ in 0..REPLIES_OWED {
            Owed::new(&line).give(vec![0; 60_000]);
            assert!(line.all.get() <= WAITING_LIMIT_BYTES);
        }
        assert_eq!(block_on(line.next()), Next::Reset);
        let all = line.all.clone();
        drop(line);
        assert_eq!(all.get(), 0);
    }
}
