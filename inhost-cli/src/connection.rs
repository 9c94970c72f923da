//! The client's connections: the private host's own streams, or those that the running host makes for us.

use crate::args::Common;
use crate::through::{open_host, seen_at};
use inhost_base::{Duration, Endpoint, IpAddr};
use inhost_names::Names;
use inhost_runtime::control::{self, CallOptions, Client};
use inhost_runtime::{AsyncFd, Reactor};
use inhost_socket::{Host, Stream};
use inhost_telnet::driver::{Connect, Connected, Urgent};
use serde_json::{Value, json};
use std::future::Future;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Which addresses are wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// Whichever answers first.
    Either,
    /// IPv4 only.
    V4,
    /// IPv6 only.
    V6,
}

impl Family {
    /// Address family selected by `-4` and `-6`.
    pub fn of(ipv4: bool, ipv6: bool) -> Family {
        match (ipv4, ipv6) {
            (true, _) => Family::V4,
            (_, true) => Family::V6,
            _ => Family::Either,
        }
    }
    /// Whether an address is one of those.
    pub fn wants(self, address: &IpAddr) -> bool {
        match self {
            Family::Either => true,
            Family::V4 => address.is_ipv4(),
            Family::V6 => address.is_ipv6(),
        }
    }
    /// That a name has no address of it.
    pub fn missing(self, name: &str) -> String {
        let family = match self {
            Family::Either => "",
            Family::V4 => " IPv4",
            Family::V6 => " IPv6",
        };
        format!("{name} has no{family} address")
    }
}

/// Opens the client's connections.
pub struct Connector {
    /// Their source.
    pub maker: Maker,
    /// Which addresses are wanted, for how long to wait, and what to say.
    pub common: Common,
    /// Tells the time.
    pub clock: Host,
}

/// Source of the client's connections.
#[derive(Clone)]
pub enum Maker {
    /// A private host.
    Private {
        /// It.
        host: Host,
        /// Its names.
        names: Rc<Names>,
        /// Whether loopback addresses mean the machine's; see [`crate::through::Private`].
        reaches_loopback: bool,
    },
    /// The running host.
    Running {
        /// Its control socket.
        path: PathBuf,
        /// Waits for the descriptors that it gives.
        reactor: Reactor,
    },
}

type Opening<T> = Pin<Box<dyn Future<Output = Result<T, String>>>>;

impl Connector {
    fn open(&self, name: &str, port: u16) -> Opening<Connected<Connection>> {
        let (name, family) = (name.to_owned(), self.common.family());
        match self.maker.clone() {
            Maker::Private { host, names, reaches_loopback } => Box::pin(async move {
                let stream = privately(&host, &names, reaches_loopback, family, &name, port).await?;
                stream.set_nagle(false);
                let address = stream.remote().to_string();
                Ok(Connected { stream: Connection::Private(stream), address })
            }),
            Maker::Running { path, reactor } => Box::pin(async move {
                let opened = blocking::unblock(move || through_running(&path, &name, port, family)).await?;
                let stream = AsyncFd::new(&reactor, opened.stream).map_err(|e| e.to_string())?;
                let address = opened.remote.to_string();
                Ok(Connected { stream: Connection::Running(stream, opened.socket), address })
            }),
        }
    }
}

/// What comes of opening a connection, unless that takes too long.
pub async fn within<T>(
    clock: &Host,
    limit: Option<Duration>,
    name: &str,
    port: u16,
    opening: impl Future<Output = Result<T, String>>,
) -> Result<T, String> {
    let Some(limit) = limit else { return opening.await };
    match clock.timeout(limit, opening).await {
        Ok(opened) => opened,
        Err(_) => {
            Err(format!("{name} port {port}: no connection within {} s (--timeout)", limit.as_secs_f64()))
        }
    }
}

impl Connect for Connector {
    type Stream = Connection;

    fn connect(&self, name: &str, port: u16) -> Opening<Connected<Connection>> {
        let (clock, common) = (self.clock.clone(), self.common.clone());
        let (opening, name) = (self.open(name, port), name.to_owned());
        Box::pin(async move {
            let connected = within(&clock, common.limit(), &name, port, opening).await?;
            common.note(format_args!("connected to {}", connected.address));
            Ok(connected)
        })
    }

    fn statistics(&self, stream: &Connection) -> Vec<String> {
        let tcp = match (stream, &self.maker) {
            (Connection::Running(_, socket), Maker::Running { path, .. }) => {
                let status = Client::open(path).ok().and_then(|mut client| client.status(socket).ok());
                status.map(|reply| reply["status"]["tcp"].clone())
            }
            (Connection::Private(stream), _) => {
                let socket = stream.socket().to_string();
                let state = inhost_runtime::control::netstat(stream.host());
                let own =
                    |all: &Vec<Value>| all.iter().find(|s| s["socket"] == socket).map(|s| s["tcp"].clone());
                state["sockets"].as_array().and_then(own)
            }
            _ => None,
        };
        tcp.filter(|tcp| !tcp.is_null()).map_or_else(Vec::new, |tcp| lines(&tcp))
    }

