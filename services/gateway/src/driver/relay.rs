//! One connection of the guest's and one of the system's, and the bytes, ends and resets between them.
//!
//! The system's socket is read only into room that the guest's connection has to send, and the guest's connection is
//! read only when the system took what came before. So nothing piles up in between: a slow reader on either side
//! closes the window of the writer on the other.

use crate::state::Scratch;
use inhost_base::{Duration, Instant};
use inhost_runtime::{AsyncFd, Interest};
use inhost_socket::{Host, Stream};
use inhost_tcp::SendHow;
use std::cell::Cell;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::task::{Context, Poll, ready};

/// Chunks moved in one direction before others have their turn.
const CHUNKS_A_TURN: usize = 4;

/// Unanswered probes after which a peer is gone.
const PROBES: u32 = 4;

/// Result of a relayed connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Ending {
    /// Both sides closed, and everything was delivered.
    Closed,
    /// The guest's side broke; the other was reset.
    GuestBroke,
    /// The system's side broke; the guest's was reset.
    SystemBroke,
    /// One side had closed and the other was silent for too long; both were reset.
    Silent,
}

/// One direction.
#[derive(Default)]
struct Direction {
    /// Unwritten rest of the last chunk.
    rest: Vec<u8>,
    /// The giver has closed.
    ended: bool,
    /// The taker was told so.
    done: bool,
}

impl Direction {
    /// The taker took so many bytes of the rest. Room is kept only while there is one: a connection may be idle for days.
    fn taken(&mut self, bytes: usize) {
        self.rest.drain(..bytes.min(self.rest.len()));
        if self.rest.is_empty() {
            self.rest = Vec::new();
        }
    }
}

struct Relay<'a> {
    guest: &'a Stream,
    system: &'a AsyncFd<TcpStream>,
    scratch: &'a Scratch,
    inward: Direction,
    outward: Direction,
    host: &'a Host,
    moved: &'a Cell<Instant>,
    half_closed: &'a Cell<bool>,
}

/// Carries until the connection is over on both sides, then leaves both closed or reset.
pub(crate) async fn relay(
    host: &Host,
    guest: Stream,
    system: AsyncFd<TcpStream>,
    scratch: &Scratch,
    half_closed_limit: Duration,
) -> Ending {
    // What is written to either is all there is for now; gathering is up to the writer.
    let _ = system.inner().set_nodelay(true);
    guest.set_nagle(false);
    let (moved, half_closed) = (Cell::new(host.now()), Cell::new(false));
    let mut relay = Relay {
        guest: &guest,
        system: &system,
        scratch,
        inward: Direction::default(),
        outward: Direction::default(),
        host,
        moved: &moved,
        half_closed: &half_closed,
    };
    let bytes = std::future::poll_fn(|context| relay.poll(context));
    let broken = async {
        if guest.closed().await.is_ok() {
            // Both sides have said their last; what is still to be delivered is `bytes`'s to deliver.
            std::future::pending::<()>().await;
        }
        Ending::GuestBroke
    };
    let silent = async {
        loop {
            // A connection that is open both ways may be silent for ever: it is looked at now and then.
            let silent_since = if half_closed.get() { moved.get() } else { host.now() };
            if host.now() >= silent_since + half_closed_limit {
                return Ending::Silent;
            }
            host.sleep_until(silent_since + half_closed_limit).await;
        }
    };
    let torn = async {
        // A guest that does not read keeps nobody reading here, so that a reset shows only in the socket's own error.
        system.hung_up().await;
        if !matches!(system.inner().take_error(), Ok(Some(_))) {
            std::future::pending::<()>().await;
        }
        Ending::SystemBroke
    };
    let broken = futures_lite::future::or(broken, torn);
    let ending = futures_lite::future::or(bytes, futures_lite::future::or(broken, silent)).await;
    if ending != Ending::Closed {
        guest.abort();
        reset(&system);
    }
    ending
}

/// Has the system probe a peer that is silent, so that the place of one that is gone is given back.
pub(crate) fn keep_alive(socket: &TcpStream, idle: Duration) -> io::Result<()> {
    use rustix::net::sockopt::{set_socket_keepalive, set_tcp_keepcnt, set_tcp_keepidle, set_tcp_keepintvl};
    let idle = std::time::Duration::from_nanos(idle.as_nanos());
    set_tcp_keepidle(socket, idle)?;
    set_tcp_keepintvl(socket, (idle / PROBES).max(std::time::Duration::from_secs(1)))?;
    set_tcp_keepcnt(socket, PROBES)?;
    Ok(set_socket_keepalive(socket, true)?)
}

/// Makes the system send a reset when `socket` is closed.
pub(crate) fn reset(socket: &AsyncFd<TcpStream>) {
    let _ = rustix::net::sockopt::set_socket_linger(socket.inner(), Some(std::time::Duration::ZERO));
}

