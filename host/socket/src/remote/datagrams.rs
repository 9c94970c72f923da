//! UDP sockets for other threads.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use inhost_base::Endpoint;

use crate::datagram::{Ends, UdpSocket};
use crate::error::DatagramError;
use crate::host::Host;

/// Datagrams that wait in each direction of a remote socket, beside the socket's own queues.
pub const REMOTE_DATAGRAMS: usize = 64;
/// Payload that waits in each direction of a remote socket; the last datagram may go beyond.
pub const REMOTE_DATAGRAM_BYTES: usize = 128 * 1024;
/// Datagrams moved each way in one poll.
const DATAGRAMS_A_POLL: usize = 32;
/// Tasks that wait for one direction; when more come, the oldest looks again.
const WAITERS: usize = 32;

/// A datagram with its two ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Datagram {
    /// The payload.
    pub bytes: Vec<u8>,
    /// The sender.
    pub from: Endpoint,
    /// Where it was sent to.
    pub to: Endpoint,
}

/// A UDP socket that is `Send`. Clones are the same socket, which is closed when the last is dropped.
#[derive(Clone)]
pub struct RemoteUdpSocket {
    outer: Arc<Outer>,
    local: Endpoint,
}

struct Outer(Arc<Shared>);

impl Drop for Outer {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.abandoned = true;
        let shard = state.shard.take();
        drop(state);
        wake_all(shard);
    }
}

struct Shared(Mutex<State>);

#[derive(Default)]
struct State {
    up: VecDeque<Result<Datagram, DatagramError>>,
    down: VecDeque<Down>,
    up_bytes: usize,
    down_bytes: usize,
    stopped: bool,
    abandoned: bool,
    shard: Option<Waker>,
    readers: Vec<Waker>,
    writers: Vec<Waker>,
}

enum Down {
    Send { bytes: Vec<u8>, ends: Ends },
    Connect(Endpoint),
}

impl Down {
    fn bytes(&self) -> usize {
        match self {
            Down::Send { bytes, .. } => bytes.len(),
            Down::Connect(_) => 0,
        }
    }
}
fn up_bytes(up: &Result<Datagram, DatagramError>) -> usize {
    up.as_ref().map_or(0, |datagram| datagram.bytes.len())
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RemoteUdpSocket {
    pub(crate) fn start(host: &Host, socket: UdpSocket) -> RemoteUdpSocket {
        let shared = Arc::new(Shared(Mutex::new(State::default())));
        let local = socket.local();
        host.spawn(serve(host.clone(), socket, shared.clone())).detach();
        RemoteUdpSocket { outer: Arc::new(Outer(shared)), local }
    }
    /// Our end, as it was bound.
    pub fn local(&self) -> Endpoint {
        self.local
    }
    /// Talks to `remote` only from now on. An error is learnt by a later call.
    pub async fn connect(&self, remote: Endpoint) -> Result<(), DatagramError> {
        poll_fn(|context| self.poll_down(context, || Down::Connect(remote))).await
    }
    /// Sends one datagram to `to`, or to the connected end. Errors met on the way are learnt by a later call.
    pub async fn send_to(&self, bytes: &[u8], to: Option<Endpoint>) -> Result<(), DatagramError> {
        poll_fn(|context| self.poll_send(context, bytes, Ends { from: None, to })).await
    }
    /// One step of sending between any ends.
    pub fn poll_send(
        &self,
        context: &Context<'_>,
        bytes: &[u8],
        ends: Ends,
    ) -> Poll<Result<(), DatagramError>> {
        self.poll_down(context, || Down::Send { bytes: bytes.to_vec(), ends })
    }
    /// The next datagram, or an error that an earlier one met.
    pub async fn receive(&self) -> Result<Datagram, DatagramError> {
        poll_fn(|context| self.poll_receive(context)).await
    }
    /// One step of [`RemoteUdpSocket::receive`].
    pub fn poll_receive(&self, context: &Context<'_>) -> Poll<Result<Datagram, DatagramError>> {
        let mut state = self.outer.0.lock();
        let woken = match state.up.pop_front() {
            Some(result) => {
                state.up_bytes -= up_bytes(&result);
                let shard = state.shard.take();
                drop(state);
                wake_all(shard);
                return Poll::Ready(result);
            }
            None if state.stopped => return Poll::Ready(Err(DatagramError::Stopped)),
            None => register(&mut state.readers, context),
        };
        drop(state);
        wake_all(woken);
        Poll::Pending
    }

    fn poll_down(
        &self,
        context: &Context<'_>,
        make: impl FnOnce() -> Down,
    ) -> Poll<Result<(), DatagramError>> {
        let mut state = self.outer.0.lock();
        if state.stopped {
            return Poll::Ready(Err(DatagramError::Stopped));
        }
        let (woken, done) = if state.down.len() < REMOTE_DATAGRAMS && state.down_bytes < REMOTE_DATAGRAM_BYTES
        {
            let down = make();
            state.down_bytes += down.bytes();
            state.down.push_back(down);
            (state.shard.take(), Poll::Ready(Ok(())))
        } else {
            (register(&mut state.writers, context), Poll::Pending)
        };
        drop(state);
        wake_all(woken);
        done
    }
}

impl core::fmt::Debug for RemoteUdpSocket {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("RemoteUdpSocket").field("local", &self.local).finish()
    }
}

