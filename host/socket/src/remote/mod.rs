//! Remote sockets: a host's sockets for other threads.

mod datagrams;
mod lent;
mod listener;
pub(crate) mod memory;
mod pipe;
mod pump;
mod stream;

pub use datagrams::{GroupLink, ReceivedDatagrams, RemoteUdpSocket};
pub use listener::{RemoteHeld, RemoteListener};
pub use pipe::{REMOTE_RING_BYTES, StreamReadiness};
pub use stream::RemoteStream;

use std::io;

use inhost_base::{Endpoint, Instant, IpAddr};
use inhost_event::Sink;
use inhost_stack::{
    ConnectOptions, ConnectionOptions, ListenOptions, SocketError, SocketId, SocketInfo, SocketOption, Stack,
    UdpOptions,
};

use crate::blocking::block_on_and_serve;
use crate::current::Place;
use crate::errno::Errno;
use crate::error::{ConnectError, ListenError};
use crate::future::{Either, race};
use crate::host::Host;

/// Capacity of the queue of requests from other threads. A thread that finds it full waits.
const REQUESTS: usize = 256;

type Request = Box<dyn FnOnce(&Host) + Send>;

/// A host as other threads reach it: a handle that is `Send` and `Clone`. Each operation is carried out by a task on
/// the host's own thread.
#[derive(Clone, Debug)]
pub struct RemoteHost {
    requests: async_channel::Sender<Request>,
    place: Place,
    /// The process in which the host's thread runs.
    process: u32,
}

/// The host was stopped before it answered, or it runs in the process that this one was forked from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gone;

impl core::fmt::Display for Gone {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("the host was stopped, or runs in another process")
    }
}
impl core::error::Error for Gone {}

/// The host's end of the requests of other threads.
pub(crate) struct Incoming(async_channel::Receiver<Request>);

impl Incoming {
    /// Carries out what waits.
    pub(crate) fn serve(&self, host: &Host) {
        while let Ok(request) = self.0.try_recv() {
            request(host);
        }
    }
}

/// Starts the task that serves other threads.
pub(crate) fn start(host: &Host) -> (RemoteHost, Incoming) {
    let (requests, incoming) = async_channel::bounded::<Request>(REQUESTS);
    let (served, also) = (host.clone(), incoming.clone());
    let end = Closed(incoming.clone());
    let serve = async move {
        let _end = end;
        while let Ok(request) = incoming.recv().await {
            request(&served);
        }
    };
    host.spawn(serve).detach();
    let process = std::process::id();
    (RemoteHost { requests, place: host.take_place(), process }, Incoming(also))
}

/// Refuses requests once the task that serves them is gone, and drops those that wait.
struct Closed(async_channel::Receiver<Request>);
impl Drop for Closed {
    fn drop(&mut self) {
        self.0.close();
        while self.0.try_recv().is_ok() {}
    }
}

