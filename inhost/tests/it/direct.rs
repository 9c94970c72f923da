//! Streams on the thread of their host, which reach the connection without a detour, and those that move to another thread and
//! back.
#![cfg(feature = "tokio")]

use std::io::{self, ErrorKind};
use std::time::Duration;

use inhost::Host;
use inhost::net::{TcpListener, TcpStream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::Builder;
use tokio::task::LocalSet;

/// Longest time that anything may take.
const DEADLINE: Duration = Duration::from_secs(30);

/// Runs `work` beside a host within the same thread, with both ends of a connection of it.
fn with_streams<F: Future<Output = io::Result<()>>>(
    work: impl FnOnce(TcpStream, TcpStream) -> F,
) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, async {
        let (host, driver) = Host::builder().within_tokio()?;
        tokio::task::spawn_local(driver);
        let _current = host.enter();
        let listener = TcpListener::bind("127.0.0.1:7").await?;
        let caller = TcpStream::connect("127.0.0.1:7").await?;
        let (callee, _) = listener.accept().await?;
        tokio::time::timeout(DEADLINE, work(caller, callee)).await?
    })
}

/// The byte at an offset of the stream.
fn byte(at: usize) -> u8 {
    (at % 251) as u8
}

/// Reads `count` bytes from `at` on.
async fn read(stream: &mut TcpStream, at: &mut usize, count: usize) -> io::Result<()> {
    let mut place = vec![0; count];
    stream.read_exact(&mut place).await?;
    assert!(place.iter().enumerate().all(|(index, &got)| got == byte(*at + index)), "after {at} bytes");
    *at += count;
    Ok(())
}

/// Writes `count` bytes from `at` on.
async fn write(stream: &mut TcpStream, at: &mut usize, count: usize) -> io::Result<()> {
    let text: Vec<u8> = (*at..*at + count).map(byte).collect();
    stream.write_all(&text).await?;
    *at += count;
    Ok(())
}

#[test]
fn nothing_is_lost_or_overtaken_when_both_ends_move_to_another_thread_and_back() -> io::Result<()> {
    with_streams(async |mut caller, mut callee| {
        let sizes = [1, 70_000, 3, 5_000, 300_000, 17, 64 << 10];
        let sending = async {
            let mut at = 0;
            for (turn, &count) in sizes.iter().cycle().take(60).enumerate() {
                if turn % 3 == 1 {
                    let moved = tokio::task::spawn_blocking(move || {
                        let sent = inhost::block_on(write(&mut caller, &mut at, count));
                        sent.map(|()| (caller, at))
                    });
                    (caller, at) = moved.await??;
                } else {
                    write(&mut caller, &mut at, count).await?;
                }
            }
            caller.shutdown().await?;
            io::Result::Ok((caller, at))
        };
        let receiving = async {
            let mut at = 0;
            let total: usize = sizes.iter().cycle().take(60).sum();
            for (turn, &count) in [9_000, 2, 120_000, 40].iter().cycle().enumerate() {
                let count = count.min(total - at);
                if count == 0 {
                    break;
                }
                if turn % 4 == 2 {
                    let moved = tokio::task::spawn_blocking(move || {
                        let got = inhost::block_on(read(&mut callee, &mut at, count));
                        got.map(|()| (callee, at))
                    });
                    (callee, at) = moved.await??;
                } else {
                    read(&mut callee, &mut at, count).await?;
                }
            }
            assert_eq!(callee.read(&mut [0]).await?, 0, "the end");
            io::Result::Ok(at)
        };
        let ((_caller, sent), received) = tokio::try_join!(sending, receiving)?;
        assert_eq!(sent, received);
        Ok(())
    })
}

