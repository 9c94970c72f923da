//! The queues of a host's sockets, and their timers.

use crate::schedule::neighbours::WaitingForNeighbours;
use alloc::collections::VecDeque;
use inhost_base::{Duration, Instant, IpAddr, LinkId, Lists, TimerWheel};

/// How long a socket backs off whose neighbour did not answer, or whose route is gone.
const BACK_OFF: Duration = Duration::from_secs(1);
/// How long a socket waits that found no memory to send.
const MEMORY_RETRY: Duration = Duration::from_millis(50);
/// The list of sockets with news for the application.
const CHANGED: usize = 0;
/// The list of closed UDP sockets whose last datagrams have not left, the oldest first.
const CLOSING_UDP: usize = 0;
/// The list of orphans, the least recently checked first.
const ORPHANS: usize = 1;
/// The list of sockets that wait for memory.
const WAITING: usize = 0;

/// The list of a link's sockets that want to send.
const fn senders_on(link: LinkId) -> usize {
    link.0 as usize * 3
}
/// The list of a link's sockets that back off.
const fn backing_off_on(link: LinkId) -> usize {
    link.0 as usize * 3 + 2
}

/// Lists of sockets, named by their places in the table, and their timers. Every operation takes constant time.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Schedule {
    timers: TimerWheel,
    /// For each link the sockets that want to send or back off, and for each neighbour those that wait for it.
    sending: Lists,
    waiting: WaitingForNeighbours,
    changed: Lists,
    closing: Lists,
    /// When those of a link that back off try again, the soonest first.
    back_offs: VecDeque<(Instant, LinkId)>,
    /// Sockets that wait for memory.
    starved: Lists,
    /// When those try again; far in the future where there are none.
    memory_retry_at: Instant,
}

impl Schedule {
    /// An empty schedule of a host with its loopback.
    pub(crate) fn new(now: Instant) -> Schedule {
        Schedule {
            timers: TimerWheel::new(now),
            sending: Lists::new(3),
            waiting: WaitingForNeighbours::default(),
            changed: Lists::new(1),
            closing: Lists::new(2),
            back_offs: VecDeque::new(),
            starved: Lists::new(1),
            memory_retry_at: Instant::FAR_FUTURE,
        }
    }
    /// Checks a thawed schedule of places below `places`.
    #[cfg(feature = "freeze")]
    pub(crate) fn check(&self, places: usize) -> Result<(), crate::Invalid> {
        self.timers.check(places)?;
        self.waiting.check()?;
        let lists = [&self.sending, &self.changed, &self.closing, &self.starved];
        lists.into_iter().try_for_each(|lists| lists.check(places))
    }
    /// Takes a socket that goes away out of everything.
    #[inline]
    pub(crate) fn forget(&mut self, place: usize) {
        self.timers.disarm(place);
        self.sending.remove(place);
        self.changed.remove(place);
        self.closing.remove(place);
        self.starved.remove(place);
    }

    /// Sets the instant at which a socket's timer expires.
    #[inline]
    pub(crate) fn arm(&mut self, place: usize, at: Instant) {
        self.timers.arm(place, at);
    }
    /// Lets a socket's timer expire at `at` unless it does so sooner.
    #[inline]
    pub(crate) fn arm_no_later(&mut self, place: usize, at: Instant) {
        if at < self.timers.armed(place) {
            self.timers.arm(place, at);
        }
    }
    /// Moves on to `now`; at most `budget` timers are moved.
    pub(crate) fn advance(&mut self, now: Instant, budget: usize) {
        self.timers.advance(now, budget);
    }
    /// A socket whose timer has expired.
    pub(crate) fn pop_due(&mut self) -> Option<usize> {
        self.timers.pop_due()
    }
    /// When the next timer expires or back-off ends.
    #[inline]
    pub(crate) fn deadline(&self) -> Instant {
        let back_off_ends = self.back_offs.front().map_or(Instant::FAR_FUTURE, |&(ends, _)| ends);
        self.timers.deadline().min(back_off_ends)
    }
    /// When those that wait for memory try again; far in the future where there are none.
    #[inline]
    pub(crate) fn memory_retry_at(&self) -> Instant {
        self.memory_retry_at
    }

