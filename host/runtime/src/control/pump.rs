//! Copying between a socket of the host and the descriptor of another process.

use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::pin::pin;
use std::task::{Context, Poll};

use inhost_base::{Duration, Endpoint};
use inhost_socket::{
    ConnectionError, DatagramError, Either, Ends, Listener, Stream, StreamError, UdpSocket, race,
};
use inhost_tcp::SendHow;
use rustix::net::sockopt::set_socket_passcred;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, Shutdown, SocketFlags, SocketType};

use super::protocol::{ADDRESS_BYTES, decode_address, encode_address, receive_message, send_with_descriptor};
use crate::async_fd::AsyncFd;
use crate::reactor::{Interest, Reactor};

/// Bytes held at most in each direction of a pumped stream, beside the connection's and the system's own queues.
const PIECE_BYTES: usize = 32 * 1024;
/// The longest datagram with its address.
const DATAGRAM_BYTES: usize = 65_535 + ADDRESS_BYTES;
/// How long a caller waits before it is looked again whether there are descriptors for him.
const SHORTAGE_PAUSE: Duration = Duration::from_millis(100);
/// Moves made in one poll; then other tasks have their turn.
const MOVES_A_POLL: usize = 16;

/// The two ends of a stream descriptor: ours, watched, and the one to give away, blocking as programs expect.
pub(super) fn stream_pair(reactor: &Reactor) -> io::Result<(AsyncFd<UnixStream>, OwnedFd)> {
    let (ours, theirs) = UnixStream::pair()?;
    Ok((AsyncFd::new(reactor, ours)?, theirs.into()))
}

/// The same for messages: the connections of a listener.
pub(super) fn message_pair(reactor: &Reactor) -> io::Result<(AsyncFd<OwnedFd>, OwnedFd)> {
    let (ours, theirs) =
        rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    Ok((AsyncFd::new(reactor, ours)?, theirs))
}

/// The same for datagrams. Each message has its writer's credentials; the end of the stream has none, unlike an empty
/// message.
pub(super) fn datagram_pair(reactor: &Reactor) -> io::Result<(AsyncFd<OwnedFd>, OwnedFd)> {
    let (ours, theirs) = message_pair(reactor)?;
    set_socket_passcred(&ours, true)?;
    set_socket_passcred(&theirs, true)?;
    Ok((ours, theirs))
}

/// Carries a connection until both directions have ended or one has failed. Says why it failed.
///
/// The holder's `shutdown` sends a FIN, and so does its `close`, after its data. If received data is left unread, a
/// reset follows, but only when the peer has acknowledged everything. The peer's FIN is the end of the stream. When the
/// connection fails, both directions of the descriptor end, after the data received before.
pub(super) async fn carry(stream: Stream, descriptor: AsyncFd<UnixStream>) -> Result<(), ConnectionError> {
    let is_lost = Cell::new(false);
    let (down, up) = {
        let mut down = pin!(carry_down(&stream, &descriptor, &is_lost));
        let up = race(carry_up(&stream, &descriptor, &is_lost), descriptor.hung_up());
        let mut up = pin!(async {
            match up.await {
                Either::First(up) => up,
                Either::Second(()) => Ok(Up::NobodyReads),
            }
        });
        match race(down.as_mut(), up.as_mut()).await {
            Either::First(down) => (down, up.await),
            Either::Second(Ok(Up::NobodyReads)) => {
                // Written data is still sent; the peer may accept it only while its own data is read.
                let thrown_away = stream.discard_all(|| is_lost.set(true));
                match race(down, thrown_away).await {
                    Either::First(down) => (down, Ok(Up::NobodyReads)),
                    Either::Second(never) => match never {},
                }
            }
            Either::Second(up) => (down.await, up),
        }
    };
    match (down, up) {
        (Err(StreamError::Connection(why)), _) | (Ok(()), Err(StreamError::Connection(why))) => Err(why),
        (Ok(()), Ok(Up::NobodyReads)) => {
            drop(descriptor);
            stream.deliver_and_close(is_lost.get()).await;
            Ok(())
        }
        _ => Ok(()),
    }
}

