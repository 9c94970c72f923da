//! Counter of wrong passwords of each peer, shared by all services.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use inhost_base::{Duration, Instant, IpAddr};

use crate::network::network;

/// Peers that are remembered; beyond, the ones without passwords under way are forgotten, the longest quiet first.
const PEERS: usize = 4096;

/// Limits on wrong passwords.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct DenialLimits {
    /// Wrong passwords of one peer in [`window`](Self::window), after which it is not let in. Default 12.
    pub denials_per_window: u32,
    /// The window. Default 1 minute.
    pub window: Duration,
}

impl Default for DenialLimits {
    fn default() -> Self {
        DenialLimits { denials_per_window: 12, window: Duration::from_secs(60) }
    }
}

/// The wrong passwords of all peers. A clone is the same one: services that share it share the limit, so that nobody
/// gets more guesses by trying them at several services.
#[derive(Clone, Default)]
pub struct Denials {
    state: Rc<RefCell<State>>,
}

#[derive(Default)]
struct State {
    limits: DenialLimits,
    peers: BTreeMap<IpAddr, Peer>,
    /// Places that were given so far.
    places: u64,
    /// Waiters for a password check of the same peer, in order of arrival.
    queued: BTreeMap<(IpAddr, u64), Waker>,
}

#[derive(Default)]
struct Peer {
    window_start: Instant,
    denials: u32,
    /// Passwords that are being checked.
    attempts: u32,
}

/// A party that may try passwords. Dropped, it no longer waits.
pub(crate) struct Guesser {
    denials: Denials,
    peer: IpAddr,
    number: u64,
}

/// A password that is being checked, and that may turn out wrong. Dropped without [`Attempt::denied`], it was none of
/// the peer's wrong ones: right, or not judged at all.
#[must_use = "dropping it gives it back"]
pub struct Attempt {
    denials: Denials,
    peer: IpAddr,
}

impl Denials {
    /// None yet.
    pub fn new(limits: DenialLimits) -> Denials {
        Denials { state: Rc::new(RefCell::new(State { limits, ..State::default() })) }
    }
    /// Whether `peer` has used its wrong passwords up. IPv6 peers count by their /64.
    pub fn is_used_up(&self, peer: IpAddr, now: Instant) -> bool {
        let mut state = self.state.borrow_mut();
        let limits = state.limits;
        state.peers.get_mut(&network(peer)).is_some_and(|peer| peer.is_used_up(now, &limits))
    }
    /// Somebody of `peer` who may try passwords.
    pub(crate) fn guesser(&self, peer: IpAddr) -> Guesser {
        let mut state = self.state.borrow_mut();
        state.places += 1;
        Guesser { denials: self.clone(), peer: network(peer), number: state.places }
    }
    fn with_peer<T>(&self, peer: IpAddr, now: Instant, work: impl FnOnce(&mut Peer) -> T) -> T {
        let mut state = self.state.borrow_mut();
        if !state.peers.contains_key(&peer) {
            state.forget();
        }
        let window = state.limits.window;
        let known = state.peers.entry(peer).or_default();
        known.roll(now, window);
        work(known)
    }
}

impl State {
    /// The wakers of all of `peer` that wait for a check. A woken task asks again, in any order of the executor's;
    /// those that still find no place are queued anew.
    fn take_queued(&mut self, peer: IpAddr) -> Vec<Waker> {
        let range = (peer, 0)..=(peer, u64::MAX);
        let numbers: Vec<_> = self.queued.range(range).map(|(&key, _)| key).collect();
        numbers.iter().filter_map(|key| self.queued.remove(key)).collect()
    }
    fn forget(&mut self) {
        if self.peers.len() < PEERS {
            return;
        }
        let quiet = self.peers.iter().filter(|(_, peer)| peer.attempts == 0);
        let oldest = quiet.min_by_key(|(_, peer)| peer.window_start).map(|(&address, _)| address);
        if let Some(address) = oldest {
            self.peers.remove(&address);
        }
    }
}

impl Peer {
    fn roll(&mut self, now: Instant, window: Duration) {
        if now.since(self.window_start) >= window {
            (self.window_start, self.denials) = (now, 0);
        }
    }
    fn is_used_up(&mut self, now: Instant, limits: &DenialLimits) -> bool {
        self.roll(now, limits.window);
        self.denials >= limits.denials_per_window
    }
}

