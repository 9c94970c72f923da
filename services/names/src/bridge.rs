//! What hickory asks of a runtime, answered by a host: time, tasks, UDP and TCP.
//!
//! Hickory wants things that are `Send`, and a host's sockets are not. So hickory's side holds ends of channels only,
//! and local tasks hold the sockets. Nothing leaves the host's thread, there is no other clock than the host's, and
//! so a look-up runs under a virtual clock as it runs under the real one.

use async_trait::async_trait;
use futures_channel::{mpsc, oneshot};
use futures_io::{AsyncRead, AsyncWrite};
use futures_lite::{Stream as _, StreamExt, future};
use hickory_resolver::net::runtime::{DnsTcpStream, DnsUdpSocket, RuntimeProvider, Spawn, Time};
use inhost_base::{Duration, Endpoint};
use inhost_socket::errno::Errno;
use inhost_socket::{Host, RemoteStream, UdpSocket};
use inhost_stack::UdpOptions;
use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use tokio::io::ReadBuf;

/// Datagrams that wait in each direction of one socket; more are lost, as datagrams are.
const DATAGRAMS: usize = 16;
/// The longest answer taken over UDP.
const DATAGRAM_BYTES: usize = 4096;
/// How long a name server may take to accept a connection, where hickory does not say.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

type Answer<T> = oneshot::Sender<io::Result<T>>;
type SendFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// What hickory's side asks of the host's side.
enum Call {
    Run(SendFuture<()>),
    Sleep(Duration, oneshot::Sender<()>),
    Udp(Endpoint, Answer<Udp>),
    Tcp(SocketAddr, Duration, Answer<Tcp>),
}

/// The end of the channel that hickory's side holds.
#[derive(Clone)]
pub(crate) struct Provider {
    calls: mpsc::UnboundedSender<Call>,
}

impl Provider {
    /// Starts the task that answers on `host`; it ends when the last clone of the provider is gone. What can be
    /// asked at a time is bounded by what hickory has under way.
    pub(crate) fn start(host: &Host) -> Provider {
        let (calls, asked) = mpsc::unbounded();
        host.spawn(answer_calls(host.clone(), asked)).detach();
        Provider { calls }
    }
    /// Lets `future`, which is hickory's, find its clock.
    pub(crate) fn within<F: Future>(&self, future: F) -> impl Future<Output = F::Output> + use<F> {
        let mut future = Box::pin(future);
        let provider = self.clone();
        future::poll_fn(move |context| {
            let _entered = Entered::new(&provider);
            future.as_mut().poll(context)
        })
    }
    fn call(&self, call: Call) {
        // A host that is gone answers nothing; whoever waits sees its channel closed.
        let _ = self.calls.unbounded_send(call);
    }
}

thread_local! {
    /// Whose future is being polled: hickory's clock is asked for by type, with no value to find it by.
    static CURRENT: RefCell<Option<Provider>> = const { RefCell::new(None) };
}

/// Marks the provider whose future is polled, and unmarks it however the poll ends.
struct Entered(Option<Provider>);

impl Entered {
    fn new(provider: &Provider) -> Entered {
        Entered(CURRENT.replace(Some(provider.clone())))
    }
}
impl Drop for Entered {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
}

async fn answer_calls(host: Host, mut asked: mpsc::UnboundedReceiver<Call>) {
    while let Some(call) = asked.next().await {
        match call {
            Call::Run(future) => host.spawn(future).detach(),
            Call::Sleep(duration, mut over) => {
                let clock = host.clone();
                let slept = async move {
                    // A sleeper that was dropped need not be woken.
                    let woken = async { clock.sleep(duration).await };
                    future::or(woken, over.cancellation()).await;
                    let _ = over.send(());
                };
                host.spawn(slept).detach();
            }
            Call::Udp(local, answer) => {
                let _ = answer.send(open_udp(&host, local));
            }
            Call::Tcp(to, limit, answer) => {
                let task_host = host.clone();
                host.spawn(async move {
                    let _ = answer.send(open_tcp(&task_host, to, limit).await);
                })
                .detach();
            }
        }
    }
}

/// How hickory starts tasks.
impl Spawn for Provider {
    fn spawn_bg(&mut self, future: impl Future<Output = ()> + Send + 'static) {
        self.call(Call::Run(Box::pin(self.within(future))));
    }
}

impl RuntimeProvider for Provider {
    type Handle = Provider;
    type Timer = Clock;
    type Udp = Udp;
    type Tcp = Tcp;

    fn create_handle(&self) -> Provider {
        self.clone()
    }
    fn connect_tcp(
        &self,
        server: SocketAddr,
        _local: Option<SocketAddr>,
        limit: Option<std::time::Duration>,
    ) -> SendFuture<io::Result<Tcp>> {
        let (answer, answered) = oneshot::channel();
        let limit = limit.map_or(CONNECT_LIMIT, Duration::from);
        self.call(Call::Tcp(server, limit, answer));
        Box::pin(async { answered.await.unwrap_or_else(|_| Err(host_gone())) })
    }
    fn bind_udp(&self, local: SocketAddr, _server: SocketAddr) -> SendFuture<io::Result<Udp>> {
        let (answer, answered) = oneshot::channel();
        self.call(Call::Udp(local.into(), answer));
        Box::pin(async { answered.await.unwrap_or_else(|_| Err(host_gone())) })
    }
}

