//! A host that other threads hold: its builder, its thread, and the handle.

mod beside;
mod builder;
mod keeper;
#[cfg(feature = "tokio")]
mod within_tokio;

pub use crate::current::Entered;
#[cfg(feature = "user")]
pub(crate) use beside::outer_caller;
pub use builder::{BuildError, Builder};
#[cfg(feature = "tokio")]
pub use within_tokio::HostTask;

use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use inhost_base::{Endpoint, Ipv6Addr};
use inhost_socket::errno::Errno;
use inhost_socket::{Gone, RemoteHost};
use inhost_stack::{ConnectOptions, ListenOptions, UdpOptions};

use crate::device::AnyUdpSocket;
use crate::net::{self, TcpListener, TcpStream, ToSocketAddrs, UdpSocket};
use crate::{current, local};
use keeper::Keeper;

/// Callers of any destination that may wait to be accepted.
const ANY_BACKLOG: usize = 1024;

/// An Internet host. Clones are the same host.
///
/// It goes down when the last handle is dropped: connections have [`Builder::linger`] to deliver what was written and to
/// close, and for so long the drop may block, but for one in a task of a host. In asynchronous code call
/// [`Host::shutdown`] before.
///
/// Calls on a host that was stopped fail with an error of the kind `NetworkDown`. So do calls in a process that was forked
/// from the host's: build a host there after the fork.
///
/// ```
/// use inhost::Host;
///
/// let host = Host::builder().start()?;
/// let listener = host.block_on(host.listen("127.0.0.1:80"))?;
/// let stream = host.block_on(host.connect("127.0.0.1:80"))?;
/// assert_eq!(stream.peer_addr()?, listener.local_addr()?);
/// # std::io::Result::Ok(())
/// ```
#[derive(Clone)]
pub struct Host {
    remote: RemoteHost,
    /// Stops the host when the last handle is dropped.
    keeper: Arc<Keeper>,
}

