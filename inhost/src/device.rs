//! Packets in and out, and connections to any destination: what tunnels, VPNs and sandboxes are made of.
//!
//! [`packets`] joins a host to your program: packets go in and come out by calls, which may be polled. [`PacketsFramed`] is
//! the same end as a `Stream` and a `Sink`. [`Descriptor`] is a link on a TUN descriptor that you were given. A link of your
//! own implements [`Driver`].
//!
//! A host built with [`any_address`](crate::Builder::any_address) takes every destination for its own.
//! [`listen_any`](crate::Host::listen_any) accepts the connections, whichever address they meant, and [`AnyUdpSocket`] receives
//! the datagrams. What the program does not want it refuses: callers by [`Held::refuse_with`](crate::net::Held::refuse_with),
//! datagrams by [`AnyUdpSocket::refuse`].
//!
//! # Connections to any address
//!
//! ```
//! use inhost::{Host, device};
//!
//! // A program that knows nothing of inhost, behind a link of packets; here it is a host, too.
//! let (tunnel, driver) = device::packets(device::Config::default())?;
//! let (inside, other) = device::packets(device::Config::default())?;
//! let guest = Host::builder()
//!     .driver(other, |link| link.with_address("10.0.0.2/24".parse().unwrap()).with_gateway([10, 0, 0, 1]))
//!     .start()?;
//! let host = Host::builder().any_address(driver).start()?;
//! std::thread::spawn(move || {
//!     inhost::block_on(async {
//!         let outward = async { while let Some(packet) = inside.receive().await { tunnel.send(&packet).await.unwrap() } };
//!         let inward = async { while let Some(packet) = tunnel.receive().await { inside.send(&packet).await.unwrap() } };
//!         inhost::local::both(outward, inward).await
//!     })
//! });
//!
//! let listener = host.block_on(host.listen_any())?;
//! // The caller is answered when it is accepted.
//! let (call, accepted) = inhost::block_on(inhost::local::both(guest.connect("203.0.113.7:443"), listener.accept()));
//! let (call, (stream, caller)) = (call?, accepted?);
//! assert_eq!(stream.local_addr()?.to_string(), "203.0.113.7:443");
//! assert_eq!(caller, call.local_addr()?);
//! # std::io::Result::Ok(())
//! ```
//!
//! # Datagrams to any address
//!
//! One [`AnyUdpSocket`] receives the datagrams to all addresses and ports, IPv4 and IPv6. It learns with each whom the sender
//! meant, and answers from there. A socket for one port of every address, such as that of DNS, is opened by
//! [`Host::udp_with`](crate::Host::udp_with) with [`UdpOptions::any_address`] at that port, and comes before it. The link here
//! joins two hosts without a program between:
//!
//! ```
//! use inhost::{Host, device::AnyUdpSocket, link::memory};
//!
//! let config = memory::Config { doorbell: true, ..memory::Config::default() };
//! let (near, far) = memory::pair(&config)?;
//! let guest = Host::builder()
//!     .driver(near, |link| link.with_address("10.0.0.2/24".parse().unwrap()).with_gateway([10, 0, 0, 1]))
//!     .start()?;
//! let host = Host::builder().any_address(far).start()?;
//!
//! inhost::block_on(async {
//!     let any = AnyUdpSocket::bind(&host).await?;
//!     let asking = guest.udp("0.0.0.0:0").await?;
//!     asking.send_to(b"question", "9.9.9.9:53").await?;
//!
//!     let mut place = [0; 1500];
//!     let (length, from, meant) = any.recv_from(&mut place).await?;
//!     assert_eq!((&place[..length], meant), (&b"question"[..], "9.9.9.9:53".parse().unwrap()));
//!     any.send_from(b"answer", meant, from).await?;
//!
//!     let (length, from) = asking.recv_from(&mut place).await?;
//!     assert_eq!((&place[..length], from), (&b"answer"[..], meant));
//!     std::io::Result::Ok(())
//! })?;
//! # std::io::Result::Ok(())
//! ```
//!
//! # A link of your own
//!
//! All names that a [`Driver`] needs are in this module. A `Box<dyn Driver>` is a `Driver`, so the link may be chosen at run
//! time.
//!
//! ```
//! use inhost::{Host, device::{self, Batch, Device, Driver, Frame, FrameFormat, Full, Instant, Pool, Statistics}};
//! use std::os::fd::BorrowedFd;
//!
//! /// A link that counts what passes over another one.
//! struct Counted {
//!     link: Box<dyn Driver>,
//!     frames: u64,
//! }
//!
//! impl Device for Counted {
//!     fn transmit(&mut self, frame: &Frame<'_>) -> Result<(), Full> {
//!         self.link.transmit(frame)?;
//!         self.frames += 1;
//!         Ok(())
//!     }
//! }
//!
//! impl Driver for Counted {
//!     fn receive(&mut self, pool: &mut Pool, batch: &mut Batch) -> std::io::Result<usize> {
//!         let received = self.link.receive(pool, batch)?;
//!         self.frames += received as u64;
//!         Ok(received)
//!     }
//!     fn descriptor(&self) -> Option<BorrowedFd<'_>> {
//!         self.link.descriptor()
//!     }
//!     fn wants_write(&self) -> bool {
//!         self.link.wants_write()
//!     }
//!     fn has_received(&self) -> bool {
//!         self.link.has_received()
//!     }
//!     fn can_transmit(&self) -> bool {
//!         self.link.can_transmit()
//!     }
//!     fn deadline(&self, now: Instant) -> Option<Instant> {
//!         self.link.deadline(now)
//!     }
//!     fn advance(&mut self, now: Instant) {
//!         self.link.advance(now);
//!     }
//!     fn frame_format(&self) -> FrameFormat {
//!         self.link.frame_format()
//!     }
//!     fn mtu_bytes(&self) -> usize {
//!         self.link.mtu_bytes()
//!     }
//!     fn describe(&self) -> String {
//!         format!("{}, {} frames", self.link.describe(), self.frames)
//!     }
//!     fn statistics(&self) -> Statistics {
//!         self.link.statistics()
//!     }
//! }
//!
//! let (tunnel, driver) = device::packets(device::Config::default())?;
//! let mut counted = Counted { link: Box::new(driver), frames: 0 };
//! assert!(tunnel.try_send(b"an IP packet"));
//! counted.receive(&mut Pool::new(1 << 20), &mut Batch::new())?;
//! assert_eq!(counted.describe(), "packets of the program, MTU 1500, 1 frames");
//! let chosen: Box<dyn Driver> = Box::new(counted);
//! let host = Host::builder().any_address(chosen).start()?;
//! # std::io::Result::Ok(())
//! ```

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use futures_sink::Sink;
use inhost_socket::errno::Errno;
use inhost_socket::{DatagramError, Gone, RemoteHost};
use inhost_stack::{SendDatagrams, UdpOptions};

