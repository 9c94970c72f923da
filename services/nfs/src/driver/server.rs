//! A connection of a client: records in, replies out, many calls at a time.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::stream::{FuturesUnordered, Stream};
use inhost_base::{Duration, Instant};
use inhost_common::{Clock, LocalFuture};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::codec::nfs::{self, DATA_BYTES, Procedure};
use crate::codec::record::{Records, mark};
use crate::codec::rpc::CallHeader;
use crate::server::{Answer, Caller, MESSAGE_BYTES, Programs, RECORD_BYTES, Server};

/// Octets that are read at a time.
const READ_BYTES: usize = 64 * 1024;
/// Steps before others have their turn.
const STEPS_A_TURN: usize = 64;
/// How soon a call is looked at again that is being done already.
const AGAIN: Duration = Duration::from_millis(20);
/// How often; then nothing is answered.
const AGAIN_TRIES: usize = 1500;
/// Octets of a reply that has no data, at most.
const REPLY_BYTES: usize = 36 * 1024;

/// Limits of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct SessionLimits {
    /// Bytes of pending calls and unsent replies. Beyond this nothing is read. One call is always accepted. Default: 4 MiB.
    pub held_bytes: usize,
    /// Concurrent calls. Default: 16, half of the server's, so that one connection cannot occupy all.
    pub calls: usize,
    /// A connection without calls is closed after this. Default: 6 minutes.
    pub idle_time: Duration,
    /// Time without progress while a reply is unsent or a record is incomplete. Default: 1 minute.
    pub stalled_time: Duration,
}

impl Default for SessionLimits {
    fn default() -> Self {
        SessionLimits {
            held_bytes: 4 << 20,
            calls: 16,
            idle_time: Duration::from_secs(360),
            stalled_time: Duration::from_secs(60),
        }
    }
}

/// How a connection ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SessionEnd {
    /// The client closed it, and has all replies.
    Closed,
    /// It was idle.
    Idle,
    /// The client took no replies, or sent half a record.
    Stalled,
    /// What came is not a record, or a record that is too long.
    Malformed,
    /// The connection broke.
    Broken,
}

impl fmt::Display for SessionEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SessionEnd::Closed => "connection closed",
            SessionEnd::Idle => "idle too long",
            SessionEnd::Stalled => "replies were not taken, or half a record came",
            SessionEnd::Malformed => "what came is not a record",
            SessionEnd::Broken => "connection lost",
        })
    }
}

/// A reply, and the bytes that its call was charged.
type Done = (Option<Vec<u8>>, usize);

/// One connection.
struct Session<'a, S, C> {
    stream: &'a mut S,
    clock: &'a C,
    server: &'a Arc<Server>,
    caller: Caller,
    programs: Programs,
    limits: SessionLimits,
    records: Records,
    /// Octets that came and were not looked at, behind `taken`.
    input: Vec<u8>,
    taken: usize,
    /// A call that has to wait for room.
    waiting: Option<Vec<u8>>,
    under_way: FuturesUnordered<LocalFuture<Done>>,
    held_bytes: usize,
    output: Vec<u8>,
    sent: usize,
    is_closed: bool,
    /// When something last moved.
    moved_at: Instant,
    alarm: Option<(Instant, LocalFuture<()>)>,
}

/// Serves a connection to its end. It holds a bounded amount of memory, whatever the client does.
pub async fn serve_stream<S, C>(
    stream: &mut S,
    clock: &C,
    server: &Arc<Server>,
    caller: Caller,
    programs: Programs,
    limits: SessionLimits,
) -> SessionEnd
where
    S: AsyncRead + AsyncWrite + Unpin,
    C: Clock + Clone + 'static,
{
    let mut session = Session {
        stream,
        clock,
        server,
        caller,
        programs,
        limits,
        records: Records::new(RECORD_BYTES),
        input: Vec::new(),
        taken: 0,
        waiting: None,
        under_way: FuturesUnordered::new(),
        held_bytes: 0,
        output: Vec::new(),
        sent: 0,
        is_closed: false,
        moved_at: clock.now(),
        alarm: None,
    };
    poll_fn(|cx| session.poll(cx)).await
}

/// Octets that a call may hold: its message and its reply.
fn held_by(message: &[u8]) -> usize {
    let reply = match CallHeader::parse(message) {
        // The last argument of READ is how many octets are wanted.
        Ok((call, arguments)) if call.target.procedure == nfs::Read::NUMBER => {
            let count = arguments.last_chunk().map_or(0, |last| u32::from_be_bytes(*last) as usize);
            count.min(DATA_BYTES) + MESSAGE_BYTES
        }
        Ok((call, _)) if call.target.procedure == nfs::Write::NUMBER => MESSAGE_BYTES,
        _ => REPLY_BYTES,
    };
    message.len() + reply
}

/// Result of a step.
enum Step {
    Moved,
    Waits,
    Ends(SessionEnd),
}

