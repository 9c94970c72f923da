//! Calls in datagrams.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::stream::{FuturesUnordered, Stream};
use inhost_base::{Endpoint, Instant};
use inhost_common::{Clock, Guard, LocalFuture};
use inhost_socket::{Ends, UdpSocket};

use crate::server::{Answer, Caller, DATAGRAM_DATA_BYTES, MESSAGE_BYTES, Programs, Server};

/// Octets of a datagram that is taken; a longer one is not a call.
const DATAGRAM_BYTES: usize = DATAGRAM_DATA_BYTES + MESSAGE_BYTES;
/// Steps before others have their turn.
const STEPS_A_TURN: usize = 64;

/// A socket for datagrams: the host's own, or any other.
pub trait Datagrams {
    /// Sends one from the address of this host that the call came to.
    fn poll_send(
        &self,
        cx: &mut Context<'_>,
        bytes: &[u8],
        from: Endpoint,
        to: Endpoint,
    ) -> Poll<Result<(), String>>;
    /// Puts the next one into `into`, and says how long it is, whose, and where it was sent to; or that an earlier one
    /// met with an obstacle, in words.
    fn poll_receive(
        &self,
        cx: &mut Context<'_>,
        into: &mut [u8],
    ) -> Poll<Result<(usize, Endpoint, Endpoint), String>>;
}

impl Datagrams for UdpSocket {
    fn poll_send(
        &self,
        cx: &mut Context<'_>,
        bytes: &[u8],
        from: Endpoint,
        to: Endpoint,
    ) -> Poll<Result<(), String>> {
        let ends = Ends { from: Some(from), to: Some(to) };
        UdpSocket::poll_send(self, cx, bytes, ends).map_err(|error| error.to_string())
    }
    fn poll_receive(
        &self,
        cx: &mut Context<'_>,
        into: &mut [u8],
    ) -> Poll<Result<(usize, Endpoint, Endpoint), String>> {
        let received = UdpSocket::poll_receive(self, cx, into);
        received.map_ok(|info| (info.length_bytes, info.from, info.to)).map_err(|error| error.to_string())
    }
}

/// Limits of calls in datagrams.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct DatagramLimits {
    /// Calls under way; more are dropped, and their clients send them again. Default: 64.
    pub calls: usize,
}

impl Default for DatagramLimits {
    fn default() -> Self {
        DatagramLimits { calls: 64 }
    }
}

/// A reply, and between which ends it goes.
type Done = (Option<Vec<u8>>, Endpoint, Endpoint);

struct Service<'a, D, C> {
    datagrams: &'a D,
    clock: &'a C,
    server: &'a Arc<Server>,
    programs: Programs,
    limits: DatagramLimits,
    guard: Guard,
    under_way: FuturesUnordered<LocalFuture<Done>>,
    /// A reply that waits to be sent.
    unsent: Option<(Vec<u8>, Endpoint, Endpoint)>,
    buffer: Vec<u8>,
}

/// Serves the calls that arrive at a socket, for as long as it is polled. `guard` limits the rate of each source; `outer`
/// gives the address of a caller behind a gateway.
pub async fn serve_datagrams<D: Datagrams, C: Clock>(
    datagrams: &D,
    clock: &C,
    (server, programs): (&Arc<Server>, Programs),
    limits: DatagramLimits,
    guard: Guard,
    outer: impl Fn(Endpoint) -> Endpoint,
) {
    let mut service = Service {
        datagrams,
        clock,
        server,
        programs,
        limits,
        guard,
        under_way: FuturesUnordered::new(),
        unsent: None,
        buffer: vec![0; DATAGRAM_BYTES + 1],
    };
    poll_fn(|cx| service.poll(cx, &outer)).await;
}

impl<D: Datagrams, C: Clock> Service<'_, D, C> {
    fn poll(&mut self, cx: &mut Context<'_>, outer: &impl Fn(Endpoint) -> Endpoint) -> Poll<()> {
        for _ in 0..STEPS_A_TURN {
            let sent = self.send(cx);
            let received = self.receive(cx, outer);
            if !sent && !received {
                return Poll::Pending;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn send(&mut self, cx: &mut Context<'_>) -> bool {
        if self.unsent.is_none() {
            match Pin::new(&mut self.under_way).poll_next(cx) {
                Poll::Ready(Some((Some(reply), from, to))) => self.unsent = Some((reply, from, to)),
                Poll::Ready(Some((None, ..))) => return true,
                Poll::Ready(None) | Poll::Pending => return false,
            }
        }
        let Some((reply, from, to)) = &self.unsent else { return false };
        // A client that cannot be reached sends its call again.
        let sent = self.datagrams.poll_send(cx, reply, *from, *to).is_ready();
        if sent {
            self.unsent = None;
        }
        sent
    }

    fn receive(&mut self, cx: &mut Context<'_>, outer: &impl Fn(Endpoint) -> Endpoint) -> bool {
        let (length, from, to) = match self.datagrams.poll_receive(cx, &mut self.buffer) {
            Poll::Ready(Ok(received)) => received,
            // An error is news of an earlier reply that nobody took.
            Poll::Ready(Err(_)) => return true,
            Poll::Pending => return false,
        };
        let now: Instant = self.clock.now();
        let caller = outer(from);
        let is_admitted = self.guard.admit_from_any_port(caller, now).is_ok();
        let is_busy = self.under_way.len() >= self.limits.calls;
        if length > DATAGRAM_BYTES || !is_admitted || is_busy {
            return true;
        }
        let message = Arc::new(self.buffer[..length].to_vec());
        let caller =
            Caller { address: caller.address, port: caller.port, local: to.address, is_datagram: true };
        let (server, programs) = (self.server.clone(), self.programs);
        self.under_way.push(Box::pin(async move {
            match super::perform(&server, message, caller, programs, now).await {
                Answer::Reply(reply) => (Some(reply), to, from),
                Answer::Nothing | Answer::InProgress => (None, to, from),
            }
        }));
        true
    }
}
