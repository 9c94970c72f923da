//! Integration tests, one program for all: a program costs more to link than to run.

mod ported;
mod tun2socks;
mod wireguard;

use inhost::device::{self, PacketsFramed};
use inhost::link::memory;
use inhost::stack::{DuplicateDetection, InterfaceConfig};
use inhost::{Builder, Host};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UdpSocket};

/// A host that knows nothing of tunnels, on one end of a link.
fn guest(link: InterfaceConfig) -> InterfaceConfig {
    let mut link = link
        .with_address("100.64.91.2/24".parse().unwrap())
        .with_gateway([100, 64, 91, 1])
        .with_address("fd91:64::2/64".parse().unwrap())
        .with_gateway("fd91:64::1".parse::<Ipv6Addr>().unwrap());
    // What a socket sends before its address is known to be unique is lost.
    link.duplicate_detection = DuplicateDetection::Off;
    link
}

/// A guest, and the builder of the host to which all of its packets go.
fn guest_and_other() -> io::Result<(Host, Builder)> {
    let config = memory::Config { doorbell: true, ..memory::Config::default() };
    let (near, far) = memory::pair(&config)?;
    Ok((Host::builder().driver(near, guest).start()?, Host::builder().any_address(far)))
}

/// A guest, and all of its packets as a stream and a sink.
fn guest_and_packets() -> io::Result<(Host, PacketsFramed)> {
    let (packets, driver) = device::packets(device::Config::default())?;
    Ok((Host::builder().driver(driver, guest).start()?, PacketsFramed::new(packets)))
}

/// Servers of the system at `port` of `ip`, or any for 0: TCP and UDP both answer in capitals.
async fn shouting(ip: IpAddr, port: u16) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind((ip, port)).await?;
    let at = listener.local_addr()?;
    let socket = UdpSocket::bind(at).await?;
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut place = vec![0; 65_536];
                while let Ok(count @ 1..) = stream.read(&mut place).await {
                    place.make_ascii_uppercase();
                    stream.write_all(&place[..count]).await?;
                }
                io::Result::Ok(())
            });
        }
    });
    tokio::spawn(async move {
        let mut place = [0; 8192];
        while let Ok((count, from)) = socket.recv_from(&mut place).await {
            place.make_ascii_uppercase();
            let _ = socket.send_to(&place[..count], from).await;
        }
    });
    Ok(at)
}

const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Sends `bytes` to `to` over a connection of `guest`, and gives what came back when the other end closed.
async fn over_tcp(guest: &Host, to: SocketAddr, bytes: &[u8]) -> io::Result<Vec<u8>> {
    let (mut reader, mut writer) = guest.connect(to).await?.into_split();
    let write = async {
        writer.write_all(bytes).await?;
        writer.shutdown().await
    };
    let mut answer = Vec::new();
    tokio::try_join!(write, reader.read_to_end(&mut answer))?;
    Ok(answer)
}

/// What a test gives by the deadline.
async fn in_time<T>(test: impl Future<Output = T>) -> T {
    tokio::time::timeout(inhost_interop::DEADLINE, test).await.expect("done by the deadline")
}

/// A megabyte of letters, none of which repeats what is before it at a distance of a segment.
fn letters() -> Vec<u8> {
    (0..1_000_000u32).map(|number| b'a' + (number.wrapping_mul(2_654_435_761) >> 27) as u8 % 26).collect()
}
