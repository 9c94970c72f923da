//! The messages that were caught: in memory, with limits; the oldest go first. A folder may keep them, too.

mod folder;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::rc::Rc;
use std::str::FromStr;
use std::task::Poll;

use bytes::Bytes;
use inhost_socket::WakerSet;
use serde::Serialize;

use crate::message::{Folded, Summary, rfc3339, summarize};

pub use crate::envelope::Envelope;
pub use folder::{Folder, Kept};

/// What a message is held for besides its own octets: what a list and searches need.
const OVERHEAD_BYTES: usize = 1024;

/// A message's identifier: grows with the time of arrival. Hexadecimal digits as text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Id(pub u64);

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:012x}", self.0)
    }
}
impl FromStr for Id {
    type Err = std::num::ParseIntError;
    fn from_str(text: &str) -> Result<Id, Self::Err> {
        u64::from_str_radix(text, 16).map(Id)
    }
}
impl Serialize for Id {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A message that was caught.
#[derive(Debug)]
pub struct Message {
    /// Its identifier.
    pub id: Id,
    /// When it came, in milliseconds since 1970.
    pub received_ms: u64,
    /// How it came.
    pub envelope: Envelope,
    /// What a list shows.
    pub summary: Summary,
    /// Whether nobody has opened it.
    pub is_unread: Cell<bool>,
    /// Its octets.
    pub raw: Bytes,
    pub(crate) folded: Folded,
}

/// A message in a list.
#[derive(Serialize)]
pub(crate) struct Listed<'a> {
    id: Id,
    received: String,
    size: usize,
    unread: bool,
    envelope: &'a Envelope,
    #[serde(flatten)]
    summary: &'a Summary,
}

impl Message {
    /// A message as it comes. Reading it takes time by its size.
    pub fn new(id: Id, received_ms: u64, envelope: Envelope, raw: Bytes) -> Message {
        let (summary, folded) = summarize(&raw, &envelope);
        Message { id, received_ms, envelope, summary, is_unread: Cell::new(true), raw, folded }
    }
    /// What it counts for the limit of bytes.
    fn held_bytes(&self) -> usize {
        self.raw.len() + self.folded.text.len() + OVERHEAD_BYTES
    }
    pub(crate) fn listed(&self) -> Listed<'_> {
        Listed {
            id: self.id,
            received: rfc3339(self.received_ms / 1000),
            size: self.raw.len(),
            unread: self.is_unread.get(),
            envelope: &self.envelope,
            summary: &self.summary,
        }
    }
}

/// Limits of a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StoreLimits {
    /// The most messages.
    pub messages: usize,
    /// The most bytes.
    pub bytes: usize,
}

/// The messages. A clone is the same.
#[derive(Clone)]
pub struct Store(Rc<State>);

struct State {
    limits: Cell<StoreLimits>,
    messages: RefCell<VecDeque<Rc<Message>>>,
    bytes: Cell<usize>,
    last: Cell<Id>,
    waiting: RefCell<WakerSet>,
}