use crate::net::{UdpSocket, Unreachable};
use crate::{Host, local};

pub use inhost_link::packets::{Config, HostGone, PacketDriver, Packets, link as packets};
pub use inhost_link::{Descriptor, Driver};

// What a driver takes and gives.
pub use inhost_link::{AddressOffer, Discard, FrameFormat, Handover, Kept, KeptFlow, NotBack, Statistics};
pub use inhost_stack::{
    Batch, Checksum, Cidr, Device, Frame, Full, GsoType, HardwareAddress, Instant, IpAddr, Offers, Offload,
    Packet, Pool, Shareable, Slices,
};

/// The program's end of a link as a `Stream` and a `Sink`, for programs that move packets by `forward` and `split`.
///
/// The stream gives what the host sends, and ends when the host is gone. The sink takes packets for the host, in any type
/// that is a slice of bytes, and waits while the host's queue is full; when the host is gone it fails with `BrokenPipe`. Both
/// have `io::Error` as their error, as the frames of a TUN device have.
///
/// ```
/// use futures_util::{SinkExt, StreamExt, TryStreamExt};
/// use inhost::{Host, device::{self, PacketsFramed}};
///
/// let (near, near_driver) = device::packets(device::Config::default())?;
/// let (far, far_driver) = device::packets(device::Config::default())?;
/// let near_host = Host::builder()
///     .driver(near_driver, |link| link.with_address("10.0.0.1/24".parse().unwrap()))
///     .start()?;
/// let far_host = Host::builder()
///     .driver(far_driver, |link| link.with_address("10.0.0.2/24".parse().unwrap()))
///     .start()?;
///
/// // Each host's packets are the other one's.
/// let (to_near, from_near) = PacketsFramed::new(near).split();
/// let (to_far, from_far) = PacketsFramed::new(far).split();
/// std::thread::spawn(|| inhost::block_on(from_near.forward(to_far)));
/// std::thread::spawn(|| inhost::block_on(from_far.forward(to_near)));
///
/// let listener = far_host.block_on(far_host.listen("10.0.0.2:80"))?;
/// let stream = near_host.block_on(near_host.connect("10.0.0.2:80"))?;
/// assert_eq!(stream.peer_addr()?, listener.local_addr()?);
/// # std::io::Result::Ok(())
/// ```
#[derive(Debug)]
pub struct PacketsFramed {
    packets: Packets,
    /// A packet for which the host had no room: another handle of the link was faster.
    held: Option<Vec<u8>>,
}