/// How the direction to the holder ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Up {
    /// The peer's FIN has arrived and was passed on.
    Ended,
    /// The holder is gone, or has ended its reading.
    NobodyReads,
}

async fn carry_down(
    stream: &Stream,
    descriptor: &AsyncFd<UnixStream>,
    is_lost: &Cell<bool>,
) -> Result<(), StreamError> {
    let mut piece = Vec::new();
    loop {
        let read = poll_fn(|context| {
            with_piece(&mut piece, |piece| {
                descriptor.poll_io(Interest::Read, context, |inner| {
                    Ok(rustix::net::recv(inner, &mut *piece, RecvFlags::empty())?.0)
                })
            })
        });
        // A connection that fails ends the wait for the holder.
        let count = match race(read, failed(stream)).await {
            Either::First(Ok(0)) => {
                stream.shutdown();
                return Ok(());
            }
            Either::First(Ok(count)) => count,
            Either::First(Err(_)) => {
                // The holder closed with bytes unread; all that it wrote was read here before.
                is_lost.set(true);
                stream.shutdown();
                return Ok(());
            }
            Either::Second(error) => return Err(refuse_more(descriptor, error)),
        };
        let mut sent = 0;
        while sent < count {
            match stream.send(&piece[sent..count], SendHow::default()).await {
                Ok(taken) => sent += taken,
                Err(error) => return Err(refuse_more(descriptor, error)),
            }
        }
    }
}

/// Fills a piece, which takes memory only while there is something to fill it with.
fn with_piece<T>(piece: &mut Vec<u8>, fill: impl FnOnce(&mut [u8]) -> Poll<T>) -> Poll<T> {
    piece.resize(PIECE_BYTES, 0);
    let filled = fill(piece);
    if filled.is_pending() {
        *piece = Vec::new();
    }
    filled
}

/// The holder's writes fail from now on; data received before is still passed to it.
fn refuse_more(descriptor: &AsyncFd<UnixStream>, error: StreamError) -> StreamError {
    let _ = rustix::net::shutdown(descriptor, Shutdown::Read);
    error
}

async fn failed(stream: &Stream) -> StreamError {
    match stream.closed().await {
        Err(why) => StreamError::Connection(why),
        // Closed in good order on both sides: the other direction's end says so, and here it is waited for.
        Ok(()) => std::future::pending().await,
    }
}

async fn carry_up(
    stream: &Stream,
    descriptor: &AsyncFd<UnixStream>,
    is_lost: &Cell<bool>,
) -> Result<Up, StreamError> {
    let mut piece = Vec::new();
    loop {
        let received = poll_fn(|context| with_piece(&mut piece, |piece| stream.poll_receive(context, piece)));
        let count = match received.await {
            Ok(0) => {
                let _ = rustix::net::shutdown(descriptor, Shutdown::Write);
                return Ok(Up::Ended);
            }
            Ok(count) => count,
            Err(error) => {
                let _ = rustix::net::shutdown(descriptor, Shutdown::Both);
                return Err(error);
            }
        };
        // Until the holder has the whole piece.
        is_lost.set(true);
        let mut written = 0;
        while written < count {
            let write = descriptor.io(Interest::Write, |inner| {
                Ok(rustix::net::send(inner, &piece[written..count], SendFlags::NOSIGNAL)?)
            });
            match write.await {
                Ok(taken) => written += taken,
                Err(_) => return Ok(Up::NobodyReads),
            }
        }
        is_lost.set(false);
    }
}

