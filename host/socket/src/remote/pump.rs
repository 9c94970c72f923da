//! The host's task behind a remote stream.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use inhost_base::Duration;
use inhost_event::Layer;

use super::down::{Hand, Sending};
use super::lent::LentPacket;
use super::pipe::{Pipe, State};
use crate::error::{ConnectionError, StreamError};
use crate::host::{Host, SCRATCH_BYTES, tcp};
use crate::memory::WATCH_INTERVAL;
use crate::stream::Stream;
use crate::tasks::Sleep;
use crate::waiters::Wait;

/// Bytes moved up in one piece.
const PIECE_BYTES: usize = SCRATCH_BYTES;
/// From so many bytes on that wait in the connection, its packets go up as they are: less is copied faster.
const LEND_FROM_BYTES: usize = 16 << 10;
/// All packets that wait for readers together: one part of so many of what rings and packets may hold.
const LENDING_PART: usize = 2;
/// Most packets that go up in a step.
const PACKETS_A_STEP: usize = 16;
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

/// What there is to do for the direction from the peer.
enum Up {
    Done(Step),
    /// So many bytes may be read.
    Read(usize),
    /// Packets of so much memory may be lent.
    Lend(usize),
    /// Nothing may be copied, for it would overtake packets: the end of the stream, or more to come.
    Look,
}

/// Moves bytes between the connection and the pipe until both directions have ended, then closes the connection after
/// the written data was delivered. An idle stream is little more than this, so it is a future by hand: what is rarely there is
/// in a box.
pub(crate) struct Pump {
    /// Until it is handed over to be closed.
    stream: Option<Stream>,
    guard: Guard,
    hand: Hand,
    watch: Option<Pin<Box<Sleep>>>,
    down_ended: bool,
    up_ended: bool,
    /// Received data was thrown away.
    is_lost: bool,
    closing: Option<Pin<Box<dyn Future<Output = ()>>>>,
}

impl Pump {
    pub(crate) fn new(stream: Stream, pipe: Arc<Pipe>) -> Pump {
        Pump {
            stream: Some(stream),
            guard: Guard { pipe, done: false },
            hand: Hand::new(),
            watch: None,
            down_ended: false,
            up_ended: false,
            is_lost: false,
            closing: None,
        }
    }
    /// Moves what can be moved; ready when nothing will be any more, with whether both directions have ended well.
    fn poll_moved(&mut self, stream: &Stream, context: &mut Context<'_>) -> Poll<bool> {
        let (mut moved, mut is_small, mut has_lent) = (false, true, false);
        for _ in 0..PIECES_A_POLL {
            let Pump { guard, hand, down_ended, up_ended, is_lost, .. } = self;
            let (down, up) = guard.pipe.on_shard(|end| {
                end.register(context);
                take_back(stream, end);
                for option in end.take_options() {
                    // A connection that is over has no options.
                    let _ = stream.set_option(option);
                }
                let has_unread = end.up().unread_bytes(guard.pipe.read_bytes()) > 0;
                let down = match *down_ended {
                    true => Step::Ended,
                    false => plan_down(stream, end, hand, has_unread),
                };
                let up = match down {
                    Step::Failed => Up::Done(Step::Failed),
                    _ if *up_ended => Up::Done(Step::Ended),
                    _ if end.up().is_abandoned() => {
                        // The reader is gone. Received data is discarded, so that a peer that reads only while it can
                        // write still accepts the remaining data.
                        *is_lost |= stream.discard_read() | has_unread;
                        let is_over = down == Step::Ended;
                        Up::Done(if is_over { Step::Ended } else { wait_for_more(stream, context) })
                    }
                    _ => plan_up(stream, end, context),
                };
                is_small = !end.down().is_large();
                (down, up)
            });
            // The copies into the connection and out of it hold no lock that the other end wants.
            let down = if down == Step::Moved { step_down(stream, &guard.pipe, hand, context) } else { down };
            if hand.is_empty() && is_small {
                hand.clear();
            }
            let up = match up {
                Up::Done(step) => step,
                Up::Read(room) => stream
                    .host()
                    .with_scratch(|place| step_up(stream, &guard.pipe, context, &mut place[..room])),
                Up::Lend(room) => {
                    has_lent = true;
                    step_up_by_reference(stream, &guard.pipe, context, room)
                }
                // What was sent just now may have come already, on a connection to itself.
                Up::Look if stream.has_unread() => Step::Moved,
                Up::Look => step_up(stream, &guard.pipe, context, &mut [0]),
            };
            if up == Step::Failed {
                return Poll::Ready(false);
            }
            *down_ended = down == Step::Ended;
            *up_ended = up == Step::Ended;
            if *down_ended && *up_ended {
                return Poll::Ready(true);
            }
            moved = down == Step::Moved || up == Step::Moved;
            if !moved {
                break;
            }
        }
        if has_lent {
            self.guard.pipe.on_shard(|end| end.up().wake_readers());
        }
        if moved {
            context.waker().wake_by_ref();
        }
        if watch_memory(&self.guard.pipe, &mut self.watch, stream.host(), context) && self.hand.is_empty() {
            self.hand.clear();
        }
        Poll::Pending
    }
}

