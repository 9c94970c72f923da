//! The recent destinations of a socket. An ICMP error about a datagram is accepted only if the datagram was sent (RFC
//! 5927 §4), because anyone can send an error.
//!
//! A datagram that answers a stranger vouches for nothing that changes the path for others. Anyone can forge the address
//! of a victim, and so have this host send to the victim what a forged redirect or "packet too big" then quotes.

use alloc::vec::Vec;
use inhost_base::{Duration, Endpoint, Instant};
use inhost_wire::quoted::Quoted;

/// Time for which an error about a datagram is accepted. A receiver that waits for fragments reports after a minute.
const REPORT_WITHIN: Duration = Duration::from_secs(120);
/// Time for which a router's error about a packet in transit is accepted: packet too big or a redirect. It comes within
/// a round trip.
const WITHIN_A_ROUND_TRIP: Duration = Duration::from_secs(10);

/// The latest destinations of a socket, at most a given number of them.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct RecentlySent {
    limit: usize,
    sent: Vec<Sent>,
    /// The entry of the latest datagram.
    latest: usize,
    /// The latest datagram about which no error mattered when it left: it may, once its socket is connected.
    aside: Option<Sent>,
}

/// A datagram that left.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Sent {
    /// Of an echo request or a probe, the port is its number.
    destination: Endpoint,
    at: Instant,
    /// The length of its packet where no router may have fragmented it, else 0; of several the longest.
    whole_bytes: u16,
    /// The other end sent first.
    is_answer: bool,
}

impl RecentlySent {
    pub(crate) fn new(limit: usize) -> Self {
        RecentlySent { limit, sent: Vec::new(), latest: 0, aside: None }
    }
    /// Checks a thawed list.
    #[cfg(feature = "freeze")]
    pub(crate) fn check(&self) -> Result<(), inhost_base::freeze::Invalid> {
        inhost_base::freeze::require(self.sent.len() <= self.limit, "the latest destinations")
    }
    /// Notes a datagram that left.
    #[inline]
    pub(crate) fn note(&mut self, sent: Sent) {
        match self.sent.get_mut(self.latest) {
            Some(known) if known.destination == sent.destination => known.renew(sent),
            _ => self.note_other(sent),
        }
    }
    /// Notes a datagram about which no error matters yet. Only the latest is kept, for there may be many.
    #[inline]
    pub(crate) fn note_aside(&mut self, sent: Sent) {
        self.aside = Some(sent);
    }
    fn note_other(&mut self, sent: Sent) {
        let known = self.sent.iter().position(|known| known.destination == sent.destination);
        let oldest =
            || self.sent.iter().enumerate().min_by_key(|(_, sent)| sent.at).map(|(oldest, _)| oldest);
        self.latest = match known {
            Some(known) => known,
            None if self.sent.len() < self.limit => self.sent.len(),
            None => oldest().unwrap_or(0),
        };
        match self.sent.get_mut(self.latest) {
            Some(latest) if known.is_some() => latest.renew(sent),
            Some(oldest) => *oldest = sent,
            None => self.sent.push(sent),
        }
    }
    /// Whether an error about a datagram to `destination` can be true.
    pub(crate) fn has(&self, destination: Endpoint, now: Instant) -> bool {
        self.find(destination).is_some_and(|sent| now.since(sent.at) <= REPORT_WITHIN)
    }
    /// Whether this host began to send to `destination` of late: no stranger made it do so.
    pub(crate) fn has_begun(&self, destination: Endpoint, now: Instant) -> bool {
        self.find(destination).is_some_and(|sent| !sent.is_answer && now.since(sent.at) <= REPORT_WITHIN)
    }
    /// Whether a datagram to `destination` that this host began may still be in transit.
    pub fn has_recent(&self, destination: Endpoint, now: Instant) -> bool {
        self.find(destination)
            .is_some_and(|sent| !sent.is_answer && now.since(sent.at) <= WITHIN_A_ROUND_TRIP)
    }
    /// Whether a router can have found a packet of `packet_bytes` to `destination` too big.
    pub(crate) fn has_whole(&self, destination: Endpoint, packet_bytes: u32, now: Instant) -> bool {
        self.find(destination).is_some_and(|sent| {
            now.since(sent.at) <= WITHIN_A_ROUND_TRIP && packet_bytes <= u32::from(sent.whole_bytes)
        })
    }
    fn find(&self, destination: Endpoint) -> Option<&Sent> {
        let known = self.sent.iter().find(|sent| sent.destination == destination);
        known.or(self.aside.as_ref().filter(|sent| sent.destination == destination))
    }
}

impl Sent {
    #[inline]
    pub(crate) fn new(destination: Endpoint, whole_bytes: u16, is_answer: bool, at: Instant) -> Sent {
        Sent { destination, at, whole_bytes, is_answer }
    }
    #[inline]
    fn renew(&mut self, sent: Sent) {
        let is_older = sent.at.since(self.at) > WITHIN_A_ROUND_TRIP;
        let whole_bytes = if is_older { sent.whole_bytes } else { sent.whole_bytes.max(self.whole_bytes) };
        *self = Sent { whole_bytes, ..sent };
    }
}

