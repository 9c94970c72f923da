//! Waiters: the tasks that wait for each socket.

use std::collections::VecDeque;
use std::task::{Context, Waker};

use inhost_base::make_room;
use inhost_stack::{Readiness, SocketId};

/// Tasks that wait for the same thing of one socket before the oldest has to look again: it may have given up without a
/// word, and would be kept for ever.
const WAITERS: usize = 64;
/// Tasks lately sent to look again that are known when they come back.
const SENT_TO_LOOK: usize = 4096;
/// The most by which the first limit grows.
const MOST_GROWN: usize = 65_536;

/// The condition that a task waits for.
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
    /// By the socket's place in the stack's table.
    places: Vec<Option<Place>>,
    paths: WakerSet,
    drain: WakerSet,
}

/// The tasks that wait for one socket.
struct Place {
    socket: SocketId,
    sets: [WakerSet; 3],
}

impl Waiters {
    /// Remembers a task; gives the oldest when there are too many.
    pub(crate) fn register(&mut self, socket: SocketId, wait: Wait, context: &Context<'_>) -> Option<Waker> {
        let index = socket.0.index();
        if self.places.len() <= index {
            make_room(&mut self.places, index + 1);
            self.places.resize_with(index + 1, || None);
        }
        let place = &mut self.places[index];
        match place {
            Some(place) if place.socket == socket => place.sets[wait as usize].register(context),
            // The previous waiter was woken when its socket was closed.
            _ => {
                let new = place.insert(Place { socket, sets: Default::default() });
                new.sets[wait as usize].register(context)
            }
        }
    }
    /// Takes out the tasks that `readiness` concerns.
    pub(crate) fn take(&mut self, socket: SocketId, readiness: Readiness, woken: &mut Vec<Waker>) {
        let Some(Some(place)) = self.places.get_mut(socket.0.index()) else { return };
        if place.socket != socket {
            return;
        }
        let [read, write, urgent] = &mut place.sets;
        let over = readiness.intersects(Readiness::ERROR.union(Readiness::CLOSED));
        let received = Readiness::READABLE.union(Readiness::ACCEPTABLE).union(Readiness::PEER_CLOSED);
        if over || readiness.intersects(received) {
            read.take(woken);
        }
        if over || readiness.intersects(Readiness::WRITABLE.union(Readiness::CONNECTED)) {
            write.take(woken);
        }
        if over || readiness.intersects(Readiness::URGENT.union(Readiness::PEER_CLOSED)) {
            urgent.take(woken);
        }
    }
    /// Takes out every task of a socket, which is forgotten.
    pub(crate) fn forget(&mut self, socket: SocketId, woken: &mut Vec<Waker>) {
        let Some(place) = self.places.get_mut(socket.0.index()) else { return };
        if let Some(mut gone) = place.take_if(|place| place.socket == socket) {
            gone.sets.iter_mut().for_each(|set| set.take(woken));
        }
    }
    /// How many tasks wait for each socket: to read, to write, for urgent data. Sockets without any are left out.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (SocketId, [usize; 3])> + '_ {
        let counts = |place: &Place| (place.socket, place.sets.each_ref().map(WakerSet::len));
        self.places.iter().flatten().map(counts).filter(|(_, counts)| *counts != [0; 3])
    }
    /// The tasks that wait for other addresses or routes.
    pub(crate) fn of_paths(&mut self) -> &mut WakerSet {
        &mut self.paths
    }
    /// The tasks that wait until the host goes down.
    pub(crate) fn of_drain(&mut self) -> &mut WakerSet {
        &mut self.drain
    }
    /// Takes out the tasks that wait until the host goes down, and every task of every socket.
    pub(crate) fn take_all(&mut self, woken: &mut Vec<Waker>) {
        self.drain.take(woken);
        for place in self.places.iter_mut().flatten() {
            place.sets.iter_mut().for_each(|set| set.take(woken));
        }
    }
}

/// The tasks that wait for one thing: mostly one, which takes no memory of its own. Any number may wait.
///
/// A task that gave up leaves its waker behind, so there is a limit, and beyond it the oldest is sent to look again.
/// One that still waits comes back, and then the limit was too low: it grows by one for each. So any number of tasks may
/// wait, each of them is sent to look a few times at most, and those that gave up are found.
///
/// ```
/// use inhost_socket::WakerSet;
/// use std::task::{Context, Waker};
///
/// let (mut waiting, mut woken) = (WakerSet::default(), Vec::new());
/// // One that is sent to look again is woken outside of every lock.
/// let to_look = waiting.register(&Context::from_waker(Waker::noop()));
/// assert!(to_look.is_none());
/// waiting.take(&mut woken);
/// assert_eq!(woken.len(), 1);
/// ```
#[derive(Default)]
pub struct WakerSet {
    first: Option<Waker>,
    /// Where there is more than one.
    crowd: Option<Box<Crowd>>,
}

impl core::fmt::Debug for WakerSet {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("WakerSet").field("is_empty", &self.is_empty()).finish()
    }
}

/// All but the first.
#[derive(Default)]
struct Crowd {
    more: VecDeque<Waker>,
    grown: usize,
    sent_to_look: VecDeque<Waker>,
}

impl WakerSet {
    /// Adds the task of `context`. Gives the waker of a task that is to look again, if there is one: wake it.
    pub fn register(&mut self, context: &Context<'_>) -> Option<Waker> {
        let waker = context.waker();
        let Some(first) = &self.first else {
            self.first = Some(waker.clone());
            return None;
        };
        if first.will_wake(waker) {
            return None;
        }
        let crowd = self.crowd.get_or_insert_default();
        if crowd.more.iter().any(|w| w.will_wake(waker)) {
            return None;
        }
        if let Some(place) = crowd.sent_to_look.iter().position(|w| w.will_wake(waker)) {
            crowd.sent_to_look.remove(place);
            crowd.grown = (crowd.grown + 1).min(MOST_GROWN);
        }
        crowd.more.push_back(waker.clone());
        if crowd.more.len() < WAITERS + crowd.grown {
            return None;
        }
        let next = crowd.more.pop_front();
        let oldest = std::mem::replace(&mut self.first, next)?;
        if crowd.sent_to_look.len() >= SENT_TO_LOOK {
            // Nobody knows any more who comes back, so it may be anybody.
            crowd.sent_to_look.clear();
            crowd.grown = (crowd.grown + WAITERS).min(MOST_GROWN);
        }
        crowd.sent_to_look.push_back(oldest.clone());
        Some(oldest)
    }
    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.crowd.as_ref().map_or(0, |crowd| crowd.more.len())
    }
    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }
    /// Takes out every task; allocates nothing for one.
    pub(crate) fn take_out(&mut self) -> impl Iterator<Item = Waker> + use<> {
        let first = self.first.take();
        let more = self.crowd.as_mut().map(|crowd| {
            crowd.sent_to_look.clear();
            std::mem::take(&mut crowd.more)
        });
        first.into_iter().chain(more.unwrap_or_default())
    }
    /// Moves every task to `woken`.
    pub fn take(&mut self, woken: &mut Vec<Waker>) {
        woken.extend(self.first.take());
        if let Some(crowd) = &mut self.crowd {
            woken.extend(crowd.more.drain(..));
            crowd.sent_to_look.clear();
        }
    }
}

/// Wakes tasks, when nothing is locked.
pub(crate) fn wake_all(wakers: impl IntoIterator<Item = Waker>) {
    wakers.into_iter().for_each(Waker::wake);
}