#[test]
fn attempts_and_waits_mix_with_reads() -> io::Result<()> {
    with_streams(async |mut caller, mut callee| {
        let (mut sent, mut received) = (0, 0);
        for turn in 0..50 {
            write(&mut caller, &mut sent, 1 + turn * 37).await?;
            match turn % 3 {
                0 => {
                    let count = sent - received;
                    read(&mut callee, &mut received, count).await?;
                }
                1 => {
                    while received < sent {
                        callee.readable().await?;
                        let mut place = [0; 500];
                        match callee.try_read(&mut place) {
                            Ok(count) => {
                                assert!((0..count).all(|index| place[index] == byte(received + index)));
                                received += count;
                            }
                            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
                        }
                    }
                }
                _ => {
                    let mut place = [0; 1];
                    assert_eq!(callee.peek(&mut place).await?, 1);
                    assert_eq!(place[0], byte(received));
                    read(&mut callee, &mut received, 1).await?;
                }
            }
        }
        Ok(())
    })
}

#[test]
fn who_waits_for_readiness_is_told_though_another_reads() -> io::Result<()> {
    with_streams(async |mut caller, callee| {
        let (mut reading, _writing) = callee.into_split();
        // The first read is direct, and waits.
        let mut place = [0; 4];
        assert!(tokio::time::timeout(Duration::from_millis(20), reading.read(&mut place)).await.is_err());
        let (told, read) =
            tokio::join!(tokio::time::timeout(DEADLINE, async { reading.readable().await }), async {
                tokio::time::sleep(Duration::from_millis(20)).await;
                caller.write_all(b"data").await
            });
        told??;
        read?;
        assert_eq!(reading.read(&mut place).await?, 4);
        Ok(())
    })
}

#[test]
fn ends_and_errors_are_found_directly() -> io::Result<()> {
    with_streams(async |mut caller, mut callee| {
        // An end, and then the other direction goes on.
        caller.write_all(b"last words").await?;
        caller.shutdown().await?;
        let mut text = String::new();
        callee.read_to_string(&mut text).await?;
        assert_eq!(text, "last words");
        callee.write_all(b"answer").await?;
        let mut place = [0; 6];
        caller.read_exact(&mut place).await?;
        assert_eq!(caller.write(b"x").await.unwrap_err().kind(), ErrorKind::BrokenPipe);
        // A reset: what waits is told, and so is one who asks later.
        caller.set_zero_linger()?;
        drop(caller);
        assert_eq!(callee.read(&mut place).await?, 0, "the end was read before");
        let error = loop {
            match callee.write(&[0; 1000]).await {
                Ok(_) => tokio::time::sleep(Duration::from_millis(1)).await,
                Err(error) => break error,
            }
        };
        assert!(matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe), "{error}");
        Ok(())
    })?;
    with_streams(async |caller, mut callee| {
        caller.set_zero_linger()?;
        drop(caller);
        let error = callee.read(&mut [0; 1]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        assert!(callee.take_error()?.is_some());
        Ok(())
    })
}

#[test]
fn what_was_written_arrives_though_the_stream_is_dropped_at_once() -> io::Result<()> {
    with_streams(async |mut caller, mut callee| {
        let text = vec![7; 3 << 20];
        let receiving = async {
            let mut got = Vec::new();
            callee.read_to_end(&mut got).await?;
            io::Result::Ok(got.len())
        };
        let sending = async {
            caller.write_all(&text).await?;
            drop(caller);
            io::Result::Ok(())
        };
        let (got, ()) = tokio::try_join!(receiving, sending)?;
        assert_eq!(got, 3 << 20);
        Ok(())
    })
}

#[test]
fn an_option_counts_for_what_is_written_after_it() -> io::Result<()> {
    with_streams(async |mut caller, mut callee| {
        // A small segment with Nagle's rule waits for the acknowledgment of the one before.
        caller.set_nodelay(false)?;
        caller.write_all(b"a").await?;
        caller.set_nodelay(true)?;
        caller.write_all(b"b").await?;
        let mut place = [0; 2];
        callee.read_exact(&mut place).await?;
        assert_eq!(&place, b"ab");
        let info = caller.info().await.ok_or(ErrorKind::NotConnected)?;
        assert_eq!(info.sent_bytes, 2);
        Ok(())
    })
}