/// Who sent to a socket before it sent to them, at most a given number of them.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Strangers {
    limit: usize,
    heard: Vec<(Endpoint, Instant)>,
    /// When one was forgotten for want of room. An unknown destination may be that one.
    forgot: Option<Instant>,
}

impl Strangers {
    pub(crate) fn new(limit: usize) -> Self {
        Strangers { limit, heard: Vec::new(), forgot: None }
    }
    /// Checks a thawed list.
    #[cfg(feature = "freeze")]
    pub(crate) fn check(&self) -> Result<(), inhost_base::freeze::Invalid> {
        inhost_base::freeze::require(self.heard.len() <= self.limit, "the strangers of a socket")
    }
    /// Notes a datagram from somebody to whom the socket had not begun to send.
    pub(crate) fn note(&mut self, from: Endpoint, now: Instant) {
        if let Some((_, at)) = self.heard.iter_mut().find(|(known, _)| *known == from) {
            *at = now;
            return;
        }
        if self.heard.len() < self.limit {
            return self.heard.push((from, now));
        }
        if let Some(oldest) = self.heard.iter_mut().min_by_key(|(_, at)| *at) {
            if now.since(oldest.1) <= REPORT_WITHIN {
                self.forgot = Some(now);
            }
            *oldest = (from, now);
        }
    }
    /// Whether what is sent to `to` may be an answer to a stranger.
    #[inline]
    pub(crate) fn may_include(&self, to: Endpoint, now: Instant) -> bool {
        let is_lately = |at: Instant| now.since(at) <= REPORT_WITHIN;
        self.forgot.is_some_and(is_lately)
            || self.heard.iter().any(|&(known, at)| known == to && is_lately(at))
    }
}

/// Where a quoted packet was going.
pub(crate) fn destination_of(quoted: &Quoted) -> Endpoint {
    Endpoint { address: quoted.destination, port: quoted.destination_port }
}

#[cfg(test)]
mod tests {
    use super::*;
    use inhost_base::Ipv4Addr;

    fn to(port: u16) -> Endpoint {
        Endpoint::new(Ipv4Addr::LOCALHOST, port)
    }

    #[test]
    fn it_forgets_by_age_and_number() {
        let mut recent = RecentlySent::new(3);
        let second = |second: u64| Instant::from_millis(second * 1000);
        assert!(!recent.has(to(1), second(1)));
        recent.note(Sent::new(to(1), 1500, false, second(1)));
        recent.note(Sent::new(to(1), 600, false, second(2)));
        assert!(recent.has_whole(to(1), 1500, second(3)) && !recent.has_whole(to(1), 1501, second(3)));
        assert!(!recent.has_whole(to(1), 1500, second(13)) && recent.has(to(1), second(13)));
        recent.note(Sent::new(to(1), 600, false, second(20)));
        assert!(!recent.has_whole(to(1), 1500, second(20)), "the long one is too long ago");
        for port in [2, 3, 4] {
            recent.note(Sent::new(to(port), 0, false, second(21)));
        }
        assert!(!recent.has(to(1), second(21)) && recent.has(to(2), second(21)));
        assert!(!recent.has_whole(to(2), 28, second(21)), "routers may fragment that");
        assert!(!recent.has(to(2), second(142)));
        recent.note_aside(Sent::new(to(7), 0, false, second(200)));
        recent.note_aside(Sent::new(to(8), 0, false, second(200)));
        assert!(recent.has(to(8), second(201)) && !recent.has(to(7), second(201)));
        assert_eq!(recent.sent.len(), 3);
    }

    #[test]
    fn an_answer_vouches_for_no_path() {
        let mut recent = RecentlySent::new(3);
        let second = |second: u64| Instant::from_millis(second * 1000);
        recent.note(Sent::new(to(1), 1500, true, second(1)));
        assert!(recent.has(to(1), second(2)) && !recent.has_begun(to(1), second(2)));
        assert!(recent.has_whole(to(1), 1500, second(2)), "it may matter to the socket");
        assert!(!recent.has_recent(to(1), second(2)));
        recent.note(Sent::new(to(1), 1500, false, second(3)));
        assert!(recent.has_recent(to(1), second(4)) && recent.has_begun(to(1), second(4)));
    }

    #[test]
    fn after_more_strangers_than_are_remembered_nobody_is_told_from_them() {
        let mut strangers = Strangers::new(3);
        let second = |second: u64| Instant::from_millis(second * 1000);
        for port in [1, 2, 3, 2] {
            strangers.note(to(port), second(u64::from(port)));
        }
        assert!(strangers.may_include(to(1), second(4)) && !strangers.may_include(to(9), second(4)));
        strangers.note(to(4), second(5));
        assert!(strangers.may_include(to(9), second(6)), "it may be the one that was forgotten");
        assert!(!strangers.may_include(to(9), second(126)) && !strangers.may_include(to(4), second(126)));
        assert_eq!(strangers.heard.len(), 3);
    }
}
