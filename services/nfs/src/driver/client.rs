//! The client's end: messages of calls over a connection, made anew when it breaks, or in datagrams.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_lite::future::or;
use inhost_base::{Duration, Instant};
use inhost_common::{Clock, LocalFuture};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::client::Rpc;
use crate::codec::nfs::DATA_BYTES;
use crate::codec::record::{Records, mark};

/// Octets of a reply at most.
const REPLY_BYTES: usize = DATA_BYTES + 64 * 1024;
/// Octets that are read at a time.
const READ_BYTES: usize = 64 * 1024;
/// Octets that wait to be sent before the next message is taken.
const UNSENT_BYTES: usize = 256 * 1024;
/// Steps before others have their turn.
const STEPS_A_TURN: usize = 64;
/// How long a client waits before it connects again.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// Each time it is twice as long, up to this.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Makes connections to one server.
pub trait Connect {
    /// A connection.
    type Stream: AsyncRead + AsyncWrite + Unpin;
    /// Makes one.
    fn connect(&self) -> LocalFuture<io::Result<Self::Stream>>;
}

/// Datagrams to and from one server.
pub trait Peer {
    /// Sends one.
    fn poll_send(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<(), String>>;
    /// Puts the next one into `into`, and says how long it is; or that an earlier one met with an obstacle, in words.
    fn poll_receive(&self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<Result<usize, String>>;
}

/// Does `work`, whose calls `carrier` carries.
pub async fn drive<T>(carrier: impl Future<Output = Infallible>, work: impl Future<Output = T>) -> T {
    let carried = async { match carrier.await {} };
    or(work, carried).await
}

/// Carries calls over connections for as long as it is polled. When a connection breaks, another is made, and the calls
/// under way are sent again with the same numbers, so that the server knows them. While there is none, calls wait until
/// their time is over.
pub async fn carry_stream<C: Clock, N: Connect>(rpc: &Rpc<C>, network: &N) -> Infallible {
    let (mut pause, mut was_connected) = (FIRST_PAUSE, false);
    loop {
        wait_for_calls(rpc).await;
        match or(async { Some(network.connect().await) }, give_up(rpc)).await {
            Some(Ok(mut stream)) => {
                was_connected = true;
                rpc.with_unsent(crate::client::Calls::reconnected);
                let mut carrier = Carrier::new(rpc, &mut stream);
                poll_fn(|cx| carrier.poll(cx)).await;
                rpc.with_unsent(crate::client::Calls::disconnected);
                if carrier.has_received {
                    pause = FIRST_PAUSE;
                }
            }
            // One that was never there is told at once.
            Some(Err(error)) if !was_connected => {
                rpc.with_calls(|calls| calls.fail(&error.to_string()));
            }
            Some(Err(_)) | None => {}
        }
        let until = rpc.clock().now() + pause;
        or(rpc.clock().sleep_until(until), async {
            give_up::<C, ()>(rpc).await;
        })
        .await;
        pause = pause.times(2).min(LONGEST_PAUSE);
    }
}

/// Ready once there is a call to carry.
async fn wait_for_calls<C: Clock>(rpc: &Rpc<C>) {
    poll_fn(|cx| {
        rpc.set_driver(cx.waker());
        let has_calls = rpc.with_unsent(|calls| calls.under_way() > 0);
        if has_calls { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// Gives calls up whose time is over while there is no connection; `None` once none is under way.
async fn give_up<C: Clock, T>(rpc: &Rpc<C>) -> Option<T> {
    loop {
        let due = rpc.with_unsent(|calls| calls.deadline())?;
        rpc.clock().sleep_until(due).await;
        let now = rpc.clock().now();
        rpc.with_calls(|calls| calls.timeout(now));
    }
}

/// One connection.
struct Carrier<'a, C, S> {
    rpc: &'a Rpc<C>,
    stream: &'a mut S,
    records: Records,
    buffer: Vec<u8>,
    output: Vec<u8>,
    sent: usize,
    has_received: bool,
    alarm: Option<(Instant, LocalFuture<()>)>,
}

/// The connection is not used any more.
struct Over;

impl<'a, C: Clock, S: AsyncRead + AsyncWrite + Unpin> Carrier<'a, C, S> {
    fn new(rpc: &'a Rpc<C>, stream: &'a mut S) -> Carrier<'a, C, S> {
        Carrier {
            rpc,
            stream,
            records: Records::new(REPLY_BYTES),
            buffer: vec![0; READ_BYTES],
            output: Vec::new(),
            sent: 0,
            has_received: false,
            alarm: None,
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.rpc.set_driver(cx.waker());
        for _ in 0..STEPS_A_TURN {
            let moved = match (self.send(cx), self.receive(cx)) {
                (Ok(sent), Ok(received)) => sent || received,
                _ => return Poll::Ready(()),
            };
            if moved {
                continue;
            }
            return match poll_deadline(self.rpc, &mut self.alarm, cx) {
                // A server that is silent for so long may have lost the connection.
                Poll::Ready(true) => Poll::Ready(()),
                Poll::Ready(false) => continue,
                Poll::Pending => Poll::Pending,
            };
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn send(&mut self, cx: &mut Context<'_>) -> Result<bool, Over> {
        let now = self.rpc.clock().now();
        while self.output.len() - self.sent < UNSENT_BYTES {
            let output = &mut self.output;
            let taken = self.rpc.with_unsent(|calls| {
                let message = calls.transmit(now)?;
                output.extend_from_slice(&mark(message.len()));
                output.extend_from_slice(message);
                Some(())
            });
            if taken.is_none() {
                break;
            }
        }
        if self.sent == self.output.len() {
            return Ok(false);
        }
        match Pin::new(&mut *self.stream).poll_write(cx, &self.output[self.sent..]) {
            Poll::Ready(Ok(count)) if count > 0 => {
                self.sent += count;
                if self.sent == self.output.len() || self.sent >= UNSENT_BYTES {
                    self.output.drain(..self.sent);
                    self.sent = 0;
                }
                Ok(true)
            }
            Poll::Ready(_) => Err(Over),
            Poll::Pending => match Pin::new(&mut *self.stream).poll_flush(cx) {
                Poll::Ready(Err(_)) => Err(Over),
                _ => Ok(false),
            },
        }
    }

    fn receive(&mut self, cx: &mut Context<'_>) -> Result<bool, Over> {
        let mut buffer = ReadBuf::new(&mut self.buffer);
        match Pin::new(&mut *self.stream).poll_read(cx, &mut buffer) {
            Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {
                let mut octets = buffer.filled();
                while let Some(record) = self.records.take(&mut octets).map_err(|_| Over)? {
                    self.has_received |= self.rpc.with_calls(|calls| calls.received(&record));
                }
                Ok(true)
            }
            Poll::Ready(_) => Err(Over),
            Poll::Pending => Ok(false),
        }
    }
}

/// Waits for the deadline of the calls. Ready with whether calls are to be sent again.
fn poll_deadline<C: Clock>(
    rpc: &Rpc<C>,
    alarm: &mut Option<(Instant, LocalFuture<()>)>,
    cx: &mut Context<'_>,
) -> Poll<bool> {
    let Some(due) = rpc.with_unsent(|calls| calls.deadline()) else { return Poll::Pending };
    let now = rpc.clock().now();
    if due <= now {
        return Poll::Ready(rpc.with_calls(|calls| calls.timeout(now)));
    }
    // A later deadline is found when the earlier alarm rings.
    if alarm.as_ref().is_none_or(|(at, _)| *at > due || *at <= now) {
        *alarm = Some((due, rpc.clock().sleep_until(due)));
    }
    match alarm.as_mut().map(|(_, sleep)| sleep.as_mut().poll(cx)) {
        Some(Poll::Ready(())) => {
            *alarm = None;
            Poll::Ready(false)
        }
        _ => Poll::Pending,
    }
}

/// Carries calls in datagrams for as long as it is polled; what is lost is sent again ever more slowly.
pub async fn carry_datagrams<C: Clock, P: Peer>(rpc: &Rpc<C>, peer: &P) -> Infallible {
    let (mut alarm, mut buffer, mut unsent) = (None, vec![0; READ_BYTES], None::<Vec<u8>>);
    poll_fn(|cx| {
        rpc.set_driver(cx.waker());
        for _ in 0..STEPS_A_TURN {
            let mut moved = false;
            let now = rpc.clock().now();
            if unsent.is_none() {
                unsent = rpc.with_unsent(|calls| calls.transmit(now).map(<[u8]>::to_vec));
            }
            // What cannot be sent now is sent again later.
            if let Some(message) = &unsent
                && peer.poll_send(cx, message).is_ready()
            {
                unsent = None;
                moved = true;
            }
            match peer.poll_receive(cx, &mut buffer) {
                Poll::Ready(Ok(length)) => {
                    let message = &buffer[..length.min(READ_BYTES)];
                    rpc.with_calls(|calls| calls.received(message));
                    moved = true;
                }
                Poll::Ready(Err(_)) => moved = true,
                Poll::Pending => {}
            }
            if !moved && poll_deadline(rpc, &mut alarm, cx).is_pending() {
                return Poll::Pending;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await
}
