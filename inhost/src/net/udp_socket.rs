//! The UDP socket.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::task::{Context, Poll, ready};

use bytes::BufMut;
use inhost_base::{Endpoint, LinkId};
use inhost_socket::errno::Errno;
use inhost_socket::{DatagramError, GroupLink, ReceivedDatagrams, RemoteHost, RemoteUdpSocket};
use inhost_stack::{DatagramInfo, SendDatagrams, SocketOption, UdpOptions};
use tokio::io::ReadBuf;

use super::ToSocketAddrs;
use super::addr::{first_of, sealed::Given};
use super::ready::{Interest, Ready, until_done};
use super::tcp_stream::hops;
use super::tos::Tos;
use crate::current;
#[cfg(feature = "user")]
use crate::host::outer_caller;

/// Hops of a packet where nothing else was said.
const DEFAULT_TTL: u8 = 64;

/// A UDP socket, as `tokio::net::UdpSocket`.
///
/// A call that sends hands the datagram to the host, and waits while the host has no room: no datagram is dropped between
/// the two. Dropping the socket closes it; what was sent still leaves.
///
/// ```
/// use inhost::{Host, net::UdpSocket};
///
/// let host = Host::builder().start()?;
/// host.block_on(async {
///     let server = UdpSocket::bind("127.0.0.1:7").await?;
///     let client = UdpSocket::bind("127.0.0.1:0").await?;
///     client.connect(server.local_addr()?).await?;
///     client.send(b"ping").await?;
///     let mut place = [0; 16];
///     let (length, from) = server.recv_from(&mut place).await?;
///     server.send_to(&place[..length], from).await?;
///     assert_eq!(client.recv(&mut place).await?, 4);
///     std::io::Result::Ok(())
/// })?;
/// # std::io::Result::Ok(())
/// ```
///
/// # Beyond tokio
///
/// What QUIC wants of the system by `sendmsg` and `recvmsg` is here, too: several datagrams in one call (GSO and GRO), ECN
/// marks, and the address that a datagram was sent to. See [`try_send_with`](UdpSocket::try_send_with) and
/// [`try_recv_gro`](UdpSocket::try_recv_gro).
pub struct UdpSocket {
    remote: RemoteUdpSocket,
    broadcast: AtomicBool,
    ttl: AtomicU8,
    /// The octet of differentiated services and ECN, which IPv6 calls the traffic class.
    tos: AtomicU8,
}

impl UdpSocket {
    fn new(remote: RemoteUdpSocket, options: &UdpOptions) -> UdpSocket {
        UdpSocket {
            remote,
            broadcast: AtomicBool::new(options.broadcast),
            ttl: AtomicU8::new(options.hop_limit.unwrap_or(DEFAULT_TTL)),
            tos: AtomicU8::new(Tos::of_services(options.differentiated_services).0),
        }
    }
    /// Opens a socket at `addr` on the current host. An unspecified address stands for each of the host's, port 0 for one
    /// that the host chooses.
    ///
    /// # Errors
    /// When the address is taken or not the host's; when no host is current, `NotConnected`.
    pub async fn bind<A: ToSocketAddrs>(addr: A) -> io::Result<UdpSocket> {
        let host = current::host()?;
        first_of(addr, |address| bind(&host, address, UdpOptions::default())).await
    }
    /// Our end.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.remote.local().into())
    }
    /// The other end.
    ///
    /// # Errors
    /// `NotConnected` without one.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.remote.remote().map(SocketAddr::from).ok_or_else(|| io::ErrorKind::NotConnected.into())
    }
    /// The caller outside of datagrams that come `from` there, when they come in by a forwarded port of a `user` link, whose
    /// address `from` then is. `None` for others, and when the gateway has forgotten the conversation.
    #[cfg(feature = "user")]
    pub async fn forwarded_from(&self, from: SocketAddr) -> Option<SocketAddr> {
        let outer = outer_caller(self.remote.host(), inhost_common::Transport::Udp, from.into()).await;
        outer.map(SocketAddr::from)
    }
    /// Sends to `addr` from now on where no other address is given, and receives only from there. Errors on the way are
    /// learnt by a later call.
    ///
    /// # Errors
    /// When there is no route to it.
    pub async fn connect<A: ToSocketAddrs>(&self, addr: A) -> io::Result<()> {
        first_of(addr, async |address: SocketAddr| {
            self.remote.connect(address.into()).await.map_err(Errno::into_io)
        })
        .await
    }

    /// Waits until something of `interest` can be done.
    pub async fn ready(&self, interest: Interest) -> io::Result<Ready> {
        let ready = poll_fn(|context| self.remote.poll_ready(context, |ready| interest.is_met(ready))).await;
        Ok(Ready::of(ready, interest))
    }
    /// Waits until there is a datagram or an error.
    pub async fn readable(&self) -> io::Result<()> {
        poll_fn(|context| self.poll_recv_ready(context)).await
    }
    /// Waits until there is room for what was last refused, or an error.
    pub async fn writable(&self) -> io::Result<()> {
        poll_fn(|context| self.poll_send_ready(context)).await
    }
    /// One step of [`UdpSocket::readable`].
    pub fn poll_recv_ready(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.remote.poll_readable(context).map(|_| Ok(()))
    }
    /// One step of [`UdpSocket::writable`].
    pub fn poll_send_ready(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.remote.poll_writable(context).map(|_| Ok(()))
    }
    /// Runs `operation`, which sends or receives by [`UdpSocket::try_send`] and its kind.
    pub fn try_io<R>(&self, interest: Interest, operation: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
        match interest.is_met(self.remote.readiness()) {
            true => operation(),
            false => Err(io::ErrorKind::WouldBlock.into()),
        }
    }
    /// Runs `operation` whenever something of `interest` can be done, until it does not say `WouldBlock`.
    pub async fn async_io<R>(
        &self,
        interest: Interest,
        operation: impl FnMut() -> io::Result<R>,
    ) -> io::Result<R> {
        let ready = |context: &mut Context<'_>| {
            self.remote.poll_ready(context, |ready| interest.is_met(ready)).map(drop)
        };
        until_done(ready, operation).await
    }
    /// The error that waits to be reported, which counts as reported then.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        Ok(self.remote.take_error().map(Errno::into_io))
    }
}

