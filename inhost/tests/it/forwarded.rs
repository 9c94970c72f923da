//! The caller outside of what a `user` link forwards.
#![cfg(all(feature = "user", feature = "tokio"))]

use std::net::{TcpListener, TcpStream, UdpSocket};

use inhost::Host;

use crate::in_time;

/// A port of the system's that is free.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[tokio::test]
async fn the_caller_of_a_forwarded_port_is_known_as_long_as_it_is_there() {
    let port = free_port();
    let link = format!("user,forward=127.0.0.1:{port}->80");
    let host = Host::builder().link(link).start().unwrap();
    let listener = host.listen("0.0.0.0:80").await.unwrap();
    for _ in 0..2 {
        let caller = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let (stream, gateway) = in_time(listener.accept()).await.unwrap();
        assert_eq!(gateway.ip().to_string(), "10.0.2.2");
        assert_eq!(in_time(stream.forwarded_from()).await, Some(caller.local_addr().unwrap()));
    }
    // The host's own connections are nobody else's.
    let (call, accepted) =
        in_time(async { tokio::join!(host.connect("127.0.0.1:80"), listener.accept()) }).await;
    assert_eq!(in_time(accepted.unwrap().0.forwarded_from()).await, None);
    assert_eq!(in_time(call.unwrap().forwarded_from()).await, None);
}

#[tokio::test]
async fn the_sender_of_forwarded_datagrams_is_known() {
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let link = format!("user,forward=udp:127.0.0.1:{port}->7");
    let host = Host::builder().link(link).start().unwrap();
    let socket = host.udp("0.0.0.0:7").await.unwrap();
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    sender.send_to(b"ping", ("127.0.0.1", port)).unwrap();
    let (_, from) = in_time(socket.recv_from(&mut [0; 16])).await.unwrap();
    assert_eq!(in_time(socket.forwarded_from(from)).await, Some(sender.local_addr().unwrap()));
    assert_eq!(in_time(socket.forwarded_from("10.0.2.2:1".parse().unwrap())).await, None);
}