    fn trouble(&self, stream: &Connection) -> Option<String> {
        match (stream, &self.maker) {
            (Connection::Running(_, socket), Maker::Running { path, .. }) => {
                let status = Client::open(path).ok()?.status(socket).ok()?;
                status["status"]["tcp"]["soft_error"].as_str().map(str::to_owned)
            }
            (Connection::Private(stream), _) => {
                let socket = stream.socket();
                let found = stream.host().with_stack(|stack, _| {
                    stack.instruments().connection(socket).and_then(|connection| connection.soft_error())
                });
                found.map(|error| error.to_string())
            }
            _ => None,
        }
    }
}

/// Connects from the private host: families raced, unless one is asked for or the machine's loopback is meant.
async fn privately(
    host: &Host,
    names: &Names,
    reaches_loopback: bool,
    family: Family,
    name: &str,
    port: u16,
) -> Result<Stream, String> {
    if family != Family::Either || reaches_loopback {
        let found = names.look_up(name).await.map_err(|e| e.to_string())?;
        if family != Family::Either || found.iter().any(IpAddr::is_loopback) {
            let mut why = family.missing(name);
            for &address in found.iter().filter(|address| family.wants(address)) {
                match host.connect(Endpoint::new(seen_at(address, reaches_loopback), port)).await {
                    Ok(stream) => return Ok(stream),
                    Err(error) => why = format!("cannot connect to {name} port {port}: {address}: {error}"),
                }
            }
            return Err(why);
        }
    }
    names.connect(name, port).await.map_err(|e| e.to_string())
}

/// Has the running host look the name up and connect to its addresses in turn.
fn through_running(path: &Path, name: &str, port: u16, family: Family) -> Result<control::Connected, String> {
    let mut client = open_host(path).map_err(|e| e.text())?;
    let mut why = family.missing(name);
    for address in addresses(&mut client, name, family)? {
        let hint = match address.is_loopback() {
            true => "; that is the running host itself, --link user leads to this machine",
            false => "",
        };
        // What is said here is said in turns, a few octets at a time.
        let mut calling = CallOptions::default();
        calling.nagle = false;
        match client.connect_with(Endpoint::new(address, port), calling) {
            Ok(connected) => return Ok(connected),
            Err(error) => why = format!("cannot connect to {name} port {port}: {address}: {error}{hint}"),
        }
    }
    Err(why)
}

/// The addresses that the running host knows of a name, of the family that is wanted.
fn addresses(client: &mut Client, name: &str, family: Family) -> Result<Vec<IpAddr>, String> {
    let (reply, _) = client.request(&json!({"op": "look_up", "name": name})).map_err(|e| e.to_string())?;
    let found = reply["addresses"].as_array().map(Vec::as_slice).unwrap_or_default();
    let found = found.iter().filter_map(|address| address.as_str()?.parse().ok());
    Ok(found.filter(|address| family.wants(address)).collect())
}

/// The first of them, asked for at the control socket `path`.
pub fn looked_up(path: &Path, name: &str, family: Family) -> Result<IpAddr, String> {
    let mut client = open_host(path).map_err(|e| e.text())?;
    addresses(&mut client, name, family)?.first().copied().ok_or_else(|| family.missing(name))
}

fn lines(tcp: &Value) -> Vec<String> {
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let seconds = |value: &Value| number(value) as f64 / 1e9;
    vec![
        format!(
            "open for {:.1} s; sent {} bytes, received {} bytes",
            seconds(&tcp["age_ns"]),
            number(&tcp["send"]["bytes"]),
            number(&tcp["receive"]["bytes"])
        ),
        format!(
            "round trip {:.3} ms, time-out {:.3} ms, {} segments sent again",
            1e3 * seconds(&tcp["smoothed_round_trip_ns"]),
            1e3 * seconds(&tcp["retransmission_timeout_ns"]),
            number(&tcp["retransmitted_segments"])
        ),
        format!(
            "sending: {}; receiving: {}",
            tcp["send"]["cause"].as_str().unwrap_or("-"),
            tcp["receive"]["cause"].as_str().unwrap_or("-")
        ),
    ]
}

/// One connection.
pub enum Connection {
    /// A stream of the private host.
    Private(Stream),
    /// One end of a socketpair that the running host pumps, with the socket's name there. Urgent data travels in
    /// line on it: the descriptor of a socketpair has no urgent pointer.
    Running(AsyncFd<UnixStream>, String),
}

impl AsyncRead for Connection {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Connection::Private(stream) => Pin::new(stream).poll_read(cx, buf),
            Connection::Running(stream, _) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Connection::Private(stream) => Pin::new(stream).poll_write(cx, bytes),
            Connection::Running(stream, _) => Pin::new(stream).poll_write(cx, bytes),
        }
    }
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Connection::Private(stream) => Pin::new(stream).poll_flush(cx),
            Connection::Running(stream, _) => Pin::new(stream).poll_flush(cx),
        }
    }
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Connection::Private(stream) => Pin::new(stream).poll_shutdown(cx),
            Connection::Running(stream, _) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

impl Urgent for Connection {
    fn poll_send_urgent(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Connection::Private(stream) => Pin::new(stream).poll_send_urgent(cx, bytes),
            Connection::Running(stream, _) => Pin::new(stream).poll_write(cx, bytes),
        }
    }
    fn urgent_ahead(&self) -> Option<usize> {
        match self {
            Connection::Private(stream) => Urgent::urgent_ahead(stream),
            Connection::Running(..) => None,
        }
    }
}
