//! Which tasks wait for which sockets.

use std::collections::BTreeMap;
use std::task::{Context, Waker};

use inhost_stack::{Readiness, SocketId};

/// Tasks that wait for the same thing of one socket; when more come, the oldest looks again.
const WAITERS: usize = 64;

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
#[derive(Default)]
pub(crate) struct WakerSet {
    first: Option<Waker>,
    more: Vec<Waker>,
}

impl WakerSet {
    pub(crate) fn register(&mut self, context: &Context<'_>) -> Option<Waker> {
        let waker = context.waker();
        match &self.first {
            None => {
                self.first = Some(waker.clone());
                return None;
            }
            Some(first) if first.will_wake(waker) => return None,
            Some(_) if self.more.iter().any(|w| w.will_wake(waker)) => return None,
            Some(_) => self.more.push(waker.clone()),
        }
        if self.more.len() < WAITERS {
            return None;
        }
        let oldest = self.more.remove(0);
        self.first.replace(oldest)
    }
    pub(crate) fn take(&mut self, woken: &mut Vec<Waker>) {
        woken.extend(self.first.take());
        woken.append(&mut self.more);
    }
}