impl<S, C> Session<'_, S, C>
where
    S: AsyncRead + AsyncWrite + Unpin,
    C: Clock + Clone + 'static,
{
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<SessionEnd> {
        for _ in 0..STEPS_A_TURN {
            let mut has_moved = false;
            let steps = [Self::finish_calls, Self::write, Self::start_calls, Self::read];
            for step in steps {
                match step(self, cx) {
                    Step::Moved => has_moved = true,
                    Step::Waits => {}
                    Step::Ends(end) => return Poll::Ready(end),
                }
            }
            if has_moved {
                self.moved_at = self.clock.now();
                continue;
            }
            return self.wait(cx);
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn has_output(&self) -> bool {
        self.sent < self.output.len()
    }

    /// Nothing moves: it ends if all is done, or has not moved for too long.
    fn wait(&mut self, cx: &mut Context<'_>) -> Poll<SessionEnd> {
        let is_busy = !self.under_way.is_empty() || self.waiting.is_some();
        if !is_busy && !self.has_output() {
            if self.is_closed {
                return Poll::Ready(SessionEnd::Closed);
            }
            // An idle connection keeps little.
            self.output.shrink_to(READ_BYTES);
        }
        loop {
            let is_stalled = self.has_output() || self.records.is_incomplete();
            let limit = if is_stalled { self.limits.stalled_time } else { self.limits.idle_time };
            let due = self.moved_at + limit;
            if self.clock.now() >= due && (is_stalled || !is_busy) {
                return Poll::Ready(if is_stalled { SessionEnd::Stalled } else { SessionEnd::Idle });
            }
            let due = due.max(self.clock.now() + AGAIN);
            if self.alarm.as_ref().is_none_or(|(at, _)| *at > due) {
                self.alarm = Some((due, self.clock.sleep_until(due)));
            }
            match self.alarm.as_mut().map(|(_, sleep)| sleep.as_mut().poll(cx)) {
                Some(Poll::Ready(())) => self.alarm = None,
                _ => return Poll::Pending,
            }
        }
    }

    fn finish_calls(&mut self, cx: &mut Context<'_>) -> Step {
        match Pin::new(&mut self.under_way).poll_next(cx) {
            Poll::Ready(Some((reply, held_bytes))) => {
                self.held_bytes -= held_bytes;
                if let Some(reply) = reply {
                    self.output.extend_from_slice(&mark(reply.len()));
                    self.output.extend_from_slice(&reply);
                }
                Step::Moved
            }
            Poll::Ready(None) | Poll::Pending => Step::Waits,
        }
    }

    fn write(&mut self, cx: &mut Context<'_>) -> Step {
        if !self.has_output() {
            return Step::Waits;
        }
        match Pin::new(&mut *self.stream).poll_write(cx, &self.output[self.sent..]) {
            Poll::Ready(Ok(count)) if count > 0 => {
                self.sent += count;
                if !self.has_output() {
                    self.sent = 0;
                    self.output.clear();
                } else if self.sent >= RECORD_BYTES {
                    self.output.drain(..self.sent);
                    self.sent = 0;
                }
                Step::Moved
            }
            Poll::Ready(_) => Step::Ends(SessionEnd::Broken),
            Poll::Pending => match Pin::new(&mut *self.stream).poll_flush(cx) {
                Poll::Ready(Err(_)) => Step::Ends(SessionEnd::Broken),
                _ => Step::Waits,
            },
        }
    }

    /// Whether a call that holds so much may begin.
    fn has_room(&self, more: usize) -> bool {
        let held = self.held_bytes + (self.output.len() - self.sent);
        held == 0 || (self.under_way.len() < self.limits.calls && held + more <= self.limits.held_bytes)
    }

    fn start_calls(&mut self, _: &mut Context<'_>) -> Step {
        let message = match self.waiting.take() {
            Some(message) => message,
            None => {
                let mut rest = &self.input[self.taken..];
                let record = self.records.take(&mut rest);
                self.taken = self.input.len() - rest.len();
                match record {
                    Ok(Some(record)) => record,
                    Ok(None) => return Step::Waits,
                    Err(_) => return Step::Ends(SessionEnd::Malformed),
                }
            }
        };
        let held_bytes = held_by(&message);
        if !self.has_room(held_bytes) {
            self.waiting = Some(message);
            return Step::Waits;
        }
        self.held_bytes += held_bytes;
        let (server, clock) = (self.server.clone(), self.clock.clone());
        let (caller, programs) = (self.caller, self.programs);
        self.under_way.push(Box::pin(async move {
            (answer(server, clock, message, caller, programs).await, held_bytes)
        }));
        Step::Moved
    }

    fn read(&mut self, cx: &mut Context<'_>) -> Step {
        if self.waiting.is_some() || self.taken < self.input.len() || self.is_closed {
            return Step::Waits;
        }
        self.input.resize(READ_BYTES, 0);
        let mut buffer = ReadBuf::new(&mut self.input);
        let read: Poll<io::Result<()>> = Pin::new(&mut *self.stream).poll_read(cx, &mut buffer);
        let count = buffer.filled().len();
        self.taken = 0;
        self.input.truncate(if read.is_ready() { count } else { 0 });
        match read {
            Poll::Ready(Ok(())) if count > 0 => Step::Moved,
            Poll::Ready(Ok(())) => {
                self.is_closed = true;
                Step::Moved
            }
            Poll::Ready(Err(_)) => Step::Ends(SessionEnd::Broken),
            Poll::Pending => Step::Waits,
        }
    }
}

/// The reply to a call, where it may wait for the disk.
async fn answer<C: Clock>(
    server: Arc<Server>,
    clock: C,
    message: Vec<u8>,
    caller: Caller,
    programs: Programs,
) -> Option<Vec<u8>> {
    let message = Arc::new(message);
    for _ in 0..AGAIN_TRIES {
        match super::perform(&server, message.clone(), caller, programs, clock.now()).await {
            Answer::Reply(reply) => return Some(reply),
            Answer::Nothing => return None,
            // It came over a connection that broke, and its reply is wanted here.
            Answer::InProgress => clock.sleep_until(clock.now() + AGAIN).await,
        }
    }
    None
}
