//! The program after: every connection and datagram that comes from a device goes to one server.

use futures_util::{Sink, Stream, StreamExt};
use inhost::Host;
use inhost::device::{self, AnyUdpSocket, PacketsFramed};
use inhost::net::TcpStream;
use std::io::{self, Error};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::copy_bidirectional;

/// How long an answer to a datagram is waited for.
const LIMIT: Duration = Duration::from_secs(5);

/// Serves what comes from `device`, a stream and a sink of IP packets.
pub async fn serve<D>(device: D, server: SocketAddr) -> io::Result<()>
where
    D: Stream<Item = io::Result<Vec<u8>>> + Sink<Vec<u8>, Error = Error> + Send + 'static,
{
    let (packets, driver) = device::packets(device::Config::default())?;
    let host = Host::builder().any_address(driver).start()?;
    let (listener, udp) = (host.listen_any().await?, AnyUdpSocket::bind(&host).await?);
    let (to_stack, from_stack) = PacketsFramed::new(packets).split();
    let (to_device, from_device) = device.split();
    tokio::spawn(from_device.forward(to_stack));
    tokio::spawn(from_stack.forward(to_device));

    tokio::spawn(datagrams(udp, server));
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(connection(stream, server));
    }
    Ok(())
}

async fn connection(mut stream: TcpStream, server: SocketAddr) -> io::Result<()> {
    let mut upstream = tokio::net::TcpStream::connect(server).await?;
    copy_bidirectional(&mut stream, &mut upstream).await.map(|_| ())
}

async fn datagrams(udp: AnyUdpSocket, server: SocketAddr) -> io::Result<()> {
    let (udp, mut place) = (Arc::new(udp), vec![0; 65_536]);
    loop {
        let (length, from, to) = udp.recv_from(&mut place).await?;
        let (udp, question) = (udp.clone(), place[..length].to_vec());
        tokio::spawn(async move {
            let answer = ask(server, &question).await?;
            udp.send_from(&answer, to, from).await
        });
    }
}

async fn ask(server: SocketAddr, question: &[u8]) -> io::Result<Vec<u8>> {
    let socket = tokio::net::UdpSocket::bind(SocketAddr::from(([0; 4], 0))).await?;
    socket.send_to(question, server).await?;
    let mut answer = vec![0; 65_536];
    let length = tokio::time::timeout(LIMIT, socket.recv(&mut answer)).await??;
    answer.truncate(length);
    Ok(answer)
}
