//! Who may open a session at all: counts and rates, for the host and for each peer.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use inhost_base::{Duration, Instant, IpAddr, Ipv6Addr};

/// Peers that are remembered; beyond, the ones without sessions are forgotten, the longest quiet first.
const PEERS: usize = 4096;

/// How many sessions, and how fast.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AdmissionLimits {
    /// Sessions at once. Default 256.
    pub sessions: usize,
    /// Sessions at once of one peer. Default 32.
    pub sessions_per_peer: usize,
    /// Connections of one peer in [`window`](Self::window). Default 60.
    pub connections_per_window: u32,
    /// Wrong passwords of one peer in the window, after which it is not let in. Default 12.
    pub denials_per_window: u32,
    /// The window of the two rates. Default 1 minute.
    pub window: Duration,
}

impl Default for AdmissionLimits {
    fn default() -> Self {
        AdmissionLimits {
            sessions: 256,
            sessions_per_peer: 32,
            connections_per_window: 60,
            denials_per_window: 12,
            window: Duration::from_secs(60),
        }
    }
}

/// Why a session was not opened.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Refusal {
    /// The host has all the sessions that it may have.
    Full,
    /// This peer has all the sessions that it may have.
    PeerFull,
    /// This peer connects too fast.
    TooFast,
    /// This peer has tried too many wrong passwords.
    TooManyDenials,
    /// The host goes down.
    Closed,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusal::Full => "too many sessions",
            Refusal::PeerFull => "too many sessions from your address",
            Refusal::TooFast => "too many connections from your address, try later",
            Refusal::TooManyDenials => "too many wrong passwords from your address, try later",
            Refusal::Closed => "the host goes down",
        })
    }
}

/// The sessions of a host. A clone is the same one.
#[derive(Clone)]
pub struct Admission {
    state: Rc<RefCell<State>>,
}

struct State {
    limits: AdmissionLimits,
    sessions: usize,
    peers: BTreeMap<IpAddr, Peer>,
    closed: bool,
    admitted: u64,
    /// Who is to be told when it closes, one of each session.
    waiting: BTreeMap<u64, Waker>,
    /// Sessions whose passwords wait for another of the same peer to be judged, the first to come first.
    queued: BTreeMap<(IpAddr, u64), Waker>,
}

#[derive(Default)]
struct Peer {
    sessions: usize,
    window_start: Instant,
    connections: u32,
    denials: u32,
    /// Passwords that are being checked.
    attempts: u32,
}

/// One admitted session; dropped, it is over.
pub struct Permit {
    state: Rc<RefCell<State>>,
    peer: IpAddr,
    number: u64,
}

/// A password that is being checked, and that may turn out wrong. Dropped without [`Attempt::denied`], it was none of
/// the peer's wrong ones: right, or not judged at all.
#[must_use = "dropping it gives it back"]
pub struct Attempt {
    state: Rc<RefCell<State>>,
    peer: IpAddr,
}

impl Admission {
    /// No sessions yet.
    pub fn new(limits: AdmissionLimits) -> Admission {
        let (peers, waiting, queued) = Default::default();
        let state = State { limits, sessions: 0, peers, closed: false, admitted: 0, waiting, queued };
        Admission { state: Rc::new(RefCell::new(state)) }
    }
    /// Ends the sessions that exist, each with a word to its user, and admits no others.
    pub fn close(&self) {
        let waiting = {
            let mut state = self.state.borrow_mut();
            state.closed = true;
            core::mem::take(&mut state.waiting)
        };
        waiting.into_values().for_each(Waker::wake);
    }
    /// Other limits from now on; sessions that exist stay.
    pub fn set_limits(&self, limits: AdmissionLimits) {
        self.state.borrow_mut().limits = limits;
    }
    /// Sessions that exist.
    pub fn sessions(&self) -> usize {
        self.state.borrow().sessions
    }
    /// Lets a session in, or says why not. IPv6 peers count by their /64.
    pub fn admit(&self, peer: IpAddr, now: Instant) -> Result<Permit, Refusal> {
        let peer = network(peer);
        let mut state = self.state.borrow_mut();
        let limits = state.limits;
        state.forget();
        let (full, closed) = (state.sessions >= limits.sessions, state.closed);
        let known = state.peers.entry(peer).or_default();
        known.roll(now, limits.window);
        known.connections = known.connections.saturating_add(1);
        let refusal = match known {
            _ if closed => Some(Refusal::Closed),
            _ if known.denials >= limits.denials_per_window => Some(Refusal::TooManyDenials),
            _ if known.connections > limits.connections_per_window => Some(Refusal::TooFast),
            _ if known.sessions >= limits.sessions_per_peer => Some(Refusal::PeerFull),
            _ => full.then_some(Refusal::Full),
        };
        if let Some(refusal) = refusal {
            return Err(refusal);
        }
        known.sessions += 1;
        state.sessions += 1;
        state.admitted += 1;
        Ok(Permit { state: self.state.clone(), peer, number: state.admitted })
    }
}

