//! The program before: every connection and datagram that comes from a device goes to one server.

use futures_util::{Sink, SinkExt, Stream, StreamExt};
use netstack_smoltcp::{StackBuilder, TcpStream, UdpSocket};
use std::io::{self, Error};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::copy_bidirectional;
use tokio::sync::Mutex;

/// How long an answer to a datagram is waited for.
const LIMIT: Duration = Duration::from_secs(5);

/// Serves what comes from `device`, a stream and a sink of IP packets.
pub async fn serve<D>(device: D, server: SocketAddr) -> io::Result<()>
where
    D: Stream<Item = io::Result<Vec<u8>>> + Sink<Vec<u8>, Error = Error> + Send + 'static,
{
    let builder = StackBuilder::default()
        .enable_tcp(true)
        .enable_udp(true)
        .tcp_recv_buffer_size(512 << 10)
        .tcp_send_buffer_size(512 << 10);
    let (stack, runner, udp, listener) = builder.build()?;
    let (Some(runner), Some(udp), Some(mut listener)) = (runner, udp, listener) else {
        return Err(Error::other("a part is missing"));
    };
    tokio::spawn(runner);
    let (to_stack, from_stack) = stack.split();
    let (to_device, from_device) = device.split();
    tokio::spawn(from_device.forward(to_stack));
    tokio::spawn(from_stack.forward(to_device));

    tokio::spawn(datagrams(udp, server));
    while let Some((stream, _, _)) = listener.next().await {
        tokio::spawn(connection(stream, server));
    }
    Ok(())
}

async fn connection(mut stream: TcpStream, server: SocketAddr) -> io::Result<()> {
    let mut upstream = tokio::net::TcpStream::connect(server).await?;
    copy_bidirectional(&mut stream, &mut upstream).await.map(|_| ())
}

async fn datagrams(udp: UdpSocket, server: SocketAddr) -> io::Result<()> {
    let (mut received, sent) = udp.split();
    let sent = Arc::new(Mutex::new(sent));
    while let Some((question, from, to)) = received.next().await {
        let sent = sent.clone();
        tokio::spawn(async move {
            let answer = ask(server, &question).await?;
            sent.lock().await.send((answer, to, from)).await
        });
    }
    Ok(())
}

async fn ask(server: SocketAddr, question: &[u8]) -> io::Result<Vec<u8>> {
    let socket = tokio::net::UdpSocket::bind(SocketAddr::from(([0; 4], 0))).await?;
    socket.send_to(question, server).await?;
    let mut answer = vec![0; 65_536];
    let length = tokio::time::timeout(LIMIT, socket.recv(&mut answer)).await??;
    answer.truncate(length);
    Ok(answer)
}