    /// Whether some socket wants to send on a link.
    #[inline]
    pub(crate) fn has_senders(&self, link: LinkId) -> bool {
        self.sender_count(link) > 0
    }
    /// sockets that want to send on a link.
    #[inline]
    pub(crate) fn sender_count(&self, link: LinkId) -> usize {
        self.sending.count(senders_on(link))
    }
    /// The socket whose turn it is to send on a link.
    pub(crate) fn first_sender(&self, link: LinkId) -> Option<usize> {
        self.sending.first(senders_on(link))
    }
    /// Whether a socket wants to send, waits for a neighbour or backs off.
    #[inline]
    pub(crate) fn is_sending(&self, place: usize) -> bool {
        self.sending.list_of(place).is_some()
    }
    /// Puts a socket behind all that want to send on a link.
    #[inline]
    pub(crate) fn queue_sender(&mut self, link: LinkId, place: usize) {
        self.sending.push_back(senders_on(link), place);
    }
    /// The same, unless it wants to send already, waits for a neighbour or backs off.
    #[inline]
    pub(crate) fn keep_sender(&mut self, link: LinkId, place: usize) {
        if !self.is_sending(place) {
            self.queue_sender(link, place);
        }
    }
    /// Puts a socket before all that want to send on a link.
    pub(crate) fn queue_sender_first(&mut self, link: LinkId, place: usize) {
        self.sending.push_front(senders_on(link), place);
    }
    /// Takes a socket out of those that want to send.
    pub(crate) fn take_sending(&mut self, place: usize) {
        self.sending.remove(place);
    }
    /// Lets a socket wait until a neighbour is resolved.
    pub(crate) fn wait_for_neighbour(&mut self, link: LinkId, neighbour: IpAddr, place: usize) {
        let list = self.waiting.list_of(link, neighbour, &self.sending);
        self.sending.push_back(list, place);
    }
    /// Lets those send again that waited for a neighbour.
    pub(crate) fn neighbour_resolved(&mut self, link: LinkId, neighbour: IpAddr) {
        let Some(list) = self.waiting.take(link, neighbour) else { return };
        while let Some(place) = self.sending.pop_front(list) {
            self.queue_sender(link, place);
        }
    }
    /// Lets a socket back off.
    pub(crate) fn back_off(&mut self, link: LinkId, place: usize, now: Instant) {
        self.sending.push_back(backing_off_on(link), place);
        if !self.back_offs.iter().any(|&(_, other)| other == link) {
            self.back_offs.push_back((now + BACK_OFF, link));
        }
    }
    /// Lets those send again whose back-off is over.
    pub(crate) fn end_back_off(&mut self, now: Instant) {
        while let Some((_, link)) = self.back_offs.pop_front_if(|(ends, _)| *ends <= now) {
            while let Some(place) = self.sending.pop_front(backing_off_on(link)) {
                self.queue_sender(link, place);
            }
        }
    }

    /// Notes that there is news of a socket for the application.
    #[inline]
    pub(crate) fn notify(&mut self, place: usize) {
        if self.changed.list_of(place).is_none() {
            self.changed.push_back(CHANGED, place);
        }
    }
    /// Takes back that there is news of a socket.
    pub(crate) fn cancel_notice(&mut self, place: usize) {
        self.changed.remove(place);
    }
    /// Whether there is news for the application.
    #[inline]
    pub(crate) fn has_changed(&self) -> bool {
        self.changed.count(CHANGED) > 0
    }
    /// A socket of which there is news.
    pub(crate) fn pop_changed(&mut self) -> Option<usize> {
        self.changed.pop_front(CHANGED)
    }

    /// Whether a socket found no memory to send, and is to try again soon.
    #[inline]
    pub(crate) fn waits_for_memory(&self, place: usize) -> bool {
        self.starved.count(WAITING) > 0 && self.starved.list_of(place).is_some()
    }
    /// Lets a socket that found no memory to send try again soon.
    pub(crate) fn wait_for_memory(&mut self, place: usize, now: Instant) {
        self.starved.push_back(WAITING, place);
        self.memory_retry_at = self.memory_retry_at.min(now + MEMORY_RETRY);
    }
    /// It has room to send again, and need not wait.
    pub(crate) fn has_room(&mut self, place: usize) {
        self.starved.remove(place);
    }
    /// Takes a socket that waits for memory, when it is time to try again.
    pub(crate) fn pop_starved(&mut self, now: Instant) -> Option<usize> {
        if self.memory_retry_at > now {
            return None;
        }
        let place = self.starved.pop_front(WAITING);
        if place.is_none() {
            self.memory_retry_at = Instant::FAR_FUTURE;
        }
        place
    }

    /// Adds a closed UDP socket whose last datagrams are to leave.
    pub(crate) fn add_closing_udp(&mut self, place: usize) {
        self.closing.push_back(CLOSING_UDP, place);
    }
    /// The closed UDP socket that has waited for longest.
    pub(crate) fn oldest_closing_udp(&self) -> Option<usize> {
        self.closing.first(CLOSING_UDP)
    }
    /// Adds an orphan.
    pub(crate) fn add_orphan(&mut self, place: usize) {
        self.closing.push_back(ORPHANS, place);
    }
    /// Number of orphans.
    pub(crate) fn orphans(&self) -> usize {
        self.closing.count(ORPHANS)
    }
    /// The least recently checked orphan.
    pub(crate) fn next_orphan(&mut self) -> Option<usize> {
        let place = self.closing.pop_front(ORPHANS)?;
        self.closing.push_back(ORPHANS, place);
        Some(place)
    }
}
