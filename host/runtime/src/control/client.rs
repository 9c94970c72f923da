//! The client of the control socket.

use std::fs;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use inhost_base::Endpoint;
use rustix::net::SendFlags;
use serde_json::{Value, json};

use super::protocol::{
    ADDRESS_BYTES, LONGEST_LINE_BYTES, decode_address, default_path, encode_address, receive_message,
    receive_with_descriptors,
};
use super::trust;

/// How long the host may take for an answer of its own.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// Requests for which it waits for others: as long as a call that nobody answers, and its own time besides.
const WAITS_FOR_OTHERS: [&str; 3] = ["connect", "look_up", "records"];

/// A conversation with a running host. Its calls block, and fail with `TimedOut` when the host does not answer.
#[derive(Debug)]
pub struct Client {
    socket: UnixStream,
    received: Vec<u8>,
    descriptors: Vec<OwnedFd>,
}

/// Why a request failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum ClientError {
    /// The conversation broke off.
    Io(io::Error),
    /// The host refused.
    Refused {
        /// Its sentence.
        text: String,
        /// The system's number for it, where there is one.
        errno: Option<i32>,
    },
    /// The host said something that is not of the protocol.
    Protocol(String),
}

impl core::fmt::Display for ClientError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            ClientError::Io(error) => write!(f, "the control socket: {error}"),
            ClientError::Refused { text, .. } => f.write_str(text),
            ClientError::Protocol(text) => write!(f, "not understood: {text}"),
        }
    }
}
impl core::error::Error for ClientError {}
impl From<io::Error> for ClientError {
    fn from(error: io::Error) -> Self {
        ClientError::Io(error)
    }
}

/// Options of a connection that the host opens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct CallOptions {
    /// From this port. Default any.
    pub from_port: Option<u16>,
    /// Whether a short segment waits while another is not acknowledged (Nagle's algorithm). Default true; a dialogue whose
    /// words are waited for wants false.
    pub nagle: bool,
}

impl Default for CallOptions {
    fn default() -> Self {
        CallOptions { from_port: None, nagle: true }
    }
}

/// A connection of the host, with a descriptor for it.
#[derive(Debug)]
pub struct Connected {
    /// The bytes of the connection.
    pub stream: UnixStream,
    /// The host's end.
    pub local: Endpoint,
    /// The other end.
    pub remote: Endpoint,
    /// Its name, for [`Client::status`].
    pub socket: String,
}

/// A listener of the host. Its descriptor is readable when a caller waits.
#[derive(Debug)]
pub struct ListenerClient {
    descriptor: OwnedFd,
    local: Endpoint,
}

/// A UDP socket of the host.
#[derive(Debug)]
pub struct UdpClient {
    descriptor: OwnedFd,
    connected: Option<Endpoint>,
    local: Endpoint,
}

