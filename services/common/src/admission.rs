//! Admission control: limits on sessions and connection rates, for the host and for each peer.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use inhost_base::{Duration, Instant, IpAddr};

use crate::denials::{Attempt, Denials, Guesser};
use crate::network::network;

/// Peers that are remembered; beyond, the ones without sessions are forgotten, the longest quiet first.
const PEERS: usize = 4096;

/// Limits on sessions and connection rates.
///
/// ```
/// use inhost_base::{Instant, IpAddr};
/// use inhost_common::{Admission, AdmissionLimits};
/// let mut limits = AdmissionLimits::default();
/// limits.sessions_per_peer = 1;
/// let (admission, peer) = (Admission::new(limits), IpAddr::from([192, 0, 2, 9]));
/// let permit = admission.admit(peer, Instant::ZERO);
/// assert!(permit.is_ok() && admission.admit(peer, Instant::ZERO).is_err());
/// drop(permit);
/// assert!(admission.admit(peer, Instant::ZERO).is_ok(), "the session has ended");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct AdmissionLimits {
    /// Sessions at once. Default 256.
    pub sessions: usize,
    /// Sessions at once of one peer. Default 32.
    pub sessions_per_peer: usize,
    /// Connections of one peer in [`window`](Self::window). Default 60.
    pub connections_per_window: u32,
    /// The window. Default 1 minute.
    pub window: Duration,
}

impl AdmissionLimits {
    /// So many sessions at once, of all peers and of one, and so many connections of one peer in a minute.
    pub const fn per_minute(
        sessions: usize,
        sessions_per_peer: usize,
        connections_per_minute: u32,
    ) -> AdmissionLimits {
        let window = Duration::from_secs(60);
        AdmissionLimits {
            sessions,
            sessions_per_peer,
            connections_per_window: connections_per_minute,
            window,
        }
    }
}

impl Default for AdmissionLimits {
    fn default() -> Self {
        AdmissionLimits::per_minute(256, 32, 60)
    }
}

/// Why a session was not opened.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
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

/// A session of a service.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServiceSession {
    /// The service.
    pub service: &'static str,
    /// Its number among the service's sessions since the start, by which it can be ended.
    pub number: Option<u64>,
    /// The outer caller's address.
    pub peer: IpAddr,
    /// The logged-in user, if any.
    pub user: Option<String>,
    /// When it began.
    pub since: Instant,
}

/// The sessions of a service. A clone is the same one.
#[derive(Clone)]
pub struct Admission {
    state: Rc<RefCell<State>>,
    denials: Denials,
}

struct State {
    limits: AdmissionLimits,
    sessions: usize,
    peers: BTreeMap<IpAddr, Peer>,
    closed: bool,
    admitted: u64,
    /// The sessions by their numbers: the oldest first.
    open: BTreeMap<u64, Open>,
    /// Wakers of sessions, for the end of the service.
    waiting: BTreeMap<u64, Waker>,
}

/// Why a session ends that its user has not left.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Over {
    /// The host goes down.
    HostEnds,
    /// An operator has ended it.
    Dropped,
}

impl fmt::Display for Over {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Over::HostEnds => "the host goes down",
            Over::Dropped => "ended by an operator",
        })
    }
}

/// An active session.
struct Open {
    is_dropped: bool,
    peer: IpAddr,
    since: Instant,
    user: Option<String>,
}

#[derive(Default)]
struct Peer {
    sessions: usize,
    window_start: Instant,
    connections: u32,
}

/// One admitted session; dropped, it is over.
pub struct Permit {
    state: Rc<RefCell<State>>,
    peer: IpAddr,
    number: u64,
    guesser: Guesser,
}

impl Admission {
    /// No sessions yet, with wrong passwords of its own.
    pub fn new(limits: AdmissionLimits) -> Admission {
        Admission::sharing(limits, &Denials::default())
    }
    /// No sessions yet. Its peers' wrong passwords are `denials`, which other services count as well.
    pub fn sharing(limits: AdmissionLimits, denials: &Denials) -> Admission {
        let (peers, open, waiting) = Default::default();
        let state = State { limits, sessions: 0, peers, closed: false, admitted: 0, open, waiting };
        Admission { state: Rc::new(RefCell::new(state)), denials: denials.clone() }
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
    /// Ends one session, by its [number](ServiceSession::number). False when there is none.
    pub fn end(&self, number: u64) -> bool {
        let waker = {
            let mut state = self.state.borrow_mut();
            let Some(open) = state.open.get_mut(&number) else { return false };
            open.is_dropped = true;
            state.waiting.remove(&number)
        };
        waker.into_iter().for_each(Waker::wake);
        true
    }
    /// Other limits from now on; sessions that exist stay.
    pub fn set_limits(&self, limits: AdmissionLimits) {
        self.state.borrow_mut().limits = limits;
    }
    /// Sessions that exist.
    pub fn sessions(&self) -> usize {
        self.state.borrow().sessions
    }
    /// The sessions that exist, as those of `service`, the oldest first.
    pub fn list(&self, service: &'static str) -> Vec<ServiceSession> {
        let state = self.state.borrow();
        let session = |(&number, open): (&u64, &Open)| ServiceSession {
            service,
            number: Some(number),
            peer: open.peer,
            user: open.user.clone(),
            since: open.since,
        };
        state.open.iter().map(session).collect()
    }
    /// Lets a session in, or says why not. IPv6 peers count by their /64.
    pub fn admit(&self, peer: IpAddr, now: Instant) -> Result<Permit, Refusal> {
        let guesser = self.denials.guesser(peer);
        let has_denials = self.denials.is_used_up(peer, now);
        let (address, peer) = (peer, network(peer));
        let mut state = self.state.borrow_mut();
        let limits = state.limits;
        state.forget();
        let (full, closed) = (state.sessions >= limits.sessions, state.closed);
        let known = state.peers.entry(peer).or_default();
        known.roll(now, limits.window);
        known.connections = known.connections.saturating_add(1);
        let refusal = match known {
            _ if closed => Some(Refusal::Closed),
            _ if has_denials => Some(Refusal::TooManyDenials),
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
        let number = state.admitted;
        state.open.insert(number, Open { is_dropped: false, peer: address, since: now, user: None });
        Ok(Permit { state: self.state.clone(), peer, number, guesser })
    }
}

impl State {
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
            (self.window_start, self.connections) = (now, 0);
        }
    }
}