/// Sending.
impl UdpSocket {
    /// Sends one datagram to the connected end.
    pub async fn send(&self, buf: &[u8]) -> io::Result<usize> {
        poll_fn(|context| self.poll_send(context, buf)).await
    }
    /// One step of [`UdpSocket::send`].
    pub fn poll_send(&self, context: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_send_with(context, buf, &self.how(None))
    }
    /// Sends one datagram to the connected end; `WouldBlock` while there is no room.
    pub fn try_send(&self, buf: &[u8]) -> io::Result<usize> {
        self.try_send_with(buf, &self.how(None))
    }
    /// Sends one datagram to `addr`, the first of its addresses.
    pub async fn send_to<A: ToSocketAddrs>(&self, buf: &[u8], addr: A) -> io::Result<usize> {
        let target = match addr.given()? {
            Given::Address(target) => target,
            given => {
                let resolved = given.resolve().await?;
                let none = || io::Error::new(io::ErrorKind::InvalidInput, "could not resolve to any address");
                *resolved.first().ok_or_else(none)?
            }
        };
        poll_fn(|context| self.poll_send_to(context, buf, target)).await
    }
    /// One step of [`UdpSocket::send_to`].
    pub fn poll_send_to(
        &self,
        context: &mut Context<'_>,
        buf: &[u8],
        target: SocketAddr,
    ) -> Poll<io::Result<usize>> {
        self.poll_send_with(context, buf, &self.how(Some(target)))
    }
    /// Sends one datagram to `target`; `WouldBlock` while there is no room.
    pub fn try_send_to(&self, buf: &[u8], target: SocketAddr) -> io::Result<usize> {
        self.try_send_with(buf, &self.how(Some(target)))
    }
    /// Sends one datagram, or several of [`SendDatagrams::segment_bytes`] each (GSO), with an ECN mark and from the
    /// source that `how` says; `WouldBlock` while there is no room.
    ///
    /// ```
    /// use inhost::net::{Ecn, SendDatagrams, UdpSocket};
    /// use std::net::SocketAddr;
    ///
    /// let host = inhost::Host::builder().start()?;
    /// host.block_on(async {
    ///     let server = UdpSocket::bind("0.0.0.0:443").await?;
    ///     let client = UdpSocket::bind("127.0.0.1:0").await?;
    ///     let to: SocketAddr = "127.0.0.1:443".parse().unwrap();
    ///     let mut how = SendDatagrams::to(to.into());
    ///     how.segment_bytes = 1200;
    ///     how.ecn = Ecn::Capable0;
    ///     // Two datagrams of 1200 bytes, and one of 100.
    ///     client.try_send_with(&[7; 2500], &how)?;
    ///     let mut place = [0; 65_536];
    ///     server.readable().await?;
    ///     let received = server.try_recv_gro(&mut place)?;
    ///     assert_eq!((received.segment_bytes, received.info.ecn), (1200, Ecn::Capable0));
    ///     assert_eq!(SocketAddr::from(received.info.to), to);
    ///     std::io::Result::Ok(())
    /// })?;
    /// # std::io::Result::Ok(())
    /// ```
    pub fn try_send_with(&self, buf: &[u8], how: &SendDatagrams) -> io::Result<usize> {
        now(self.remote.try_send(buf, how)).map(|()| buf.len())
    }
    /// As [`UdpSocket::try_send_with`], but has the task woken when there is room.
    pub fn poll_send_with(
        &self,
        context: &mut Context<'_>,
        buf: &[u8],
        how: &SendDatagrams,
    ) -> Poll<io::Result<usize>> {
        self.remote.poll_send(context, buf, how).map_ok(|()| buf.len()).map_err(Errno::into_io)
    }
    fn how(&self, target: Option<SocketAddr>) -> SendDatagrams {
        let mut how = SendDatagrams::default();
        how.to = target.map(Endpoint::from);
        how.ecn = Tos(self.tos.load(Ordering::Relaxed)).ecn();
        how
    }
}