impl RemoteHost {
    /// Runs `work` as a task on the host and gives its result. Dropping the future cancels the task.
    pub async fn call<R, F>(&self, work: impl FnOnce(Host) -> F + Send + 'static) -> Result<R, Gone>
    where
        F: Future<Output = R> + 'static,
        R: Send + 'static,
    {
        self.lives()?;
        let (reply, answer) = async_channel::bounded(1);
        let request: Request = Box::new(move |host| {
            let future = work(host.clone());
            let task = async move {
                if let Either::First(result) = race(future, reply.closed()).await {
                    let _ = reply.send(result).await;
                }
            };
            host.spawn(task).detach();
        });
        self.requests.send(request).await.map_err(|_| Gone)?;
        answer.recv().await.map_err(|_| Gone)
    }
    /// Whether the host was stopped, or runs in the process that this one was forked from.
    pub fn is_stopped(&self) -> bool {
        self.lives().is_err()
    }
    /// The host, if it lives on this thread.
    fn here(&self) -> Option<Host> {
        Host::on_this_thread(self.place)
    }
    fn lives(&self) -> Result<(), Gone> {
        // A forked process has the handle, but not the thread.
        let lives = self.process == std::process::id() && !self.requests.is_closed();
        lives.then_some(()).ok_or(Gone)
    }
    /// Runs `work` on the host's thread at once and gives its result. On that thread itself it is an ordinary call; any
    /// other thread is blocked until the host's next round. If that thread has hosts of its own, they answer calls of this
    /// kind meanwhile, so that two hosts may call each other. `work` must not wait.
    pub fn call_now<R: Send + 'static>(
        &self,
        work: impl FnOnce(&Host) -> R + Send + 'static,
    ) -> Result<R, Gone> {
        if let Some(host) = self.here() {
            return Ok(work(&host));
        }
        self.lives()?;
        let (reply, answer) = async_channel::bounded(1);
        let request: Request = Box::new(move |host| {
            let _ = reply.try_send(work(host));
        });
        let called = async {
            self.requests.send(request).await.map_err(|_| Gone)?;
            answer.recv().await.map_err(|_| Gone)
        };
        block_on_and_serve(called)
    }
    /// The addresses of `name`; see [`Host::resolve`].
    pub async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let name = name.to_owned();
        self.call(move |host| async move { host.resolve(&name).await })
            .await
            .unwrap_or_else(|gone| Err(gone.into_io()))
    }
    /// Sets an option of a socket.
    pub(crate) async fn set_option(
        &self,
        socket: impl Into<SocketId>,
        option: SocketOption,
    ) -> Result<(), SocketError> {
        let socket = socket.into();
        self.on_stack(move |stack, now, sink| stack.set_option(socket, option, now, sink))
            .await
            .unwrap_or(Err(SocketError::NoSocket))
    }
    /// The options of a connection or listener.
    pub(crate) async fn options(
        &self,
        socket: impl Into<SocketId>,
    ) -> Result<ConnectionOptions, SocketError> {
        let socket = socket.into();
        self.on_stack(move |stack, _, _| stack.options(socket)).await.unwrap_or(Err(SocketError::NoSocket))
    }
    /// Everything about a socket.
    pub(crate) async fn info(&self, socket: impl Into<SocketId>) -> Option<SocketInfo> {
        let socket = socket.into();
        self.on_stack(move |stack, now, _| stack.instruments().info(socket, now)).await.ok().flatten()
    }
    async fn on_stack<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Stack, Instant, &mut dyn Sink) -> R + Send + 'static,
    ) -> Result<R, Gone> {
        self.call(move |host| async move { host.with_stack_and_sink(work) }).await
    }
    /// Calls `remote`; done when the handshake is. Dropping the future gives the attempt up.
    pub async fn connect(&self, remote: Endpoint) -> Result<RemoteStream, ConnectError> {
        self.connect_with(remote, ConnectOptions::default()).await
    }
    /// Calls `remote`, with options.
    pub async fn connect_with(
        &self,
        remote: Endpoint,
        options: ConnectOptions,
    ) -> Result<RemoteStream, ConnectError> {
        self.connect_set(remote, options, Vec::new()).await
    }
    /// Calls `remote`, with `settings` made before the first segment leaves.
    pub async fn connect_set(
        &self,
        remote: Endpoint,
        options: ConnectOptions,
        settings: Vec<SocketOption>,
    ) -> Result<RemoteStream, ConnectError> {
        let connect = move |host: Host| async move {
            Ok(host.connect_set(remote, options, &settings).await?.into_remote())
        };
        self.call(connect).await.unwrap_or(Err(ConnectError::Stopped))
    }
    /// Listens at `local`.
    pub async fn listen(
        &self,
        local: Endpoint,
        options: ListenOptions,
    ) -> Result<RemoteListener, ListenError> {
        self.call(move |host| async move { Ok(RemoteListener::start(host.listen(local, options)?)) })
            .await
            .unwrap_or(Err(ListenError::Stopped))
    }
    /// Listens at `local` without waiting, with `settings` that the accepted connections inherit; see
    /// [`RemoteHost::call_now`].
    pub fn listen_now(
        &self,
        local: Endpoint,
        options: ListenOptions,
        settings: Vec<SocketOption>,
    ) -> Result<RemoteListener, ListenError> {
        let listen = move |host: &Host| {
            let listener = host.listen(local, options)?;
            for option in settings {
                // An option that a listener has not has no effect.
                let _ = listener.set_option(option);
            }
            Ok(RemoteListener::start(listener))
        };
        self.call_now(listen).unwrap_or(Err(ListenError::Stopped))
    }
    /// Opens a UDP socket at `local`.
    pub async fn udp(&self, local: Endpoint, options: UdpOptions) -> Result<RemoteUdpSocket, ListenError> {
        let open = move |host: Host| async move {
            Ok(RemoteUdpSocket::start(&host, host.udp(local, options.clone())?, &options))
        };
        self.call(open).await.unwrap_or(Err(ListenError::Stopped))
    }
}