impl Permit {
    /// Somebody has logged in.
    pub fn logged_in(&self, user: &str) {
        if let Some(open) = self.state.borrow_mut().open.get_mut(&self.number) {
            open.user = Some(user.to_owned());
        }
    }
    /// Reserves one of the peer's wrong passwords before a password is checked, so that attempts in parallel share the
    /// limit. While the peer's other checks might use it up, this waits for them; once it is used up, it refuses.
    pub fn poll_attempt(&self, cx: &mut Context<'_>, now: Instant) -> Poll<Result<Attempt, Refusal>> {
        self.guesser.poll_attempt(cx, now).map(|attempt| attempt.ok_or(Refusal::TooManyDenials))
    }
    /// Counts a wrong password of this peer. False once it has had too many.
    pub fn denied(&self, now: Instant) -> bool {
        self.guesser.denied(now)
    }
    /// Ready once the session is to end, because nobody is admitted any more or an operator has ended it.
    pub fn poll_over(&self, cx: &mut Context<'_>) -> Poll<Over> {
        let mut state = self.state.borrow_mut();
        if state.closed {
            return Poll::Ready(Over::HostEnds);
        }
        if state.open.get(&self.number).is_some_and(|open| open.is_dropped) {
            return Poll::Ready(Over::Dropped);
        }
        state.waiting.insert(self.number, cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut state = self.state.borrow_mut();
        state.sessions = state.sessions.saturating_sub(1);
        state.waiting.remove(&self.number);
        state.open.remove(&self.number);
        if let Some(peer) = state.peers.get_mut(&self.peer) {
            peer.sessions = peer.sessions.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::denials::DenialLimits;

    /// A service whose peers may have two wrong passwords.
    fn admission(limits: AdmissionLimits) -> Admission {
        Admission::sharing(limits, &two())
    }
    fn two() -> Denials {
        Denials::new(DenialLimits { denials_per_window: 2, ..DenialLimits::default() })
    }
    fn limits() -> AdmissionLimits {
        AdmissionLimits::per_minute(3, 2, 5)
    }
    fn at(seconds: u64) -> Instant {
        Instant::from_millis(seconds * 1000)
    }
    fn peer(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    #[test]
    fn counts() {
        let admission = admission(limits());
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
        let admission = admission(limits());
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
    fn one_session_is_ended_and_the_others_go_on() {
        let admission = admission(limits());
        let (a, b) = (admission.admit(peer(1), at(1)).unwrap(), admission.admit(peer(1), at(1)).unwrap());
        let numbers: Vec<_> = admission.list("telnet").into_iter().filter_map(|of| of.number).collect();
        let mut cx = Context::from_waker(Waker::noop());
        assert!(a.poll_over(&mut cx).is_pending() && b.poll_over(&mut cx).is_pending());
        assert!(admission.end(numbers[0]) && !admission.end(99));
        assert_eq!(a.poll_over(&mut cx), Poll::Ready(Over::Dropped));
        assert!(b.poll_over(&mut cx).is_pending());
        drop(a);
        assert!(!admission.end(numbers[0]), "it is over");
    }

    #[test]
    fn rates() {
        let admission = admission(limits());
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
    fn wrong_passwords_count_at_every_service_of_the_host() {
        let denials = two();
        let (one, other) = (Admission::sharing(limits(), &denials), Admission::sharing(limits(), &denials));
        let at_one = one.admit(peer(1), at(1)).unwrap();
        let at_other = other.admit(peer(1), at(1)).unwrap();
        assert!(at_one.denied(at(1)) && !at_other.denied(at(1)));
        for admission in [&one, &other] {
            assert_eq!(admission.admit(peer(1), at(2)).err(), Some(Refusal::TooManyDenials));
            assert!(admission.admit(peer(2), at(2)).is_ok(), "another peer has its own");
        }
        let mut cx = Context::from_waker(Waker::noop());
        assert!(matches!(at_other.poll_attempt(&mut cx, at(2)), Poll::Ready(Err(Refusal::TooManyDenials))));
    }

    #[test]
    fn neighbours_in_a_64_are_one_and_peers_are_forgotten() {
        let admission = admission(AdmissionLimits { sessions_per_peer: 1, ..limits() });
        let _a = admission.admit("2001:db8::1".parse().unwrap(), at(1)).unwrap();
        let second = admission.admit("2001:db8::2".parse().unwrap(), at(1));
        assert_eq!(second.err(), Some(Refusal::PeerFull));
        for index in 0..2 * PEERS as u32 {
            drop(admission.admit(IpAddr::from(index.to_be_bytes()), at(2)));
        }
        assert!(admission.state.borrow().peers.len() <= PEERS + 1);
    }
}