/// The host's task behind a remote socket.
async fn serve(host: Host, socket: UdpSocket, shared: Arc<Shared>) {
    let guard = Guard(shared);
    poll_fn(|context| {
        let mut state = guard.0.lock();
        state.shard = Some(context.waker().clone());
        let sent = step_down(&socket, &mut state, context);
        let received = host.with_scratch(|scratch| step_up(&socket, &mut state, context, scratch));
        if state.abandoned && state.down.is_empty() {
            return Poll::Ready(());
        }
        if sent.max(received) == DATAGRAMS_A_POLL {
            context.waker().wake_by_ref();
        }
        let writers = if sent > 0 { std::mem::take(&mut state.writers) } else { Vec::new() };
        let readers = if state.up.is_empty() { Vec::new() } else { std::mem::take(&mut state.readers) };
        drop(state);
        wake_all(writers);
        wake_all(readers);
        Poll::Pending
    })
    .await;
}

/// Tells the outer end when the task is gone.
struct Guard(Arc<Shared>);
impl Drop for Guard {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.stopped = true;
        let readers = std::mem::take(&mut state.readers);
        let writers = std::mem::take(&mut state.writers);
        drop(state);
        wake_all(readers);
        wake_all(writers);
    }
}

fn step_down(socket: &UdpSocket, state: &mut State, context: &Context<'_>) -> usize {
    let mut count = 0;
    while count < DATAGRAMS_A_POLL
        && let Some(first) = state.down.front()
    {
        let done = match first {
            Down::Connect(remote) => socket.connect(*remote),
            Down::Send { bytes, ends } => match socket.poll_send(context, bytes, *ends) {
                Poll::Ready(done) => done,
                Poll::Pending => break,
            },
        };
        let bytes = first.bytes();
        state.down_bytes -= bytes;
        state.down.pop_front();
        count += 1;
        // An error that finds the queue full is lost, as datagrams are.
        if let Err(error) = done
            && state.up.len() < REMOTE_DATAGRAMS
        {
            state.up.push_back(Err(error));
        }
    }
    count
}

fn step_up(socket: &UdpSocket, state: &mut State, context: &Context<'_>, scratch: &mut [u8]) -> usize {
    let mut count = 0;
    while count < DATAGRAMS_A_POLL
        && state.up.len() < REMOTE_DATAGRAMS
        && state.up_bytes < REMOTE_DATAGRAM_BYTES
    {
        let Poll::Ready(received) = socket.poll_receive(context, scratch) else { break };
        count += 1;
        let received = received.map(|info| Datagram {
            bytes: scratch[..info.length_bytes.min(scratch.len())].to_vec(),
            from: info.from,
            to: info.to,
        });
        state.up_bytes += up_bytes(&received);
        state.up.push_back(received);
    }
    count
}

fn register(waiting: &mut Vec<Waker>, context: &Context<'_>) -> Option<Waker> {
    if waiting.iter().any(|waker| waker.will_wake(context.waker())) {
        return None;
    }
    waiting.push(context.waker().clone());
    (waiting.len() > WAITERS).then(|| waiting.remove(0))
}

fn wake_all(wakers: impl IntoIterator<Item = Waker>) {
    wakers.into_iter().for_each(Waker::wake);
}
