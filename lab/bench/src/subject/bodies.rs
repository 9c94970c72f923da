//! Bodies of a megabyte, each asked for by a byte, as an HTTP server sends them: by a task on the host, by a thread through
//! a stream that is `Send`, and by the kernel's socket. Nagle's algorithm stays on, as it is by default.

use crate::answer::Answer;
use crate::kernel::{CONGESTION, KERNEL};
use crate::link::connect;
use inhost_socket::{Host, blocking};
use rustix::net::sockopt::set_tcp_congestion;
use std::io::{Read, Write};
use std::net::TcpStream;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Where the kernel's end asks.
const PORT: u16 = 12;
const BODY_BYTES: usize = 1 << 20;

/// By a task on the host.
pub async fn by_a_task(host: &Host) -> Result<(), String> {
    let mut stream = connect(host, PORT).await?;
    let body = vec![0x5a; BODY_BYTES];
    // The kernel's end is stopped when all is counted.
    while stream.read_u8().await.is_ok() && stream.write_all(&body).await.is_ok() {}
    Ok(())
}

/// By a thread.
pub async fn by_a_thread(host: &Host) -> Result<(), String> {
    let stream = connect(host, PORT).await?.into_remote();
    let (over, ended) = async_channel::bounded::<()>(1);
    std::thread::spawn(move || {
        answer(blocking::TcpStream::from(stream));
        drop(over);
    });
    // Nothing is ever sent: it ends when the thread does.
    let _ = ended.recv().await;
    Ok(())
}

/// By the kernel's socket.
pub fn kernels(answered: Answer) -> Result<Answer, String> {
    let stream = TcpStream::connect((KERNEL, PORT)).map_err(|e| e.to_string())?;
    set_tcp_congestion(&stream, CONGESTION).map_err(|e| e.to_string())?;
    answer(stream);
    Ok(answered)
}

fn answer(mut stream: impl Read + Write) {
    let body = vec![0x5a; BODY_BYTES];
    while stream.read_exact(&mut [0]).is_ok() && stream.write_all(&body).is_ok() {}
}
