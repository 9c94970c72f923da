//! TCP sockets: what holds of tokio's on the kernel's loopback holds of ours, in production and in the simulator.
//!
//! docs/simulator.md lists the behaviours that other simulators of `tokio::net` are tested for, and where each is tried here.
#![cfg(all(feature = "sim", feature = "tokio"))]

use std::future::Future;
use std::io;
use std::sync::LazyLock;

use inhost::Host;

use crate::in_time;

/// Tests of one implementation, whose sockets are in `net` and whose interests in `ready`. Each is a future that needs
/// no executor of its own.
macro_rules! semantics {
    ($($ready:ident)::+, $($net:ident)::+) => {
        use std::fmt::Debug;
        use std::io::{self, ErrorKind};

        use $($net)::+::tcp::{OwnedReadHalf, OwnedWriteHalf, ReadHalf, ReuniteError, WriteHalf};
        use $($net)::+::{TcpListener, TcpSocket, TcpStream, UdpSocket};
        use $($ready)::+::{Interest, Ready};
        use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

        async fn pair() -> io::Result<(TcpStream, TcpStream)> {
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            let at = listener.local_addr()?;
            let (client, (server, caller)) = tokio::try_join!(TcpStream::connect(at), listener.accept())?;
            // Each end knows both addresses.
            assert_eq!((client.peer_addr()?, server.local_addr()?), (at, at));
            assert_eq!((caller, server.peer_addr()?), (client.local_addr()?, client.local_addr()?));
            assert!(caller.ip().is_loopback() && caller.port() != at.port());
            Ok((client, server))
        }

        pub async fn both_ends_know_both_addresses_and_bytes_go_both_ways() -> io::Result<()> {
            let (mut client, mut server) = pair().await?;
            let mut place = [0; 5];
            tokio::try_join!(client.write_all(b"hello"), server.read_exact(&mut place))?;
            assert_eq!(&place, b"hello");
            tokio::try_join!(server.write_all(b"world"), client.read_exact(&mut place))?;
            assert_eq!(&place, b"world");
            Ok(())
        }

        pub async fn a_reader_who_waits_is_woken_by_data() -> io::Result<()> {
            let (mut client, mut server) = pair().await?;
            let mut place = [0; 3];
            // The reader is polled first, finds nothing, and waits.
            tokio::try_join!(biased; server.read_exact(&mut place), client.write_all(b"hey"))?;
            assert_eq!(&place, b"hey");
            Ok(())
        }

        pub async fn a_writer_waits_while_nobody_reads_and_goes_on_when_somebody_does() -> io::Result<()> {
            const LIMIT: usize = 64 << 20;
            let (mut client, mut server) = pair().await?;
            let block = [7; 65_536];
            let mut written = 0;
            while let Ok(count) = client.try_write(&block) {
                written += count;
                assert!(written < LIMIT, "nothing holds the writer back");
            }
            assert_eq!(client.try_write(&block).unwrap_err().kind(), ErrorKind::WouldBlock);
            // Twice as much again goes only as the reader makes room.
            let rest = 2 * written;
            let mut received = vec![0; written + rest];
            let write = async {
                client.write_all(&vec![7; rest]).await?;
                client.shutdown().await
            };
            tokio::try_join!(write, server.read_exact(&mut received))?;
            assert!(received.iter().all(|&byte| byte == 7));
            assert_eq!(server.read(&mut [0]).await?, 0);
            Ok(())
        }

        pub async fn many_segments_arrive_as_one_stream() -> io::Result<()> {
            let (mut client, mut server) = pair().await?;
            let sent: Vec<u8> = (0..300_000u32).flat_map(|number| (number % 65_521).to_le_bytes()).collect();
            let mut received = Vec::new();
            let write = async {
                client.write_all(&sent).await?;
                client.shutdown().await
            };
            tokio::try_join!(write, server.read_to_end(&mut received))?;
            assert!(received == sent);
            Ok(())
        }

        pub async fn a_full_backlog_takes_callers_again_once_one_is_accepted() -> io::Result<()> {
            let socket = TcpSocket::new_v4()?;
            socket.bind("127.0.0.1:0".parse().unwrap())?;
            let listener = socket.listen(2)?;
            let at = listener.local_addr()?;
            let first = [TcpStream::connect(at).await?, TcpStream::connect(at).await?];
            let (one, caller) = listener.accept().await?;
            assert_eq!(caller, first[0].local_addr()?);
            let third = TcpStream::connect(at).await?;
            assert_eq!(listener.accept().await?.1, first[1].local_addr()?);
            assert_eq!(listener.accept().await?.1, third.local_addr()?);
            drop(one);
            Ok(())
        }

        pub async fn a_port_without_a_listener_refuses() -> io::Result<()> {
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            let at = listener.local_addr()?;
            drop(listener);
            assert_eq!(TcpStream::connect(at).await.unwrap_err().kind(), ErrorKind::ConnectionRefused);
            // And the port is free again.
            TcpListener::bind(at).await?;
            Ok(())
        }

        pub async fn a_port_is_listened_on_once() -> io::Result<()> {
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            let again = TcpListener::bind(listener.local_addr()?).await;
            assert_eq!(again.unwrap_err().kind(), ErrorKind::AddrInUse);
            Ok(())
        }

        pub async fn one_direction_ends_and_the_other_goes_on() -> io::Result<()> {
            let (mut client, mut server) = pair().await?;
            let mut answer = String::new();
            let ask = async {
                client.write_all(b"question").await?;
                client.shutdown().await?;
                assert_eq!(client.write(b"more").await.unwrap_err().kind(), ErrorKind::BrokenPipe);
                client.read_to_string(&mut answer).await
            };
            let reply = async {
                let mut question = String::new();
                server.read_to_string(&mut question).await?;
                assert_eq!(question, "question");
                server.write_all(b"answer").await?;
                server.shutdown().await
            };
            tokio::try_join!(ask, reply)?;
            assert_eq!(answer, "answer");
            Ok(())
        }

        pub async fn unread_data_that_is_dropped_resets_the_writer() -> io::Result<()> {
            let (client, mut server) = pair().await?;
            server.write_all(b"unread").await?;
            client.peek(&mut [0; 6]).await?;
            drop(client);
            // The reset is seen without a read: the stream is ready, and the write fails.
            server.readable().await?;
            let error = server.write_all(b"x").await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ConnectionReset);
            Ok(())
        }

        pub async fn a_reset_wakes_a_reader_who_waits() -> io::Result<()> {
            let (client, mut server) = pair().await?;
            server.write_all(b"unread").await?;
            client.peek(&mut [0; 6]).await?;
            let mut place = [0; 4];
            let (read, ()) = tokio::join!(biased; server.read(&mut place), async { drop(client) });
            assert_eq!(read.unwrap_err().kind(), ErrorKind::ConnectionReset);
            Ok(())
        }

        pub async fn options_are_what_they_were_set_to() -> io::Result<()> {
            let (client, _server) = pair().await?;
            assert_eq!((client.ttl()?, client.nodelay()?), (64, false));
            client.set_ttl(16)?;
            client.set_nodelay(true)?;
            assert_eq!((client.ttl()?, client.nodelay()?), (16, true));
            assert_eq!(client.set_ttl(256).unwrap_err().kind(), ErrorKind::InvalidInput);
            Ok(())
        }

        pub async fn a_listener_has_a_ttl_which_its_connections_inherit() -> io::Result<()> {
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            assert_eq!(listener.ttl()?, 64);
            listener.set_ttl(16)?;
            assert_eq!(listener.ttl()?, 16);
            assert_eq!(listener.set_ttl(256).unwrap_err().kind(), ErrorKind::InvalidInput);
            let at = listener.local_addr()?;
            let (client, (server, _)) = tokio::try_join!(TcpStream::connect(at), listener.accept())?;
            assert_eq!((client.ttl()?, server.ttl()?), (64, 16));
            Ok(())
        }

        pub async fn an_attempt_to_read_does_not_wait() -> io::Result<()> {
            let (client, server) = pair().await?;
            let mut place = [0; 8];
            assert_eq!(client.try_read(&mut place).unwrap_err().kind(), ErrorKind::WouldBlock);
            server.try_write(b"now")?;
            client.readable().await?;
            assert_eq!(client.try_read(&mut place)?, 3);
            assert_eq!(client.try_read(&mut place).unwrap_err().kind(), ErrorKind::WouldBlock);
            let ready: Ready = client.ready(Interest::WRITABLE).await?;
            assert!(ready.is_writable());
            Ok(())
        }

        pub async fn a_peek_takes_nothing() -> io::Result<()> {
            let (mut client, mut server) = pair().await?;
            client.write_all(b"PING").await?;
            let mut place = [0; 4];
            for _ in 0..2 {
                let count = server.peek(&mut place).await?;
                assert_eq!(&place[..count], b"PING");
            }
            server.read_exact(&mut place).await?;
            assert_eq!(&place, b"PING");
            Ok(())
        }

        async fn ask(mut send: impl AsyncWrite + Unpin, mut receive: impl AsyncRead + Unpin) -> io::Result<()> {
            let mut place = [0; 3];
            // The reader waits first, and the writer's waiting does not take its place.
            let read = receive.read_exact(&mut place);
            tokio::try_join!(biased; read, send.write_all(b"hello"))?;
            assert_eq!(&place, b"hi!");
            Ok(())
        }
        async fn answer(mut server: TcpStream) -> io::Result<()> {
            server.read_exact(&mut [0; 5]).await?;
            server.write_all(b"hi!").await
        }

        pub async fn halves_of_any_kind_read_and_write_at_once() -> io::Result<()> {
            let (client, server) = pair().await?;
            let (receive, send) = tokio::io::split(client);
            tokio::try_join!(ask(send, receive), answer(server))?;
            let (mut client, server) = pair().await?;
            let (receive, send) = client.split();
            tokio::try_join!(ask(send, receive), answer(server))?;
            let (client, server) = pair().await?;
            let (receive, send) = client.into_split();
            tokio::try_join!(ask(send, receive), answer(server))?;
            Ok(())
        }

        pub async fn halves_come_together_again_but_not_those_of_others() -> io::Result<()> {
            let (client, server) = pair().await?;
            let at = client.peer_addr()?;
            let (receive, send) = client.into_split();
            assert_eq!(send.reunite(receive).unwrap().peer_addr()?, at);
            let (other, _other_server) = pair().await?;
            let (receive, _send) = server.into_split();
            let (_other_receive, other_send) = other.into_split();
            let error: ReuniteError = receive.reunite(other_send).unwrap_err();
            assert!(error.to_string().contains("not from the same socket"), "{error}");
            Ok(())
        }

        pub async fn a_writing_half_that_is_dropped_ends_the_stream() -> io::Result<()> {
            let (client, mut server) = pair().await?;
            let (mut receive, send) = client.into_split();
            drop(send);
            assert_eq!(server.read(&mut [0; 1]).await?, 0);
            server.write_all(b"x").await?;
            assert_eq!(receive.read(&mut [0; 2]).await?, 1);
            Ok(())
        }

        pub async fn callers_whom_nobody_accepted_are_reset_with_the_listener() -> io::Result<()> {
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            let mut client = TcpStream::connect(listener.local_addr()?).await?;
            drop(listener);
            let error = client.read(&mut [0; 1]).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ConnectionReset);
            Ok(())
        }

        pub async fn a_datagram_socket_that_is_dropped_frees_its_port() -> io::Result<()> {
            let socket = UdpSocket::bind("127.0.0.1:0").await?;
            let at = socket.local_addr()?;
            assert_eq!(UdpSocket::bind(at).await.unwrap_err().kind(), ErrorKind::AddrInUse);
            drop(socket);
            UdpSocket::bind(at).await?;
            Ok(())
        }

        // The same traits on the same names, or this does not build.
        const fn is_debug<T: Debug + Send + Sync + Unpin>() {}
        const fn reads<T: AsyncRead + Debug + Send + Sync + Unpin>() {}
        const fn writes<T: AsyncWrite + Debug + Send + Sync + Unpin>() {}
        const _: () = {
            is_debug::<TcpListener>();
            is_debug::<TcpSocket>();
            is_debug::<UdpSocket>();
            is_debug::<ReuniteError>();
            reads::<TcpStream>();
            writes::<TcpStream>();
            reads::<ReadHalf<'_>>();
            writes::<WriteHalf<'_>>();
            reads::<OwnedReadHalf>();
            writes::<OwnedWriteHalf>();
        };
    };
}

