//! TCP listeners for other threads.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use inhost_base::Endpoint;
use inhost_stack::{ListenerId, Refusal, SocketError, SocketOption};

use super::RemoteHost;
use super::stream::RemoteStream;
use crate::error::AcceptError;
use crate::host::Host;
use crate::listener::{Held, Listener};
use crate::waiters::WakerSet;

/// Callers handed out before they are asked for; the rest waits in the listener's own queue.
const ACCEPTED_AHEAD: usize = 16;

/// A listener that is `Send`. Clones share the callers. When the last is dropped, the host stops listening.
#[derive(Clone)]
pub struct RemoteListener {
    outer: Arc<Outer>,
    local: Endpoint,
    host: RemoteHost,
    socket: ListenerId,
}

struct Outer(Arc<Shared>);

impl Drop for Outer {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.is_abandoned = true;
        let refused = std::mem::take(&mut state.callers);
        let shard = state.shard.take();
        drop(state);
        refused.into_iter().for_each(RemoteHeld::refuse);
        wake_all(shard);
    }
}

struct Shared(Mutex<State>);

#[derive(Default)]
struct State {
    callers: VecDeque<RemoteHeld>,
    /// Why no more will come.
    ended: Option<AcceptError>,
    is_abandoned: bool,
    shard: Option<Waker>,
    acceptors: WakerSet,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Works on the state, then wakes those who accept.
    fn change(&self, work: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        work(&mut state);
        let mut woken = Vec::new();
        state.acceptors.take(&mut woken);
        drop(state);
        wake_all(woken);
    }
}

impl RemoteListener {
    pub(crate) fn start(listener: Listener) -> RemoteListener {
        let shared = Arc::new(Shared(Mutex::default()));
        let local = listener.local();
        let (host, socket) = (listener.host().clone(), listener.socket());
        host.spawn(serve(listener, shared.clone())).detach();
        RemoteListener { outer: Arc::new(Outer(shared)), local, host: host.remote(), socket }
    }
    /// Where it listens.
    pub fn local(&self) -> Endpoint {
        self.local
    }
    /// The host it belongs to.
    pub fn host(&self) -> &RemoteHost {
        &self.host
    }
    /// Sets an option: of the listener, or of the connections that it takes from now on.
    pub async fn set_option(&self, option: SocketOption) -> Result<(), SocketError> {
        self.host.set_option(self.socket, option).await
    }
    /// As [`RemoteListener::set_option`], without waiting; see [`RemoteHost::call_now`].
    pub fn set_option_now(&self, option: SocketOption) -> Result<(), SocketError> {
        let socket = self.socket;
        let set = move |host: &Host| {
            host.with_stack_and_sink(|stack, now, sink| stack.set_option(socket, option, now, sink))
        };
        self.host.call_now(set).unwrap_or(Err(SocketError::NoSocket))
    }
    /// The next connection. On a listener with [`hold_syn`](inhost_stack::ListenOptions::hold_syn) the caller is answered
    /// first.
    pub async fn accept(&self) -> Result<RemoteStream, AcceptError> {
        loop {
            // A caller who is gone with the host is nobody.
            if let Some(stream) = self.accept_held().await?.proceed().await {
                return Ok(stream);
            }
        }
    }
    /// The next caller, who has not been answered yet when the listener holds SYNs.
    pub async fn accept_held(&self) -> Result<RemoteHeld, AcceptError> {
        poll_fn(|context| self.poll_accept(context)).await
    }
    /// One step of [`RemoteListener::accept_held`].
    pub fn poll_accept(&self, context: &Context<'_>) -> Poll<Result<RemoteHeld, AcceptError>> {
        let mut state = self.outer.0.lock();
        let oldest = match (state.callers.pop_front(), state.ended) {
            (Some(caller), _) => {
                let shard = state.shard.take();
                drop(state);
                wake_all(shard);
                return Poll::Ready(Ok(caller));
            }
            (None, Some(error)) => return Poll::Ready(Err(error)),
            (None, None) => state.acceptors.register(context),
        };
        drop(state);
        wake_all(oldest);
        Poll::Pending
    }
}

