//! The TCP listener for local tasks.

use std::future::poll_fn;
use std::task::{Context, Poll};

use inhost_base::Endpoint;
use inhost_stack::{
    Accepted, ConnectionOptions, ListenOptions, ListenerId, Refusal, SocketError, SocketOption,
};

use crate::error::{AcceptError, ListenError};
use crate::host::{Host, tcp};
use crate::stream::Stream;
use crate::waiters::Wait;

/// A TCP listener. Dropping it stops listening; connections that were not accepted are reset.
///
/// ```
/// use inhost_base::{Endpoint, Instant, Ipv4Addr};
/// use inhost_socket::Host;
/// use inhost_stack::{ListenOptions, Stack, StackConfig};
///
/// let host = Host::new(Stack::new(StackConfig::default(), [7; 32], Instant::ZERO), Instant::ZERO);
/// let here = Endpoint::new(Ipv4Addr::LOCALHOST, 80);
/// let listener = host.listen(here, ListenOptions::default())?;
/// assert_eq!(listener.local(), here);
/// let callers = host.run_alone(async {
///     let calls = [host.connect(here).await.unwrap(), host.connect(here).await.unwrap()];
///     let accepted = [listener.accept().await.unwrap(), listener.accept().await.unwrap()];
///     calls.iter().zip(&accepted).filter(|(call, caller)| call.local() == caller.remote()).count()
/// });
/// assert_eq!(callers, Some(2));
/// # Ok::<(), inhost_socket::ListenError>(())
/// ```
#[derive(Debug)]
pub struct Listener {
    host: Host,
    socket: ListenerId,
    local: Endpoint,
}

impl Listener {
    pub(crate) fn bind(
        host: &Host,
        local: Endpoint,
        options: ListenOptions,
    ) -> Result<Listener, ListenError> {
        if host.is_draining() {
            return Err(ListenError::Stopped);
        }
        let socket = host.core(|core| tcp(core).listen(local, options))?;
        let local = host.core(|core| core.stack.endpoints(socket)).map_or(local, |(local, _)| local);
        Ok(Listener { host: host.clone(), socket, local })
    }
    /// The host it belongs to.
    pub fn host(&self) -> &Host {
        &self.host
    }
    /// Where it listens.
    pub fn local(&self) -> Endpoint {
        self.local
    }
    /// The socket's name, for [`Host::with_stack`].
    pub fn socket(&self) -> ListenerId {
        self.socket
    }
    /// Sets an option: of the listener, or of the connections that it takes from now on.
    pub fn set_option(&self, option: SocketOption) -> Result<(), SocketError> {
        self.host.core(|core| core.stack.set_option(self.socket, option, core.now, &mut *core.sink))
    }
    /// Options that its connections inherit.
    pub fn options(&self) -> Result<ConnectionOptions, SocketError> {
        self.host.core(|core| core.stack.instruments().options(self.socket))
    }
    /// The next connection; [`Stream::remote`] says who called.
    ///
    /// On a listener with [`hold_syn`](ListenOptions::hold_syn) the caller is answered first.
    pub async fn accept(&self) -> Result<Stream, AcceptError> {
        let held = self.accept_held().await?;
        Ok(held.proceed())
    }
    /// The next caller, who has not been answered yet when the listener holds SYNs.
    pub async fn accept_held(&self) -> Result<Held, AcceptError> {
        poll_fn(|context| self.poll_accept(context)).await
    }
    /// One step of [`Listener::accept_held`].
    pub fn poll_accept(&self, context: &Context<'_>) -> Poll<Result<Held, AcceptError>> {
        self.host.executor().operation();
        if self.host.is_draining() {
            return Poll::Ready(Err(AcceptError::Stopped));
        }
        match self.host.core(|core| tcp(core).accept(self.socket)) {
            Ok(Some(accepted)) => Poll::Ready(Ok(Held { host: self.host.clone(), accepted, decided: false })),
            Ok(None) => {
                self.host.register(self.socket, Wait::Read, context);
                Poll::Pending
            }
            Err(_) => Poll::Ready(Err(AcceptError::Closed)),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.host.close(self.socket);
    }
}

/// A caller who waits for an answer. Dropping it is [refusing](Held::refuse).
#[must_use = "a caller that is dropped is refused"]
#[derive(Debug)]
pub struct Held {
    host: Host,
    accepted: Accepted,
    decided: bool,
}

impl Held {
    /// The end that the caller meant: any address, on a gateway.
    pub fn local(&self) -> Endpoint {
        self.accepted.local
    }
    /// The caller.
    pub fn remote(&self) -> Endpoint {
        self.accepted.remote
    }
    /// Whether the caller's SYN waits for an answer.
    pub fn is_held(&self) -> bool {
        self.accepted.held
    }
    /// The host that was called.
    pub fn host(&self) -> &Host {
        &self.host
    }
    /// Answers. The handshake is completed in the background; the stream may be written to at once.
    pub fn proceed(mut self) -> Stream {
        self.decided = true;
        let Accepted { socket, local, remote, held } = self.accepted;
        if held {
            // A caller who gave up in the meantime leaves a stream that says so when it is used.
            let _ = self.host.core(|core| tcp(core).proceed(socket));
        }
        Stream::new(&self.host, socket, local, remote)
    }
    /// Resets the connection.
    pub fn refuse(self) {}
    /// Ends it in another way. Where the SYN was not held, the handshake is done and there is only the reset.
    pub fn refuse_with(mut self, refusal: Refusal) {
        if self.accepted.held {
            self.decided = true;
            let socket = self.accepted.socket;
            let _ = self.host.core(|core| tcp(core).refuse(socket, refusal));
            self.host.forget(socket.into());
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.decided {
            return;
        }
        let socket = self.accepted.socket;
        if self.accepted.held {
            let _ = self.host.core(|core| tcp(core).refuse(socket, Refusal::Reset));
        } else {
            let _ = self.host.core(|core| tcp(core).abort(socket));
            self.host.close(socket);
        }
    }
}
