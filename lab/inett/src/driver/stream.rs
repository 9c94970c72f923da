//! Bulk data over connections.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;

use bytes::Bytes;
use inhost_base::{Duration, Instant};
use tokio::io::{AsyncRead, ReadBuf};

use super::counters::{Counter, Pace, Total};
use crate::face::Face;

/// Least bytes of a buffer.
const BUFFER_MIN_BYTES: usize = 128 << 10;

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
    /// Of all streams of the test.
    pub buffers: Rc<Buffers>,
}

/// What all streams of a test share, so that a test needs the same memory however many streams it has: the bytes that are
/// sent, and room for those that are received and dropped.
#[derive(Debug)]
pub struct Buffers {
    pattern: Bytes,
    room: RefCell<Vec<u8>>,
}

impl Buffers {
    /// For writes of so many bytes.
    pub fn new(write_bytes: usize) -> Rc<Buffers> {
        let bytes = write_bytes.max(BUFFER_MIN_BYTES);
        Rc::new(Buffers { pattern: pattern(bytes).into(), room: RefCell::new(vec![0; bytes]) })
    }
    /// So many bytes to send, or as many as there are.
    pub fn pattern(&self, bytes: u64) -> &[u8] {
        let bytes = usize::try_from(bytes).map_or(self.pattern.len(), |bytes| bytes.min(self.pattern.len()));
        &self.pattern[..bytes]
    }
    /// The same bytes, to be lent.
    pub fn shared(&self, bytes: usize) -> Bytes {
        self.pattern.slice(..bytes.min(self.pattern.len()))
    }
    /// One read of bulk data: how many bytes came; 0 at the end of the stream.
    async fn receive<F: Face>(&self, stream: &mut F::Stream) -> io::Result<u64> {
        // Nothing else runs while a stream is polled.
        let count = poll_fn(|context| F::poll_receive(stream, context, &mut self.room.borrow_mut())).await?;
        Ok(count as u64)
    }
    /// One read of at most so many bytes: how many came, and the last one. `None` at the end of the stream.
    pub async fn read<S: AsyncRead + Unpin>(
        &self,
        stream: &mut S,
        most: u64,
    ) -> io::Result<Option<(u64, u8)>> {
        poll_fn(|context| {
            // Nothing else runs while a stream is polled.
            let mut room = self.room.borrow_mut();
            let most = usize::try_from(most).map_or(room.len(), |most| most.min(room.len()));
            let mut buffer = ReadBuf::new(&mut room[..most]);
            let polled = Pin::new(&mut *stream).poll_read(context, &mut buffer);
            polled.map_ok(|()| buffer.filled().last().map(|last| (buffer.filled().len() as u64, *last)))
        })
        .await
    }
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
    let buffer = job.buffers.shared(job.write_bytes);
    let began = face.now();
    let mut pace = Pace::new(job.rate);
    let mut offset = 0;
    loop {
        if let Some(due) = pace.due_ns() {
            wait_until(face, began + Duration::from_nanos(due)).await;
        }
        let count = match write::<F>(stream, &buffer, offset, counter).await {
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
async fn write<F: Face>(
    stream: &mut F::Stream,
    bytes: &Bytes,
    from: usize,
    counter: &Counter,
) -> io::Result<usize> {
    let mut has_waited = false;
    let result = poll_fn(|context| {
        let polled = F::poll_send(stream, context, bytes, from);
        has_waited |= polled.is_pending();
        polled
    })
    .await;
    counter.waits.set(counter.waits.get() + u64::from(has_waited));
    result
}

/// Receives until the total is reached or the other end closes.
pub async fn receive<F: Face>(stream: &mut F::Stream, job: &Job, counter: &Counter) -> io::Result<Ended> {
    let (mut received, mut counted) = (0, 0);
    loop {
        let count = match job.buffers.receive::<F>(stream).await {
            Ok(0) => return Ok(Ended::Closed),
            Ok(count) => count,
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