/// Receiving. What does not fit into the buffer is lost.
impl UdpSocket {
    /// The next datagram; its length.
    pub async fn recv(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.recv_from(buf).await.map(|(count, _)| count)
    }
    /// One step of [`UdpSocket::recv`].
    pub fn poll_recv(&self, context: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.poll_recv_from(context, buf).map_ok(|_| ())
    }
    /// The next datagram; `WouldBlock` when there is none.
    pub fn try_recv(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.try_recv_from(buf).map(|(count, _)| count)
    }
    /// The next datagram, into a buffer that grows or moves on.
    pub async fn recv_buf<B: BufMut>(&self, buf: &mut B) -> io::Result<usize> {
        self.recv_buf_from(buf).await.map(|(count, _)| count)
    }
    /// As [`UdpSocket::recv_buf`]; `WouldBlock` when there is none.
    pub fn try_recv_buf<B: BufMut>(&self, buf: &mut B) -> io::Result<usize> {
        self.try_recv_buf_from(buf).map(|(count, _)| count)
    }
    /// The next datagram and its sender.
    pub async fn recv_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        let room = buf.len();
        let info = self.remote.receive_from(buf).await.map_err(Errno::into_io)?;
        Ok(count_and_sender(info, room))
    }
    /// One step of [`UdpSocket::recv_from`].
    pub fn poll_recv_from(
        &self,
        context: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<SocketAddr>> {
        let info = ready!(self.remote.poll_receive(context, buf.initialize_unfilled()));
        Poll::Ready(info.map(|info| filled(info, buf)).map_err(Errno::into_io))
    }
    /// The next datagram and its sender; `WouldBlock` when there is none.
    pub fn try_recv_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        let room = buf.len();
        now(self.remote.try_receive(buf)).map(|info| count_and_sender(info, room))
    }
    /// The next datagram and its sender, into a buffer that grows or moves on.
    pub async fn recv_buf_from<B: BufMut>(&self, buf: &mut B) -> io::Result<(usize, SocketAddr)> {
        poll_fn(|context| self.remote.poll_receive_with(context, |info, bytes| put(info, bytes, buf)))
            .await
            .map_err(Errno::into_io)
    }
    /// As [`UdpSocket::recv_buf_from`]; `WouldBlock` when there is none.
    pub fn try_recv_buf_from<B: BufMut>(&self, buf: &mut B) -> io::Result<(usize, SocketAddr)> {
        now(self.remote.try_receive_with(|info, bytes| put(info, bytes, buf)))
    }
    /// The next datagram, and with it those that follow as long as they are of the same size, between the same ends and
    /// with the same mark, and fit (GRO); `WouldBlock` when there is none.
    pub fn try_recv_gro(&self, buf: &mut [u8]) -> io::Result<ReceivedDatagrams> {
        now(self.remote.try_receive_gro(buf))
    }
    /// As [`UdpSocket::try_recv_gro`], but has the task woken when there is a datagram.
    pub fn poll_recv_gro(
        &self,
        context: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<io::Result<ReceivedDatagrams>> {
        self.remote.poll_receive_gro(context, buf).map_err(Errno::into_io)
    }
    /// Copies the next datagram without taking it; its length.
    pub async fn peek(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.peek_from(buf).await.map(|(count, _)| count)
    }
    /// One step of [`UdpSocket::peek`].
    pub fn poll_peek(&self, context: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.poll_peek_from(context, buf).map_ok(|_| ())
    }
    /// Copies the next datagram without taking it; `WouldBlock` when there is none.
    pub fn try_peek(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.try_peek_from(buf).map(|(count, _)| count)
    }
    /// Copies the next datagram without taking it; its length and its sender.
    pub async fn peek_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        let info = poll_fn(|context| self.remote.poll_peek(context, buf)).await.map_err(Errno::into_io)?;
        Ok(count_and_sender(info, buf.len()))
    }
    /// One step of [`UdpSocket::peek_from`].
    pub fn poll_peek_from(
        &self,
        context: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<SocketAddr>> {
        let info = ready!(self.remote.poll_peek(context, buf.initialize_unfilled()));
        Poll::Ready(info.map(|info| filled(info, buf)).map_err(Errno::into_io))
    }
    /// Copies the next datagram without taking it; `WouldBlock` when there is none.
    pub fn try_peek_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        now(self.remote.try_peek(buf)).map(|info| count_and_sender(info, buf.len()))
    }
    /// The sender of the next datagram, which stays.
    pub async fn peek_sender(&self) -> io::Result<SocketAddr> {
        poll_fn(|context| self.poll_peek_sender(context)).await
    }
    /// One step of [`UdpSocket::peek_sender`].
    pub fn poll_peek_sender(&self, context: &mut Context<'_>) -> Poll<io::Result<SocketAddr>> {
        self.remote.poll_peek(context, &mut []).map_ok(|info| info.from.into()).map_err(Errno::into_io)
    }
    /// The sender of the next datagram, which stays; `WouldBlock` when there is none.
    pub fn try_peek_sender(&self) -> io::Result<SocketAddr> {
        now(self.remote.try_peek(&mut [])).map(|info| info.from.into())
    }
    /// Datagrams that arrived and were dropped because too many waited, as the host last said.
    pub fn dropped(&self) -> u64 {
        self.remote.dropped()
    }
}

