//! Every connection and datagram of a host, whichever address it means, through a SOCKS5 proxy (RFC 1928).

use inhost::device::AnyUdpSocket;
use inhost::{Host, net::Held};
use std::io::{Error, Result};
use std::net::{IpAddr, SocketAddr};
use std::{collections::HashMap, sync::Arc, time::Duration};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpStream, UdpSocket};
use tokio::sync::mpsc;

type Any = Arc<AnyUdpSocket>;
/// Datagrams of one sender, as the proxy takes them.
type Queue = mpsc::Receiver<Vec<u8>>;

const CONNECT: u8 = 1;
const UDP_ASSOCIATE: u8 = 3;
/// Senders of datagrams at a time.
const ASSOCIATIONS: usize = 1024;
/// Datagrams of a sender that wait for the proxy.
const WAITING: usize = 64;
/// How long a sender is kept when nothing comes or goes.
const IDLE: Duration = Duration::from_secs(60);

/// Serves what `host`, built with `any_address`, takes.
pub async fn serve(host: Host, proxy: SocketAddr) -> Result<()> {
    let (listener, any) = (host.listen_any().await?, Arc::new(AnyUdpSocket::bind(&host).await?));
    tokio::spawn(datagrams(any, proxy));
    loop {
        tokio::spawn(connection(listener.accept_held().await?, proxy));
    }
}

/// The caller is answered when the proxy has connected. Dropping it refuses the connection.
async fn connection(caller: Held, proxy: SocketAddr) -> Result<()> {
    let (mut upstream, _) = request(proxy, CONNECT, caller.local_addr()?).await?;
    let mut stream = caller.proceed().await?;
    copy_bidirectional(&mut stream, &mut upstream).await.map(|_| ())
}

/// Gives each sender an association, by which the answers find it.
async fn datagrams(any: Any, proxy: SocketAddr) -> Result<()> {
    let (mut associations, mut place) = (HashMap::<_, mpsc::Sender<_>>::new(), vec![0; 65_536]);
    loop {
        let (length, from, meant) = any.recv_from(&mut place).await?;
        if associations.get(&from).is_none_or(mpsc::Sender::is_closed) {
            associations.retain(|_, to| !to.is_closed());
            if associations.len() >= ASSOCIATIONS {
                continue;
            }
            let (to, queue) = mpsc::channel(WAITING);
            tokio::spawn(association(any.clone(), from, queue, proxy));
            associations.insert(from, to);
        }
        let message = [&[0, 0, 0][..], &encode(meant), &place[..length]].concat();
        // A datagram for which the queue has no room is lost, as in a network.
        let _ = associations[&from].try_send(message);
    }
}

/// The datagrams of one sender, until the proxy ends the connection that stands for them (§6).
async fn association(any: Any, sender: SocketAddr, mut queue: Queue, proxy: SocketAddr) -> Result<()> {
    let (mut control, relay) = request(proxy, UDP_ASSOCIATE, ([0; 4], 0).into()).await?;
    let (socket, mut place) = (UdpSocket::bind((control.local_addr()?.ip(), 0)).await?, vec![0; 65_536]);
    socket.connect(relay).await?;
    loop {
        tokio::select! {
            Some(message) = queue.recv() => drop(socket.send(&message).await),
            received = socket.recv(&mut place) => {
                // §7: a fragment is dropped by who does not reassemble.
                if let Some([0, 0, 0, answer @ ..]) = place.get(..received?) && let Some((from, bytes)) = decode(answer) {
                    let _ = any.send_from(bytes, from, sender).await;
                }
            }
            _ = control.read_u8() => return Ok(()),
            () = tokio::time::sleep(IDLE) => return Ok(()),
        }
    }
}

/// A connection on which the proxy has granted `command` (§3, §4), and the address that it bound for it (§6).
async fn request(proxy: SocketAddr, command: u8, to: SocketAddr) -> Result<(TcpStream, SocketAddr)> {
    let mut stream = TcpStream::connect(proxy).await?;
    stream.write_all(&[5, 1, 0]).await?;
    let is_open = stream.read_u16().await? == 0x0500;
    is_open.then_some(()).ok_or(Error::other("the proxy asks for a password"))?;
    stream.write_all(&[&[5, command, 0][..], &encode(to)].concat()).await?;
    let [_, reply, _, kind] = stream.read_u32().await?.to_be_bytes();
    let mut bound = vec![kind; if kind == 4 { 19 } else { 7 }];
    stream.read_exact(&mut bound[1..]).await?;
    match (reply, decode(&bound)) {
        (0, Some((at, _))) if at.ip().is_unspecified() => Ok((stream, (proxy.ip(), at.port()).into())),
        (0, Some((at, _))) => Ok((stream, at)),
        (refusal, _) => Err(Error::other(format!("the proxy answers {refusal}"))),
    }
}

/// An address as requests and datagrams have it (§5).
fn encode(address: SocketAddr) -> Vec<u8> {
    let port = address.port().to_be_bytes();
    match address.ip() {
        IpAddr::V4(ip) => [&[1][..], &ip.octets(), &port].concat(),
        IpAddr::V6(ip) => [&[4][..], &ip.octets(), &port].concat(),
    }
}

/// The address at the start of `bytes`, and what follows it; `None` for a name.
fn decode(bytes: &[u8]) -> Option<(SocketAddr, &[u8])> {
    let (ip, rest) = match bytes.split_first()? {
        (1, rest) => rest.split_first_chunk::<4>().map(|(ip, rest)| (IpAddr::from(*ip), rest))?,
        (4, rest) => rest.split_first_chunk::<16>().map(|(ip, rest)| (IpAddr::from(*ip), rest))?,
        _ => return None,
    };
    let (port, rest) = rest.split_first_chunk()?;
    Some((SocketAddr::new(ip, u16::from_be_bytes(*port)), rest))
}
