//! The reactor: epoll readiness for the tasks of one thread.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use inhost_base::{Duration, Key, Slab};
use inhost_socket::WakerSet;
use rustix::event::{Timespec, epoll};

/// Descriptors watched at a time.
pub const MAX_DESCRIPTORS: usize = 65_536;
/// Events taken from the system in one wait.
const EVENTS_A_WAIT: usize = 256;

/// A direction of a descriptor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Interest {
    /// Bytes, connections, the end of the stream or an error can be read.
    Read,
    /// Bytes can be written, or a connection attempt is decided.
    Write,
    /// The other end is gone for good, in both directions.
    HangUp,
}

/// Level-triggered readiness of one wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LevelReady {
    /// The number given to `watch_level`.
    pub(crate) token: u32,
    pub(crate) readable: bool,
}

/// Watches descriptors and wakes the tasks that wait for them. A clone watches the same set; it belongs to one thread.
/// An open file is watched once at a time: a second watch of the same descriptor is an error of kind `AlreadyExists`.
///
/// The runtime calls [`Reactor::wait`] once a round. Tasks use [`crate::AsyncFd`].
#[derive(Clone)]
pub struct Reactor(Rc<Inner>);

struct Inner {
    epoll: OwnedFd,
    entries: RefCell<Slab<Entry>>,
    events: RefCell<Vec<epoll::Event>>,
}

/// Whose an event is, as the number that the system keeps with a descriptor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Whose {
    /// A link's, by the number given to `watch_level`.
    Link(u32),
    /// The entry's at this place of the table, while the rest of its key is this, its highest bit aside. A place is taken
    /// again with another rest; one that has been taken 2³¹ times has the same again, and then an event that is late by as
    /// much costs one spurious wake-up.
    Entry { place: u32, rest: u32 },
}

/// Says that the number is a link's.
const LINK: u64 = 1 << 63;

impl Whose {
    fn of(key: Key) -> Whose {
        let bits = key.to_bits() & !LINK;
        Whose::Entry { place: bits as u32, rest: (bits >> 32) as u32 }
    }
    fn to_bits(self) -> u64 {
        match self {
            Whose::Link(token) => LINK | u64::from(token),
            Whose::Entry { place, rest } => u64::from(rest) << 32 | u64::from(place),
        }
    }
    fn from_bits(bits: u64) -> Whose {
        match bits & LINK {
            0 => Whose::Entry { place: bits as u32, rest: (bits >> 32) as u32 },
            _ => Whose::Link(bits as u32),
        }
    }
    /// The key of the entry, if the one that is `there` at its place now is the one that was watched.
    fn key(self, there: impl FnOnce(usize) -> Option<Key>) -> Option<Key> {
        let Whose::Entry { place, .. } = self else { return None };
        there(place as usize).filter(|key| Whose::of(*key) == self)
    }
}

#[derive(Default)]
struct Entry {
    read: Direction,
    write: Direction,
    hang_up: Direction,
}

#[derive(Default)]
struct Direction {
    ready: bool,
    waiting: WakerSet,
}

impl Direction {
    fn became_ready(&mut self, woken: &mut Vec<Waker>) {
        self.ready = true;
        self.waiting.take(woken);
    }
}

impl Entry {
    fn direction(&mut self, interest: Interest) -> &mut Direction {
        match interest {
            Interest::Read => &mut self.read,
            Interest::Write => &mut self.write,
            Interest::HangUp => &mut self.hang_up,
        }
    }
}

impl AsFd for Reactor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.epoll.as_fd()
    }
}