/// Options. They count for what is sent from then on; an option that the host refuses has no effect.
impl UdpSocket {
    /// Whether datagrams may be sent to broadcast addresses.
    pub fn broadcast(&self) -> io::Result<bool> {
        Ok(self.broadcast.load(Ordering::Relaxed))
    }
    /// Sets whether datagrams may be sent to broadcast addresses.
    pub fn set_broadcast(&self, on: bool) -> io::Result<()> {
        self.broadcast.store(on, Ordering::Relaxed);
        self.set_option(SocketOption::Broadcast(on));
        Ok(())
    }
    /// Hops that packets may take.
    pub fn ttl(&self) -> io::Result<u32> {
        Ok(self.ttl.load(Ordering::Relaxed).into())
    }
    /// Sets the hops that packets may take, 1 to 255; also those to groups.
    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        let hops = hops(ttl)?;
        self.ttl.store(hops, Ordering::Relaxed);
        self.set_option(SocketOption::HopLimit(Some(hops)));
        Ok(())
    }
    /// Differentiated services (six bits) and ECN (two bits) of what is sent.
    pub fn tos_v4(&self) -> io::Result<u32> {
        Ok(self.tos.load(Ordering::Relaxed).into())
    }
    /// Sets differentiated services (six bits) and ECN (two bits) of what is sent.
    pub fn set_tos_v4(&self, tos: u32) -> io::Result<()> {
        let tos = Tos::of(tos)?;
        self.tos.store(tos.0, Ordering::Relaxed);
        self.set_option(SocketOption::DifferentiatedServices(tos.services()));
        Ok(())
    }
    /// The former name of [`UdpSocket::tos_v4`].
    #[deprecated = "`tos_v4`"]
    pub fn tos(&self) -> io::Result<u32> {
        self.tos_v4()
    }
    /// The former name of [`UdpSocket::set_tos_v4`].
    #[deprecated = "`set_tos_v4`"]
    pub fn set_tos(&self, tos: u32) -> io::Result<()> {
        self.set_tos_v4(tos)
    }
    /// The traffic class of what is sent: the same octet as [`UdpSocket::tos_v4`].
    pub fn tclass_v6(&self) -> io::Result<u32> {
        self.tos_v4()
    }
    /// Sets the traffic class of what is sent: the same octet as [`UdpSocket::set_tos_v4`].
    pub fn set_tclass_v6(&self, tclass: u32) -> io::Result<()> {
        self.set_tos_v4(tclass)
    }
    /// Joins a group, on the link that has the address `interface`, or over which the group is reached when that is
    /// unspecified. It is left when the socket is closed. Like [`TcpSocket::listen`](super::TcpSocket::listen) it waits
    /// for the host's next round.
    ///
    /// # Errors
    /// When there is no such link, or the socket has joined the group there.
    pub fn join_multicast_v4(&self, multiaddr: Ipv4Addr, interface: Ipv4Addr) -> io::Result<()> {
        self.remote.join_group(multiaddr.into(), link_v4(interface))
    }
    /// Joins a group on the link with that number, or for 0 where the group is reached; see
    /// [`UdpSocket::join_multicast_v4`].
    pub fn join_multicast_v6(&self, multiaddr: &Ipv6Addr, interface: u32) -> io::Result<()> {
        self.remote.join_group((*multiaddr).into(), link_v6(interface)?)
    }
    /// Leaves a group.
    ///
    /// # Errors
    /// When the socket has not joined it there.
    pub fn leave_multicast_v4(&self, multiaddr: Ipv4Addr, interface: Ipv4Addr) -> io::Result<()> {
        self.remote.leave_group(multiaddr.into(), link_v4(interface))
    }
    /// Leaves a group; see [`UdpSocket::leave_multicast_v4`].
    pub fn leave_multicast_v6(&self, multiaddr: &Ipv6Addr, interface: u32) -> io::Result<()> {
        self.remote.leave_group((*multiaddr).into(), link_v6(interface)?)
    }
    /// Sets any option of the stack.
    pub fn set_option(&self, option: SocketOption) {
        self.remote.queue_option(option);
    }
    /// The socket of the layer below.
    pub fn remote(&self) -> &RemoteUdpSocket {
        &self.remote
    }
}

