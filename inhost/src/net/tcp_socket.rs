//! A TCP socket before it connects or listens.

use std::io;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use inhost_base::{Endpoint, LinkId};
use inhost_socket::RemoteHost;
use inhost_socket::errno::Errno;
use inhost_stack::{
    ConnectOptions, ConnectionOption, KeepAlive, ListenOptions, Local, SocketOption, TcpConfig,
};

use super::tcp_listener::TcpListener;
use super::tcp_stream::{self, TcpStream, own};
use super::tos::Tos;
use crate::current;

/// A TCP socket that has not connected or listened yet, as `tokio::net::TcpSocket`: for options that must be set before,
/// and for a local address.
///
/// ```
/// use inhost::{Host, net::TcpSocket};
///
/// let host = Host::builder().start()?;
/// host.block_on(async {
///     let socket = TcpSocket::new_v4()?;
///     socket.set_nodelay(true)?;
///     socket.bind("127.0.0.1:80".parse().unwrap())?;
///     let listener = socket.listen(1024)?;
///     assert_eq!(listener.local_addr()?.port(), 80);
///     std::io::Result::Ok(())
/// })?;
/// # std::io::Result::Ok(())
/// ```
#[derive(Debug)]
pub struct TcpSocket {
    host: RemoteHost,
    is_ipv6: bool,
    settings: Mutex<Settings>,
}

#[derive(Clone, Default, Debug)]
struct Settings {
    local: Option<SocketAddr>,
    nodelay: Option<bool>,
    keepalive: Option<bool>,
    linger: Option<Option<Duration>>,
    send_buffer_bytes: Option<usize>,
    receive_buffer_bytes: Option<usize>,
    reuseaddr: bool,
    /// Six bits.
    differentiated_services: Option<u8>,
    /// The name of the link, and which it is.
    device: Option<(Vec<u8>, LinkId)>,
}

