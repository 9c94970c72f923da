//! Bulk data over UDP.

use std::future::Future;
use std::io;
use std::pin::Pin;

use inhost_base::{Duration, Endpoint};

use super::counters::{Counter, Pace};
use super::stream::{Ended, Job, pattern};
use super::{ANSWER_WITHIN, within};
use crate::face::Face;
use crate::iperf3::{DATAGRAM_HELLO, Header, is_ready};
use crate::plan::DATAGRAM_MAX_BYTES;

/// Datagrams that are sent without a look at anything else.
const BATCH: u64 = 32;
/// Time between two hellos.
const HELLO_EVERY: Duration = Duration::from_millis(500);

/// Sends numbered datagrams until the total is reached. What the system refuses for lack of room is not counted.
pub async fn send<F: Face>(
    face: &F,
    socket: &F::Datagrams,
    to: Option<Endpoint>,
    job: &Job,
    counter: &Counter,
    is_64_bit: bool,
) -> io::Result<Ended> {
    let mut datagram = pattern(job.write_bytes);
    let began = face.now();
    let mut pace = Pace::new(job.rate);
    let mut number = 0;
    loop {
        if let Some(due) = pace.due_ns() {
            let due = began + Duration::from_nanos(due);
            if due > face.now() {
                face.sleep_until(due).await;
            }
        }
        let header = Header { sent_ns: face.now().as_nanos(), number: number + 1 };
        header.put(&mut datagram, is_64_bit);
        match face.send_to(socket, &datagram, to).await {
            Ok(()) => number += 1,
            // A full queue of the system, or an error message about an earlier datagram.
            Err(why) if is_passing(&why) => {
                pause().await;
                continue;
            }
            Err(why) => return Err(why),
        }
        counter.bytes.set(number * datagram.len() as u64);
        counter.blocks.set(number);
        pace.took(datagram.len());
        if job.total.take(true, datagram.len() as u64, 1) {
            return Ok(Ended::Total);
        }
        if number.is_multiple_of(BATCH) {
            pause().await;
        }
    }
}

fn is_passing(why: &io::Error) -> bool {
    /// No buffer space.
    const ENOBUFS: i32 = 105;
    matches!(why.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::WouldBlock)
        || why.raw_os_error() == Some(ENOBUFS)
}

/// Lets others of the task run.
async fn pause() {
    let mut is_first = true;
    std::future::poll_fn(|context| match std::mem::take(&mut is_first) {
        true => {
            context.waker().wake_by_ref();
            std::task::Poll::Pending
        }
        false => std::task::Poll::Ready(()),
    })
    .await;
}

/// Receives datagrams of one stream until the total is reached.
pub async fn receive<F: Face>(
    face: &F,
    socket: &F::Datagrams,
    job: &Job,
    counter: &Counter,
    is_64_bit: bool,
) -> io::Result<Ended> {
    let mut buffer = vec![0; DATAGRAM_MAX_BYTES as usize];
    loop {
        let count = match face.receive_from(socket, &mut buffer).await {
            Ok((count, _)) => count,
            Err(why) if is_passing(&why) => continue,
            Err(why) => return Err(why),
        };
        let now = face.now().as_nanos();
        if arrived(&buffer[..count], now, counter, is_64_bit) && job.total.take(false, count as u64, 1) {
            return Ok(Ended::Total);
        }
    }
}

/// Counts a datagram that came at `now_ns`; false for one without a header.
pub fn arrived(datagram: &[u8], now_ns: u64, counter: &Counter, is_64_bit: bool) -> bool {
    let Some(header) = Header::read(datagram, is_64_bit) else { return false };
    let mut arrivals = counter.arrivals.get();
    arrivals.take(header, now_ns);
    counter.arrivals.set(arrivals);
    counter.bytes.set(counter.bytes.get() + datagram.len() as u64);
    true
}

/// Opens a stream: says hello until the server answers.
pub async fn open<F: Face>(face: &F, socket: &F::Datagrams) -> Option<io::Result<()>> {
    let mut buffer = vec![0; DATAGRAM_MAX_BYTES as usize];
    let greet = async {
        loop {
            if let Err(why) = face.send_to(socket, &DATAGRAM_HELLO, None).await
                && !is_passing(&why)
            {
                return Err(why);
            }
            let answer = async {
                loop {
                    match face.receive_from(socket, &mut buffer).await {
                        Ok((count, _)) if is_ready(&buffer[..count]) => return Ok(()),
                        Err(why) if !is_passing(&why) => return Err(why),
                        // Data of a server that sends may come first.
                        _ => {}
                    }
                }
            };
            if let Some(result) = within(face, HELLO_EVERY, answer).await {
                return result;
            }
        }
    };
    within(face, ANSWER_WITHIN, greet).await
}

/// A worker of a test.
pub type Worker<'a> = Pin<Box<dyn Future<Output = io::Result<Ended>> + 'a>>;
