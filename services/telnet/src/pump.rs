//! Two descriptors carried by one side thread, with little between: what is queued here is what an
//! interrupt cannot stop, so the queues are small.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Octets that wait in either direction.
const PUMP_BYTES: usize = 4096;
/// Octets of one write, so that a slow taker does not hold the thread long.
const WRITE_BYTES: usize = 512;

/// The two ends of a pump.
pub(crate) trait Ends: Send + 'static {
    /// What is read.
    fn source(&self) -> BorrowedFd<'_>;
    /// What is written.
    fn sink(&self) -> BorrowedFd<'_>;
}

/// The near end of a pump: it reads what the source gave, and writes the data for the sink.
pub(crate) struct Pump {
    shared: Arc<Shared>,
}

struct Shared {
    queues: Mutex<Queues>,
    bell: OwnedFd,
}

#[derive(Default)]
struct Queues {
    incoming: VecDeque<u8>,
    outgoing: VecDeque<u8>,
    reader: Option<Waker>,
    writer: Option<Waker>,
    source_ended: bool,
    sink_ended: bool,
    /// Why it ended, if it refused what was written.
    sink_error: Option<rustix::io::Errno>,
    stopped: bool,
}

impl Pump {
    pub(crate) fn start(name: &str, ends: impl Ends) -> io::Result<Pump> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let shared = Arc::new(Shared { queues: Mutex::default(), bell });
        let theirs = shared.clone();
        std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            run(&theirs, &ends);
        })?;
        Ok(Pump { shared })
    }
    /// Ends the thread as soon as it has finished what it is at.
    pub(crate) fn stop(&self) {
        self.shared.locked().stopped = true;
        self.shared.ring();
    }
    pub(crate) fn poll_read(&self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let was_full = {
            let mut queues = self.shared.locked();
            if queues.incoming.is_empty() {
                if queues.source_ended || queues.stopped {
                    return Poll::Ready(Ok(()));
                }
                queues.reader = Some(cx.waker().clone());
                return Poll::Pending;
            }
            let was_full = queues.incoming.len() >= PUMP_BYTES;
            while buf.remaining() > 0 && !queues.incoming.is_empty() {
                let (front, _) = queues.incoming.as_slices();
                let count = front.len().min(buf.remaining());
                buf.put_slice(front.get(..count).unwrap_or_default());
                queues.incoming.drain(..count);
            }
            was_full
        };
        if was_full {
            self.shared.ring();
        }
        Poll::Ready(Ok(()))
    }
    pub(crate) fn poll_write(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let count = {
            let mut queues = self.shared.locked();
            if queues.sink_ended || queues.stopped {
                let refused =
                    queues.sink_error.map_or_else(|| io::ErrorKind::BrokenPipe.into(), io::Error::from);
                return Poll::Ready(Err(refused));
            }
            let count = bytes.len().min(PUMP_BYTES - queues.outgoing.len().min(PUMP_BYTES));
            if count == 0 && !bytes.is_empty() {
                queues.writer = Some(cx.waker().clone());
                return Poll::Pending;
            }
            queues.outgoing.extend(bytes.iter().take(count));
            count
        };
        self.shared.ring();
        Poll::Ready(Ok(count))
    }
    pub(crate) fn poll_flush(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut queues = self.shared.locked();
        if let Some(error) = queues.sink_error {
            return Poll::Ready(Err(error.into()));
        }
        if queues.outgoing.is_empty() || queues.sink_ended || queues.stopped {
            return Poll::Ready(Ok(()));
        }
        queues.writer = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Pump {
    fn drop(&mut self) {
        self.stop();
    }
}

impl AsyncRead for Pump {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pump::poll_read(&self, cx, buf)
    }
}

impl AsyncWrite for Pump {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pump::poll_write(&self, cx, bytes)
    }
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pump::poll_flush(&self, cx)
    }
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stop();
        Poll::Ready(Ok(()))
    }
}

impl Shared {
    fn locked(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Wakes the thread out of its poll. A full counter means that it is awake already.
    fn ring(&self) {
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
    }
}

fn run(shared: &Shared, ends: &impl Ends) {
    loop {
        let (want_read, want_write) = {
            let queues = shared.locked();
            if queues.stopped {
                break;
            }
            let room = queues.incoming.len() < PUMP_BYTES && !queues.source_ended;
            (room, !queues.outgoing.is_empty() && !queues.sink_ended)
        };
        let Some(ready) = wait(shared, ends, want_read, want_write) else { break };
        if ready.read {
            take_in(shared, ends);
        }
        if ready.write {
            put_out(shared, ends);
        }
    }
    let wakers = {
        let mut queues = shared.locked();
        (queues.source_ended, queues.sink_ended) = (true, true);
        [queues.reader.take(), queues.writer.take()]
    };
    wakers.into_iter().flatten().for_each(Waker::wake);
}

struct Ready {
    read: bool,
    write: bool,
}

fn wait(shared: &Shared, ends: &impl Ends, want_read: bool, want_write: bool) -> Option<Ready> {
    let mut polled = Vec::with_capacity(4);
    polled.push(PollFd::new(&shared.bell, PollFlags::IN));
    let (mut read_at, mut write_at) = (0, 0);
    if want_read {
        read_at = polled.len();
        polled.push(PollFd::from_borrowed_fd(ends.source(), PollFlags::IN));
    }
    if want_write {
        write_at = polled.len();
        polled.push(PollFd::from_borrowed_fd(ends.sink(), PollFlags::OUT));
    }
    match poll(&mut polled, None) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(_) => return None,
    }
    let is_ready = |at: usize| at > 0 && polled.get(at).is_some_and(|fd| !fd.revents().is_empty());
    let ready = Ready { read: is_ready(read_at), write: is_ready(write_at) };
    let _ = rustix::io::read(&shared.bell, &mut [0u8; 8][..]);
    Some(ready)
}

fn take_in(shared: &Shared, ends: &impl Ends) {
    let room = PUMP_BYTES.saturating_sub(shared.locked().incoming.len());
    let mut bytes = [0; PUMP_BYTES];
    let Some(bytes) = bytes.get_mut(..room) else { return };
    match rustix::io::read(ends.source(), &mut *bytes) {
        Ok(count) if count > 0 => {
            let waker = {
                let mut queues = shared.locked();
                queues.incoming.extend(bytes.iter().take(count));
                queues.reader.take()
            };
            if let Some(waker) = waker {
                waker.wake();
            }
        }
        Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
        Ok(_) | Err(_) => end_source(shared),
    }
}

fn end_source(shared: &Shared) {
    let waker = {
        let mut queues = shared.locked();
        queues.source_ended = true;
        queues.reader.take()
    };
    if let Some(waker) = waker {
        waker.wake();
    }
}

fn put_out(shared: &Shared, ends: &impl Ends) {
    let bytes: Vec<u8> = shared.locked().outgoing.iter().take(WRITE_BYTES).copied().collect();
    let written = match rustix::io::write(ends.sink().as_fd(), &bytes) {
        Ok(count) => Ok(count),
        Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(0),
        Err(error) => Err(error),
    };
    let waker = {
        let mut queues = shared.locked();
        match written {
            Ok(count) => {
                let count = count.min(queues.outgoing.len());
                queues.outgoing.drain(..count);
            }
            Err(error) => {
                (queues.sink_ended, queues.sink_error) = (true, Some(error));
                queues.outgoing.clear();
            }
        }
        queues.writer.take()
    };
    if let Some(waker) = waker {
        waker.wake();
    }
}
