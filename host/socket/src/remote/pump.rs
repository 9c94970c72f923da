//! The host's task behind a remote stream.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::pipe::{Pipe, Sending, ShardEnd};
use inhost_base::Duration;

use crate::error::{ConnectionError, StreamError};
use crate::stream::Stream;
use crate::waiters::Wait;

/// Bytes moved up in one piece.
const PIECE_BYTES: usize = 16 * 1024;
/// Pieces moved each way in one poll; then other tasks have their turn.
const PIECES_A_POLL: usize = 8;

/// The result of one step in one direction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Moved,
    Waits,
    Ended,
    Failed,
}

/// Moves bytes between the connection and the pipe until both directions have ended, then closes the connection after
/// the written data was delivered.
pub(crate) async fn pump(stream: Stream, pipe: Arc<Pipe>) {
    let mut guard = Guard { pipe, done: false };
    let (mut down_ended, mut up_ended, mut is_lost) = (false, false, false);
    let is_whole = poll_fn(|context| {
        let mut moved = false;
        for _ in 0..PIECES_A_POLL {
            let (down, up) = guard.pipe.on_shard(|end| {
                end.register(context);
                for option in end.take_options() {
                    // A connection that is over has no options.
                    let _ = stream.set_option(option);
                }
                let down = if down_ended { Step::Ended } else { step_down(&stream, end, context) };
                let up = match down {
                    Step::Failed => Step::Failed,
                    _ if up_ended => Step::Ended,
                    _ if end.is_abandoned() => {
                        // The reader is gone. Received data is discarded, so that a peer that reads only while it can
                        // write still accepts the remaining data.
                        is_lost |= stream.discard_read() | end.has_unread();
                        if down == Step::Ended { Step::Ended } else { wait_for_more(&stream, context) }
                    }
                    _ => stream.host().with_scratch(|place| step_up(&stream, end, context, place)),
                };
                (down, up)
            });
            if up == Step::Failed {
                return Poll::Ready(false);
            }
            down_ended = down == Step::Ended;
            up_ended = up == Step::Ended;
            if down_ended && up_ended {
                return Poll::Ready(true);
            }
            moved = down == Step::Moved || up == Step::Moved;
            if !moved {
                break;
            }
        }
        if moved {
            context.waker().wake_by_ref();
        }
        Poll::Pending
    })
    .await;
    guard.done = true;
    if is_whole {
        drop(guard);
        stream.deliver_and_close(is_lost).await;
    }
}

/// Has the task woken when there is more to throw away.
fn wait_for_more(stream: &Stream, context: &Context<'_>) -> Step {
    stream.host().register(stream.socket(), Wait::Read, context);
    Step::Waits
}

/// Tells the outer end when the host is stopped in the middle.
struct Guard {
    pipe: Arc<Pipe>,
    done: bool,
}
impl Drop for Guard {
    fn drop(&mut self) {
        if !self.done {
            self.pipe.on_shard(|end| end.finish(Err(StreamError::Stopped)));
        }
    }
}

fn step_down(stream: &Stream, end: &mut ShardEnd<'_>, context: &Context<'_>) -> Step {
    let is_reset = end.sending() == Sending::Aborted
        || end.is_abandoned() && (lingers_not(stream) || only_loses(stream, end));
    if is_reset {
        stream.abort();
        end.finish(Err(StreamError::Connection(ConnectionError::Aborted)));
        return Step::Failed;
    }
    let (front, how) = end.front();
    if front.is_empty() {
        if end.sending() == Sending::Finished {
            stream.shutdown();
            return Step::Ended;
        }
        return Step::Waits;
    }
    match stream.poll_send(context, front, how) {
        Poll::Ready(Ok(count)) => {
            end.sent(count);
            Step::Moved
        }
        Poll::Ready(Err(error)) => {
            // Data received before the error is read first, then the error.
            end.fail_sending(error);
            Step::Ended
        }
        Poll::Pending => Step::Waits,
    }
}

/// Whether closing the stream resets the connection (`SO_LINGER` with zero).
fn lingers_not(stream: &Stream) -> bool {
    stream.options().is_ok_and(|options| options.linger == Some(Duration::ZERO))
}

/// Whether received data was not read, and there is nothing that still has to be delivered: then the peer gets the reset at
/// once, and no end of the stream before it (RFC 1122 §4.2.2.13).
fn only_loses(stream: &Stream, end: &ShardEnd<'_>) -> bool {
    let has_unread = end.has_unread() || stream.has_unread();
    has_unread && end.front().0.is_empty() && stream.undelivered_bytes().is_none()
}

fn step_up(stream: &Stream, end: &mut ShardEnd<'_>, context: &Context<'_>, piece: &mut [u8]) -> Step {
    // The mark may move on without a byte to read.
    let _ = stream.poll_urgent(context);
    let room = end.room().min(piece.len()).min(PIECE_BYTES);
    if room == 0 {
        end.set_urgent(stream.urgent_ahead());
        return Step::Waits;
    }
    match stream.poll_receive(context, &mut piece[..room]) {
        Poll::Ready(Ok(0)) => {
            end.finish(Ok(()));
            Step::Ended
        }
        Poll::Ready(Ok(count)) => {
            end.put(&piece[..count], stream.urgent_ahead());
            Step::Moved
        }
        Poll::Ready(Err(error)) => {
            end.finish(Err(error));
            Step::Failed
        }
        Poll::Pending => {
            end.update();
            end.set_urgent(stream.urgent_ahead());
            Step::Waits
        }
    }
}