impl TcpSocket {
    /// A socket for IPv4, on the current host.
    pub fn new_v4() -> io::Result<TcpSocket> {
        TcpSocket::new(false)
    }
    /// A socket for IPv6, on the current host.
    pub fn new_v6() -> io::Result<TcpSocket> {
        TcpSocket::new(true)
    }
    fn new(is_ipv6: bool) -> io::Result<TcpSocket> {
        Ok(TcpSocket { host: current::host()?, is_ipv6, settings: Mutex::default() })
    }
    /// Sets our end, for [`TcpSocket::connect`] or [`TcpSocket::listen`]. Whether it is free is found out there.
    pub fn bind(&self, addr: SocketAddr) -> io::Result<()> {
        if addr.is_ipv6() != self.is_ipv6 {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the address is of the other family"));
        }
        self.settings().local = Some(addr);
        Ok(())
    }
    /// Our end, as it was bound.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        let unspecified = if self.is_ipv6 { "[::]:0" } else { "0.0.0.0:0" };
        let local = self.settings().local.or_else(|| unspecified.parse().ok());
        local.ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
    }
    /// Accepted for the sake of programs that set it: TIME-WAIT does not keep a port from being listened on here.
    pub fn set_reuseaddr(&self, reuseaddr: bool) -> io::Result<()> {
        self.settings().reuseaddr = reuseaddr;
        Ok(())
    }
    /// What [`TcpSocket::set_reuseaddr`] was last told.
    pub fn reuseaddr(&self) -> io::Result<bool> {
        Ok(self.settings().reuseaddr)
    }
    /// Refused when true: a port has one listener here, and [`TcpListener::accept`] may be called by many tasks.
    ///
    /// # Errors
    /// `Unsupported`.
    pub fn set_reuseport(&self, reuseport: bool) -> io::Result<()> {
        if reuseport { Err(io::ErrorKind::Unsupported.into()) } else { Ok(()) }
    }
    /// Never.
    pub fn reuseport(&self) -> io::Result<bool> {
        Ok(false)
    }
    /// The differentiated services of what is sent, six bits, and two that are TCP's (ECN).
    pub fn tos_v4(&self) -> io::Result<u32> {
        Ok(Tos::of_services(self.settings().differentiated_services.unwrap_or(0)).0.into())
    }
    /// Sets the differentiated services of what is sent; the two lowest bits are TCP's own (ECN).
    pub fn set_tos_v4(&self, tos: u32) -> io::Result<()> {
        self.settings().differentiated_services = Some(Tos::of(tos)?.services());
        Ok(())
    }
    /// The traffic class of what is sent: the same octet as [`TcpSocket::tos_v4`].
    pub fn tclass_v6(&self) -> io::Result<u32> {
        self.tos_v4()
    }
    /// Sets the traffic class of what is sent: the same octet as [`TcpSocket::set_tos_v4`].
    pub fn set_tclass_v6(&self, tclass: u32) -> io::Result<()> {
        self.set_tos_v4(tclass)
    }
    /// The former name of [`TcpSocket::tos_v4`].
    #[deprecated = "`tos_v4`"]
    pub fn tos(&self) -> io::Result<u32> {
        self.tos_v4()
    }
    /// The former name of [`TcpSocket::set_tos_v4`].
    #[deprecated = "`set_tos_v4`"]
    pub fn set_tos(&self, tos: u32) -> io::Result<()> {
        self.set_tos_v4(tos)
    }
    /// The name of the only link to use, as it was bound.
    pub fn device(&self) -> io::Result<Option<Vec<u8>>> {
        Ok(self.settings().device.clone().map(|(name, _)| name))
    }
    /// Uses only the link of that name, such as `tun0`; with `None` or an empty name, any.
    ///
    /// # Errors
    /// `NotFound` when the host has no such link.
    pub fn bind_device(&self, interface: Option<&[u8]>) -> io::Result<()> {
        let device = match interface.filter(|name| !name.is_empty()) {
            None => None,
            Some(name) => {
                let (wanted, name) = (name.to_vec(), name.to_vec());
                let find = move |host: &inhost_socket::Host| {
                    host.with_stack(|stack, _| {
                        let is_it = |link: &LinkId| {
                            let view = stack.ip().interface(*link);
                            view.is_some_and(|view| view.config().name.as_bytes() == wanted)
                        };
                        stack.links().find(is_it)
                    })
                };
                let found = self.host.call_now(find).map_err(inhost_socket::Gone::into_io)?;
                Some((name, found.ok_or(io::ErrorKind::NotFound)?))
            }
        };
        self.settings().device = device;
        Ok(())
    }
    /// The error that waits to be reported: none before there is a connection.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        Ok(None)
    }
    /// Whether small segments leave at once (`TCP_NODELAY`).
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        self.settings().nodelay = Some(nodelay);
        Ok(())
    }
    /// Whether small segments leave at once.
    pub fn nodelay(&self) -> io::Result<bool> {
        Ok(self.settings().nodelay.unwrap_or(false))
    }
    /// Whether an idle peer is probed, after two hours.
    pub fn set_keepalive(&self, keepalive: bool) -> io::Result<()> {
        self.settings().keepalive = Some(keepalive);
        Ok(())
    }
    /// Whether an idle peer is probed.
    pub fn keepalive(&self) -> io::Result<bool> {
        Ok(self.settings().keepalive.unwrap_or(false))
    }
    /// For how long written data outlives the stream; see [`TcpStream::set_linger`].
    pub fn set_linger(&self, linger: Option<Duration>) -> io::Result<()> {
        self.settings().linger = Some(linger);
        Ok(())
    }
    /// Has the connection reset when its stream is dropped.
    pub fn set_zero_linger(&self) -> io::Result<()> {
        self.set_linger(Some(Duration::ZERO))
    }
    /// Linger time.
    pub fn linger(&self) -> io::Result<Option<Duration>> {
        Ok(self.settings().linger.flatten())
    }
    /// Bytes that may wait to be sent or acknowledged.
    pub fn set_send_buffer_size(&self, bytes: u32) -> io::Result<()> {
        self.settings().send_buffer_bytes = Some(bytes as usize);
        Ok(())
    }
    /// Bytes that may wait to be sent or acknowledged.
    pub fn send_buffer_size(&self) -> io::Result<u32> {
        self.buffer(|settings, config| settings.send_buffer_bytes.unwrap_or(config.send_buffer_initial_bytes))
    }
    /// Memory that received data may pin.
    pub fn recv_buffer_size(&self) -> io::Result<u32> {
        self.buffer(|settings, config| {
            settings.receive_buffer_bytes.unwrap_or(config.receive_buffer_initial_bytes)
        })
    }
    fn buffer(&self, of: impl FnOnce(&Settings, &TcpConfig) -> usize) -> io::Result<u32> {
        let config = self.host.call_now(|host| host.with_stack(|stack, _| stack.config().tcp.clone()));
        let config = config.map_err(inhost_socket::Gone::into_io)?;
        Ok(u32::try_from(of(&self.settings(), &config)).unwrap_or(u32::MAX))
    }
    /// Memory that received data may pin.
    pub fn set_recv_buffer_size(&self, bytes: u32) -> io::Result<()> {
        self.settings().receive_buffer_bytes = Some(bytes as usize);
        Ok(())
    }
    /// Connects to `addr`.
    ///
    /// # Errors
    /// When the connection is refused, times out or cannot be begun.
    pub async fn connect(self, addr: SocketAddr) -> io::Result<TcpStream> {
        let settings = self.settings().clone();
        let mut options = ConnectOptions::default();
        if let Some(local) = settings.local {
            let address = Some(local.ip()).filter(|address| !address.is_unspecified());
            options.local = Local { address, port: local.port() };
        }
        options.link = settings.link();
        tcp_stream::connect(&self.host, addr, options, settings.options()).await
    }
    /// Listens, with at most `backlog` connections that wait to be accepted.
    ///
    /// # Errors
    /// When the address is taken or not the host's.
    pub fn listen(self, backlog: u32) -> io::Result<TcpListener> {
        let settings = self.settings().clone();
        let mut options = ListenOptions::default();
        options.backlog = backlog as usize;
        options.link = settings.link();
        let local = Endpoint::from(self.local_addr()?);
        let listener = self.host.listen_now(local, options, settings.options());
        listener.map(TcpListener::new).map_err(Errno::into_io)
    }
    fn settings(&self) -> MutexGuard<'_, Settings> {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Settings {
    fn link(&self) -> Option<LinkId> {
        self.device.as_ref().map(|(_, link)| *link)
    }
    /// The options that were set.
    fn options(&self) -> Vec<SocketOption> {
        let keep_alive = |on: bool| on.then(KeepAlive::default);
        [
            self.nodelay.map(|on| SocketOption::Tcp(ConnectionOption::Nagle(!on))),
            self.keepalive.map(|on| SocketOption::Tcp(ConnectionOption::KeepAlive(keep_alive(on)))),
            self.linger.map(|linger| SocketOption::Linger(linger.map(own))),
            self.send_buffer_bytes.map(SocketOption::SendBufferLimit),
            self.receive_buffer_bytes.map(SocketOption::ReceiveBufferLimit),
            self.differentiated_services.map(SocketOption::DifferentiatedServices),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}