impl Guesser {
    /// Reserves one of the peer's wrong passwords, or `None` once they are used up. While the peer's other checks might
    /// use them up, this waits.
    pub(crate) fn poll_attempt(&self, cx: &mut Context<'_>, now: Instant) -> Poll<Option<Attempt>> {
        let limit = self.denials.state.borrow().limits.denials_per_window;
        let key = (self.peer, self.number);
        let place = self.denials.with_peer(self.peer, now, |peer| {
            if peer.denials >= limit {
                return Poll::Ready(None);
            }
            if peer.denials.saturating_add(peer.attempts) >= limit {
                return Poll::Pending;
            }
            peer.attempts += 1;
            Poll::Ready(Some(()))
        });
        let queued = &mut self.denials.state.borrow_mut().queued;
        match place {
            Poll::Pending => drop(queued.insert(key, cx.waker().clone())),
            Poll::Ready(_) => drop(queued.remove(&key)),
        }
        place.map(|place| place.map(|()| Attempt { denials: self.denials.clone(), peer: self.peer }))
    }
    /// Counts a wrong password. False once the peer has had too many.
    pub(crate) fn denied(&self, now: Instant) -> bool {
        let limit = self.denials.state.borrow().limits.denials_per_window;
        self.denials.with_peer(self.peer, now, |peer| {
            peer.denials = peer.denials.saturating_add(1);
            peer.denials < limit
        })
    }
}

impl Drop for Guesser {
    fn drop(&mut self) {
        self.denials.state.borrow_mut().queued.remove(&(self.peer, self.number));
    }
}

impl Attempt {
    /// The password was wrong: the peer has used it up.
    pub fn denied(self, now: Instant) {
        self.denials.with_peer(self.peer, now, |peer| peer.denials = peer.denials.saturating_add(1));
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        let queued = {
            let mut state = self.denials.state.borrow_mut();
            if let Some(peer) = state.peers.get_mut(&self.peer) {
                peer.attempts = peer.attempts.saturating_sub(1);
            }
            state.take_queued(self.peer)
        };
        queued.into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    #[derive(Default)]
    struct Woken(AtomicUsize);
    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn at(seconds: u64) -> Instant {
        Instant::from_millis(seconds * 1000)
    }

    #[test]
    fn passwords_that_are_checked_at_once_share_the_limit() {
        let denials = Denials::new(DenialLimits { denials_per_window: 2, ..DenialLimits::default() });
        let [peer, stranger] = [1, 2].map(|last| IpAddr::from([10, 0, 0, last]));
        let guessers: Vec<_> = (0..4).map(|_| denials.guesser(peer)).collect();
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(woken.clone());
        let mut cx = Context::from_waker(&waker);
        let mut attempt = |number: usize, now| guessers[number].poll_attempt(&mut cx, at(now));
        let Poll::Ready(Some(first)) = attempt(0, 1) else { panic!("the first is refused") };
        let Poll::Ready(Some(second)) = attempt(1, 1) else { panic!("the second is refused") };
        // Both may be wrong, and there may be two wrong ones.
        assert!(attempt(2, 1).is_pending() && attempt(3, 1).is_pending());
        drop(first);
        assert_eq!(woken.0.load(Ordering::Relaxed), 2, "those who wait are woken");
        let Poll::Ready(Some(third)) = attempt(2, 1) else { panic!("a right password counts") };
        second.denied(at(1));
        assert!(attempt(3, 1).is_pending());
        third.denied(at(1));
        assert!(matches!(attempt(3, 1), Poll::Ready(None)));
        assert!(matches!(attempt(3, 62), Poll::Ready(Some(_))));
        // Another peer has its own.
        let other = denials.guesser(stranger);
        assert!(matches!(other.poll_attempt(&mut cx, at(1)), Poll::Ready(Some(_))));
    }

    #[test]
    fn peers_are_forgotten() {
        let denials = Denials::default();
        for index in 0..2 * PEERS as u32 {
            denials.guesser(IpAddr::from(index.to_be_bytes())).denied(at(1));
        }
        assert!(denials.state.borrow().peers.len() <= PEERS);
    }
}