mod kernel {
    semantics!(tokio::io, tokio::net);
}
mod production {
    semantics!(inhost::net, inhost::net);
}
mod simulator {
    semantics!(inhost::sim::net, inhost::sim::net);
}

/// The host of the tests in production.
static HOST: LazyLock<Host> = LazyLock::new(|| {
    let host = Host::builder().start().unwrap();
    host.make_default();
    host
});

/// Each test thrice: of tokio's sockets on the kernel, of ours within tokio, and of ours on a simulated host.
macro_rules! thrice {
    ($($name:ident),* $(,)?) => { $(
        #[tokio::test]
        async fn $name() -> io::Result<()> {
            LazyLock::force(&HOST);
            in_time(kernel::$name()).await?;
            in_time(production::$name()).await?;
            simulated(|| simulator::$name());
            Ok(())
        }
    )* };
}

thrice!(
    both_ends_know_both_addresses_and_bytes_go_both_ways,
    a_reader_who_waits_is_woken_by_data,
    a_writer_waits_while_nobody_reads_and_goes_on_when_somebody_does,
    many_segments_arrive_as_one_stream,
    a_full_backlog_takes_callers_again_once_one_is_accepted,
    a_port_without_a_listener_refuses,
    a_port_is_listened_on_once,
    one_direction_ends_and_the_other_goes_on,
    unread_data_that_is_dropped_resets_the_writer,
    a_reset_wakes_a_reader_who_waits,
    options_are_what_they_were_set_to,
    a_listener_has_a_ttl_which_its_connections_inherit,
    an_attempt_to_read_does_not_wait,
    a_peek_takes_nothing,
    halves_of_any_kind_read_and_write_at_once,
    halves_come_together_again_but_not_those_of_others,
    a_writing_half_that_is_dropped_ends_the_stream,
    callers_whom_nobody_accepted_are_reset_with_the_listener,
    a_datagram_socket_that_is_dropped_frees_its_port,
);

fn simulated<F: Future<Output = io::Result<()>> + 'static>(test: impl Fn() -> F + Copy + 'static) {
    inhost::sim::explore(0..3, |simulation| {
        simulation.client("alone", async move |_| Ok(test().await?));
    });
}