/// Opens a socket on `host`.
pub(crate) async fn bind(
    host: &RemoteHost,
    address: SocketAddr,
    options: UdpOptions,
) -> io::Result<UdpSocket> {
    let socket = host.udp(Endpoint::from(address), options.clone()).await.map_err(Errno::into_io)?;
    Ok(UdpSocket::new(socket, &options))
}

/// The result of an attempt that must not wait.
fn now<T>(attempt: Option<Result<T, DatagramError>>) -> io::Result<T> {
    attempt.map_or_else(|| Err(io::ErrorKind::WouldBlock.into()), |result| result.map_err(Errno::into_io))
}
fn count_and_sender(info: DatagramInfo, room: usize) -> (usize, SocketAddr) {
    (info.length_bytes.min(room), info.from.into())
}
/// A datagram has been put into the unfilled part of `buf`.
fn filled(info: DatagramInfo, buf: &mut ReadBuf<'_>) -> SocketAddr {
    let (count, from) = count_and_sender(info, buf.remaining());
    buf.advance(count);
    from
}
fn put<B: BufMut>(info: &DatagramInfo, bytes: &[u8], buf: &mut B) -> (usize, SocketAddr) {
    let count = bytes.len().min(buf.chunk_mut().len());
    buf.put_slice(&bytes[..count]);
    (count, info.from.into())
}
fn link_v4(interface: Ipv4Addr) -> GroupLink {
    if interface.is_unspecified() { GroupLink::Any } else { GroupLink::Address(IpAddr::V4(interface)) }
}
fn link_v6(interface: u32) -> io::Result<GroupLink> {
    match interface.try_into() {
        Ok(0) => Ok(GroupLink::Any),
        Ok(number) => Ok(GroupLink::Link(LinkId(number))),
        Err(_) => Err(io::ErrorKind::NotFound.into()),
    }
}

impl fmt::Debug for UdpSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UdpSocket")
            .field("addr", &self.remote.local())
            .field("peer", &self.remote.remote())
            .finish()
    }
}
