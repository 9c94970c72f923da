//! The accept loop of TCP services.

use std::future::Future;

use inhost_base::Endpoint;
use inhost_socket::{Host, Listener, Stream};

use crate::{Callers, Transport};

/// Accepts connections until the listener is closed, as the host goes down, and runs a session for each.
///
/// `admit` gets the outer caller, by which limits count (see [`Callers`]), and gives what the session holds while it
/// exists, such as a [`Permit`](crate::Permit); the connection of a caller that it refuses is reset. A service that tells a
/// caller why it is refused admits everybody here and has the session decide. `session` gets the stream, the outer
/// caller and what `admit` gave.
pub async fn accept<P, S>(
    host: Host,
    listener: Listener,
    callers: Callers,
    admit: impl Fn(Endpoint) -> Option<P>,
    session: impl Fn(Stream, Endpoint, P) -> S,
) where
    S: Future<Output = ()> + 'static,
{
    while let Ok(stream) = listener.accept().await {
        let caller = callers.of(Transport::Tcp, stream.remote());
        match admit(caller) {
            Some(place) => host.spawn(session(stream, caller, place)).detach(),
            None => stream.abort(),
        }
    }
}