impl Reactor {
    /// An empty set.
    pub fn new() -> io::Result<Reactor> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Reactor(Rc::new(Inner {
            epoll,
            entries: RefCell::new(Slab::new(MAX_DESCRIPTORS)),
            events: RefCell::new(Vec::with_capacity(EVENTS_A_WAIT)),
        })))
    }

    /// Waits up to `timeout` (`None`: until something happens), wakes the tasks concerned, and says how many events
    /// there were. A signal ends the wait early.
    pub fn wait(&self, timeout: Option<Duration>) -> io::Result<usize> {
        self.wait_with_levels(timeout, |_| ())
    }

    pub(crate) fn wait_with_levels(
        &self,
        timeout: Option<Duration>,
        mut level: impl FnMut(LevelReady),
    ) -> io::Result<usize> {
        let timeout = timeout.map(|t| Timespec {
            tv_sec: i64::try_from(t.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: (t.as_nanos() % 1_000_000_000) as _,
        });
        let mut events = self.0.events.borrow_mut();
        events.clear();
        match epoll::wait(&self.0.epoll, rustix::buffer::spare_capacity(&mut events), timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut woken = Vec::new();
        for event in events.iter() {
            let flags = event.flags;
            let whose = Whose::from_bits(event.data.u64());
            let failed = flags.intersects(epoll::EventFlags::ERR | epoll::EventFlags::HUP);
            let readable = failed || flags.intersects(epoll::EventFlags::IN | epoll::EventFlags::RDHUP);
            let writable = failed || flags.contains(epoll::EventFlags::OUT);
            if let Whose::Link(token) = whose {
                level(LevelReady { token, readable });
                continue;
            }
            let mut entries = self.0.entries.borrow_mut();
            let key = whose.key(|place| entries.key_at(place));
            let Some(entry) = key.and_then(|key| entries.at_mut(key)) else { continue };
            if readable {
                entry.read.became_ready(&mut woken);
            }
            if writable {
                entry.write.became_ready(&mut woken);
            }
            if failed {
                entry.hang_up.became_ready(&mut woken);
            }
        }
        let count = events.len();
        drop(events);
        woken.into_iter().for_each(Waker::wake);
        Ok(count)
    }

    pub(crate) fn watch(&self, descriptor: BorrowedFd<'_>) -> io::Result<Key> {
        let key =
            self.0.entries.borrow_mut().insert(Entry::default()).map_err(|_| {
                io::Error::new(io::ErrorKind::QuotaExceeded, "too many descriptors are watched")
            })?;
        let flags =
            epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::RDHUP | epoll::EventFlags::ET;
        let data = epoll::EventData::new_u64(Whose::of(key).to_bits());
        if let Err(error) = epoll::add(&self.0.epoll, descriptor, data, flags) {
            self.0.entries.borrow_mut().remove(key);
            return Err(error.into());
        }
        Ok(key)
    }

    pub(crate) fn forget(&self, key: Key, descriptor: BorrowedFd<'_>) {
        // The descriptor may be closed behind our back; then the system has forgotten it already.
        let _ = epoll::delete(&self.0.epoll, descriptor);
        let entry = self.0.entries.borrow_mut().remove(key);
        drop(entry);
    }

    pub(crate) fn watch_level(&self, descriptor: BorrowedFd<'_>, token: u32) -> io::Result<()> {
        let data = epoll::EventData::new_u64(Whose::Link(token).to_bits());
        Ok(epoll::add(&self.0.epoll, descriptor, data, epoll::EventFlags::IN)?)
    }

    pub(crate) fn set_level(&self, descriptor: BorrowedFd<'_>, token: u32, write: bool) -> io::Result<()> {
        let data = epoll::EventData::new_u64(Whose::Link(token).to_bits());
        let out = if write { epoll::EventFlags::OUT } else { epoll::EventFlags::empty() };
        Ok(epoll::modify(&self.0.epoll, descriptor, data, epoll::EventFlags::IN | out)?)
    }

    pub(crate) fn forget_level(&self, descriptor: BorrowedFd<'_>) {
        // A descriptor that the system has forgotten already needs nothing.
        let _ = epoll::delete(&self.0.epoll, descriptor);
    }

    pub(crate) fn poll_ready(&self, key: Key, interest: Interest, context: &Context<'_>) -> Poll<()> {
        let mut entries = self.0.entries.borrow_mut();
        let Some(entry) = entries.at_mut(key) else { return Poll::Ready(()) };
        let direction = entry.direction(interest);
        if direction.ready {
            return Poll::Ready(());
        }
        let oldest = direction.waiting.register(context);
        drop(entries);
        if let Some(oldest) = oldest {
            oldest.wake();
        }
        Poll::Pending
    }

    pub(crate) fn clear(&self, key: Key, interest: Interest) {
        if let Some(entry) = self.0.entries.borrow_mut().at_mut(key) {
            entry.direction(interest).ready = false;
        }
    }

    /// Waits until the descriptor can be read from, without owning it. Each call asks the system anew; for more than
    /// an occasional wait use [`crate::AsyncFd`].
    pub async fn readable(&self, descriptor: impl AsFd) -> io::Result<()> {
        self.once(descriptor, Interest::Read).await
    }

    /// Waits until the descriptor can be written to, without owning it.
    pub async fn writable(&self, descriptor: impl AsFd) -> io::Result<()> {
        self.once(descriptor, Interest::Write).await
    }

    async fn once(&self, descriptor: impl AsFd, interest: Interest) -> io::Result<()> {
        let watch = Watch { reactor: self, key: self.watch(descriptor.as_fd())?, descriptor };
        poll_fn(|context| self.poll_ready(watch.key, interest, context)).await;
        Ok(())
    }
}

/// Forgets the descriptor even when the future that waits is dropped.
struct Watch<'a, T: AsFd> {
    reactor: &'a Reactor,
    key: Key,
    descriptor: T,
}
impl<T: AsFd> Drop for Watch<'_, T> {
    fn drop(&mut self) {
        self.reactor.forget(self.key, self.descriptor.as_fd());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_finds_its_entry_however_often_the_place_was_taken_before() {
        for times in [0, 1, (1 << 31) - 1, 1 << 31, (1 << 31) + 1, u32::MAX] {
            let key = Key::from_bits(u64::from(times) << 32 | 7);
            let token = Whose::of(key).to_bits();
            let found = Whose::from_bits(token).key(|place| {
                assert_eq!(place, 7);
                Some(key)
            });
            assert_eq!(found, Some(key), "taken {times} times before");
            let next = Key::from_bits(u64::from(times.wrapping_add(1)) << 32 | 7);
            assert_eq!(Whose::from_bits(token).key(|_| Some(next)), None, "an event of the one before");
            assert_eq!(Whose::from_bits(token).key(|_| None), None);
        }
        assert_eq!(Whose::from_bits(Whose::Link(u32::MAX).to_bits()), Whose::Link(u32::MAX));
    }
}