impl PacketsFramed {
    /// The stream and the sink of `packets`. Other handles of the same end may be used beside it.
    pub fn new(packets: Packets) -> PacketsFramed {
        PacketsFramed { packets, held: None }
    }
    /// The link's end.
    pub fn get_ref(&self) -> &Packets {
        &self.packets
    }
    /// The link's end. A packet that the sink has not handed to the host yet is lost; a flush before leaves none.
    pub fn into_inner(self) -> Packets {
        self.packets
    }
    /// Hands the host the packet that is held.
    fn poll_held(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Some(packet) = &self.held {
            ready!(self.packets.poll_send(context, packet))?;
            self.held = None;
        }
        Poll::Ready(Ok(()))
    }
}

impl From<Packets> for PacketsFramed {
    fn from(packets: Packets) -> PacketsFramed {
        PacketsFramed::new(packets)
    }
}

impl Stream for PacketsFramed {
    type Item = io::Result<Vec<u8>>;
    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Vec<u8>>>> {
        self.packets.poll_receive(context).map(|packet| packet.map(Ok))
    }
}

impl<P: AsRef<[u8]>> Sink<P> for PacketsFramed {
    type Error = io::Error;
    fn poll_ready(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_held(context))?;
        self.packets.poll_send_ready(context).map_err(io::Error::from)
    }
    fn start_send(mut self: Pin<&mut Self>, packet: P) -> io::Result<()> {
        let packet = packet.as_ref();
        if !self.packets.try_send(packet) {
            self.held = Some(packet.to_vec());
        }
        Ok(())
    }
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_held(context)
    }
    fn poll_close(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_held(context)
    }
}

/// Memory that datagrams may pin in each direction of an [`AnyUdpSocket`], which carries all conversations of a link.
const ANY_UDP_BYTES: usize = 4 << 20;

/// A UDP socket for the datagrams to every address and port of a link that was added by
/// [`Builder::any_address`](crate::Builder::any_address); the [page of the module](self#datagrams-to-any-address) has an example.
///
/// Up to 4 MiB may wait in each direction; [`AnyUdpSocket::bind_with`] sets other limits. What arrives beyond is dropped and
/// [counted](UdpSocket::dropped).
pub struct AnyUdpSocket {
    socket: UdpSocket,
    host: RemoteHost,
}