impl Store {
    /// An empty store.
    pub fn new(limits: StoreLimits) -> Store {
        Store(Rc::new(State {
            limits: Cell::new(limits),
            messages: RefCell::default(),
            bytes: Cell::new(0),
            last: Cell::new(Id(0)),
            waiting: RefCell::default(),
        }))
    }
    /// An identifier above all others.
    pub fn next_id(&self, now_ms: u64) -> Id {
        let id = Id(now_ms.max(self.0.last.get().0 + 1));
        self.0.last.set(id);
        id
    }
    /// Adds a message and gives those that it drives out.
    pub fn add(&self, message: Rc<Message>) -> Vec<Id> {
        self.0.last.set(self.0.last.get().max(message.id));
        self.0.bytes.update(|bytes| bytes + message.held_bytes());
        {
            let mut messages = self.0.messages.borrow_mut();
            // Messages that were read at the same time may end in another order.
            let at = messages.partition_point(|other| other.id < message.id);
            messages.insert(at, message);
        }
        let mut woken = Vec::new();
        self.0.waiting.borrow_mut().take(&mut woken);
        woken.into_iter().for_each(std::task::Waker::wake);
        self.shrink()
    }
    /// Other limits from now on. Gives the messages that they drive out.
    pub fn set_limits(&self, limits: StoreLimits) -> Vec<Id> {
        self.0.limits.set(limits);
        self.shrink()
    }
    fn shrink(&self) -> Vec<Id> {
        let (limits, mut gone) = (self.0.limits.get(), Vec::new());
        let mut messages = self.0.messages.borrow_mut();
        while messages.len() > limits.messages || self.0.bytes.get() > limits.bytes {
            let Some(oldest) = messages.pop_front() else { break };
            self.0.bytes.update(|bytes| bytes - oldest.held_bytes());
            gone.push(oldest.id);
        }
        gone
    }
    /// Removes messages and gives those that were there.
    pub fn remove(&self, wanted: impl Fn(&Message) -> bool) -> Vec<Id> {
        let mut gone = Vec::new();
        self.0.messages.borrow_mut().retain(|message| {
            let goes = wanted(message);
            if goes {
                self.0.bytes.update(|bytes| bytes - message.held_bytes());
                gone.push(message.id);
            }
            !goes
        });
        gone
    }
    /// A message.
    pub fn message(&self, id: Id) -> Option<Rc<Message>> {
        let messages = self.0.messages.borrow();
        let at = messages.binary_search_by_key(&id, |message| message.id).ok()?;
        messages.get(at).cloned()
    }
    /// The newest message.
    pub fn latest(&self) -> Option<Rc<Message>> {
        self.0.messages.borrow().back().cloned()
    }
    /// The messages before `before`, the newest first.
    pub fn newest_first(&self, before: Option<Id>) -> Vec<Rc<Message>> {
        let messages = self.0.messages.borrow();
        let end = before.map_or(messages.len(), |id| messages.partition_point(|message| message.id < id));
        messages.range(..end).rev().cloned().collect()
    }
    /// The messages behind `after`, the oldest first.
    pub fn oldest_first(&self, after: Option<Id>) -> Vec<Rc<Message>> {
        let messages = self.0.messages.borrow();
        let start = after.map_or(0, |id| messages.partition_point(|message| message.id <= id));
        messages.range(start..).cloned().collect()
    }
    /// Waits until there is a message above `id`.
    pub async fn arrival_after(&self, id: Id) {
        poll_fn(|context| {
            if self.latest().is_some_and(|latest| latest.id > id) {
                return Poll::Ready(());
            }
            if let Some(oldest) = self.0.waiting.borrow_mut().register(context) {
                oldest.wake();
            }
            Poll::Pending
        })
        .await;
    }
    /// Messages, those that nobody has opened among them, and the bytes that all hold.
    pub fn totals(&self) -> (usize, usize, usize) {
        let messages = self.0.messages.borrow();
        let unread = messages.iter().filter(|message| message.is_unread.get()).count();
        (messages.len(), unread, self.0.bytes.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(store: &Store, bytes: usize) -> Rc<Message> {
        Rc::new(Message::new(store.next_id(5), 5, Envelope::default(), vec![b'\n'; bytes].into()))
    }

    #[test]
    fn the_oldest_go_first_and_limits_hold() {
        let store = Store::new(StoreLimits { messages: 3, bytes: 16_000 });
        let ids: Vec<Id> = (0..3)
            .map(|_| message(&store, 100))
            .map(|message| {
                assert!(store.add(message.clone()).is_empty());
                message.id
            })
            .collect();
        assert!(ids.is_sorted() && ids[0] != ids[1]);
        assert_eq!(store.add(message(&store, 100)), [ids[0]]);
        assert!(store.message(ids[0]).is_none() && store.message(ids[1]).is_some());
        assert_eq!(store.newest_first(Some(ids[2])).len(), 1);
        assert_eq!(store.oldest_first(Some(ids[1])).len(), 2);
        assert_eq!(store.add(message(&store, 7000)).len(), 3, "the large one needs all the room");
        let (count, unread, bytes) = store.totals();
        assert_eq!((count, unread), (1, 1));
        assert!(bytes < 16_000);
        assert_eq!(store.add(message(&store, 10_000)).len(), 2, "one that is too large does not stay either");
        assert_eq!(store.totals(), (0, 0, 0));
        store.add(message(&store, 1));
        assert_eq!(store.remove(|_| true).len(), 1);
        assert_eq!(store.totals().2, 0);
    }
}
