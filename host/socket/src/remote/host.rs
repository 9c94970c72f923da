//! The handle of a host for other threads.

use std::io;
use std::sync::Arc;

use inhost_base::{Instant, IpAddr};
use inhost_event::Sink;
use inhost_stack::{ConnectionOptions, SocketError, SocketId, SocketInfo, SocketOption, Stack};

use crate::block_on::block_on_and_serve;
use crate::errno::Errno;
use crate::error::Gone;
use crate::future::{Either, race};
use crate::host::{Host, Request};
use crate::requests::Requests;

/// A host as other threads reach it: a handle that is `Send` and `Clone`. Each operation is carried out by a task on
/// the host's own thread.
#[derive(Clone, Debug)]
pub struct RemoteHost {
    requests: Arc<Requests<Request>>,
}

impl RemoteHost {
    /// Runs `work` as a task on the host and gives its result. Dropping the future cancels the task.
    pub async fn call<R, F>(&self, work: impl FnOnce(Host) -> F + Send + 'static) -> Result<R, Gone>
    where
        F: Future<Output = R> + 'static,
        R: Send + 'static,
    {
        self.requests.lives()?;
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
        self.requests.send(request).await?;
        answer.recv().await.map_err(|_| Gone)
    }
    /// Whether the host was stopped, or runs in the process that this one was forked from.
    pub fn is_stopped(&self) -> bool {
        self.requests.lives().is_err()
    }
    /// The host, if it lives on this thread.
    pub(super) fn here(&self) -> Option<Host> {
        Host::on_this_thread(self.requests.place())
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
        self.requests.lives()?;
        let (reply, answer) = async_channel::bounded(1);
        let request: Request = Box::new(move |host| {
            let _ = reply.try_send(work(host));
        });
        let called = async {
            self.requests.send(request).await?;
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
        self.on_stack(move |stack, _, _| stack.instruments().options(socket))
            .await
            .unwrap_or(Err(SocketError::NoSocket))
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
}

impl Host {
    /// The handle by which other threads reach this host. The first call starts the task that serves them.
    pub fn remote(&self) -> RemoteHost {
        RemoteHost { requests: self.requests().clone() }
    }
}
