//! Server-Sent Events (HTML Standard §9.2) to many subscribers.
//!
//! Each subscriber has a queue with a limit. One that reads too slowly misses events and is told how many, by an event
//! `missed` with `{"count": N}`; a page then fetches what it shows anew. Nobody else waits for it.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use futures_lite::Stream;
use http::{StatusCode, header};
use inhost_base::{Duration, Instant};
use inhost_common::{Clock, LocalFuture};
use serde::Serialize;

use crate::Response;

/// Limits of the subscribers to events.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct EventLimits {
    /// Subscribers at a time. Default 32.
    pub subscribers: usize,
    /// Events that wait for one subscriber. Default 256.
    pub events: usize,
    /// Bytes that wait for one subscriber. Default 128 KiB.
    pub bytes: usize,
    /// The time without an event after which a comment is sent, so that both ends notice a dead connection. Default 15 s.
    pub heartbeat: Duration,
}

impl Default for EventLimits {
    fn default() -> Self {
        EventLimits { subscribers: 32, events: 256, bytes: 128 << 10, heartbeat: Duration::from_secs(15) }
    }
}

/// A source of events. A clone is the same.
#[derive(Clone)]
pub struct Events {
    state: Rc<RefCell<State>>,
    clock: Rc<dyn Clock>,
}

struct State {
    limits: EventLimits,
    subscribers: BTreeMap<u64, Queue>,
    subscribed: u64,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Bytes>,
    bytes: usize,
    missed: u64,
    waker: Option<Waker>,
}

impl Events {
    /// A source without subscribers.
    pub fn new(limits: EventLimits, clock: Rc<dyn Clock>) -> Events {
        let state = State { limits, subscribers: BTreeMap::new(), subscribed: 0 };
        Events { state: Rc::new(RefCell::new(state)), clock }
    }
    /// Sends an event to all subscribers. `name` is one word; `value` is sent as JSON.
    pub fn publish(&self, name: &str, value: &impl Serialize) {
        let wakers: Vec<Waker> = {
            let mut state = self.state.borrow_mut();
            if state.subscribers.is_empty() {
                return;
            }
            let Ok(json) = serde_json::to_string(value) else { return };
            let event = Bytes::from(format!("event: {name}\ndata: {json}\n\n"));
            let limits = state.limits;
            state.subscribers.values_mut().filter_map(|queue| queue.push(&event, limits)).collect()
        };
        wakers.into_iter().for_each(Waker::wake);
    }
    /// Subscribers now.
    pub fn subscribers(&self) -> usize {
        self.state.borrow().subscribers.len()
    }
    /// A subscriber's response: every event from now on. 503 when there are too many.
    pub fn subscribe(&self) -> Response {
        let number = {
            let mut state = self.state.borrow_mut();
            if state.subscribers.len() >= state.limits.subscribers {
                return Response::problem(StatusCode::SERVICE_UNAVAILABLE, "too many subscribers");
            }
            state.subscribed += 1;
            let number = state.subscribed;
            let mut queue = Queue::default();
            // The time after which a browser connects again, in milliseconds.
            queue.push(&Bytes::from_static(b"retry: 2000\n\n"), state.limits);
            state.subscribers.insert(number, queue);
            number
        };
        let subscription = Subscription { events: self.clone(), number, heartbeat: None };
        Response::stream("text/event-stream", subscription).with(header::CACHE_CONTROL, "no-store")
    }
}

impl Queue {
    fn push(&mut self, event: &Bytes, limits: EventLimits) -> Option<Waker> {
        // After a gap the subscriber first learns of it.
        let has_room = self.waiting.len() < limits.events && self.bytes + event.len() <= limits.bytes;
        if self.missed > 0 || !has_room {
            self.missed = self.missed.saturating_add(1);
        } else {
            self.bytes += event.len();
            self.waiting.push_back(event.clone());
        }
        self.waker.take()
    }
    fn pop(&mut self) -> Option<Bytes> {
        if let Some(event) = self.waiting.pop_front() {
            self.bytes -= event.len();
            return Some(event);
        }
        let missed = core::mem::take(&mut self.missed);
        (missed > 0).then(|| Bytes::from(format!("event: missed\ndata: {{\"count\":{missed}}}\n\n")))
    }
}

/// The events of one subscriber.
struct Subscription {
    events: Events,
    number: u64,
    heartbeat: Option<(Instant, LocalFuture<()>)>,
}

impl Stream for Subscription {
    type Item = Bytes;
    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let Subscription { events, number, heartbeat } = &mut *self;
        let mut state = events.state.borrow_mut();
        let every = state.limits.heartbeat;
        let Some(queue) = state.subscribers.get_mut(number) else { return Poll::Ready(None) };
        let next = queue.pop();
        if next.is_some() {
            *heartbeat = None;
            return Poll::Ready(next);
        }
        queue.waker = Some(context.waker().clone());
        drop(state);
        let (_, sleep) = heartbeat.get_or_insert_with(|| {
            let at = events.clock.now() + every;
            (at, events.clock.sleep_until(at))
        });
        if sleep.as_mut().poll(context).is_ready() {
            *heartbeat = None;
            return Poll::Ready(Some(Bytes::from_static(b":\n\n")));
        }
        Poll::Pending
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.events.state.borrow_mut().subscribers.remove(&self.number);
    }
}