impl Client {
    /// Opens a conversation with the host whose control socket is at `path`.
    ///
    /// # Errors
    /// Of kind `NotFound` or `ConnectionRefused` when no host is there. Of kind `PermissionDenied` when the socket is
    /// not trusted: others may replace it, or its server runs as neither this user nor root. Nothing was sent to it. A
    /// caller with a fallback must report this error.
    pub fn open(path: &Path) -> io::Result<Client> {
        trust::check_directory(path)?;
        let socket = UnixStream::connect(path)?;
        trust::check_peer(&socket)?;
        Ok(Client { socket, received: Vec::new(), descriptors: Vec::new() })
    }
    /// The control socket of the host that runs for this user at [`default_path`]; none when there is none.
    ///
    /// # Errors
    /// As [`Client::open`] when the socket is not trusted.
    pub fn find() -> io::Result<Option<PathBuf>> {
        let path = default_path();
        match Client::open(&path) {
            Ok(_) => Ok(Some(path)),
            Err(error)
                if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) =>
            {
                Ok(None)
            }
            Err(error) => Err(io::Error::new(error.kind(), format!("{}: {error}", path.display()))),
        }
    }
    /// Makes one request; gives the reply and the descriptor that came with it.
    pub fn request(&mut self, request: &Value) -> Result<(Value, Option<OwnedFd>), ClientError> {
        let waits = WAITS_FOR_OTHERS.iter().any(|op| request["op"] == **op);
        let call =
            if waits { inhost_tcp::Config::default().connect_timeout } else { inhost_base::Duration::ZERO };
        let limit = ANSWER_WITHIN + Duration::from_nanos(call.as_nanos());
        self.socket.set_read_timeout(Some(limit))?;
        let mut line = request.to_string().into_bytes();
        line.push(b'\n');
        let mut rest = &line[..];
        while !rest.is_empty() {
            let count =
                rustix::net::send(&self.socket, rest, SendFlags::NOSIGNAL).map_err(io::Error::from)?;
            rest = &rest[count.min(rest.len())..];
        }
        let reply = self.line().map_err(|error| self.silent(error, limit))?;
        let descriptor = std::mem::take(&mut self.descriptors).into_iter().next();
        let reply: Value =
            serde_json::from_slice(&reply).map_err(|error| ClientError::Protocol(error.to_string()))?;
        match reply["ok"].as_bool() {
            Some(true) => Ok((reply, descriptor)),
            Some(false) => Err(ClientError::Refused {
                text: reply["error"].as_str().unwrap_or("refused").to_owned(),
                errno: reply["errno"].as_i64().map(|number| number as i32),
            }),
            None => Err(ClientError::Protocol(reply.to_string())),
        }
    }
    /// Everything that instruments show; see [`super::netstat`].
    pub fn netstat(&mut self) -> Result<Value, ClientError> {
        Ok(self.request(&json!({"op": "netstat"}))?.0)
    }
    /// A view of the host as JSON, such as `connections?sort=rate`, where the host offers views.
    pub fn view(&mut self, target: &str) -> Result<Vec<u8>, ClientError> {
        let (_, file) = self.request(&json!({"op": "view", "target": target}))?;
        let mut bytes = Vec::new();
        fs::File::from(present(file)?).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
    /// Everything but the sockets.
    pub fn counters(&mut self) -> Result<Value, ClientError> {
        Ok(self.request(&json!({"op": "counters"}))?.0)
    }
    /// A socket's state, or how it ended.
    pub fn status(&mut self, socket: &str) -> Result<Value, ClientError> {
        Ok(self.request(&json!({"op": "status", "socket": socket}))?.0)
    }
    /// Asks the host to go down.
    pub fn shutdown(&mut self) -> Result<(), ClientError> {
        self.request(&json!({"op": "shutdown"})).map(drop)
    }
    /// Has the host call `to`.
    pub fn connect(&mut self, to: Endpoint) -> Result<Connected, ClientError> {
        self.connect_with(to, CallOptions::default())
    }
    /// Has the host call `to`, in this way.
    pub fn connect_with(&mut self, to: Endpoint, calling: CallOptions) -> Result<Connected, ClientError> {
        let from = calling.from_port.map(|port| format!("0.0.0.0:{port}"));
        let request = json!({"op": "connect", "to": to.to_string(), "from": from, "nagle": calling.nagle});
        let (reply, descriptor) = self.request(&request)?;
        connected(&reply, descriptor)
    }
    /// Has the host listen at `at`.
    pub fn listen(&mut self, at: Endpoint) -> Result<ListenerClient, ClientError> {
        let (reply, descriptor) = self.request(&json!({"op": "listen", "at": at.to_string()}))?;
        Ok(ListenerClient { descriptor: present(descriptor)?, local: end(&reply, "local")? })
    }
    /// Has the host open a UDP socket at `at`; with `to` it talks to that end only.
    pub fn udp(&mut self, at: Endpoint, to: Option<Endpoint>) -> Result<UdpClient, ClientError> {
        let to_text = to.map(|to| to.to_string());
        let request = json!({"op": "udp", "at": at.to_string(), "to": to_text});
        let (reply, descriptor) = self.request(&request)?;
        Ok(UdpClient { descriptor: present(descriptor)?, connected: to, local: end(&reply, "local")? })
    }

    /// What a late answer means.
    fn silent(&self, error: ClientError, limit: Duration) -> ClientError {
        match error {
            ClientError::Io(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let process = rustix::net::sockopt::socket_peercred(&self.socket)
                    .map_or_else(|_| "PID".to_owned(), |peer| peer.pid.as_raw_nonzero().to_string());
                let text = format!(
                    "the host, process {process}, does not answer within {} s; if it is stopped, kill -CONT {process} lets it \
                     go on",
                    limit.as_secs()
                );
                io::Error::new(io::ErrorKind::TimedOut, text).into()
            }
            other => other,
        }
    }
    fn line(&mut self) -> Result<Vec<u8>, ClientError> {
        let mut looked_at = 0;
        let mut piece = vec![0; 64 * 1024];
        loop {
            if let Some(end) = self.received[looked_at..].iter().position(|&byte| byte == b'\n') {
                return Ok(self.received.drain(..=looked_at + end).collect());
            }
            looked_at = self.received.len();
            if looked_at > LONGEST_LINE_BYTES {
                return Err(ClientError::Protocol("the reply does not end".to_owned()));
            }
            match receive_with_descriptors(&self.socket, &mut piece, &mut self.descriptors)? {
                0 => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
                count => self.received.extend_from_slice(&piece[..count]),
            }
        }
    }
}