impl core::fmt::Debug for RemoteListener {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("RemoteListener").field("local", &self.local).finish()
    }
}

/// The host's task behind a remote listener.
async fn serve(listener: Listener, shared: Arc<Shared>) {
    let guard = Guard(shared);
    let error = poll_fn(|context| {
        loop {
            let mut state = guard.0.lock();
            if state.is_abandoned {
                return Poll::Ready(AcceptError::Closed);
            }
            state.shard = Some(context.waker().clone());
            let is_full = state.callers.len() >= ACCEPTED_AHEAD;
            drop(state);
            if is_full {
                return Poll::Pending;
            }
            match listener.poll_accept(context) {
                Poll::Ready(Ok(held)) => {
                    let caller = RemoteHeld::start(held);
                    guard.0.change(|state| state.callers.push_back(caller));
                }
                Poll::Ready(Err(error)) => return Poll::Ready(error),
                Poll::Pending => return Poll::Pending,
            }
        }
    })
    .await;
    guard.0.change(|state| state.ended = Some(error));
}

/// Tells the outer end when the task is gone.
struct Guard(Arc<Shared>);
impl Drop for Guard {
    fn drop(&mut self) {
        self.0.change(|state| {
            state.ended.get_or_insert(AcceptError::Stopped);
        });
    }
}

/// A caller who waits for an answer, for another thread. Dropping it is [refusing](RemoteHeld::refuse).
#[must_use = "a caller that is dropped is refused"]
#[derive(Debug)]
pub struct RemoteHeld {
    local: Endpoint,
    remote: Endpoint,
    answer: Answer,
}

#[derive(Debug)]
enum Answer {
    /// The handshake was not held: here is the stream.
    Given(RemoteStream),
    /// A task of the host holds the caller, and waits for the word.
    Held { decide: async_channel::Sender<Decision>, stream: async_channel::Receiver<RemoteStream> },
}

#[derive(Debug)]
enum Decision {
    Proceed,
    Refuse(Refusal),
}

impl RemoteHeld {
    fn start(held: Held) -> RemoteHeld {
        let (local, remote) = (held.local(), held.remote());
        if !held.is_held() {
            return RemoteHeld { local, remote, answer: Answer::Given(held.proceed().into_remote()) };
        }
        let (decide, decision) = async_channel::bounded(1);
        let (give, stream) = async_channel::bounded(1);
        let host = held.host().clone();
        let answer = async move {
            match decision.recv().await {
                Ok(Decision::Proceed) => {
                    let _ = give.send(held.proceed().into_remote()).await;
                }
                Ok(Decision::Refuse(refusal)) => held.refuse_with(refusal),
                Err(_) => held.refuse(),
            }
        };
        host.spawn(answer).detach();
        RemoteHeld { local, remote, answer: Answer::Held { decide, stream } }
    }
    /// The end that the caller meant: any address, on a gateway.
    pub fn local(&self) -> Endpoint {
        self.local
    }
    /// The caller.
    pub fn remote(&self) -> Endpoint {
        self.remote
    }
    /// Whether the caller's SYN waits for an answer.
    pub fn is_held(&self) -> bool {
        matches!(self.answer, Answer::Held { .. })
    }
    /// Answers. The handshake is completed in the background; the stream may be written to at once. `None` when the host
    /// was stopped.
    pub async fn proceed(self) -> Option<RemoteStream> {
        match self.answer {
            Answer::Given(stream) => Some(stream),
            Answer::Held { decide, stream } => {
                decide.send(Decision::Proceed).await.ok()?;
                stream.recv().await.ok()
            }
        }
    }
    /// Resets the connection.
    pub fn refuse(self) {
        self.refuse_with(Refusal::Reset);
    }
    /// Ends it in another way. Where the SYN was not held, the handshake is done and there is only the reset.
    pub fn refuse_with(self, refusal: Refusal) {
        match &self.answer {
            Answer::Given(stream) => stream.abort(),
            Answer::Held { decide, .. } => {
                let _ = decide.try_send(Decision::Refuse(refusal));
            }
        }
    }
}

fn wake_all(wakers: impl IntoIterator<Item = Waker>) {
    wakers.into_iter().for_each(Waker::wake);
}
