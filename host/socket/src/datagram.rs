//! UDP, echo and probe sockets for local tasks.

use std::future::poll_fn;
use std::task::{Context, Poll};

use inhost_base::{Endpoint, IpAddr, LinkId};
use inhost_stack::{
    self as stack, DatagramInfo, EchoInfo, EchoSocketId, Probe, ProbeAnswer, ProbeMethod, ProbeSocketId,
    SendDatagrams, UdpOptions, UdpSocketId,
};

use crate::error::{DatagramError, ListenError};
use crate::host::{Core, Host};
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
    host: Host,
    socket: UdpSocketId,
    local: Endpoint,
}

impl UdpSocket {
    pub(crate) fn bind(host: &Host, local: Endpoint, options: UdpOptions) -> Result<UdpSocket, ListenError> {
        if host.is_draining() {
            return Err(ListenError::Stopped);
        }
        let socket = host.core(|core| core.stack.udp().bind(local, options, core.now))?;
        let local = host.core(|core| core.stack.endpoints(socket)).map_or(local, |(local, _)| local);
        Ok(UdpSocket { host: host.clone(), socket, local })
    }
    /// Our end, as it was bound.
    pub fn local(&self) -> Endpoint {
        self.local
    }
    /// The socket's name, for [`Host::with_stack`].
    pub fn socket(&self) -> UdpSocketId {
        self.socket
    }
    /// Sets an option of the stack.
    pub fn set_option(&self, option: stack::SocketOption) -> Result<(), stack::SocketError> {
        self.host.core(|core| core.stack.set_option(self.socket, option, core.now, &mut *core.sink))
    }
    /// Talks to `remote` only from now on, and learns of errors on the way there.
    pub fn connect(&self, remote: Endpoint) -> Result<(), DatagramError> {
        Ok(self.host.core(|core| core.stack.udp().connect(self.socket, remote, core.now))?)
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
            let send =
                |core: &mut Core| core.stack.udp().send_unaddressed(self.socket, bytes, link, port, core.now);
            or_wait(&self.host, self.socket, self.host.core(send), Wait::Write, context)
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
        let send = |core: &mut Core| {
            core.stack.udp().send_gso(self.socket, bytes, segment_bytes, to, None, core.now)
        };
        or_wait(&self.host, self.socket, self.host.core(send), Wait::Write, context)
    }
    /// One step of [`UdpSocket::send_between`].
    pub fn poll_send(
        &self,
        context: &Context<'_>,
        bytes: &[u8],
        ends: Ends,
    ) -> Poll<Result<(), DatagramError>> {
        let Ends { from, to } = ends;
        let sent = self.host.core(|core| core.stack.udp().send_to(self.socket, bytes, to, from, core.now));
        or_wait(&self.host, self.socket, sent, Wait::Write, context)
    }
    /// One step of sending one datagram, or several, with a congestion mark; see [`stack::UdpSockets::send_with`].
    pub fn poll_send_with(
        &self,
        context: &Context<'_>,
        bytes: &[u8],
        how: &SendDatagrams,
    ) -> Poll<Result<(), DatagramError>> {
        let sent = self.host.core(|core| core.stack.udp().send_with(self.socket, bytes, how, core.now));
        or_wait(&self.host, self.socket, sent, Wait::Write, context)
    }
    /// Has a task woken when there is a datagram or an error.
    pub(crate) fn wait_to_receive(&self, context: &Context<'_>) {
        self.host.executor().operation();
        self.host.register(self.socket, Wait::Read, context);
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
        let received = self.host.core(|core| core.stack.udp().receive_from(self.socket, into, core.now));
        or_wait(&self.host, self.socket, received, Wait::Read, context)
    }
}

impl Drop for UdpSocket {
    fn drop(&mut self) {
        self.host.close(self.socket);
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
pub struct EchoSocket {
    host: Host,
    socket: EchoSocketId,
}

impl EchoSocket {
    pub(crate) fn open(host: &Host) -> Result<EchoSocket, ListenError> {
        if host.is_draining() {
            return Err(ListenError::Stopped);
        }
        let socket = host.core(|core| core.stack.echo().open(core.now))?;
        Ok(EchoSocket { host: host.clone(), socket })
    }
    /// The socket's name, for [`Host::with_stack`].
    pub fn socket(&self) -> EchoSocketId {
        self.socket
    }
    /// Sends an echo request numbered `sequence`, with `data`.
    pub async fn send(&self, to: IpAddr, sequence: u16, data: &[u8]) -> Result<(), DatagramError> {
        poll_fn(|context| {
            let sent =
                self.host.core(|core| core.stack.echo().send(self.socket, to, sequence, data, core.now));
            or_wait(&self.host, self.socket, sent, Wait::Write, context)
        })
        .await
    }
    /// The next answer, whose data is put into `into`; or the error that a request met.
    pub async fn receive(&self, into: &mut [u8]) -> Result<EchoInfo, DatagramError> {
        poll_fn(|context| {
            let received = self.host.core(|core| core.stack.echo().receive(self.socket, into, core.now));
            or_wait(&self.host, self.socket, received, Wait::Read, context)
        })
        .await
    }
}

impl Drop for EchoSocket {
    fn drop(&mut self) {
        self.host.close(self.socket);
    }
}

/// A socket for probes of one method. Dropping it closes it.
#[derive(Debug)]
pub struct ProbeSocket {
    host: Host,
    socket: ProbeSocketId,
}

impl ProbeSocket {
    pub(crate) fn open(host: &Host, method: ProbeMethod) -> Result<ProbeSocket, ListenError> {
        if host.is_draining() {
            return Err(ListenError::Stopped);
        }
        let socket = host.core(|core| core.stack.probe().open(method, core.now))?;
        Ok(ProbeSocket { host: host.clone(), socket })
    }
    /// The socket's name, for [`Host::with_stack`].
    pub fn socket(&self) -> ProbeSocketId {
        self.socket
    }
    /// Sends a probe; see [`stack::ProbeSockets::send`].
    pub async fn send(&self, probe: &Probe) -> Result<(), DatagramError> {
        poll_fn(|context| {
            let sent = self.host.core(|core| core.stack.probe().send(self.socket, probe, core.now));
            or_wait(&self.host, self.socket, sent, Wait::Write, context)
        })
        .await
    }
    /// The next answer; or the error that kept a probe from leaving.
    pub async fn receive(&self) -> Result<ProbeAnswer, DatagramError> {
        poll_fn(|context| {
            let received = self.host.core(|core| core.stack.probe().receive(self.socket, core.now));
            or_wait(&self.host, self.socket, received, Wait::Read, context)
        })
        .await
    }
}

impl Drop for ProbeSocket {
    fn drop(&mut self) {
        self.host.close(self.socket);
    }
}

fn or_wait<T>(
    host: &Host,
    socket: impl Into<stack::SocketId>,
    result: Result<T, stack::DatagramError>,
    wait: Wait,
    context: &Context<'_>,
) -> Poll<Result<T, DatagramError>> {
    host.executor().operation();
    match result {
        Err(stack::DatagramError::WouldBlock) => {
            host.register(socket, wait, context);
            Poll::Pending
        }
        result => Poll::Ready(result.map_err(DatagramError::Stack)),
    }
}
