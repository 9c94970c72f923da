//! Three programs, each as it should be and with a mistake, and two loads. They know nothing of the simulator: `net` and
//! `time` are its own, by the module that includes this file.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};

use super::net::{TcpListener, TcpStream};
use super::time;

pub use crate::Variant;

/// Bytes of the answer behind the relay.
const ANSWER_BYTES: usize = 200_000;
/// Bytes to be echoed: more than all buffers on the way hold.
const ECHO_BYTES: usize = 64 << 20;
/// How long the client of the echo attends to other things.
const BUSY: Duration = Duration::from_secs(1);
/// How long a buyer waits for the receipt.
const PATIENCE: Duration = Duration::from_secs(3);

/// Reads a question to its end, and answers.
pub async fn answer() -> io::Result<()> {
    let listener = TcpListener::bind("0.0.0.0:9000").await?;
    loop {
        let (mut stream, _) = listener.accept().await?;
        stream.read_to_end(&mut Vec::new()).await?;
        stream.write_all(&vec![7; ANSWER_BYTES]).await?;
        stream.shutdown().await?;
    }
}

/// Passes one connection on. The mistake: it takes the end of one direction for the end of both.
pub async fn relay(variant: Variant) -> io::Result<()> {
    let listener = TcpListener::bind("0.0.0.0:9000").await?;
    let (mut near, _) = listener.accept().await?;
    let mut far = TcpStream::connect("server:9000").await?;
    match variant {
        Variant::Right => {
            tokio::io::copy_bidirectional(&mut near, &mut far).await?;
        }
        Variant::Wrong => {
            let (mut near_receive, mut near_send) = near.split();
            let (mut far_receive, mut far_send) = far.split();
            tokio::select! {
                biased;
                done = tokio::io::copy(&mut near_receive, &mut far_send) => { done?; }
                done = tokio::io::copy(&mut far_receive, &mut near_send) => { done?; }
            }
        }
    }
    drop((near, far));
    std::future::pending().await
}

/// Asks through the relay, ends its side, and expects the whole answer.
pub async fn question() -> Result<(), String> {
    let mut stream = TcpStream::connect("relay:9000").await.map_err(said("connect"))?;
    stream.write_all(&[1; 1000]).await.map_err(said("write"))?;
    stream.shutdown().await.map_err(said("shutdown"))?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.map_err(said("read"))?;
    expect("bytes of the answer", answer.len(), ANSWER_BYTES)
}

/// Sends back what comes, as it comes, in pieces of up to `piece_bytes`.
pub async fn echo(piece_bytes: usize) -> io::Result<()> {
    let listener = TcpListener::bind("0.0.0.0:9000").await?;
    loop {
        let (mut stream, _) = listener.accept().await?;
        let (receive, mut send) = stream.split();
        tokio::io::copy_buf(&mut BufReader::with_capacity(piece_bytes, receive), &mut send).await?;
        send.shutdown().await?;
    }
}

/// Has much echoed. It is busy for a while before it reads, so that windows close. The mistake: it reads only when all is
/// written, and by then the windows are closed for good.
pub async fn have_echoed(variant: Variant, piece_bytes: usize) -> Result<(), String> {
    let mut stream = TcpStream::connect("server:9000").await.map_err(said("connect"))?;
    let (mut receive, mut send) = stream.split();
    let write = async {
        let block = vec![7; 65_536];
        for _ in 0..ECHO_BYTES / block.len() {
            send.write_all(&block).await?;
        }
        send.shutdown().await
    };
    let read = async {
        time::sleep(BUSY).await;
        let mut place = vec![0; piece_bytes];
        let mut count = 0;
        loop {
            match receive.read(&mut place).await? {
                0 => return Ok(count),
                more => count += more,
            }
        }
    };
    let count = match variant {
        Variant::Right => tokio::try_join!(write, read).map(|((), count)| count),
        Variant::Wrong => match write.await {
            Ok(()) => read.await,
            Err(error) => Err(error),
        },
    };
    expect("bytes that came back", count.map_err(said("echo"))?, ECHO_BYTES)
}

