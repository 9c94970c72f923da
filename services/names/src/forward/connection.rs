//! Clients over TCP (RFC 7766): questions are read, and replies written in order of completion.

use super::exchange::{Back, Shared, decide};
use super::owed::{Line, Next, Owed};
use crate::driver::read_message;
use futures_lite::future::or;
use inhost_base::{Duration, IpAddr};
use inhost_common::Permit;
use inhost_socket::{Host, Stream};
use std::future::poll_fn;
use std::rc::Rc;
use tokio::io::{AsyncWrite, AsyncWriteExt};

/// A connection on which no question comes for so long is closed (RFC 7766 §6.2.3: a few seconds).
pub(super) const IDLE_LIMIT: Duration = Duration::from_secs(10);
/// A client that does not take what waits within this time, and a second for each [`SLOW_BYTES`], is given up.
const WRITE_LIMIT: Duration = Duration::from_secs(10);
/// Minimum rate of a client, in octets a second: half of what a line of 9600 bit/s carries.
const SLOW_BYTES: u64 = 512;
/// Serves one connection until the client ends, or is silent and nothing is owed to it. When `permit` is over, no further
/// question is read.
pub(super) async fn connection(shared: Rc<Shared>, stream: Stream, caller: IpAddr, permit: Permit) {
    let peer = stream.remote().address;
    let host = shared.asker.host().clone();
    let line = Line::new(shared.waiting_bytes.clone());
    let (mut input, mut output) = tokio::io::split(stream);
    let questions = async {
        while let Ok(Ok(Some(question))) = host.timeout(IDLE_LIMIT, read_message(&mut input)).await {
            decide(&shared, &question, peer, caller, true, Back::Connection(Owed::new(&line))).await;
            line.has_room().await;
        }
    };
    let over = async {
        poll_fn(|cx| permit.poll_over(cx)).await;
    };
    let reading = async {
        or(questions, over).await;
        line.no_more_questions();
        std::future::pending().await
    };
    let is_whole = or(write(&line, &host, &mut output), reading).await;
    let stream = input.unsplit(output);
    if !is_whole {
        stream.abort();
    }
}

/// Writes what waits; true once all is written and nothing more comes.
async fn write(line: &Line, host: &Host, output: &mut (impl AsyncWrite + Unpin)) -> bool {
    loop {
        let bytes = match line.next().await {
            Next::Write(bytes) => bytes,
            Next::End => return true,
            Next::Reset => return false,
        };
        let limit = WRITE_LIMIT + Duration::from_secs(bytes.len() as u64 / SLOW_BYTES);
        if !matches!(host.timeout(limit, output.write_all(&bytes)).await, Ok(Ok(()))) {
            return false;
        }
        line.written();
    }
}