impl Host {
    /// Begins to describe a host.
    pub fn builder() -> Builder {
        Builder::default()
    }
    /// Makes the host current for `future` and runs it on this thread. It needs no executor; within one use
    /// [`Host::scope`].
    ///
    /// # Panics
    /// In a task of a host: it would block all tasks of its thread, and wait for ever for the host.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        crate::block_on(self.scope(future))
    }
    /// `future` with this host current whenever it is polled.
    pub fn scope<F: Future>(&self, future: F) -> impl Future<Output = F::Output> + use<F> {
        let host = self.clone();
        async move {
            let mut future = pin!(future);
            Scope { host: &host, future: future.as_mut() }.await
        }
    }
    /// Makes the host current on this thread until the guard is dropped.
    pub fn enter(&self) -> Entered {
        current::enter(self.remote.clone())
    }
    /// Makes the host current wherever no other is, and keeps it. The last call counts. A host that is kept when the program
    /// ends has no time to deliver: call [`Host::shutdown`], or drop what [`Host::take_default`] gives.
    pub fn make_default(&self) {
        drop(current::set_default(Some(self.clone())));
    }
    /// Takes the host that [`Host::make_default`] keeps: from then on none is current by default.
    pub fn take_default() -> Option<Host> {
        current::set_default(None)
    }
    /// Connects to `addr` from this host.
    ///
    /// # Errors
    /// As [`TcpStream::connect`].
    pub async fn connect<A: ToSocketAddrs>(&self, addr: A) -> io::Result<TcpStream> {
        self.scope(TcpStream::connect(addr)).await
    }
    /// Connects to `addr`, with options.
    ///
    /// # Errors
    /// As [`TcpStream::connect`].
    pub async fn connect_with(&self, addr: SocketAddr, options: ConnectOptions) -> io::Result<TcpStream> {
        net::connect(&self.remote, addr, options, Vec::new()).await
    }
    /// Listens at `addr` of this host.
    ///
    /// # Errors
    /// As [`TcpListener::bind`].
    pub async fn listen<A: ToSocketAddrs>(&self, addr: A) -> io::Result<TcpListener> {
        self.scope(TcpListener::bind(addr)).await
    }
    /// Listens at `addr` of this host, with options.
    ///
    /// # Errors
    /// As [`TcpListener::bind`].
    pub async fn listen_with(&self, addr: SocketAddr, options: ListenOptions) -> io::Result<TcpListener> {
        if options.any_address {
            self.takes_any_address().await?;
        }
        net::listen(&self.remote, addr, options).await
    }
    /// Opens a UDP socket at `addr` of this host.
    ///
    /// # Errors
    /// As [`UdpSocket::bind`].
    pub async fn udp<A: ToSocketAddrs>(&self, addr: A) -> io::Result<UdpSocket> {
        self.scope(UdpSocket::bind(addr)).await
    }
    /// Opens a UDP socket at `addr` of this host, with options.
    ///
    /// # Errors
    /// As [`UdpSocket::bind`].
    pub async fn udp_with(&self, addr: SocketAddr, options: UdpOptions) -> io::Result<UdpSocket> {
        if options.any_address {
            self.takes_any_address().await?;
        }
        net::bind(&self.remote, addr, options).await
    }
    /// Goes down: listeners close, connections have [`Builder::linger`] to deliver what was written, and then are reset.
    /// Done when that is over.
    pub async fn shutdown(&self) {
        self.keeper.shut_down().await;
    }
    /// Listens to every destination and every port of a link that was added by [`Builder::any_address`].
    /// [`TcpStream::local_addr`] of an accepted stream says whom the caller meant. With [`TcpListener::accept_held`] callers
    /// can be refused, or kept waiting, before their handshake is answered.
    ///
    /// # Errors
    /// When there is such a listener already, and `InvalidInput` when no link of the host takes every address.
    pub async fn listen_any(&self) -> io::Result<TcpListener> {
        let mut options = ListenOptions::default();
        options.any_address = true;
        options.hold_syn = true;
        options.backlog = ANY_BACKLOG;
        let everywhere = Endpoint::new(Ipv6Addr::UNSPECIFIED, 0);
        self.listen_with(everywhere.into(), options).await
    }
    /// Opens a UDP socket for every destination and every port of a link that was added by [`Builder::any_address`], as
    /// [`AnyUdpSocket::bind`].
    ///
    /// # Errors
    /// As there.
    pub async fn udp_any(&self) -> io::Result<AnyUdpSocket> {
        AnyUdpSocket::bind(self).await
    }
    /// Without such a link a socket for every address would never receive anything.
    async fn takes_any_address(&self) -> io::Result<()> {
        let look = |host: &local::Host| {
            host.with_stack(|stack, _| {
                let mut interfaces = stack.links().filter_map(|link| stack.ip().interface(link));
                interfaces.any(|interface| interface.config().any_address)
            })
        };
        match self.remote.call(async move |host| look(&host)).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "no link of this host takes every address: add one by Builder::any_address",
            )),
            Err(gone) => Err(gone.into_io()),
        }
    }
    /// Runs `work` as a task on the host's own thread, with the sockets that live there, and gives its result.
    ///
    /// # Errors
    /// When the host was stopped.
    pub async fn run<R, F>(&self, work: impl FnOnce(local::Host) -> F + Send + 'static) -> Result<R, Gone>
    where
        F: Future<Output = R> + 'static,
        R: Send + 'static,
    {
        self.remote.call(work).await
    }
    /// What the host's flight recorder holds, as pcapng: the heads of the latest frames on its links, and its events as their
    /// comments. Each host has a recorder; [`Builder::record_memory`] says how far back it goes, and [`Builder::record`] has
    /// everything written to a file.
    ///
    /// ```
    /// use inhost::{Host, link::memory};
    ///
    /// let config = memory::Config { doorbell: true, ..memory::Config::default() };
    /// let (near, far) = memory::pair(&config)?;
    /// let near = Host::builder().driver(near, |link| link.with_address("10.9.0.1/24".parse().unwrap())).start()?;
    /// let far = Host::builder().driver(far, |link| link.with_address("10.9.0.2/24".parse().unwrap())).start()?;
    /// let _refused = near.block_on(near.connect("10.9.0.2:80")).unwrap_err();
    /// let capture = near.block_on(near.recorded())?;
    /// assert_eq!(capture[..4], [0x0a, 0x0d, 0x0d, 0x0a], "a file for Wireshark, and for inhost explain");
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// # Errors
    /// When the host was stopped.
    pub async fn recorded(&self) -> io::Result<Vec<u8>> {
        let write = async |host: local::Host| {
            let recorder = beside::find(&host)?.recorder.clone()?;
            let selection = inhost_record::Selection::default();
            Some(
                inhost_runtime::write_recorded(&host, &recorder, &selection, Vec::new())
                    .map(|(bytes, _)| bytes),
            )
        };
        let written = self.remote.call(write).await.map_err(Gone::into_io)?;
        written.unwrap_or_else(|| Err(io::ErrorKind::NetworkDown.into()))
    }
    /// Why the file of [`Builder::record`] ends before the host does: the disk failed, or is full. `None` while it is written.
    ///
    /// ```
    /// use inhost::{Host, device};
    ///
    /// let (_packets, driver) = device::packets(device::Config::default())?;
    /// let host = Host::builder()
    ///     .driver(driver, |link| link.with_address("10.9.0.1/24".parse().unwrap()))
    ///     .record("/dev/full")
    ///     .start()?;
    /// let mut failure = None;
    /// for _ in 0..500 {
    ///     failure = host.block_on(host.record_failure())?;
    ///     if failure.is_some() {
    ///         break;
    ///     }
    ///     std::thread::sleep(std::time::Duration::from_millis(10));
    /// }
    /// assert_eq!(failure.unwrap().kind(), std::io::ErrorKind::StorageFull);
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// # Errors
    /// When the host was stopped.
    pub async fn record_failure(&self) -> io::Result<Option<io::Error>> {
        let look = async |host: local::Host| beside::find(&host)?.recording.as_ref()?.failure();
        self.remote.call(look).await.map_err(Gone::into_io)
    }
    /// The handle of the layer below.
    pub fn remote(&self) -> &RemoteHost {
        &self.remote
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").finish_non_exhaustive()
    }
}

struct Scope<'a, F> {
    host: &'a Host,
    future: Pin<&'a mut F>,
}

impl<F: Future> Future for Scope<'_, F> {
    type Output = F::Output;
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let _entered = self.host.enter();
        self.future.as_mut().poll(context)
    }
}