impl State {
    /// The wakers of all sessions of `peer` that wait for a check. A session that is woken asks again, in any order of
    /// the executor's; those that still find no place are queued anew.
    fn take_queued(&mut self, peer: IpAddr) -> Vec<Waker> {
        let range = (peer, 0)..=(peer, u64::MAX);
        let numbers: Vec<_> = self.queued.range(range).map(|(&key, _)| key).collect();
        numbers.iter().filter_map(|key| self.queued.remove(key)).collect()
    }
    fn forget(&mut self) {
        if self.peers.len() < PEERS {
            return;
        }
        let quiet = self.peers.iter().filter(|(_, peer)| peer.sessions == 0);
        let oldest = quiet.min_by_key(|(_, peer)| peer.window_start).map(|(&address, _)| address);
        if let Some(address) = oldest {
            self.peers.remove(&address);
        }
    }
}

impl Peer {
    fn roll(&mut self, now: Instant, window: Duration) {
        if now.since(self.window_start) >= window {
            (self.window_start, self.connections, self.denials) = (now, 0, 0);
        }
    }
}

impl Permit {
    /// Reserves one of the peer's wrong passwords before a password is checked, so that attempts in parallel share the
    /// limit. While the peer's other checks might use it up, this waits for them; once it is used up, it refuses.
    pub fn poll_attempt(&self, cx: &mut Context<'_>, now: Instant) -> Poll<Result<Attempt, Refusal>> {
        let mut state = self.state.borrow_mut();
        let limits = state.limits;
        let peer = state.peers.entry(self.peer).or_default();
        peer.roll(now, limits.window);
        if peer.denials >= limits.denials_per_window {
            return Poll::Ready(Err(Refusal::TooManyDenials));
        }
        if peer.denials.saturating_add(peer.attempts) >= limits.denials_per_window {
            state.queued.insert((self.peer, self.number), cx.waker().clone());
            return Poll::Pending;
        }
        peer.attempts += 1;
        state.queued.remove(&(self.peer, self.number));
        Poll::Ready(Ok(Attempt { state: self.state.clone(), peer: self.peer }))
    }
    /// Counts a wrong password of this peer. False once it has had too many.
    pub fn denied(&self, now: Instant) -> bool {
        let mut state = self.state.borrow_mut();
        let limits = state.limits;
        let peer = state.peers.entry(self.peer).or_default();
        peer.roll(now, limits.window);
        peer.denials = peer.denials.saturating_add(1);
        peer.denials < limits.denials_per_window
    }
    /// Ready once the session is to end, because nobody is admitted any more.
    pub fn poll_over(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.state.borrow_mut();
        if state.closed {
            return Poll::Ready(());
        }
        state.waiting.insert(self.number, cx.waker().clone());
        Poll::Pending
    }
}

impl Attempt {
    /// The password was wrong: the peer has used it up.
    pub fn denied(self, now: Instant) {
        let mut state = self.state.borrow_mut();
        let window = state.limits.window;
        if let Some(peer) = state.peers.get_mut(&self.peer) {
            peer.roll(now, window);
            peer.denials = peer.denials.saturating_add(1);
        }
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        let queued = {
            let mut state = self.state.borrow_mut();
            if let Some(peer) = state.peers.get_mut(&self.peer) {
                peer.attempts = peer.attempts.saturating_sub(1);
            }
            state.take_queued(self.peer)
        };
        queued.into_iter().for_each(Waker::wake);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut state = self.state.borrow_mut();
        state.sessions = state.sessions.saturating_sub(1);
        state.waiting.remove(&self.number);
        state.queued.remove(&(self.peer, self.number));
        if let Some(peer) = state.peers.get_mut(&self.peer) {
            peer.sessions = peer.sessions.saturating_sub(1);
        }
    }
}