impl ListenerClient {
    /// Where it listens.
    pub fn local(&self) -> Endpoint {
        self.local
    }
    /// The next caller; blocks until there is one.
    pub fn accept(&self) -> Result<Connected, ClientError> {
        let mut line = vec![0; 1024];
        let mut descriptors = Vec::new();
        let count = receive_with_descriptors(&self.descriptor, &mut line, &mut descriptors)?;
        if count == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        let message: Value = serde_json::from_slice(&line[..count])
            .map_err(|error| ClientError::Protocol(error.to_string()))?;
        connected(&message, descriptors.into_iter().next())
    }
}
impl AsFd for ListenerClient {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl UdpClient {
    /// The host's end, as it was bound.
    pub fn local(&self) -> Endpoint {
        self.local
    }
    /// Sends one datagram: to the connected end, or to `to`.
    pub fn send(&self, payload: &[u8], to: Option<Endpoint>) -> io::Result<()> {
        let mut message = Vec::with_capacity(ADDRESS_BYTES + payload.len());
        if self.connected.is_none() {
            let to = to.ok_or(io::ErrorKind::InvalidInput)?;
            message.extend(encode_address(to));
        }
        message.extend_from_slice(payload);
        rustix::net::send(&self.descriptor, &message, SendFlags::NOSIGNAL)?;
        Ok(())
    }
    /// The next datagram, which may be empty, and its sender; blocks until there is one.
    ///
    /// # Errors
    /// Of kind `UnexpectedEof` when the host is gone, or has closed the socket.
    pub fn receive(&self) -> io::Result<(Vec<u8>, Endpoint)> {
        let mut message = vec![0; 65_535 + ADDRESS_BYTES];
        let count = receive_message(&self.descriptor, &mut message)?.ok_or(io::ErrorKind::UnexpectedEof)?;
        message.truncate(count);
        if let Some(from) = self.connected {
            return Ok((message, from));
        }
        let (from, payload) = decode_address(&message).ok_or(io::ErrorKind::InvalidData)?;
        Ok((payload.to_vec(), from))
    }
}
impl AsFd for UdpClient {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

fn connected(message: &Value, descriptor: Option<OwnedFd>) -> Result<Connected, ClientError> {
    Ok(Connected {
        stream: present(descriptor)?.into(),
        local: end(message, "local")?,
        remote: end(message, "remote")?,
        socket: message["socket"].as_str().unwrap_or_default().to_owned(),
    })
}

fn present(descriptor: Option<OwnedFd>) -> Result<OwnedFd, ClientError> {
    descriptor.ok_or_else(|| ClientError::Protocol("no descriptor came with the reply".to_owned()))
}

fn end(message: &Value, member: &str) -> Result<Endpoint, ClientError> {
    let text = message[member].as_str().unwrap_or_default();
    let end = text.parse::<std::net::SocketAddr>();
    end.map(Endpoint::from).map_err(|_| ClientError::Protocol(format!("{member} is {text:?}")))
}
