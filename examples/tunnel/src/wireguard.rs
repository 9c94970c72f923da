//! A WireGuard peer in user space: `boringtun` encrypts, a UDP socket carries, and the host's packets go in between.

use std::convert::Infallible;
use std::error::Error;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use boringtun::noise::{Tunn, TunnResult};
use boringtun::x25519::{PublicKey, StaticSecret};
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use inhost::device::{self, Packets};
use inhost::stack::DuplicateDetection;
use inhost::{Cidr, Host};
use tokio::net::UdpSocket;

/// The MTU that wg-quick sets where the path has 1500 bytes.
const MTU_BYTES: usize = 1420;
/// A datagram's room, as boringtun asks: 32 bytes more than the packet, and 148 for a handshake.
const ROOM_BYTES: usize = 65_536;
/// How often boringtun's timers are looked at.
const TICK: Duration = Duration::from_millis(250);

/// A peer and its peer, as the files of wg-quick have them.
pub struct Config {
    private_key: [u8; 32],
    peer_public_key: [u8; 32],
    preshared_key: Option<[u8; 32]>,
    /// The host's addresses in the tunnel.
    pub addresses: Vec<Cidr>,
    /// What the peer may send from; the host sends only there.
    allowed: Vec<Cidr>,
    listen_port: u16,
    /// Where the peer is; without it, where its first valid datagram comes from.
    endpoint: Option<SocketAddr>,
    keepalive_seconds: Option<u16>,
}

impl Config {
    /// Reads a file of wg-quick with one peer. An endpoint is an address and a port.
    ///
    /// # Errors
    /// When a key is missing or a value has another form.
    pub fn parse(text: &str) -> Result<Config, Box<dyn Error>> {
        let mut config = Config {
            private_key: [0; 32],
            peer_public_key: [0; 32],
            preshared_key: None,
            addresses: Vec::new(),
            allowed: Vec::new(),
            listen_port: 0,
            endpoint: None,
            keepalive_seconds: None,
        };
        let key = |text: &str| -> Result<[u8; 32], Box<dyn Error>> {
            BASE64_STANDARD.decode(text)?.try_into().map_err(|_| "a key has 32 bytes".into())
        };
        let (mut has_private_key, mut peers) = (false, 0);
        for line in text.lines() {
            let line = line.split('#').next().unwrap_or_default();
            let Some((name, value)) = line.split_once('=') else { continue };
            let value = value.trim();
            match name.trim() {
                "PrivateKey" => (config.private_key, has_private_key) = (key(value)?, true),
                "PublicKey" => (config.peer_public_key, peers) = (key(value)?, peers + 1),
                "PresharedKey" => config.preshared_key = Some(key(value)?),
                "Address" => config.addresses = cidrs(value)?,
                "AllowedIPs" => config.allowed = cidrs(value)?,
                "ListenPort" => config.listen_port = value.parse()?,
                "Endpoint" => config.endpoint = Some(value.parse()?),
                "PersistentKeepalive" => config.keepalive_seconds = Some(value.parse()?),
                "DNS" | "MTU" => {}
                other => return Err(format!("{other} is not understood").into()),
            }
        }
        match (has_private_key, peers) {
            (true, 1) => Ok(config),
            _ => Err("a private key and one peer are needed".into()),
        }
    }
    fn allows(&self, address: IpAddr) -> bool {
        self.allowed.iter().any(|network| network.contains(address))
    }
}

/// Addresses between commas. One without a prefix stands for itself.
fn cidrs(text: &str) -> Result<Vec<Cidr>, Box<dyn Error>> {
    let cidr = |text: &str| match text.parse::<IpAddr>() {
        Ok(address) => Ok(Cidr::whole(address)),
        Err(_) => Ok(text.parse()?),
    };
    text.split(',').map(|text| cidr(text.trim())).collect()
}

/// The other end of the tunnel, as the host's gateway. A link without neighbours asks nobody for it, so any address will do.
const OTHER_ENDS: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(192, 0, 0, 1)), IpAddr::V6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1))];

