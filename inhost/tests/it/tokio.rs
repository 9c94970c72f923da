//! A host beside and within tokio's runtimes: what tokio's programs do works on it.
#![cfg(feature = "tokio")]

use std::io;
use std::time::Duration;

use crate::{in_time, pair};
use inhost::Host;
use inhost::net::{Interest, TcpListener, TcpSocket, TcpStream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_megabyte_is_echoed_between_two_hosts_by_spawned_tasks() -> io::Result<()> {
    in_time(async {
        let (near, far) = pair()?;
        let listener = far.listen("10.9.0.2:7").await?;
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let (mut read, mut write) = stream.into_split();
                    tokio::io::copy(&mut read, &mut write).await
                });
            }
        });
        let stream = near.connect("10.9.0.2:7").await?;
        let sent: Vec<u8> = (0..1_000_000u32).map(|index| (index % 251) as u8).collect();
        let (mut read, mut write) = stream.into_split();
        let writer = tokio::spawn({
            let sent = sent.clone();
            async move {
                write.write_all(&sent).await?;
                write.shutdown().await
            }
        });
        let mut received = Vec::new();
        read.read_to_end(&mut received).await?;
        writer.await.unwrap()?;
        assert!(received == sent);
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "current_thread")]
async fn a_host_within_the_runtime_serves_its_tasks_and_ends_with_its_handle() -> io::Result<()> {
    in_time(async {
        let (host, driver) = Host::builder().within_tokio()?;
        let work = async {
            let listener = host.listen("127.0.0.1:0").await?;
            let mut client = host.connect(listener.local_addr()?).await?;
            let (mut server, _) = listener.accept().await?;
            // The host's timers and tokio's are both at work.
            tokio::time::sleep(Duration::from_millis(20)).await;
            server.write_all(b"good day").await?;
            drop(server);
            let mut greeting = String::new();
            client.read_to_string(&mut greeting).await?;
            assert_eq!(greeting, "good day");
            drop((listener, client, host));
            io::Result::Ok(())
        };
        let (done, ended) = tokio::join!(work, driver);
        done.and(ended)
    })
    .await
}

#[tokio::test]
async fn timers_of_tokio_work_in_tasks_on_the_thread_of_a_host() -> io::Result<()> {
    in_time(async {
        let host = Host::builder().start()?;
        let slept = host.run(|_| async {
            tokio::time::timeout(Duration::from_millis(5), std::future::pending::<()>()).await.is_err()
        });
        assert_eq!(slept.await, Ok(true));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_peek_takes_nothing_and_readiness_says_what_can_be_done() -> io::Result<()> {
    in_time(async {
        let (near, far) = pair()?;
        let listener = far.listen("10.9.0.2:7").await?;
        let client = near.connect("10.9.0.2:7").await?;
        let (mut server, caller) = listener.accept().await?;
        assert_eq!(caller, client.local_addr()?);
        assert!(!client.ready(Interest::READABLE | Interest::WRITABLE).await?.is_readable());
        assert_eq!(client.try_read(&mut [0; 8]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        server.write_all(b"abcdef").await?;
        client.readable().await?;
        let mut place = [0; 6];
        while client.peek(&mut place).await? < 6 {
            tokio::task::yield_now().await;
        }
        assert_eq!(&place, b"abcdef");
        assert_eq!(client.peek(&mut place[..2]).await?, 2);
        assert_eq!(client.try_read(&mut place)?, 6);
        drop(server);
        let ready = client.ready(Interest::READABLE).await?;
        assert!(ready.is_readable() && ready.is_read_closed() && !ready.is_write_closed());
        assert_eq!(client.try_read(&mut place)?, 0);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn options_are_set_before_and_after_the_handshake() -> io::Result<()> {
    in_time(async {
        let (near, far) = pair()?;
        let listening = far.scope(async {
            let socket = TcpSocket::new_v4()?;
            socket.bind("10.9.0.2:7".parse().unwrap())?;
            socket.set_nodelay(true)?;
            socket.listen(8)
        });
        let listener = listening.await?;
        let client = near.connect("10.9.0.2:7").await?;
        let (server, _) = listener.accept().await?;
        assert!(server.nodelay()? && !client.nodelay()?);
        client.set_nodelay(true)?;
        client.set_ttl(7)?;
        client.set_linger(Some(Duration::ZERO))?;
        assert_eq!((client.nodelay()?, client.ttl()?, client.linger()?), (true, 7, Some(Duration::ZERO)));
        assert!(client.set_ttl(0).is_err());
        // With no time to linger the peer gets a reset.
        drop(client);
        let error = server.readable().await.and_then(|()| server.try_read(&mut [0; 1])).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn both_halves_come_together_again_and_others_do_not() -> io::Result<()> {
    in_time(async {
        let (near, far) = pair()?;
        let listener = far.listen("10.9.0.2:7").await?;
        let (one, two) = (near.connect("10.9.0.2:7").await?, near.connect("10.9.0.2:7").await?);
        let ((read, write), (other_read, other_write)) = (one.into_split(), two.into_split());
        let (read, other_write) = match read.reunite(other_write) {
            Err(inhost::net::ReuniteError(read, write)) => (read, write),
            Ok(_) => panic!("halves of two streams"),
        };
        let mut one = read.reunite(write).unwrap();
        let (mut server, _) = listener.accept().await?;
        one.write_all(b"still open").await?;
        server.read_exact(&mut [0; 10]).await?;
        // Dropping the writing half ends what is sent; the other direction goes on.
        drop(other_write);
        let (mut server, _) = listener.accept().await?;
        assert_eq!(server.read(&mut [0; 1]).await?, 0);
        server.write_all(b"x").await?;
        let mut other_read = other_read;
        other_read.read_exact(&mut [0; 1]).await?;
        Ok(())
    })
    .await
}

#[tokio::test]
async fn without_a_host_sockets_say_what_to_do() {
    let error = TcpStream::connect("127.0.0.1:7").await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotConnected);
    assert!(error.to_string().contains("make_default"), "{error}");
    assert_eq!(TcpListener::bind("127.0.0.1:7").await.unwrap_err().kind(), io::ErrorKind::NotConnected);
}

#[tokio::test]
async fn what_was_written_arrives_though_the_host_goes_down_at_once() -> io::Result<()> {
    in_time(async {
        let (near, far) = pair()?;
        let listener = far.listen("10.9.0.2:7").await?;
        let mut client = near.connect("10.9.0.2:7").await?;
        let (mut server, _) = listener.accept().await?;
        let reader = tokio::spawn(async move {
            let mut all = Vec::new();
            server.read_to_end(&mut all).await.map(|_| all.len())
        });
        client.write_all(&[7; 300_000]).await?;
        drop(client);
        near.shutdown().await;
        assert_eq!(near.connect("10.9.0.2:7").await.unwrap_err().kind(), io::ErrorKind::NetworkDown);
        assert_eq!(reader.await.unwrap()?, 300_000);
        Ok(())
    })
    .await
}