impl Future for Pump {
    type Output = ();
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let pump = self.get_mut();
        if let Some(closing) = &mut pump.closing {
            return closing.as_mut().poll(context);
        }
        let Some(stream) = pump.stream.take() else { return Poll::Ready(()) };
        let moved = pump.poll_moved(&stream, context);
        let Poll::Ready(is_whole) = moved else {
            pump.stream = Some(stream);
            return Poll::Pending;
        };
        pump.guard.end();
        (pump.watch, pump.hand) = (None, Hand::new());
        if !is_whole {
            return Poll::Ready(());
        }
        let is_lost = pump.is_lost;
        let closing = pump.closing.insert(Box::pin(stream.deliver_and_close(is_lost)));
        closing.as_mut().poll(context)
    }
}

/// Gives back memory that was not needed for a while, and says whether it was time for that. A stream that holds none sets
/// no timer.
fn watch_memory(
    pipe: &Pipe,
    watch: &mut Option<Pin<Box<Sleep>>>,
    host: &Host,
    context: &mut Context<'_>,
) -> bool {
    let mut was_due = false;
    loop {
        if watch.is_none() && pipe.is_large() {
            *watch = Some(Box::pin(host.sleep(WATCH_INTERVAL)));
        }
        let is_due = watch.as_mut().is_some_and(|sleep| sleep.as_mut().poll(context).is_ready());
        if !is_due {
            return was_due;
        }
        (*watch, was_due) = (None, true);
        pipe.release_unused();
    }
}

/// Has the task woken when there is more to throw away.
fn wait_for_more(stream: &Stream, context: &Context<'_>) -> Step {
    stream.host().register(stream.socket(), Wait::Read, context);
    Step::Waits
}

/// Tells the outer end when the task is gone, and when it was stopped in the middle.
struct Guard {
    pipe: Arc<Pipe>,
    done: bool,
}

impl Guard {
    fn end(&mut self) {
        self.done = true;
        self.pipe.end();
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if !self.done {
            self.pipe.on_shard(|end| end.finish(Err(StreamError::Stopped)));
            self.pipe.end();
        }
    }
}

/// What there is to do for the direction to the peer: [`Step::Moved`] when there are bytes in hand to be sent.
fn plan_down(stream: &Stream, end: &mut State, hand: &mut Hand, has_unread: bool) -> Step {
    end.down().take(hand);
    let is_reset = end.down().sending() == Sending::Aborted
        || end.up().is_abandoned() && (lingers_not(stream) || only_loses(stream, hand, has_unread));
    if is_reset {
        stream.abort();
        end.finish(Err(StreamError::Connection(ConnectionError::Aborted)));
        return Step::Failed;
    }
    match hand.is_empty() {
        false => Step::Moved,
        // The outer end found that by itself.
        true if end.down().error().is_some() => Step::Ended,
        true if end.down().sending() == Sending::Finished => {
            stream.shutdown();
            Step::Ended
        }
        true => Step::Waits,
    }
}