/// Starts a host whose only link is the tunnel, and gives it with the port at which the tunnel listens.
///
/// # Errors
/// When the system refuses the UDP socket, or the host its addresses.
pub async fn start(config: Config) -> io::Result<(Host, u16)> {
    let mut link = device::Config::default();
    link.mtu_bytes = MTU_BYTES;
    let (packets, driver) = device::packets(link)?;
    let addresses = config.addresses.clone();
    let host = Host::builder().driver(driver, move |mut link| {
        let is_served = |end: &IpAddr| addresses.iter().any(|own| own.address().is_ipv4() == end.is_ipv4());
        link.gateways = OTHER_ENDS.into_iter().filter(is_served).collect();
        link.addresses = addresses;
        link.duplicate_detection = DuplicateDetection::Off;
        link
    });
    let host = host.start()?;
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, config.listen_port)).await?;
    let port = socket.local_addr()?.port();
    tokio::spawn(carry(packets, socket, config));
    Ok((host, port))
}

/// Moves packets between the host and the peer until the host is gone.
async fn carry(packets: Packets, socket: UdpSocket, config: Config) -> io::Result<()> {
    let Config { private_key, peer_public_key, preshared_key, keepalive_seconds, .. } = config;
    let (private_key, peer_key) = (StaticSecret::from(private_key), PublicKey::from(peer_public_key));
    let mut tunnel = Tunn::new(private_key, peer_key, preshared_key, keepalive_seconds, 0, None);
    let (mut datagram, mut room) = (vec![0; ROOM_BYTES], vec![0; ROOM_BYTES]);
    let mut peer = config.endpoint;
    let mut timers = tokio::time::interval(TICK);
    loop {
        let mut is_received = false;
        let mut result = tokio::select! {
            packet = packets.receive() => match packet {
                Some(packet) if Tunn::dst_address(&packet).is_some_and(|to| config.allows(to)) => {
                    tunnel.encapsulate(&packet, &mut room)
                }
                Some(_) => continue,
                None => return Ok(()),
            },
            received = socket.recv_from(&mut datagram) => {
                let (length, from) = received?;
                let result = tunnel.decapsulate(Some(from.ip()), &datagram[..length], &mut room);
                is_received = !matches!(result, TunnResult::Err(_));
                // A peer may move to another address; only it can make a datagram that is taken.
                peer = if is_received { Some(from) } else { peer };
                result
            }
            _ = timers.tick() => tunnel.update_timers(&mut room),
        };
        while let TunnResult::WriteToNetwork(bytes) = result {
            if let Some(peer) = peer {
                // A datagram that the system refuses is lost, as in a network.
                let _ = socket.send_to(bytes, peer).await;
            }
            // After a handshake the packets that waited for it follow.
            result = if is_received { tunnel.decapsulate(None, &[], &mut room) } else { TunnResult::Done };
        }
        let (packet, from) = match result {
            TunnResult::WriteToTunnelV4(packet, from) => (packet, IpAddr::V4(from)),
            TunnResult::WriteToTunnelV6(packet, from) => (packet, IpAddr::V6(from)),
            TunnResult::Done | TunnResult::Err(_) | TunnResult::WriteToNetwork(_) => continue,
        };
        if config.allows(from) {
            packets.send(packet).await?;
        }
    }
}

/// Serves HTTP at port 80 of the host, to whom the tunnel reaches.
///
/// # Errors
/// When the port is taken, or the host was stopped.
pub async fn serve_http(host: &Host) -> io::Result<()> {
    let listener = host.listen("[::]:80").await?;
    loop {
        let (stream, from) = listener.accept().await?;
        let answer = service_fn(move |_: Request<Incoming>| async move {
            Ok::<_, Infallible>(Response::new(Full::<Bytes>::from(format!("hello, {}\n", from.ip()))))
        });
        let mut server = hyper::server::conn::http1::Builder::new();
        server.timer(TokioTimer::new());
        tokio::spawn(server.serve_connection(TokioIo::new(stream), answer));
    }
}

/// What `http://SERVER/` gives, through the tunnel.
///
/// # Errors
/// When the server cannot be reached or speaks something else.
pub async fn get(host: &Host, server: IpAddr) -> Result<Bytes, Box<dyn Error>> {
    let stream = host.connect((server, 80)).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let request = Request::get("/").header("host", server.to_string()).body(Empty::<Bytes>::new())?;
    Ok(sender.send_request(request).await?.into_body().collect().await?.to_bytes())
}
