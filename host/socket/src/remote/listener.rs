//! TCP listeners for other threads.

use inhost_base::Endpoint;
use inhost_stack::{ListenerId, SocketError, SocketOption};

use super::RemoteHost;
use super::stream::RemoteStream;
use crate::error::AcceptError;
use crate::future::{Either, race};
use crate::listener::Listener;

/// Connections handed out before they are asked for; the rest waits in the listener's own queue.
const ACCEPTED_AHEAD: usize = 4;

/// A listener that is `Send`. Clones share the callers. When the last is dropped, the host stops listening.
#[derive(Clone, Debug)]
pub struct RemoteListener {
    accepted: async_channel::Receiver<RemoteStream>,
    local: Endpoint,
    host: RemoteHost,
    socket: ListenerId,
}

impl RemoteListener {
    pub(crate) fn start(listener: Listener) -> RemoteListener {
        let (give, accepted) = async_channel::bounded(ACCEPTED_AHEAD);
        let local = listener.local();
        let (host, socket) = (listener.host().clone(), listener.socket());
        let accept = async move {
            while let Either::First(Ok(stream)) = race(listener.accept(), give.closed()).await {
                if give.send(stream.into_remote()).await.is_err() {
                    return;
                }
            }
        };
        host.spawn(accept).detach();
        RemoteListener { accepted, local, host: host.remote(), socket }
    }
    /// Where it listens.
    pub fn local(&self) -> Endpoint {
        self.local
    }
    /// Sets an option: of the listener, or of the connections that it takes from now on.
    pub async fn set_option(&self, option: SocketOption) -> Result<(), SocketError> {
        self.host.set_option(self.socket, option).await
    }
    /// The next connection.
    pub async fn accept(&self) -> Result<RemoteStream, AcceptError> {
        self.accepted.recv().await.map_err(|_| AcceptError::Stopped)
    }
}
