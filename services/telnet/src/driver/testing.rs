//! A world for tests: a clock, a wire with urgent data, and users that need no Argon2.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use inhost_base::Instant;
use inhost_interop::DEADLINE;
use inhost_runtime::Reactor;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{Clock, Urgent};
use inhost_common::LocalFuture;
use inhost_common::users::{Account, Authenticate, Verdict};

/// The real time since the clock was made.
#[derive(Clone)]
pub(crate) struct RealClock(std::time::Instant);

impl RealClock {
    pub(crate) fn new() -> RealClock {
        RealClock(std::time::Instant::now())
    }
}

impl Clock for RealClock {
    fn now(&self) -> Instant {
        Instant::from_nanos(self.0.elapsed().as_nanos() as u64)
    }
    fn sleep_until(&self, at: Instant) -> Pin<Box<dyn Future<Output = ()>>> {
        let wait = std::time::Duration::from_nanos(at.since(self.now()).as_nanos());
        let state = Arc::new(Mutex::new((false, None::<Waker>)));
        let theirs = state.clone();
        std::thread::spawn(move || {
            std::thread::sleep(wait);
            let mut state = theirs.lock().unwrap();
            state.0 = true;
            if let Some(waker) = state.1.take() {
                waker.wake();
            }
        });
        Box::pin(std::future::poll_fn(move |cx| {
            let mut state = state.lock().unwrap();
            state.1 = Some(cx.waker().clone());
            if state.0 { Poll::Ready(()) } else { Poll::Pending }
        }))
    }
}