impl Relay<'_> {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Ending> {
        let inward = self.poll_inward(context);
        let outward = self.poll_outward(context);
        self.half_closed.set(self.inward.done || self.outward.done);
        match (inward, outward) {
            (Poll::Ready(Err(ending)), _) | (_, Poll::Ready(Err(ending))) => Poll::Ready(ending),
            (Poll::Ready(Ok(())), Poll::Ready(Ok(()))) => Poll::Ready(Ending::Closed),
            _ => Poll::Pending,
        }
    }

    /// From the system to the guest.
    fn poll_inward(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Ending>> {
        let mut scratch = self.scratch.borrow_mut();
        for _ in 0..CHUNKS_A_TURN {
            let room = self.room();
            let direction = &mut self.inward;
            if direction.done {
                return Poll::Ready(Ok(()));
            }
            if !direction.rest.is_empty() {
                let sent = ready!(self.guest.poll_send(context, &direction.rest, SendHow::default()));
                direction.taken(sent.map_err(|_| Ending::GuestBroke)?);
                continue;
            }
            if direction.ended {
                self.guest.shutdown();
                direction.done = true;
                continue;
            }
            if room == 0 {
                ready!(self.guest.poll_writable(context));
            }
            // Where there is none although there should be, sending learns the reason.
            let chunk = scratch.len().min(room.max(1));
            let place = &mut scratch[..chunk];
            let length = ready!(self.system.poll_io(Interest::Read, context, |mut s| s.read(place)))
                .map_err(|_| Ending::SystemBroke)?;
            if length == 0 {
                direction.ended = true;
                continue;
            }
            self.moved.set(self.host.now());
            let chunk = &scratch[..length];
            match self.guest.poll_send(context, chunk, SendHow::default()) {
                Poll::Ready(Ok(sent)) => direction.rest.extend_from_slice(chunk.get(sent..).unwrap_or(&[])),
                Poll::Ready(Err(_)) => return Poll::Ready(Err(Ending::GuestBroke)),
                Poll::Pending => direction.rest.extend_from_slice(chunk),
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// From the guest to the system.
    fn poll_outward(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Ending>> {
        for _ in 0..CHUNKS_A_TURN {
            let direction = &mut self.outward;
            if direction.done {
                return Poll::Ready(Ok(()));
            }
            if !direction.rest.is_empty() {
                let rest = &direction.rest;
                let taken = ready!(self.system.poll_io(Interest::Write, context, |mut s| s.write(rest)))
                    .map_err(|_| Ending::SystemBroke)?;
                direction.taken(taken);
                self.moved.set(self.host.now());
                continue;
            }
            if direction.ended {
                // Not connected any more: reading learns why.
                let _ = self.system.inner().shutdown(Shutdown::Write);
                direction.done = true;
                continue;
            }
            match self.write_front() {
                Some(Ok(_)) => {
                    self.moved.set(self.host.now());
                    continue;
                }
                Some(Err(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                    ready!(self.system.poll_ready(Interest::Write, context));
                    continue;
                }
                Some(Err(error)) if error.kind() == io::ErrorKind::Interrupted => continue,
                Some(Err(_)) => return Poll::Ready(Err(Ending::SystemBroke)),
                None => {}
            }
            // Nothing lies there: this waits, or learns of the end.
            let mut scratch = self.scratch.borrow_mut();
            let length =
                ready!(self.guest.poll_receive(context, &mut scratch[..])).map_err(|_| Ending::GuestBroke)?;
            let direction = &mut self.outward;
            direction.ended = length == 0;
            direction.rest.extend_from_slice(scratch.get(..length).unwrap_or(&[]));
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Lets the system take what lies at the front of what the guest sent; `None` when nothing does.
    fn write_front(&self) -> Option<io::Result<usize>> {
        let socket = self.guest.socket();
        self.host.with_stack_and_sink(|stack, now, sink| {
            let bytes = stack.tcp(now, sink).front(socket).ok().filter(|bytes| !bytes.is_empty())?;
            let written = self.system.try_io(Interest::Write, |mut system| system.write(bytes));
            if let Ok(count) = written {
                stack.tcp(now, sink).consume(socket, count).ok()?;
            }
            Some(written)
        })
    }
    /// Bytes that the guest's connection would take to send.
    fn room(&self) -> usize {
        self.guest.writable_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::sockopt::{socket_keepalive, tcp_keepcnt, tcp_keepidle, tcp_keepintvl};

    #[test]
    fn a_silent_peer_is_probed() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        assert!(!socket_keepalive(&socket).unwrap());
        keep_alive(&socket, Duration::from_secs(600)).unwrap();
        assert!(socket_keepalive(&socket).unwrap());
        let seconds = std::time::Duration::from_secs;
        assert_eq!(tcp_keepidle(&socket).unwrap(), seconds(600));
        assert_eq!((tcp_keepintvl(&socket).unwrap(), tcp_keepcnt(&socket).unwrap()), (seconds(150), PROBES));
    }
}
