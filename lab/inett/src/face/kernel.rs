//! The sockets of the operating system, by tokio.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::net::SocketAddr;

use inhost_base::{Duration, Endpoint, Instant, Ipv4Addr, Ipv6Addr};
use nix::libc;
use nix::sys::socket::getsockopt;
use socket2::SockRef;
use tokio::net::{TcpListener, TcpSocket, TcpStream, UdpSocket};

use super::{Face, Processor, SocketOptions, StreamFigures};

/// Connections that may wait to be accepted.
const BACKLOG: u32 = 1024;

/// The system's sockets. It needs a tokio runtime of one thread with its timers and its network.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    began: tokio::time::Instant,
}

impl Kernel {
    /// Time counts from now.
    pub fn new() -> Kernel {
        Kernel { began: tokio::time::Instant::now() }
    }
}

impl Default for Kernel {
    fn default() -> Self {
        Kernel::new()
    }
}

fn apply(socket: SockRef<'_>, options: &SocketOptions, is_stream: bool) -> io::Result<()> {
    if let Some(bytes) = options.window_bytes {
        socket.set_send_buffer_size(bytes as usize)?;
        socket.set_recv_buffer_size(bytes as usize)?;
    }
    if is_stream {
        if options.no_delay {
            socket.set_tcp_nodelay(true)?;
        }
        if let Some(name) = &options.congestion {
            socket.set_tcp_congestion(name.as_bytes()).map_err(|why| no_congestion(name, &why))?;
        }
    }
    Ok(())
}

fn no_congestion(name: &str, why: &io::Error) -> io::Error {
    let said = match why.kind() {
        io::ErrorKind::NotFound => format!(
            "the system has no congestion control {name:?}; /proc/sys/net/ipv4/tcp_available_congestion_control lists them"
        ),
        _ => format!("the congestion control {name:?} cannot be set: {why}"),
    };
    io::Error::new(why.kind(), said)
}

impl Face for Kernel {
    type Stream = TcpStream;
    type Listener = TcpListener;
    type Datagrams = UdpSocket;

    fn now(&self) -> Instant {
        Instant::ZERO + Duration::from_nanos(self.began.elapsed().as_nanos() as u64)
    }
    async fn sleep_until(&self, at: Instant) {
        let at = std::time::Duration::from(at.since(Instant::ZERO));
        tokio::time::sleep_until(self.began + at).await;
    }
    fn entropy(&self) -> u64 {
        // The standard library seeds it from the system.
        RandomState::new().build_hasher().finish()
    }
    fn processor(&self) -> Option<Processor> {
        Processor::of_process()
    }
    async fn connect(&self, to: Endpoint, options: &SocketOptions) -> io::Result<TcpStream> {
        let to = SocketAddr::from(to);
        let socket = if to.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        apply(SockRef::from(&socket), options, true)?;
        socket.connect(to).await
    }
    async fn listen(&self, at: Endpoint) -> io::Result<TcpListener> {
        let at = SocketAddr::from(at);
        let socket = if at.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        socket.set_reuseaddr(true)?;
        socket.bind(at)?;
        socket.listen(BACKLOG)
    }
    fn local(&self, listener: &TcpListener) -> io::Result<Endpoint> {
        listener.local_addr().map(Endpoint::from)
    }
    async fn accept(&self, listener: &TcpListener) -> io::Result<(TcpStream, Endpoint)> {
        listener.accept().await.map(|(stream, peer)| (stream, Endpoint::from(peer)))
    }
    async fn prepare(&self, stream: &TcpStream, options: &SocketOptions) -> io::Result<()> {
        apply(SockRef::from(stream), options, true)
    }
    async fn datagrams(
        &self,
        local: Endpoint,
        remote: Option<Endpoint>,
        options: &SocketOptions,
    ) -> io::Result<UdpSocket> {
        let mut local = SocketAddr::from(local);
        if let Some(remote) = remote
            && local.ip().is_unspecified()
        {
            local.set_ip(match SocketAddr::from(remote) {
                SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
                SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
            });
        }
        let socket = UdpSocket::bind(local).await?;
        apply(SockRef::from(&socket), options, false)?;
        if let Some(remote) = remote {
            socket.connect(SocketAddr::from(remote)).await?;
        }
        Ok(socket)
    }
    async fn send_to(&self, socket: &UdpSocket, bytes: &[u8], to: Option<Endpoint>) -> io::Result<()> {
        match to {
            Some(to) => socket.send_to(bytes, SocketAddr::from(to)).await,
            None => socket.send(bytes).await,
        }
        .map(drop)
    }
    async fn receive_from(&self, socket: &UdpSocket, into: &mut [u8]) -> io::Result<(usize, Endpoint)> {
        socket.recv_from(into).await.map(|(count, from)| (count, Endpoint::from(from)))
    }
    async fn figures(&self, stream: &TcpStream) -> StreamFigures {
        let congestion = SockRef::from(stream).tcp_congestion().ok().map(|name| {
            let end = name.iter().position(|octet| *octet == 0).unwrap_or(name.len());
            String::from_utf8_lossy(&name[..end]).into_owned()
        });
        let Ok(info) = getsockopt(stream, TcpInfo) else {
            return StreamFigures { congestion, ..StreamFigures::default() };
        };
        let word =
            |at: usize| info.get(at / 2).map(|pair| if at.is_multiple_of(2) { pair[0] } else { pair[1] });
        let [busy, receiver, buffer] = info::LIMITED.map(|at| info::long(&info, at) as f64 / 1e6);
        let mut waits_s = BTreeMap::new();
        waits_s.insert("receiver's window".to_owned(), receiver);
        waits_s.insert("send buffer".to_owned(), buffer);
        waits_s.insert("network".to_owned(), (busy - receiver - buffer).max(0.0));
        StreamFigures {
            retransmits: word(info::TOTAL_RETRANSMITS).map(u64::from),
            round_trip_us: word(info::ROUND_TRIP).map(f64::from),
            congestion,
            waits_s,
        }
    }
}

/// The first 192 bytes of TCP_INFO, as pairs of words. Linux has had them since 4.10.
#[derive(Clone, Copy)]
struct TcpInfo;
nix::getsockopt_impl!(
    TcpInfo,
    libc::IPPROTO_TCP,
    libc::TCP_INFO,
    info::Pairs,
    nix::sys::socket::sockopt::GetStruct<info::Pairs>
);

/// Places in `struct tcp_info` (Linux, include/uapi/linux/tcp.h), which only grows.
mod info {
    pub type Pairs = [[u32; 2]; 24];

    /// In words of four bytes.
    pub const ROUND_TRIP: usize = 17;
    pub const TOTAL_RETRANSMITS: usize = 25;
    /// In pairs of words: microseconds busy, limited by the receiver's window, limited by the send buffer.
    pub const LIMITED: [usize; 3] = [21, 22, 23];

    pub fn long(info: &Pairs, at: usize) -> u64 {
        let [first, second] = info[at].map(u32::to_ne_bytes);
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&first);
        bytes[4..].copy_from_slice(&second);
        u64::from_ne_bytes(bytes)
    }
}
