//! UDP, echo and probe sockets for local tasks.

use std::future::poll_fn;
use std::task::{Context, Poll};

use inhost_base::{Endpoint, IpAddr, LinkId};
use inhost_stack::{
    self as stack, DatagramInfo, EchoInfo, EchoSocketId, Probe, ProbeAnswer, ProbeMethod, ProbeSocketId,
    SendDatagrams, SocketId, UdpOptions, UdpSocketId,
};

use crate::error::{BindError, DatagramError, ListenError};
use crate::host::{Core, Host, udp};
use crate::waiters::Wait;

/// The two ends of a datagram that is sent, by name, so that neither is taken for the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ends {
    /// Where it comes from; the socket's own end where it is not said. For any-address sockets.
    pub from: Option<Endpoint>,
    /// Where it goes; the connected end where it is not said.
    pub to: Option<Endpoint>,
}

impl Ends {
    /// From the socket's own end to `to`.
    pub fn towards(to: Endpoint) -> Ends {
        Ends { from: None, to: Some(to) }
    }
    /// The endpoints of a reply: from the address that the datagram was sent to, to its source.
    pub fn back(received: &DatagramInfo) -> Ends {
        Ends { from: Some(received.to), to: Some(received.from) }
    }
}

/// A UDP socket. Dropping it closes it.
///
/// ```
/// use inhost_base::{Endpoint, Instant, Ipv4Addr};
/// use inhost_socket::Host;
/// use inhost_stack::{Stack, StackConfig, UdpOptions};
///
/// let host = Host::new(Stack::new(StackConfig::default(), [7; 32], Instant::ZERO), Instant::ZERO);
/// let server = host.udp(Endpoint::new(Ipv4Addr::LOCALHOST, 7), UdpOptions::default())?;
/// let client = host.udp(Endpoint::new(Ipv4Addr::LOCALHOST, 0), UdpOptions::default())?;
/// host.run_alone(async {
///     client.send_to(b"ping", server.local()).await.unwrap();
///     let mut place = [0; 16];
///     let info = server.receive_from(&mut place).await.unwrap();
///     assert_eq!((&place[..info.length_bytes], info.from.port), (&b"ping"[..], client.local().port));
/// });
/// # Ok::<(), inhost_socket::ListenError>(())
/// ```
#[derive(Debug)]
pub struct UdpSocket {
    handle: Handle<UdpSocketId>,
    local: Endpoint,
}

