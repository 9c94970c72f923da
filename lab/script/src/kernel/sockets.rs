//! An application's calls on the kernel's sockets.

use super::options;
use crate::language::{CallKind, Failure, SocketCall};
use crate::packet::Ends;
use crate::side::{Came, PEER_PORTS, SERVER_PORT};
use nix::libc;
use rustix::net::{RecvFlags, recvfrom};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr};
use std::time::Duration;

/// The sockets of one script, by name.
pub(super) struct Sockets {
    ends: Ends,
    named: BTreeMap<String, Socket>,
    congestion: String,
}

impl Sockets {
    pub fn new(ends: Ends, congestion: String) -> Self {
        Sockets { ends, named: BTreeMap::new(), congestion }
    }
    /// The socket called `name`.
    pub fn stream(&self, name: &str) -> Result<&Socket, String> {
        self.named.get(name).ok_or_else(|| format!("there is no socket {name}"))
    }
    pub fn call(&mut self, call: &SocketCall, data: &[u8]) -> Result<Came, String> {
        let came = self.made(call, data)?;
        let sets = matches!(call.what, CallKind::Set { .. });
        Ok(match came {
            // ENOPROTOOPT of anything else says what a router said: the protocol is unreachable.
            Came::Failed(Failure::NotSupported) if !sets => Came::Failed(Failure::Unreachable),
            came => came,
        })
    }
    fn made(&mut self, call: &SocketCall, data: &[u8]) -> Result<Came, String> {
        match &call.what {
            CallKind::Socket { port } => {
                let socket = self.fresh().map_err(text)?;
                if let Some(port) = port {
                    socket.set_reuse_address(true).map_err(text)?;
                    socket.bind(&SocketAddr::new(self.ends.host, *port).into()).map_err(text)?;
                }
                self.named.insert(call.names.as_ref().unwrap_or(&call.on).clone(), socket);
                Ok(Came::Done)
            }
            CallKind::Datagrams { port } => {
                let domain = if self.ends.host.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 };
                let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP)).map_err(text)?;
                socket.set_nonblocking(true).map_err(text)?;
                let done = socket.bind(&SocketAddr::new(self.any(), *port).into());
                if done.is_ok() {
                    self.named.insert(call.on.clone(), socket);
                }
                came(done)
            }
            CallKind::Send { to, .. } => {
                let socket = self.stream(&call.on)?;
                let sent = match to {
                    Some(peer) => socket.send_to(data, &self.peer(*peer)),
                    None => socket.send(data),
                };
                sent.map_or_else(|error| came(Err(error)), |bytes| Ok(Came::Taken(bytes)))
            }
            CallKind::Receive { bytes } => {
                let socket = self.stream(&call.on)?;
                receive(socket, *bytes).or_else(|error| came(Err(error)))
            }
            CallKind::Connect { peer, .. } if self.has_datagrams(&call.on) => {
                came(self.stream(&call.on)?.connect(&self.peer(*peer)))
            }
            CallKind::Connect { peer, .. } => self.connect(call, *peer, data),
            CallKind::Listen { backlog } => self.listen(call, *backlog),
            CallKind::Accept => self.accept(call),
            CallKind::Write { urgent, more, .. } => self.write(call, data, *urgent, *more),
            CallKind::Read { bytes } => self.read(call, *bytes),
            CallKind::Shutdown => came(self.stream(&call.on)?.shutdown(Shutdown::Write)),
            CallKind::Close => {
                self.named.remove(&call.on).ok_or_else(|| format!("there is no socket {}", call.on))?;
                Ok(Came::Done)
            }
            CallKind::Abort => {
                let socket =
                    self.named.remove(&call.on).ok_or_else(|| format!("there is no socket {}", call.on))?;
                socket.set_linger(Some(Duration::ZERO)).map_err(text)?;
                Ok(Came::Done)
            }
            CallKind::Set { option, value } => came(options::socket(self.stream(&call.on)?, option, value)?),
            CallKind::Error => match self.stream(&call.on)?.take_error().map_err(text)? {
                None => Ok(Came::Done),
                Some(error) => came(Err(error)),
            },
        }
    }
    fn peer(&self, number: u8) -> SockAddr {
        SocketAddr::new(self.ends.peer, PEER_PORTS + u16::from(number)).into()
    }
    /// Whether a datagram socket has this name.
    fn has_datagrams(&self, name: &str) -> bool {
        self.named.get(name).is_some_and(is_for_datagrams)
    }
    fn fresh(&self) -> io::Result<Socket> {
        let domain = if self.ends.host.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 };
        let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        socket.set_tcp_congestion(self.congestion.as_bytes())?;
        // Urgent bytes stay in the stream (RFC 6093 §5).
        socket.set_out_of_band_inline(true)?;
        Ok(socket)
    }
    fn connect(&mut self, call: &SocketCall, peer: u8, data: &[u8]) -> Result<Came, String> {
        let name = call.names.as_ref().unwrap_or(&call.on);
        let is_fresh = self.named.get(name).is_some_and(|socket| socket.peer_addr().is_err());
        if !is_fresh || call.names.is_some() {
            let socket = self.fresh().map_err(text)?;
            self.named.insert(name.clone(), socket);
        }
        let socket = self.stream(name)?;
        let to = self.peer(peer);
        if data.is_empty() {
            return match socket.connect(&to) {
                Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok(Came::Done),
                other => came(other),
            };
        }
        match socket.send_to_with_flags(data, &to, libc::MSG_FASTOPEN) {
            Ok(bytes) => Ok(Came::Taken(bytes)),
            // Without a cookie the data waits with the application.
            Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok(Came::Taken(0)),
            Err(error) => came(Err(error)),
        }
    }
    fn listen(&mut self, call: &SocketCall, backlog: Option<u32>) -> Result<Came, String> {
        if !self.named.contains_key(&call.on) {
            let socket = self.fresh().map_err(text)?;
            self.named.insert(call.on.clone(), socket);
        }
        let any = self.any();
        let socket = self.stream(&call.on)?;
        socket.set_reuse_address(true).map_err(text)?;
        if let Err(error) = socket.bind(&SocketAddr::new(any, SERVER_PORT).into()) {
            return came(Err(error));
        }
        options::fast_open_queue(socket).map_err(text)?;
        came(socket.listen(backlog.unwrap_or(128) as i32))
    }
    /// Any address of the host's family.
    fn any(&self) -> IpAddr {
        match self.ends.host {
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        }
    }
    fn accept(&mut self, call: &SocketCall) -> Result<Came, String> {
        match self.stream(&call.on)?.accept() {
            Ok((socket, _)) => {
                socket.set_nonblocking(true).map_err(text)?;
                self.named.insert(call.names.clone().unwrap_or_default(), socket);
                Ok(Came::Done)
            }
            Err(error) => came(Err(error)),
        }
    }
    fn write(&mut self, call: &SocketCall, data: &[u8], urgent: bool, more: bool) -> Result<Came, String> {
        let socket = self.stream(&call.on)?;
        let mut flags = libc::MSG_NOSIGNAL;
        flags |= if urgent { libc::MSG_OOB } else { 0 };
        flags |= if more { libc::MSG_MORE } else { 0 };
        let mut taken = 0;
        while taken < data.len() {
            match socket.send_with_flags(&data[taken..], flags) {
                Ok(bytes) => taken += bytes,
                Err(_) if taken > 0 => break,
                Err(error) => return came(Err(error)),
            }
        }
        Ok(Came::Taken(taken))
    }
    fn read(&mut self, call: &SocketCall, bytes: usize) -> Result<Came, String> {
        let mut socket = self.stream(&call.on)?;
        let mut place = vec![0; bytes];
        let mut count = 0;
        while count < bytes {
            match io::Read::read(&mut socket, &mut place[count..]) {
                Ok(0) => break,
                Ok(read) => count += read,
                Err(_) if count > 0 => break,
                Err(error) => return came(Err(error)),
            }
        }
        place.truncate(count);
        Ok(Came::Read(place))
    }
}

