//! Which tasks wait for which sockets.

use std::collections::{BTreeMap, VecDeque};
use std::task::{Context, Waker};

use inhost_stack::{Readiness, SocketId};

/// Tasks that wait for the same thing of one socket before the oldest has to look again: it may have given up without a
/// word, and would be kept for ever.
const WAITERS: usize = 64;
/// Tasks lately sent to look again that are known when they come back.
const SENT_TO_LOOK: usize = 4096;
/// The most by which the first limit grows.
const MOST_GROWN: usize = 65_536;

/// What a task waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wait {
    /// Anything to receive or accept.
    Read,
    /// Room to send, or the handshake to be done.
    Write,
    /// Urgent data ahead.
    Urgent,
}

/// Tasks by socket. Nothing is woken in here: wakers are handed out, to be woken when nothing is borrowed.
#[derive(Default)]
pub(crate) struct Waiters {
    sockets: BTreeMap<SocketId, [WakerSet; 3]>,
}

impl Waiters {
    /// Remembers a task; gives the oldest when there are too many.
    pub(crate) fn register(&mut self, socket: SocketId, wait: Wait, context: &Context<'_>) -> Option<Waker> {
        self.sockets.entry(socket).or_default()[wait as usize].register(context)
    }
    /// Takes out the tasks that `readiness` concerns.
    pub(crate) fn take(&mut self, socket: SocketId, readiness: Readiness, woken: &mut Vec<Waker>) {
        let Some([read, write, urgent]) = self.sockets.get_mut(&socket) else { return };
        let over = readiness.intersects(Readiness::ERROR.with(Readiness::CLOSED));
        let received = Readiness::READABLE.with(Readiness::ACCEPTABLE).with(Readiness::PEER_CLOSED);
        if over || readiness.intersects(received) {
            read.take(woken);
        }
        if over || readiness.intersects(Readiness::WRITABLE.with(Readiness::CONNECTED)) {
            write.take(woken);
        }
        if over || readiness.intersects(Readiness::URGENT.with(Readiness::PEER_CLOSED)) {
            urgent.take(woken);
        }
    }
    /// Takes out every task of a socket, which is forgotten.
    pub(crate) fn forget(&mut self, socket: SocketId, woken: &mut Vec<Waker>) {
        if let Some(sets) = self.sockets.remove(&socket) {
            sets.into_iter().for_each(|mut set| set.take(woken));
        }
    }
    /// Takes out every task of every socket.
    pub(crate) fn take_all(&mut self, woken: &mut Vec<Waker>) {
        for sets in self.sockets.values_mut() {
            sets.iter_mut().for_each(|set| set.take(woken));
        }
    }
}

/// Wakers of a few tasks: mostly of one, which takes no memory of its own.
///
/// A task that gave up leaves its waker behind, so there is a limit, and beyond it the oldest is sent to look again.
/// One that still waits comes back, and then the limit was too low: it grows by one for each. So any number of tasks may
/// wait, each of them is sent to look a few times at most, and those that gave up are found.
#[derive(Default)]
pub(crate) struct WakerSet {
    first: Option<Waker>,
    more: VecDeque<Waker>,
    grown: usize,
    sent_to_look: VecDeque<Waker>,
}

impl WakerSet {
    pub(crate) fn register(&mut self, context: &Context<'_>) -> Option<Waker> {
        let waker = context.waker();
        let Some(first) = &self.first else {
            self.first = Some(waker.clone());
            return None;
        };
        if first.will_wake(waker) || self.more.iter().any(|w| w.will_wake(waker)) {
            return None;
        }
        if let Some(place) = self.sent_to_look.iter().position(|w| w.will_wake(waker)) {
            self.sent_to_look.remove(place);
            self.grown = (self.grown + 1).min(MOST_GROWN);
        }
        self.more.push_back(waker.clone());
        if self.more.len() < WAITERS + self.grown {
            return None;
        }
        let next = self.more.pop_front();
        let oldest = std::mem::replace(&mut self.first, next)?;
        if self.sent_to_look.len() >= SENT_TO_LOOK {
            // Nobody knows any more who comes back, so it may be anybody.
            self.sent_to_look.clear();
            self.grown = (self.grown + WAITERS).min(MOST_GROWN);
        }
        self.sent_to_look.push_back(oldest.clone());
        Some(oldest)
    }
    pub(crate) fn take(&mut self, woken: &mut Vec<Waker>) {
        woken.extend(self.first.take());
        woken.extend(self.more.drain(..));
        self.sent_to_look.clear();
    }
}