impl UdpSocket {
    pub(crate) fn bind(host: &Host, local: Endpoint, options: UdpOptions) -> Result<UdpSocket, ListenError> {
        let handle = Handle::open(host, |core| udp(core).bind(local, options))?;
        let ends = host.core(|core| core.stack.endpoints(handle.socket));
        Ok(UdpSocket { handle, local: ends.map_or(local, |(local, _)| local) })
    }
    /// Our end, as it was bound.
    pub fn local(&self) -> Endpoint {
        self.local
    }
    /// The socket's name, for [`Host::with_stack`].
    pub fn socket(&self) -> UdpSocketId {
        self.handle.socket
    }
    /// Sets an option of the stack.
    pub fn set_option(&self, option: stack::SocketOption) -> Result<(), stack::SocketError> {
        let Handle { host, socket } = &self.handle;
        host.core(|core| core.stack.set_option(*socket, option, core.now, &mut *core.sink))
    }
    /// Talks to `remote` only from now on, and learns of errors on the way there.
    pub fn connect(&self, remote: Endpoint) -> Result<(), DatagramError> {
        let Handle { host, socket } = &self.handle;
        Ok(host.core(|core| udp(core).connect(*socket, remote))?)
    }
    /// Sends one datagram to the connected end.
    pub async fn send(&self, bytes: &[u8]) -> Result<(), DatagramError> {
        self.send_between(bytes, Ends::default()).await
    }
    /// Sends one datagram to `to`; waits while the send queue is full.
    pub async fn send_to(&self, bytes: &[u8], to: Endpoint) -> Result<(), DatagramError> {
        self.send_between(bytes, Ends::towards(to)).await
    }
    /// Sends one datagram between ends that need not be the socket's own; for any-address sockets.
    pub async fn send_between(&self, bytes: &[u8], ends: Ends) -> Result<(), DatagramError> {
        poll_fn(|context| self.poll_send(context, bytes, ends)).await
    }
    /// Broadcasts one datagram to `port` on `link`, from 0.0.0.0: see [`stack::UdpSockets::send_unaddressed`].
    pub async fn send_unaddressed(&self, bytes: &[u8], link: LinkId, port: u16) -> Result<(), DatagramError> {
        poll_fn(|context| {
            self.handle.attempt(Wait::Write, context, |core, socket| {
                udp(core).send_unaddressed(socket, bytes, link, port)
            })
        })
        .await
    }
    /// Sends `bytes` as datagrams of `segment_bytes` each to `to`, or to the connected end, in one go: at most 64 of
    /// them and 65,507 bytes, none of which is ever fragmented. A device that cuts gets them as one frame; see
    /// [`stack::UdpSockets::send_gso`].
    pub async fn send_gso(
        &self,
        bytes: &[u8],
        segment_bytes: u16,
        to: Option<Endpoint>,
    ) -> Result<(), DatagramError> {
        poll_fn(|context| self.poll_send_gso(context, bytes, segment_bytes, to)).await
    }
    /// One step of [`UdpSocket::send_gso`].
    pub fn poll_send_gso(
        &self,
        context: &Context<'_>,
        bytes: &[u8],
        segment_bytes: u16,
        to: Option<Endpoint>,
    ) -> Poll<Result<(), DatagramError>> {
        self.handle.attempt(Wait::Write, context, |core, socket| {
            udp(core).send_gso(socket, bytes, segment_bytes, to, None)
        })
    }
    /// One step of [`UdpSocket::send_between`].
    pub fn poll_send(
        &self,
        context: &Context<'_>,
        bytes: &[u8],
        ends: Ends,
    ) -> Poll<Result<(), DatagramError>> {
        let Ends { from, to } = ends;
        self.handle.attempt(Wait::Write, context, |core, socket| udp(core).send_to(socket, bytes, to, from))
    }
    /// One step of sending one datagram, or several, with a congestion mark; see [`stack::UdpSockets::send_with`].
    pub fn poll_send_with(
        &self,
        context: &Context<'_>,
        bytes: &[u8],
        how: &SendDatagrams,
    ) -> Poll<Result<(), DatagramError>> {
        self.handle.attempt(Wait::Write, context, |core, socket| udp(core).send_with(socket, bytes, how))
    }
    /// Has a task woken when there is a datagram or an error.
    pub(crate) fn wait_to_receive(&self, context: &Context<'_>) {
        self.handle.host.executor().operation();
        self.handle.host.register(self.handle.socket, Wait::Read, context);
    }
    /// The next datagram, of which as much as fits is put into `into`; or an error that an earlier one met.
    pub async fn receive_from(&self, into: &mut [u8]) -> Result<DatagramInfo, DatagramError> {
        poll_fn(|context| self.poll_receive(context, into)).await
    }
    /// One step of [`UdpSocket::receive_from`].
    pub fn poll_receive(
        &self,
        context: &Context<'_>,
        into: &mut [u8],
    ) -> Poll<Result<DatagramInfo, DatagramError>> {
        self.handle.attempt(Wait::Read, context, |core, socket| udp(core).receive_from(socket, into))
    }
}

/// A socket for echo requests, with an identifier of its own. Dropping it closes it.
///
/// ```
/// use inhost_base::{Instant, Ipv4Addr};
/// use inhost_socket::Host;
/// use inhost_stack::{Stack, StackConfig};
///
/// let host = Host::new(Stack::new(StackConfig::default(), [7; 32], Instant::ZERO), Instant::ZERO);
/// let ping = host.echo()?;
/// host.run_alone(async {
///     ping.send(Ipv4Addr::LOCALHOST.into(), 1, b"anybody there?").await.unwrap();
///     let mut place = [0; 32];
///     let reply = ping.receive(&mut place).await.unwrap();
///     assert_eq!(reply.sequence, 1);
/// });
/// # Ok::<(), inhost_socket::ListenError>(())
/// ```
#[derive(Debug)]
pub struct EchoSocket(Handle<EchoSocketId>);