#[derive(Default)]
struct Direction {
    bytes: VecDeque<u8>,
    read: u64,
    mark: u64,
    closed: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

impl Direction {
    fn wake(&mut self) {
        [self.reader.take(), self.writer.take()].into_iter().flatten().for_each(Waker::wake);
    }
}

/// One end of a connection in memory with TCP's urgent mark. It holds `capacity` octets each way; the mark
/// overtakes them.
pub(crate) struct Wire {
    incoming: Arc<Mutex<Direction>>,
    outgoing: Arc<Mutex<Direction>>,
    capacity: usize,
}

/// A connection in memory.
pub(crate) fn wire(capacity: usize) -> (Wire, Wire) {
    let (a, b) = (Arc::default(), Arc::<Mutex<Direction>>::default());
    let one = Wire { incoming: Arc::clone(&a), outgoing: b.clone(), capacity };
    (one, Wire { incoming: b, outgoing: a, capacity })
}

impl AsyncRead for Wire {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut incoming = self.incoming.lock().unwrap();
        if incoming.bytes.is_empty() && !incoming.closed {
            incoming.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let count = buf.remaining().min(incoming.bytes.len());
        buf.put_slice(&incoming.bytes.drain(..count).collect::<Vec<_>>());
        incoming.read += count as u64;
        incoming.wake();
        Poll::Ready(Ok(()))
    }
}

impl Wire {
    /// The urgent mark goes ahead of the octet it is for, as TCP sends it while the window is closed.
    pub(crate) fn announce(&self) {
        let mut outgoing = self.outgoing.lock().unwrap();
        outgoing.mark = outgoing.read + outgoing.bytes.len() as u64 + 1;
    }
    fn push(&self, cx: &mut Context<'_>, bytes: &[u8], urgent: bool) -> Poll<io::Result<usize>> {
        let mut outgoing = self.outgoing.lock().unwrap();
        if outgoing.closed {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let count = bytes.len().min(self.capacity - outgoing.bytes.len());
        if count == 0 {
            outgoing.writer = Some(cx.waker().clone());
            return Poll::Pending;
        }
        outgoing.bytes.extend(&bytes[..count]);
        if urgent && count == bytes.len() {
            outgoing.mark = outgoing.read + outgoing.bytes.len() as u64;
        }
        outgoing.wake();
        Poll::Ready(Ok(count))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.push(cx, bytes, false)
    }
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut outgoing = self.outgoing.lock().unwrap();
        outgoing.closed = true;
        outgoing.wake();
        Poll::Ready(Ok(()))
    }
}

impl Urgent for Wire {
    fn poll_send_urgent(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.push(cx, bytes, true)
    }
    fn urgent_ahead(&self) -> Option<usize> {
        let incoming = self.incoming.lock().unwrap();
        incoming.mark.checked_sub(incoming.read).filter(|&ahead| ahead > 0).map(|ahead| ahead as usize)
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        for direction in [&self.incoming, &self.outgoing] {
            let mut direction = direction.lock().unwrap();
            direction.closed = true;
            direction.wake();
        }
    }
}

/// User "ada" with password "engine", and the operator "grace" with "compiler".
pub(crate) struct Ada;

impl Authenticate for Ada {
    fn authenticate(&self, user: String, password: String) -> LocalFuture<Verdict> {
        let verdict = match (&*user, &*password) {
            ("ada", "engine") => Verdict::Granted(Account { name: user, shell: None, is_operator: false }),
            ("grace", "compiler") => Verdict::Granted(Account { name: user, shell: None, is_operator: true }),
            _ => Verdict::Denied,
        };
        Box::pin(std::future::ready(verdict))
    }
}

/// A socket of the operating system: a thread reads it, writing blocks. Urgent data is seen by POLLPRI, so
/// the place of the mark is only known to lie ahead.
pub(crate) struct OsStream {
    socket: std::net::TcpStream,
    shared: Arc<Mutex<Direction>>,
}

impl OsStream {
    pub(crate) fn new(socket: std::net::TcpStream) -> OsStream {
        rustix::net::sockopt::set_socket_oobinline(&socket, true).unwrap();
        socket.set_nodelay(true).unwrap();
        let shared = Arc::<Mutex<Direction>>::default();
        let (theirs, reader) = (shared.clone(), socket.try_clone().unwrap());
        std::thread::spawn(move || read_socket(&theirs, reader));
        OsStream { socket, shared }
    }
}

fn read_socket(shared: &Mutex<Direction>, mut socket: std::net::TcpStream) {
    use rustix::event::{PollFd, PollFlags, poll};
    use std::io::Read;
    loop {
        while shared.lock().unwrap().bytes.len() > 4096 {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let mut polled = [PollFd::new(&socket, PollFlags::IN | PollFlags::PRI)];
        let _ = poll(&mut polled, None);
        let urgent = polled[0].revents().contains(PollFlags::PRI);
        if urgent {
            let mut shared = shared.lock().unwrap();
            shared.mark = shared.read + shared.bytes.len() as u64 + 1;
            shared.wake();
        }
        let mut bytes = [0; 1024];
        let count = socket.read(&mut bytes).unwrap_or(0);
        let mut shared = shared.lock().unwrap();
        shared.bytes.extend(&bytes[..count]);
        shared.closed = count == 0;
        shared.wake();
        if count == 0 {
            return;
        }
    }
}

impl AsyncRead for OsStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut shared = self.shared.lock().unwrap();
        if shared.bytes.is_empty() && !shared.closed {
            shared.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let count = buf.remaining().min(shared.bytes.len());
        buf.put_slice(&shared.bytes.drain(..count).collect::<Vec<_>>());
        shared.read += count as u64;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for OsStream {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(io::Write::write(&mut &self.socket, bytes))
    }
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let _ = self.socket.shutdown(std::net::Shutdown::Write);
        Poll::Ready(Ok(()))
    }
}

impl Urgent for OsStream {
    fn poll_send_urgent(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(rustix::net::send(&self.socket, bytes, rustix::net::SendFlags::OOB)?))
    }
    fn urgent_ahead(&self) -> Option<usize> {
        let shared = self.shared.lock().unwrap();
        shared.mark.checked_sub(shared.read).filter(|&ahead| ahead > 0).map(|ahead| ahead as usize)
    }
}

impl Drop for OsStream {
    fn drop(&mut self) {
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
    }
}

thread_local! {
    static REACTOR: Reactor = Reactor::new().unwrap();
}

/// The reactor of this test's thread.
pub(crate) fn reactor() -> Reactor {
    REACTOR.with(Reactor::clone)
}

struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Runs `future` to its end, with the reactor; by the deadline. Wakes of other threads are looked for every millisecond.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let (mut future, woken) = (std::pin::pin!(future), Arc::new(Flag(AtomicBool::new(true))));
    let waker = Waker::from(woken.clone());
    let began = std::time::Instant::now();
    loop {
        if woken.0.swap(false, Ordering::SeqCst)
            && let Poll::Ready(done) = future.as_mut().poll(&mut Context::from_waker(&waker))
        {
            return done;
        }
        assert!(began.elapsed() < DEADLINE, "not done within {DEADLINE:?}");
        let pause = if woken.0.load(Ordering::SeqCst) { 0 } else { 1 };
        reactor().wait(Some(inhost_base::Duration::from_millis(pause))).unwrap();
    }
}