/// What limits count as one caller, because one customer of a network provider has all of it: an IPv4 address, or an
/// IPv6 /64.
pub fn network(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX))),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> AdmissionLimits {
        AdmissionLimits {
            sessions: 3,
            sessions_per_peer: 2,
            connections_per_window: 5,
            denials_per_window: 2,
            window: Duration::from_secs(60),
        }
    }
    fn at(seconds: u64) -> Instant {
        Instant::from_millis(seconds * 1000)
    }
    fn peer(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    #[test]
    fn counts() {
        let admission = Admission::new(limits());
        let a = admission.admit(peer(1), at(1)).unwrap();
        let _b = admission.admit(peer(1), at(1)).unwrap();
        assert_eq!(admission.admit(peer(1), at(1)).err(), Some(Refusal::PeerFull));
        let _c = admission.admit(peer(2), at(1)).unwrap();
        assert_eq!(admission.admit(peer(3), at(1)).err(), Some(Refusal::Full));
        drop(a);
        assert!(admission.admit(peer(3), at(1)).is_ok());
        assert_eq!(admission.sessions(), 2);
    }

    #[test]
    fn a_host_that_goes_down_ends_its_sessions_and_admits_no_others() {
        let admission = Admission::new(limits());
        let (a, b) = (admission.admit(peer(1), at(1)).unwrap(), admission.admit(peer(1), at(1)).unwrap());
        let mut cx = Context::from_waker(Waker::noop());
        assert!(a.poll_over(&mut cx).is_pending() && b.poll_over(&mut cx).is_pending());
        drop(b);
        assert_eq!(admission.state.borrow().waiting.len(), 1, "who has left is not told");
        admission.close();
        assert!(a.poll_over(&mut cx).is_ready());
        assert_eq!(admission.admit(peer(2), at(1)).err(), Some(Refusal::Closed));
    }

    #[test]
    fn rates() {
        let admission = Admission::new(limits());
        for _ in 0..5 {
            assert!(admission.admit(peer(1), at(1)).is_ok());
        }
        assert_eq!(admission.admit(peer(1), at(30)).err(), Some(Refusal::TooFast));
        let permit = admission.admit(peer(1), at(62)).unwrap();
        assert!(permit.denied(at(62)) && !permit.denied(at(62)));
        assert_eq!(admission.admit(peer(1), at(63)).err(), Some(Refusal::TooManyDenials));
        assert!(admission.admit(peer(1), at(200)).is_ok());
    }

    #[test]
    fn passwords_that_are_checked_at_once_share_the_limit() {
        let admission = Admission::new(AdmissionLimits { sessions: 9, sessions_per_peer: 9, ..limits() });
        let permits: Vec<_> = (0..4).map(|_| admission.admit(peer(1), at(1)).unwrap()).collect();
        let mut cx = Context::from_waker(Waker::noop());
        let mut attempt = |number: usize, now| permits[number].poll_attempt(&mut cx, at(now));
        let Poll::Ready(Ok(first)) = attempt(0, 1) else { panic!("the first is refused") };
        let Poll::Ready(Ok(second)) = attempt(1, 1) else { panic!("the second is refused") };
        // Both may be wrong, and there may be two wrong ones.
        assert!(attempt(2, 1).is_pending() && attempt(3, 1).is_pending());
        assert_eq!(admission.state.borrow().queued.len(), 2);
        drop(first);
        assert!(admission.state.borrow().queued.is_empty(), "those who wait are woken");
        let Poll::Ready(Ok(third)) = attempt(2, 1) else { panic!("a right password counts") };
        second.denied(at(1));
        assert!(attempt(3, 1).is_pending());
        third.denied(at(1));
        assert!(matches!(attempt(3, 1), Poll::Ready(Err(Refusal::TooManyDenials))));
        assert!(matches!(attempt(3, 62), Poll::Ready(Ok(_))));
        // Another peer has its own.
        let other = admission.admit(peer(2), at(1)).unwrap();
        assert!(matches!(other.poll_attempt(&mut cx, at(1)), Poll::Ready(Ok(_))));
    }

    #[test]
    fn neighbours_in_a_64_are_one_and_peers_are_forgotten() {
        let admission = Admission::new(AdmissionLimits { sessions_per_peer: 1, ..limits() });
        let _a = admission.admit("2001:db8::1".parse().unwrap(), at(1)).unwrap();
        let second = admission.admit("2001:db8::2".parse().unwrap(), at(1));
        assert_eq!(second.err(), Some(Refusal::PeerFull));
        for index in 0..2 * PEERS as u32 {
            drop(admission.admit(IpAddr::from(index.to_be_bytes()), at(2)));
        }
        assert!(admission.state.borrow().peers.len() <= PEERS + 1);
    }
}
