//! Bulk data over connections.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;

use inhost_base::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWrite};

use super::counters::{Counter, Pace, Total};
use crate::face::Face;

/// Least room for what is received, in bytes.
const READ_MIN_BYTES: usize = 128 << 10;

/// How a stream ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// The bytes or writes of the plan are done.
    Total,
    /// The other end closed.
    Closed,
}

/// What a stream is to do.
#[derive(Clone, Debug)]
pub struct Job {
    /// Bytes of a write.
    pub write_bytes: usize,
    /// Rate, in bits a second; 0 for none.
    pub rate: u64,
    /// The end of the test.
    pub total: Rc<Total>,
}

/// What is sent: every byte value, so that nothing on the way can compress it to nothing.
pub fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at as u8) ^ (at >> 8) as u8).collect()
}

/// Sends until the total is reached or the other end closes. The buffer is the same for each write.
pub async fn send<F: Face>(
    face: &F,
    stream: &mut F::Stream,
    job: &Job,
    counter: &Counter,
) -> io::Result<Ended> {
    let buffer = pattern(job.write_bytes);
    let began = face.now();
    let mut pace = Pace::new(job.rate);
    let mut offset = 0;
    loop {
        if let Some(due) = pace.due_ns() {
            wait_until(face, began + Duration::from_nanos(due)).await;
        }
        let count = match write(stream, &buffer[offset..], counter).await {
            Ok(count) => count,
            Err(why) if is_end(&why) => return Ok(Ended::Closed),
            Err(why) => return Err(why),
        };
        if count == 0 {
            return Ok(Ended::Closed);
        }
        pace.took(count);
        counter.bytes.set(counter.bytes.get() + count as u64);
        offset += count;
        let is_whole = offset >= buffer.len();
        if is_whole {
            offset = 0;
            counter.blocks.set(counter.blocks.get() + 1);
        }
        if job.total.take(true, count as u64, is_whole.into()) {
            return Ok(Ended::Total);
        }
    }
}

/// Whether an error only says that the other end has closed.
pub fn is_end(why: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    matches!(
        why.kind(),
        Kind::BrokenPipe | Kind::ConnectionReset | Kind::ConnectionAborted | Kind::UnexpectedEof
    )
}

async fn wait_until<F: Face>(face: &F, at: Instant) {
    if at > face.now() {
        face.sleep_until(at).await;
    }
}

/// One write; whether it had to wait is counted.
async fn write<S: AsyncWrite + Unpin>(stream: &mut S, bytes: &[u8], counter: &Counter) -> io::Result<usize> {
    let mut has_waited = false;
    let result = poll_fn(|context| {
        let polled = Pin::new(&mut *stream).poll_write(context, bytes);
        has_waited |= polled.is_pending();
        polled
    })
    .await;
    counter.waits.set(counter.waits.get() + u64::from(has_waited));
    result
}

/// Receives until the total is reached or the other end closes.
pub async fn receive<S: tokio::io::AsyncRead + Unpin>(
    stream: &mut S,
    job: &Job,
    counter: &Counter,
) -> io::Result<Ended> {
    let mut buffer = vec![0; job.write_bytes.max(READ_MIN_BYTES)];
    let (mut received, mut counted) = (0, 0);
    loop {
        let count = match stream.read(&mut buffer).await {
            Ok(0) => return Ok(Ended::Closed),
            Ok(count) => count as u64,
            Err(why) if is_end(&why) => return Ok(Ended::Closed),
            Err(why) => return Err(why),
        };
        counter.bytes.set(counter.bytes.get() + count);
        received += count;
        let blocks = received / job.write_bytes.max(1) as u64 - counted;
        counted += blocks;
        counter.blocks.set(counter.blocks.get() + blocks);
        if job.total.take(false, count, blocks) {
            return Ok(Ended::Total);
        }
    }
}