impl AnyUdpSocket {
    /// Opens the socket on `host`, for both families.
    ///
    /// # Errors
    /// When there is such a socket already, when no link of the host takes every address, or the host was stopped.
    pub async fn bind(host: &Host) -> io::Result<AnyUdpSocket> {
        let mut options = UdpOptions::default();
        options.receive_limit_bytes = ANY_UDP_BYTES;
        options.send_limit_bytes = ANY_UDP_BYTES;
        AnyUdpSocket::bind_with(host, options).await
    }
    /// Opens the socket on `host`, with `options`.
    ///
    /// # Errors
    /// As [`AnyUdpSocket::bind`].
    pub async fn bind_with(host: &Host, mut options: UdpOptions) -> io::Result<AnyUdpSocket> {
        options.any_address = true;
        let everywhere = SocketAddr::from(([0u16; 8], 0));
        Ok(AnyUdpSocket { socket: host.udp_with(everywhere, options).await?, host: host.remote().clone() })
    }
    /// The next datagram: its length, its sender, and where it was sent to. What does not fit into `buf` is lost. It is
    /// cancel-safe: no datagram is lost when the future is dropped.
    ///
    /// # Errors
    /// When the host was stopped.
    pub async fn recv_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr, SocketAddr)> {
        poll_fn(|context| self.poll_recv_from(context, buf)).await
    }
    /// One step of [`AnyUdpSocket::recv_from`].
    pub fn poll_recv_from(
        &self,
        context: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<io::Result<(usize, SocketAddr, SocketAddr)>> {
        let info = ready!(self.socket.remote().poll_receive(context, buf)).map_err(Errno::into_io)?;
        Poll::Ready(Ok((info.length_bytes.min(buf.len()), info.from.into(), info.to.into())))
    }
    /// Sends one datagram to `to` that says it is from `from`; waits while there is no room.
    ///
    /// # Errors
    /// When it is too long, or the host was stopped.
    pub async fn send_from(&self, bytes: &[u8], from: SocketAddr, to: SocketAddr) -> io::Result<()> {
        poll_fn(|context| self.poll_send_from(context, bytes, from, to)).await
    }
    /// One step of [`AnyUdpSocket::send_from`].
    pub fn poll_send_from(
        &self,
        context: &mut Context<'_>,
        bytes: &[u8],
        from: SocketAddr,
        to: SocketAddr,
    ) -> Poll<io::Result<()>> {
        let mut how = SendDatagrams::to(to.into());
        how.from = Some(from.into());
        self.socket.poll_send_with(context, bytes, &how).map_ok(|_| ())
    }
    /// Refuses a datagram that `from` sent to `meant`: tells the sender by an ICMP error. A program that asked from a connected
    /// socket learns it as `ConnectionRefused` ([`Unreachable::Port`]) or `HostUnreachable`. Where errors are too many for the
    /// host's limits, nothing is sent. To let the sender wait, do nothing.
    ///
    /// ```
    /// use inhost::{Host, device, link::memory, net::Unreachable};
    ///
    /// let config = memory::Config { doorbell: true, ..memory::Config::default() };
    /// let (near, far) = memory::pair(&config)?;
    /// let guest = Host::builder()
    ///     .driver(near, |link| link.with_address("10.0.0.2/24".parse().unwrap()).with_gateway([10, 0, 0, 1]))
    ///     .start()?;
    /// let host = Host::builder().any_address(far).start()?;
    ///
    /// inhost::block_on(async {
    ///     let any = host.udp_any().await?;
    ///     let asking = guest.udp("0.0.0.0:0").await?;
    ///     asking.connect("9.9.9.9:161").await?;
    ///     asking.send(b"question").await?;
    ///
    ///     let (_, from, meant) = any.recv_from(&mut [0; 1500]).await?;
    ///     any.refuse(from, meant, Unreachable::Port).await?;
    ///     let refused = asking.recv(&mut [0; 1500]).await.unwrap_err();
    ///     assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    ///     std::io::Result::Ok(())
    /// })?;
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// # Errors
    /// When no route leads back to `from`, or the host was stopped.
    pub async fn refuse(&self, from: SocketAddr, meant: SocketAddr, why: Unreachable) -> io::Result<()> {
        let refuse = move |host: &local::Host| {
            host.with_stack_and_sink(|stack, now, sink| {
                stack.udp(now, sink).refuse(from.into(), meant.into(), why)
            })
        };
        let refused = self.host.call(async move |host| refuse(&host)).await.map_err(Gone::into_io)?;
        refused.map_err(|why| DatagramError::from(why).into_io())
    }
    /// The socket itself, for several datagrams in one call, ECN marks and counters.
    pub fn socket(&self) -> &UdpSocket {
        &self.socket
    }
}

impl fmt::Debug for AnyUdpSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnyUdpSocket")
    }
}
