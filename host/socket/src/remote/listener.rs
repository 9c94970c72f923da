//! TCP listeners for other threads.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use inhost_base::Endpoint;
use inhost_stack::{ListenerId, Refusal, SocketError, SocketOption};

use super::host::RemoteHost;
use super::locked::Locked;
use super::stream::RemoteStream;
use crate::errno::Errno;
use crate::error::AcceptError;
use crate::host::Host;
use crate::listener::{Held, Listener};
use crate::waiters::{WakerSet, wake_all};

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

struct Outer(Arc<Locked<State>>);

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

#[derive(Default)]
struct State {
    callers: VecDeque<RemoteHeld>,
    /// A caller is being answered for [`RemoteListener::accept`], one at a time; its stream will be the first of `callers`.
    is_answering: bool,
    /// Why no more will come.
    ended: Option<AcceptError>,
    is_abandoned: bool,
    shard: Option<Waker>,
    acceptors: WakerSet,
}

impl Locked<State> {
    /// Works on the state, then wakes those who accept.
    fn tell(&self, work: impl FnOnce(&mut State)) {
        self.change(|state| {
            work(state);
            ((), state.acceptors.take_out())
        });
    }
}

impl RemoteListener {
    pub(crate) fn start(listener: Listener) -> RemoteListener {
        let shared = Arc::new(Locked::<State>::default());
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
    /// As [`RemoteListener::set_option`], for code that does not await; see [`RemoteHost::call_now`].
    ///
    /// # Errors
    /// `NetworkDown` when the host was stopped; when the listener has no such option.
    pub fn set_option_now(&self, option: SocketOption) -> io::Result<()> {
        let socket = self.socket;
        let set = move |host: &Host| {
            host.with_stack_and_sink(|stack, now, sink| stack.set_option(socket, option, now, sink))
        };
        self.host.call_now(set).map_err(Errno::into_io)?.map_err(Errno::into_io)
    }
    /// The next connection. On a listener with [`hold_syn`](inhost_stack::ListenOptions::hold_syn) the caller is answered
    /// first.
    ///
    /// It is cancel-safe: a caller that was being answered when the future was dropped is what the next call gives.
    pub async fn accept(&self) -> Result<RemoteStream, AcceptError> {
        poll_fn(|context| self.poll_accept(context)).await
    }
    /// One step of [`RemoteListener::accept`]. Any number of tasks may wait.
    pub fn poll_accept(&self, context: &Context<'_>) -> Poll<Result<RemoteStream, AcceptError>> {
        let mut state = self.outer.0.lock();
        let is_answering = state.is_answering;
        let next = state.callers.pop_front_if(|caller| !(is_answering && caller.is_held()));
        let answer = match (next, state.ended) {
            (Some(caller), _) => Some(caller.answer),
            (None, Some(error)) if !is_answering => return Poll::Ready(Err(error)),
            (None, _) => None,
        };
        let shard = answer.as_ref().and_then(|_| state.shard.take());
        let decide = match answer {
            Some(Answer::Given(stream)) => {
                drop(state);
                wake_all(shard);
                return Poll::Ready(Ok(stream));
            }
            Some(Answer::Held { decide, .. }) => Some(decide),
            None => None,
        };
        state.is_answering |= decide.is_some();
        let oldest = state.acceptors.register(context);
        drop(state);
        if let Some(decide) = decide {
            let answering = Answering { shared: self.outer.0.clone(), caller: None };
            // When the host was stopped the word is dropped at once, and with it the caller.
            let _ = decide.try_send(Decision::Give(answering));
        }
        wake_all(shard.into_iter().chain(oldest));
        Poll::Pending
    }
    /// The next caller, who has not been answered yet when the listener holds SYNs. It is cancel-safe.
    pub async fn accept_held(&self) -> Result<RemoteHeld, AcceptError> {
        poll_fn(|context| self.poll_accept_held(context)).await
    }
    /// One step of [`RemoteListener::accept_held`].
    pub fn poll_accept_held(&self, context: &Context<'_>) -> Poll<Result<RemoteHeld, AcceptError>> {
        self.outer.0.change(|state| match (state.callers.pop_front(), state.ended) {
            (Some(caller), _) => (Poll::Ready(Ok(caller)), state.shard.take()),
            (None, Some(error)) => (Poll::Ready(Err(error)), None),
            (None, None) => (Poll::Pending, state.acceptors.register(context)),
        })
    }
}

impl core::fmt::Debug for RemoteListener {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("RemoteListener").field("local", &self.local).finish()
    }
}

/// The host's task behind a remote listener.
async fn serve(listener: Listener, shared: Arc<Locked<State>>) {
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
                    guard.0.tell(|state| state.callers.push_back(caller));
                }
                Poll::Ready(Err(error)) => return Poll::Ready(error),
                Poll::Pending => return Poll::Pending,
            }
        }
    })
    .await;
    guard.0.tell(|state| state.ended = Some(error));
}

/// Tells the outer end when the task is gone.
struct Guard(Arc<Locked<State>>);
impl Drop for Guard {
    fn drop(&mut self) {
        self.0.tell(|state| {
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
    /// Proceeds, and gives the stream to who accepts next.
    Give(Answering),
    Refuse(Refusal),
}

/// A caller that is being answered for the next call of [`RemoteListener::accept`].
struct Answering {
    shared: Arc<Locked<State>>,
    /// It, once it was answered.
    caller: Option<RemoteHeld>,
}

impl Drop for Answering {
    fn drop(&mut self) {
        let mut caller = self.caller.take();
        self.shared.tell(|state| {
            state.is_answering = false;
            if !state.is_abandoned {
                caller.take().into_iter().for_each(|caller| state.callers.push_front(caller));
            }
        });
        // Nobody accepts any more.
        caller.into_iter().for_each(RemoteHeld::refuse);
    }
}

impl core::fmt::Debug for Answering {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Answering")
    }
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
                Ok(Decision::Give(mut answering)) => {
                    let answer = Answer::Given(held.proceed().into_remote());
                    answering.caller = Some(RemoteHeld { local, remote, answer });
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
    /// was stopped. Dropping the future closes the connection.
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