impl EchoSocket {
    pub(crate) fn open(host: &Host) -> Result<EchoSocket, ListenError> {
        Handle::open(host, |core| core.stack.echo(core.now, &mut *core.sink).open()).map(EchoSocket)
    }
    /// The socket's name, for [`Host::with_stack`].
    pub fn socket(&self) -> EchoSocketId {
        self.0.socket
    }
    /// Sends an echo request numbered `sequence`, with `data`.
    pub async fn send(&self, to: IpAddr, sequence: u16, data: &[u8]) -> Result<(), DatagramError> {
        poll_fn(|context| {
            self.0.attempt(Wait::Write, context, |core, socket| {
                core.stack.echo(core.now, &mut *core.sink).send(socket, to, sequence, data)
            })
        })
        .await
    }
    /// The next answer, whose data is put into `into`; or the error that a request met.
    pub async fn receive(&self, into: &mut [u8]) -> Result<EchoInfo, DatagramError> {
        poll_fn(|context| {
            self.0.attempt(Wait::Read, context, |core, socket| {
                core.stack.echo(core.now, &mut *core.sink).receive(socket, into)
            })
        })
        .await
    }
}

/// A socket for probes of one method. Dropping it closes it.
#[derive(Debug)]
pub struct ProbeSocket(Handle<ProbeSocketId>);

impl ProbeSocket {
    pub(crate) fn open(host: &Host, method: ProbeMethod) -> Result<ProbeSocket, ListenError> {
        Handle::open(host, |core| core.stack.probe(core.now, &mut *core.sink).open(method)).map(ProbeSocket)
    }
    /// The socket's name, for [`Host::with_stack`].
    pub fn socket(&self) -> ProbeSocketId {
        self.0.socket
    }
    /// Sends a probe; see [`stack::ProbeSockets::send`].
    pub async fn send(&self, probe: &Probe) -> Result<(), DatagramError> {
        poll_fn(|context| {
            self.0.attempt(Wait::Write, context, |core, socket| {
                core.stack.probe(core.now, &mut *core.sink).send(socket, probe)
            })
        })
        .await
    }
    /// The next answer; or the error that kept a probe from leaving.
    pub async fn receive(&self) -> Result<ProbeAnswer, DatagramError> {
        poll_fn(|context| {
            self.0.attempt(Wait::Read, context, |core, socket| {
                core.stack.probe(core.now, &mut *core.sink).receive(socket)
            })
        })
        .await
    }
}

/// A socket of datagrams by its host and its name there. Dropping it closes it.
#[derive(Debug)]
struct Handle<S: Copy + Into<SocketId>> {
    host: Host,
    socket: S,
}

impl<S: Copy + Into<SocketId>> Handle<S> {
    /// The socket that `open` gives, unless the host goes down.
    fn open(
        host: &Host,
        open: impl FnOnce(&mut Core) -> Result<S, BindError>,
    ) -> Result<Handle<S>, ListenError> {
        if host.is_draining() {
            return Err(ListenError::Stopped);
        }
        Ok(Handle { host: host.clone(), socket: host.core(open)? })
    }
    /// The result of `act`, or a wait for another attempt.
    fn attempt<T>(
        &self,
        wait: Wait,
        context: &Context<'_>,
        act: impl FnOnce(&mut Core, S) -> Result<T, stack::DatagramError>,
    ) -> Poll<Result<T, DatagramError>> {
        let result = self.host.core(|core| act(core, self.socket));
        self.host.executor().operation();
        match result {
            Err(stack::DatagramError::WouldBlock) => {
                self.host.register(self.socket, wait, context);
                Poll::Pending
            }
            result => Poll::Ready(result.map_err(DatagramError::Stack)),
        }
    }
}

impl<S: Copy + Into<SocketId>> Drop for Handle<S> {
    fn drop(&mut self) {
        self.host.close(self.socket);
    }
}