/// Takes orders, a line each. The mistake: it takes an order that comes twice for two.
pub async fn shop(variant: Variant) -> io::Result<()> {
    let listener = TcpListener::bind("0.0.0.0:9000").await?;
    let (seen, sold) = (RefCell::new(BTreeSet::new()), RefCell::new(0));
    let attend = async |stream: TcpStream| -> io::Result<()> {
        let mut stream = BufReader::new(stream);
        let mut line = String::new();
        while stream.read_line(&mut line).await? > 0 {
            let answer = match line.trim_end() {
                "how many?" => format!("{}\n", sold.borrow()),
                order => {
                    let is_new = seen.borrow_mut().insert(order.to_owned());
                    *sold.borrow_mut() += usize::from(is_new || variant == Variant::Wrong);
                    "sold\n".to_owned()
                }
            };
            line.clear();
            stream.write_all(answer.as_bytes()).await?;
        }
        Ok(())
    };
    let mut customers = FuturesUnordered::new();
    loop {
        tokio::select! {
            biased;
            caller = listener.accept() => customers.push(attend(caller?.0)),
            // How a connection ended is not the shop's business.
            Some(_) = customers.next() => {}
        }
    }
}

/// Orders one thing, and again on a new connection when no receipt comes. The first order is sent into a partition.
pub async fn buy() -> Result<(), String> {
    let mut stream = TcpStream::connect("server:9000").await.map(BufReader::new);
    time::sleep(Duration::from_millis(1500)).await;
    loop {
        let attempt = async {
            let stream = stream.as_mut().map_err(|error| io::Error::from(error.kind()))?;
            ask(stream, "order 1").await
        };
        match time::timeout(PATIENCE, attempt).await {
            Ok(Ok(answer)) if answer == "sold" => break,
            _ => {
                // This closes the old connection. What was written to it may still arrive.
                drop(stream);
                time::sleep(Duration::from_secs(1)).await;
                stream = TcpStream::connect("server:9000").await.map(BufReader::new);
            }
        }
    }
    time::sleep(Duration::from_secs(60)).await;
    let stream = TcpStream::connect("server:9000").await.map_err(said("connect"))?;
    let sold = ask(&mut BufReader::new(stream), "how many?").await.map_err(said("ask"))?;
    expect("things sold", sold.as_str(), "1")
}

async fn ask(stream: &mut BufReader<TcpStream>, question: &str) -> io::Result<String> {
    stream.write_all(format!("{question}\n").as_bytes()).await?;
    let mut answer = String::new();
    match stream.read_line(&mut answer).await? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(answer.trim_end().to_owned()),
    }
}

/// Takes a stream of bytes to its end.
pub async fn sink() -> io::Result<()> {
    let listener = TcpListener::bind("0.0.0.0:9000").await?;
    let mut place = vec![0; 65_536];
    loop {
        let (mut stream, _) = listener.accept().await?;
        while stream.read(&mut place).await? > 0 {}
    }
}

/// Sends `bytes`, and waits for the other end to have read them.
pub async fn bulk(bytes: usize) -> Result<(), String> {
    let mut stream = TcpStream::connect("server:9000").await.map_err(said("connect"))?;
    let block = vec![7; 65_536];
    for _ in 0..bytes / block.len() {
        stream.write_all(&block).await.map_err(said("write"))?;
    }
    stream.shutdown().await.map_err(said("shutdown"))?;
    let count = stream.read(&mut [0; 1]).await.map_err(said("read"))?;
    expect("bytes after the end", count, 0)
}

/// Sends 100 bytes and waits for their echo, `count` times.
pub async fn exchanges(count: usize) -> Result<(), String> {
    let mut stream = TcpStream::connect("server:9000").await.map_err(said("connect"))?;
    let mut place = [0; 100];
    for _ in 0..count {
        stream.write_all(&[7; 100]).await.map_err(said("write"))?;
        stream.read_exact(&mut place).await.map_err(said("read"))?;
    }
    Ok(())
}

/// Holds a connection, and says nothing.
pub async fn idle(time: Duration) -> Result<(), String> {
    let stream = TcpStream::connect("server:9000").await.map_err(said("connect"))?;
    time::sleep(time).await;
    drop(stream);
    Ok(())
}

fn said(what: &str) -> impl FnOnce(io::Error) -> String {
    move |error| format!("{what}: {error}")
}

fn expect<T: PartialEq + std::fmt::Display>(what: &str, found: T, expected: T) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("{what}: {found} instead of {expected}")) }
}