/// Sends a piece of what is in hand.
fn step_down(stream: &Stream, pipe: &Pipe, hand: &mut Hand, context: &Context<'_>) -> Step {
    let sent = match hand.block() {
        Some((block, how)) => {
            let sent = stream.poll_lend(context, block, how);
            hand.sent_of_block();
            sent
        }
        None => {
            let (front, how) = hand.front();
            let sent = stream.poll_send(context, front, how);
            if let Poll::Ready(Ok(count)) = sent {
                hand.sent(count);
            }
            sent
        }
    };
    match sent {
        Poll::Ready(Ok(_)) => Step::Moved,
        Poll::Ready(Err(error)) => {
            // Data received before the error is read first, then the error.
            hand.clear();
            pipe.on_shard(|end| end.down().fail(error));
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
fn only_loses(stream: &Stream, hand: &Hand, has_unread: bool) -> bool {
    (has_unread || stream.has_unread()) && hand.is_empty() && stream.undelivered_bytes().is_none()
}

/// How much may be read from the connection.
fn plan_up(stream: &Stream, end: &mut State, context: &Context<'_>) -> Up {
    // The outer end found that by itself, or will.
    match end.up().end() {
        Some(Ok(())) => return Up::Done(Step::Ended),
        Some(Err(_)) => return Up::Done(Step::Failed),
        None if end.up().is_direct() => return Up::Done(Step::Waits),
        None => {}
    }
    // The mark may move on without a byte to read.
    let _ = stream.poll_urgent(context);
    let waits = stream.queued().map_or(0, |queued| queued.readable_bytes);
    // Urgent data is copied, so that a read ends at its mark.
    let has_memory = stream.host().remote_memory().has_part(PIECE_BYTES, LENDING_PART);
    if stream.urgent_ahead().is_none() && (waits >= LEND_FROM_BYTES && has_memory || end.up().has_lent()) {
        match (waits, end.up().room_to_lend(has_memory)) {
            (0, _) => return Up::Look,
            (_, 0) => return Up::Done(Step::Waits),
            (_, room) => return Up::Lend(room),
        }
    }
    let room = end.up().room().min(PIECE_BYTES);
    if room == 0 {
        end.up().set_urgent(stream.urgent_ahead());
        return Up::Done(Step::Waits);
    }
    Up::Read(room)
}

fn step_up(stream: &Stream, pipe: &Pipe, context: &Context<'_>, place: &mut [u8]) -> Step {
    // As it is before these bytes are taken: the mark may be among them.
    let urgent_ahead = stream.urgent_ahead();
    let received = stream.poll_receive(context, place);
    if received.is_pending() && urgent_ahead.is_none() {
        return Step::Waits;
    }
    pipe.on_shard(|end| match received {
        Poll::Ready(Ok(0)) => {
            end.finish(Ok(()));
            Step::Ended
        }
        Poll::Ready(Ok(count)) => {
            end.up().put(&place[..count], urgent_ahead);
            Step::Moved
        }
        Poll::Ready(Err(error)) => {
            end.finish(Err(error));
            Step::Failed
        }
        Poll::Pending => {
            end.up().set_urgent(urgent_ahead);
            Step::Waits
        }
    })
}

/// Hands up packets as they are, of `room` bytes of memory or one more.
fn step_up_by_reference(stream: &Stream, pipe: &Pipe, context: &Context<'_>, room: usize) -> Step {
    let (host, socket) = (stream.host(), stream.socket());
    let (allowance, mut packets, mut left) = (host.remote_memory(), Vec::new(), room);
    let is_refused = host.within(Layer::Tcp, || {
        host.core(|core| {
            while left > 0 && packets.len() < PACKETS_A_STEP {
                // How large the next one is is seen when it is there.
                let Some(mut taken) = allowance.take_of(PIECE_BYTES, LENDING_PART) else { return true };
                let borrowed = tcp(core).borrow(socket);
                let Some(packet) = borrowed.ok().filter(|packet| !packet.is_empty()) else { return false };
                core.stack.pool().let_go(&packet);
                taken.keep(packet.capacity());
                left = left.saturating_sub(packet.capacity());
                packets.push(LentPacket::new(packet, taken));
            }
            false
        })
    });
    match (packets.is_empty(), is_refused) {
        (false, _) => {
            pipe.on_shard(|end| end.up().lend(packets));
            Step::Moved
        }
        // Another thread was faster: it is looked at again.
        (true, true) => Step::Moved,
        (true, false) => wait_for_more(stream, context),
    }
}

/// Returns packets that were read to the host's pool.
fn take_back(stream: &Stream, end: &mut State) {
    let used = end.up().take_used();
    if used.is_empty() {
        return;
    }
    stream.host().core(|core| {
        for lent in used {
            let packet = lent.into_packet();
            if core.stack.pool().adopt(&packet) {
                core.stack.pool().give(packet);
            }
        }
    });
}