/// Whether it is a socket of UDP.
pub(super) fn is_for_datagrams(socket: &Socket) -> bool {
    socket.r#type().is_ok_and(|kind| kind == Type::DGRAM)
}
/// Takes the next datagram.
fn receive(socket: &Socket, bytes: usize) -> io::Result<Came> {
    let mut place = vec![0; bytes];
    let (taken, whole, from) = recvfrom(socket, &mut place[..], RecvFlags::TRUNC)?;
    place.truncate(taken);
    let from = from.and_then(|from| SocketAddr::try_from(from).ok()).map_or(0, |from| from.port());
    Ok(Came::Received { bytes: place, whole, from })
}

fn text(error: io::Error) -> String {
    error.to_string()
}

/// What came of a call that gives nothing but an error.
pub(super) fn came(done: io::Result<()>) -> Result<Came, String> {
    let Err(error) = done else { return Ok(Came::Done) };
    let failure = match error.kind() {
        ErrorKind::WouldBlock => Failure::WouldBlock,
        ErrorKind::ConnectionRefused => Failure::Refused,
        ErrorKind::ConnectionReset => Failure::Reset,
        ErrorKind::TimedOut => Failure::TimedOut,
        ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => Failure::Unreachable,
        ErrorKind::BrokenPipe | ErrorKind::ConnectionAborted => Failure::Closed,
        ErrorKind::NotConnected => Failure::NotConnected,
        ErrorKind::AddrInUse | ErrorKind::AddrNotAvailable => Failure::InUse,
        ErrorKind::InvalidInput => Failure::Invalid,
        ErrorKind::Unsupported => Failure::NotSupported,
        _ => match error.raw_os_error() {
            Some(libc::ENOPROTOOPT) => Failure::NotSupported,
            Some(libc::EACCES | libc::EPROTO) => Failure::Unreachable,
            Some(libc::EMSGSIZE) => Failure::TooLong,
            Some(libc::EDESTADDRREQ) => Failure::NoDestination,
            _ => return Err(error.to_string()),
        },
    };
    Ok(Came::Failed(failure))
}