fn host_gone() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "the host has stopped")
}

/// The host's clock, as hickory finds it.
pub(crate) struct Clock;

#[async_trait]
impl Time for Clock {
    async fn delay_for(duration: std::time::Duration) {
        let (over, slept) = oneshot::channel();
        // Every future of hickory's is polled within a provider. Were one not, not to wait at all shows at once.
        if let Some(provider) = CURRENT.with_borrow(Option::clone) {
            provider.call(Call::Sleep(duration.into(), over));
            let _ = slept.await;
        }
    }
    async fn timeout<F: Future + Send + 'static>(
        duration: std::time::Duration,
        future: F,
    ) -> Result<F::Output, io::Error> {
        let late = async {
            Clock::delay_for(duration).await;
            Err(io::Error::new(io::ErrorKind::TimedOut, "no answer in time"))
        };
        future::or(async { Ok(future.await) }, late).await
    }
}

/// A datagram with the other end.
type Datagram = (Vec<u8>, SocketAddr);

/// Hickory's end of a UDP socket.
pub(crate) struct Udp {
    out: mpsc::Sender<Datagram>,
    inward: Mutex<mpsc::Receiver<io::Result<Datagram>>>,
}

fn open_udp(host: &Host, local: Endpoint) -> io::Result<Udp> {
    let socket = host.udp(local, UdpOptions::default()).map_err(Errno::into_io)?;
    let (out, to_send) = mpsc::channel(DATAGRAMS);
    let (received, inward) = mpsc::channel(DATAGRAMS);
    host.spawn(carry_datagrams(socket, to_send, received)).detach();
    Ok(Udp { out, inward: Mutex::new(inward) })
}

/// Carries datagrams both ways until hickory drops its end.
async fn carry_datagrams(
    socket: UdpSocket,
    mut to_send: mpsc::Receiver<Datagram>,
    mut received: mpsc::Sender<io::Result<Datagram>>,
) {
    enum Turn {
        Send(Option<Datagram>),
        Received(io::Result<(usize, SocketAddr)>),
    }
    let mut buffer = vec![0; DATAGRAM_BYTES];
    loop {
        let outward = async { Turn::Send(to_send.next().await) };
        let inward = async {
            let taken = socket.receive_from(&mut buffer).await;
            Turn::Received(taken.map(|info| (info.length_bytes, info.from.into())).map_err(Errno::into_io))
        };
        match future::or(outward, inward).await {
            Turn::Send(None) => return,
            Turn::Send(Some((bytes, to))) => {
                if let Err(error) = socket.send_to(&bytes, to.into()).await {
                    let _ = received.try_send(Err(error.into_io()));
                }
            }
            Turn::Received(taken) => {
                let taken = taken.map(|(length, from)| (buffer[..length.min(DATAGRAM_BYTES)].to_vec(), from));
                // Full: lost, as on a line. Closed: the other branch ends the task.
                let _ = received.try_send(taken);
            }
        }
    }
}

impl DnsUdpSocket for Udp {
    type Time = Clock;

    fn poll_recv_from(
        &self,
        context: &mut Context<'_>,
        into: &mut [u8],
    ) -> Poll<io::Result<(usize, SocketAddr)>> {
        let mut inward = self.inward.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = ready!(Pin::new(&mut *inward).poll_next(context));
        Poll::Ready(match taken {
            None => Err(host_gone()),
            Some(taken) => taken.map(|(bytes, from)| {
                let length = bytes.len().min(into.len());
                into[..length].copy_from_slice(&bytes[..length]);
                (length, from)
            }),
        })
    }
    fn poll_send_to(&self, _: &mut Context<'_>, bytes: &[u8], to: SocketAddr) -> Poll<io::Result<usize>> {
        match self.out.clone().try_send((bytes.to_vec(), to)) {
            Ok(()) => Poll::Ready(Ok(bytes.len())),
            // Lost, as on a line; the question is repeated.
            Err(error) if error.is_full() => Poll::Ready(Ok(bytes.len())),
            Err(_) => Poll::Ready(Err(host_gone())),
        }
    }
}

/// Hickory's end of a TCP connection.
pub(crate) struct Tcp(RemoteStream);

async fn open_tcp(host: &Host, to: SocketAddr, limit: Duration) -> io::Result<Tcp> {
    match host.timeout(limit, host.connect(to.into())).await {
        Ok(Ok(stream)) => Ok(Tcp(stream.into_remote())),
        Ok(Err(error)) => Err(error.into_io()),
        Err(_) => {
            Err(io::Error::new(io::ErrorKind::TimedOut, "the name server did not accept the connection"))
        }
    }
}

impl DnsTcpStream for Tcp {
    type Time = Clock;
}

impl AsyncRead for Tcp {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let mut into = ReadBuf::new(into);
        ready!(tokio::io::AsyncRead::poll_read(Pin::new(&mut self.0), context, &mut into))?;
        Poll::Ready(Ok(into.filled().len()))
    }
}

impl AsyncWrite for Tcp {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        tokio::io::AsyncWrite::poll_write(Pin::new(&mut self.0), context, bytes)
    }
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        tokio::io::AsyncWrite::poll_flush(Pin::new(&mut self.0), context)
    }
    fn poll_close(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        tokio::io::AsyncWrite::poll_shutdown(Pin::new(&mut self.0), context)
    }
}