/// Copies datagrams until the holder closes, then those that it wrote before. With `remote` a message is a payload,
/// which may be empty; without, the address precedes it. ICMP errors are not passed on.
pub(super) async fn carry_datagrams(
    socket: UdpSocket,
    descriptor: AsyncFd<OwnedFd>,
    remote: Option<Endpoint>,
) {
    // The message that waits for room, in each direction.
    let (mut to_send, mut to_write): (Option<Vec<u8>>, Option<Vec<u8>>) = (None, None);
    let mut place = Vec::new();
    let mut is_read = true;
    poll_fn(|context| {
        for _ in 0..MOVES_A_POLL {
            if to_send.is_none() {
                place.resize(DATAGRAM_BYTES, 0);
                match descriptor.poll_io(Interest::Read, context, |inner| receive_message(inner, &mut place))
                {
                    Poll::Ready(Ok(None)) => return Poll::Ready(()),
                    Poll::Ready(Ok(Some(count))) => to_send = Some(place[..count].to_vec()),
                    // The holder closed with messages unread, which is said once, before those that it wrote.
                    Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::ConnectionReset && is_read => {
                        is_read = false;
                        continue;
                    }
                    Poll::Ready(Err(_)) => return Poll::Ready(()),
                    Poll::Pending => {}
                }
            }
            let sent =
                to_send.as_ref().is_some_and(|message| send_message(&socket, context, message, remote));
            if sent {
                to_send = None;
            }
            if to_write.is_none() && is_read {
                place.resize(DATAGRAM_BYTES, 0);
                to_write = next_datagram(&socket, context, &mut place, remote)
                    .map(|(from, to)| place[from..to].to_vec());
            }
            let mut written = false;
            if let Some(message) = &to_write {
                written = match descriptor.poll_io(Interest::Write, context, |inner| {
                    Ok(rustix::net::send(inner, message, SendFlags::NOSIGNAL)?)
                }) {
                    Poll::Ready(result) => {
                        is_read &= result.is_ok();
                        true
                    }
                    Poll::Pending => false,
                };
            }
            if written {
                to_write = None;
            }
            if !sent && !written {
                place = Vec::new();
                return Poll::Pending;
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Whether the message is done with, sent or not.
fn send_message(socket: &UdpSocket, context: &Context<'_>, message: &[u8], remote: Option<Endpoint>) -> bool {
    let (to, payload) = match remote {
        Some(_) => (None, message),
        None => match decode_address(message) {
            Some((to, payload)) => (Some(to), payload),
            None => return true,
        },
    };
    socket.poll_send(context, payload, Ends { from: None, to }).is_ready()
}

/// The next datagram as a message: the part of `into` that it takes.
fn next_datagram(
    socket: &UdpSocket,
    context: &Context<'_>,
    into: &mut [u8],
    remote: Option<Endpoint>,
) -> Option<(usize, usize)> {
    loop {
        let (head, place) = into.split_first_chunk_mut::<ADDRESS_BYTES>()?;
        match socket.poll_receive(context, place) {
            Poll::Ready(Ok(info)) => {
                *head = encode_address(info.from);
                let end = ADDRESS_BYTES + info.length_bytes.min(place.len());
                let start = if remote.is_some() { ADDRESS_BYTES } else { 0 };
                return Some((start, end));
            }
            // An error that an earlier datagram met has no place on the descriptor.
            Poll::Ready(Err(DatagramError::Stack(_))) => {}
            Poll::Ready(Err(_)) | Poll::Pending => return None,
        }
    }
}

/// Hands the connections of a listener over, each as a message of one JSON line with its descriptor, until the holder
/// closes.
pub(super) async fn carry_connections(
    listener: Listener,
    descriptor: AsyncFd<OwnedFd>,
    accepted: impl Fn(Stream, AsyncFd<UnixStream>) -> String,
) {
    loop {
        let stream = match race(listener.accept(), descriptor.hung_up()).await {
            Either::First(Ok(stream)) => stream,
            _ => return,
        };
        let Some((ours, theirs)) = pair_in_time(&stream, &descriptor).await else { return };
        let line = accepted(stream, ours);
        let give = descriptor
            .io(Interest::Write, |inner| send_with_descriptor(inner, line.as_bytes(), Some(theirs.as_fd())));
        if give.await.is_err() {
            return;
        }
    }
}

/// A pair for `stream`, when there are descriptors for it: a caller who was accepted is not hung up on for want of them.
/// None when the holder of the listener is gone first.
async fn pair_in_time(
    stream: &Stream,
    descriptor: &AsyncFd<OwnedFd>,
) -> Option<(AsyncFd<UnixStream>, OwnedFd)> {
    loop {
        if let Ok(pair) = stream_pair(descriptor.reactor()) {
            return Some(pair);
        }
        match race(stream.host().sleep(SHORTAGE_PAUSE), descriptor.hung_up()).await {
            Either::First(()) => {}
            Either::Second(()) => return None,
        }
    }
}
