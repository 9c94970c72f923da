//! The client's datagrams: the private host's own socket, or one that the running host opens for us.

use super::remote::Remote;
use crate::connection::{Family, Maker};
use crate::through::{open_host, seen_at};
use inhost_base::{Endpoint, IpAddr, Ipv4Addr, Ipv6Addr};
use inhost_runtime::control::UdpClient;
use inhost_runtime::{AsyncFd, Interest};
use inhost_socket::UdpSocket;
use inhost_stack::UdpOptions;
use inhost_tftp::driver::Datagrams;
use serde_json::json;
use std::path::Path;
use std::task::{Context, Poll};

/// Memory of datagrams that wait: whole windows.
const RECEIVE_BYTES: usize = 4 << 20;

/// A socket for datagrams.
pub enum Socket {
    /// Of the private host.
    Private(UdpSocket),
    /// Of the running host.
    Running(AsyncFd<UdpClient>),
}

/// Where the server is.
pub async fn look_up(maker: &Maker, remote: &Remote, family: Family) -> Result<Endpoint, String> {
    let name = remote.host.clone();
    let (found, reaches_loopback) = match maker {
        Maker::Private { names, reaches_loopback, .. } => {
            (names.look_up(&name).await.map_err(|e| e.to_string())?, *reaches_loopback)
        }
        Maker::Running { path, .. } => {
            let path = path.clone();
            (blocking::unblock(move || ask_running(&path, &name)).await?, false)
        }
    };
    let wanted = found.iter().find(|address| family.wants(address)).copied();
    let address = wanted.ok_or_else(|| format!("{} has no such address", remote.host))?;
    Ok(Endpoint::new(seen_at(address, reaches_loopback), remote.port))
}

fn ask_running(path: &Path, name: &str) -> Result<Vec<IpAddr>, String> {
    let mut client = open_host(path).map_err(|e| e.text())?;
    let (reply, _) = client.request(&json!({"op": "look_up", "name": name})).map_err(|e| e.to_string())?;
    let addresses = reply["addresses"].as_array().cloned().unwrap_or_default();
    Ok(addresses.iter().filter_map(|address| address.as_str()?.parse().ok()).collect())
}

/// Opens a socket that reaches the server.
pub async fn open(maker: &Maker, server: &Endpoint) -> Result<Socket, String> {
    let any: IpAddr = match server.address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let at = Endpoint::new(any, 0);
    match maker {
        Maker::Private { host, .. } => {
            let mut options = UdpOptions::default();
            options.report_unconnected_errors = true;
            options.receive_limit_bytes = RECEIVE_BYTES;
            host.udp(at, options).map(Socket::Private).map_err(|e| e.to_string())
        }
        Maker::Running { path, reactor } => {
            let path = path.clone();
            let opened = blocking::unblock(move || {
                let mut client = open_host(&path).map_err(|e| e.text())?;
                client.udp(at, None).map_err(|e| e.to_string())
            })
            .await?;
            AsyncFd::new(reactor, opened).map(Socket::Running).map_err(|e| e.to_string())
        }
    }
}

impl Datagrams for Socket {
    fn poll_send(&self, cx: &mut Context<'_>, bytes: &[u8], to: Endpoint) -> Poll<Result<(), String>> {
        match self {
            Socket::Private(socket) => Datagrams::poll_send(socket, cx, bytes, to),
            Socket::Running(socket) => {
                let sent = socket.poll_io(Interest::Write, cx, |socket| socket.send(bytes, Some(to)));
                sent.map_err(|error| error.to_string())
            }
        }
    }
    fn poll_receive(&self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<Result<(usize, Endpoint), String>> {
        match self {
            Socket::Private(socket) => Datagrams::poll_receive(socket, cx, into),
            Socket::Running(socket) => {
                let received = socket.poll_io(Interest::Read, cx, UdpClient::receive);
                let copied = received.map_ok(|(bytes, from)| {
                    let length = bytes.len().min(into.len());
                    into[..length].copy_from_slice(&bytes[..length]);
                    (bytes.len(), from)
                });
                copied.map_err(|error| error.to_string())
            }
        }
    }
}
