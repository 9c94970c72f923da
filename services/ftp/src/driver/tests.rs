//! Peers that never end, and disks that are full, in a time that the tests make.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use futures_lite::future::block_on;
use inhost_base::{Duration, Endpoint, Instant, IpAddr, Ipv4Addr};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::client::carry;
use super::data::{Moving, Receiving, Shared};
use super::{Accept, Clock, Connection, Flow, Network, Plain};
use crate::client::ClientError;
use crate::codec::Parameters;
use crate::server::TransferError;
use inhost_common::LocalFuture;
use inhost_common::storage::{Sink, Source, StorageError, StorageResult, Storing};

const AT: Endpoint = Endpoint { address: IpAddr::V4(Ipv4Addr::LOCALHOST), port: 21 };
/// What passes with each read.
const READ_TIME: Duration = Duration::from_secs(1);
/// Longer than any server is waited for.
const TOO_LONG: Duration = Duration::from_secs(3600);

/// The time, which only reading from an [`Endless`] moves.
#[derive(Clone, Default)]
struct Time(Rc<Cell<Duration>>);

impl Clock for Time {
    fn now(&self) -> Instant {
        Instant::ZERO + self.0.get()
    }
    fn sleep_until(&self, at: Instant) -> LocalFuture<()> {
        let time = self.clone();
        Box::pin(std::future::poll_fn(move |_| match time.now() >= at {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }))
    }
}

/// A peer that says the same for ever, or nothing.
struct Endless {
    says: &'static str,
    time: Time,
}

impl AsyncRead for Endless {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.time.0.set(self.time.0.get() + READ_TIME);
        assert!(self.time.0.get() < TOO_LONG, "it is read for ever");
        buf.put_slice(self.says.as_bytes());
        if !self.says.is_empty() {
            return Poll::Ready(Ok(()));
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl AsyncWrite for Endless {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// A network without data connections.
struct NoNetwork;
struct NoListener;

impl Accept for NoListener {
    type Stream = Plain<Endless>;
    fn poll_accept(&self, _: &mut Context<'_>) -> Poll<io::Result<(Self::Stream, Endpoint)>> {
        Poll::Pending
    }
    fn local(&self) -> Endpoint {
        AT
    }
}

impl Network for NoNetwork {
    type Stream = Plain<Endless>;
    type Listener = NoListener;
    fn listen(&self, _: Endpoint) -> io::Result<NoListener> {
        Ok(NoListener)
    }
    fn connect(&self, _: IpAddr, _: Endpoint) -> LocalFuture<io::Result<Self::Stream>> {
        Box::pin(std::future::pending())
    }
}

/// The greeting of a server may have many lines, and be announced for later; neither goes on for ever.
#[test]
fn a_greeting_that_does_not_end_is_given_up() {
    for (says, why) in [
        ("220-Welcome\r\n", "the server's reply does not end"),
        ("220-", "the server's reply does not end"),
        ("120 Wait a minute\r\n", "the server does not answer"),
        ("", "the server does not answer"),
    ] {
        let time = Time::default();
        let stream = Plain(Endless { says, time: time.clone() });
        let opening =
            Connection::open(Rc::new(NoNetwork), time.clone(), stream, (AT.address, AT), None, false);
        let refused = block_on(opening).err();
        assert_eq!(refused, Some(ClientError::Connection(why.into())), "{says:?}");
        assert!(time.0.get() >= Duration::from_secs(300), "{says:?}: after {:?}", time.0.get());
    }
}

fn moving<'a>(time: &'a Time, shared: &'a Shared) -> Moving<'a, Time> {
    let stall_time = Duration::from_secs(60);
    Moving { clock: time, stall_time, bytes_per_second: None, shared, parameters: Parameters::IMAGE }
}

#[test]
fn a_listing_of_which_nothing_comes_is_given_up() {
    let (time, shared) = (Time::default(), Shared::default());
    let mut stream = Endless { says: "", time: time.clone() };
    let mut flowed = Default::default();
    let moving = moving(&time, &shared);
    let listing = carry(&moving, Flow::Text, &mut stream, false, &mut flowed);
    assert_eq!(block_on(listing), Err(TransferError::Stalled.to_string()));
}

/// A file on a full disk, which says so only after it was asked twice.
struct Full;

impl Sink for Full {
    fn write_at(&self, _: u64, buffer: Vec<u8>) -> LocalFuture<(Vec<u8>, StorageResult<()>)> {
        Box::pin(async move {
            futures_lite::future::yield_now().await;
            (buffer, Err(StorageError::Full))
        })
    }
    fn read_back(&self) -> Box<dyn Source> {
        unreachable!("nothing is read")
    }
    fn commit(self: Box<Self>, _: u64) -> LocalFuture<StorageResult<()>> {
        Box::pin(std::future::ready(Err(StorageError::Full)))
    }
    fn commit_behind(self: Box<Self>, _: u64, _: Vec<u8>) -> LocalFuture<StorageResult<()>> {
        self.commit(0)
    }
    fn discard(self: Box<Self>) -> LocalFuture<()> {
        Box::pin(std::future::ready(()))
    }
}

/// A stream with a few octets, then an error.
struct Breaking(bool);

impl AsyncRead for Breaking {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if core::mem::replace(&mut self.0, true) {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        buf.put_slice(&vec![b'x'; buf.remaining()]);
        cx.waker().wake_by_ref();
        Poll::Ready(Ok(()))
    }
}

/// The client may break the connection off while the disk is still asked.
#[test]
fn a_full_disk_is_the_reason_though_the_connection_broke_too() {
    let (time, shared) = (Time::default(), Shared::default());
    let storing = Storing { sink: Box::new(Full), position: 0, name: "file".into() };
    let mut receiving = Receiving::new(&moving(&time, &shared), &storing);
    let outcome = block_on(receiving.file(&mut Breaking(false)));
    assert_eq!(outcome, Err(TransferError::Storage(StorageError::Full)));
}
