//! quinn's socket trait on `inhost::net::UdpSocket`.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use inhost::Host;
use inhost::net::{Ecn, ReceivedDatagrams, SendDatagrams, UdpSocket};
use quinn::udp::{EcnCodepoint, RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, UdpPoller};

/// Most datagrams of one call, as of quinn's own sockets.
const MOST_SEGMENTS: usize = 64;

/// A UDP socket of inhost for quinn, which counts what goes through it.
#[derive(Debug)]
pub struct QuicSocket {
    socket: UdpSocket,
    sent: Direction,
    received: Direction,
}

/// Datagrams of one direction.
#[derive(Default, Debug)]
struct Direction {
    calls: AtomicU64,
    datagrams: AtomicU64,
    marked: AtomicU64,
}

/// What went one way through a socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Counts {
    /// Calls, each with one or several datagrams.
    pub calls: u64,
    /// Datagrams.
    pub datagrams: u64,
    /// Those of them with an ECN mark.
    pub marked: u64,
}

impl Direction {
    fn count(&self, bytes: usize, segment_bytes: usize, is_marked: bool) {
        let datagrams = bytes.div_ceil(segment_bytes.max(1)).max(1) as u64;
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.datagrams.fetch_add(datagrams, Ordering::Relaxed);
        self.marked.fetch_add(if is_marked { datagrams } else { 0 }, Ordering::Relaxed);
    }
    fn counts(&self) -> Counts {
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Counts { calls: get(&self.calls), datagrams: get(&self.datagrams), marked: get(&self.marked) }
    }
}

impl QuicSocket {
    /// Opens a socket at `address` of `host`.
    ///
    /// # Errors
    /// When the address is taken or not the host's.
    pub async fn bind(host: &Host, address: SocketAddr) -> io::Result<QuicSocket> {
        let socket = host.udp_with(address, crate::options()).await?;
        Ok(QuicSocket { socket, sent: Direction::default(), received: Direction::default() })
    }
    /// What was sent.
    pub fn sent(&self) -> Counts {
        self.sent.counts()
    }
    /// What was received.
    pub fn received(&self) -> Counts {
        self.received.counts()
    }
    /// Datagrams that arrived and found no room.
    pub fn dropped(&self) -> u64 {
        self.socket.dropped()
    }
    fn note(&self, received: &ReceivedDatagrams, room: usize) -> RecvMeta {
        let info = &received.info;
        let ecn = EcnCodepoint::from_bits(info.ecn.bits());
        self.received.count(info.length_bytes, received.segment_bytes, ecn.is_some());
        RecvMeta {
            addr: info.from.into(),
            len: info.length_bytes.min(room),
            stride: received.segment_bytes.min(room),
            ecn,
            dst_ip: Some(info.to.address),
        }
    }
}

impl AsyncUdpSocket for QuicSocket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Box::pin(Poller(self))
    }
    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let mut how = SendDatagrams::to(transmit.destination.into());
        how.from = transmit.src_ip.map(|address| SocketAddr::new(address, 0).into());
        how.segment_bytes = transmit.segment_size.and_then(|bytes| bytes.try_into().ok()).unwrap_or(0);
        how.ecn = transmit.ecn.map_or(Ecn::NotCapable, |ecn| Ecn::of(ecn as u8));
        match self.socket.try_send_with(transmit.contents, &how) {
            Ok(bytes) => {
                let each = transmit.segment_size.unwrap_or(bytes);
                self.sent.count(bytes, each, transmit.ecn.is_some());
                Ok(())
            }
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::NetworkDown => Err(error),
                // One that does not leave is like one that is lost: QUIC sends its content again, on another path if need be.
                _ => Ok(()),
            },
        }
    }
    fn poll_recv(
        &self,
        context: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        metas: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let mut places = buffers.iter_mut().zip(metas);
        let Some((buffer, meta)) = places.next() else { return Poll::Ready(Ok(0)) };
        let first = ready!(self.socket.poll_recv_gro(context, buffer))?;
        *meta = self.note(&first, buffer.len());
        let mut count = 1;
        for (buffer, meta) in places {
            // An error will be found by the next call.
            let Ok(received) = self.socket.try_recv_gro(buffer) else { break };
            *meta = self.note(&received, buffer.len());
            count += 1;
        }
        Poll::Ready(Ok(count))
    }
    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }
    fn max_transmit_segments(&self) -> usize {
        MOST_SEGMENTS
    }
    fn max_receive_segments(&self) -> usize {
        MOST_SEGMENTS
    }
    fn may_fragment(&self) -> bool {
        false
    }
}

/// Waits for room in a socket.
#[derive(Debug)]
struct Poller(Arc<QuicSocket>);

impl UdpPoller for Poller {
    fn poll_writable(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.socket.poll_send_ready(context)
    }
}
