//! Calls under way, a pure machine: replies and time in, messages and a deadline out.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use inhost_base::{Duration, Instant};

use crate::codec::rpc::{CallHeader, Credentials, ReplyHeader, ReplyStatus, Target};
use crate::codec::xdr::{Encoder, Xdr};

/// Calls under way at a time; more are refused.
pub const CALLS_LIMIT: usize = 256;

/// Why a call gave nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum CallError {
    /// The server refused the call, and says why.
    Refused(ReplyStatus),
    /// No reply came in the time that was given.
    Timeout,
    /// There is no connection, and none could be made in the time that was given.
    Unreachable(String),
    /// Too many calls are under way.
    Busy,
    /// Somebody asked for that.
    Interrupted,
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallError::Refused(status) => status.fmt(f),
            CallError::Timeout => f.write_str("the server does not answer"),
            CallError::Unreachable(why) => write!(f, "the server cannot be reached: {why}"),
            CallError::Busy => f.write_str("too many calls are under way"),
            CallError::Interrupted => f.write_str("interrupted"),
        }
    }
}
impl std::error::Error for CallError {}

/// When a call is sent again, and when it is given up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct CallSettings {
    /// Without a reply for so long a datagram is sent again, and a connection is made anew. Default: 1 second for
    /// datagrams, 60 seconds for connections.
    pub first_timeout: Duration,
    /// Each time it is twice as long, up to this. Default: 60 seconds.
    pub longest_timeout: Duration,
    /// A call is given up after this. Default: 120 seconds.
    pub give_up_after: Duration,
    /// Messages without a reply at a time; others wait. Of datagrams there are fewer after a loss. Default: 4 datagrams, so
    /// that their data fits into a receive buffer of Linux; of a connection as many as there are.
    pub window: u32,
    /// Whether replies open the window and losses close it.
    pub adapts: bool,
}

impl CallSettings {
    /// For datagrams.
    pub fn datagrams() -> CallSettings {
        let first_timeout = Duration::from_secs(1);
        CallSettings { first_timeout, window: 4, adapts: true, ..CallSettings::connection() }
    }
    /// For a connection.
    pub fn connection() -> CallSettings {
        let minute = Duration::from_secs(60);
        CallSettings {
            first_timeout: minute,
            longest_timeout: minute,
            give_up_after: Duration::from_secs(120),
            window: CALLS_LIMIT as u32,
            adapts: false,
        }
    }
}

#[derive(Debug)]
struct Pending {
    message: Vec<u8>,
    timeout: Duration,
    /// When it is sent again; none while it waits to be sent.
    again_at: Option<Instant>,
    give_up_at: Instant,
}

/// The calls of one server.
///
/// A driver sends each message of [`transmit`](Calls::transmit), gives each that comes to [`received`](Calls::received),
/// and calls [`timeout`](Calls::timeout) at the [`deadline`](Calls::deadline). The result of a call is there to be
/// [taken](Calls::take) once. A message that is not a reply to a pending call is ignored.
#[derive(Debug)]
pub struct Calls {
    settings: CallSettings,
    next_xid: u32,
    pending: BTreeMap<u32, Pending>,
    unsent: VecDeque<u32>,
    done: BTreeMap<u32, Result<Vec<u8>, CallError>>,
    /// Messages that were sent more than once.
    retransmitted: u64,
    /// Messages that were sent and have no reply.
    in_flight: u32,
    /// How many there may be, in parts of [`WINDOW_PARTS`].
    window: u32,
    /// Whether a reply came since the connection was made.
    is_answered: bool,
    /// Whether the next call fails, because there was none when somebody interrupted.
    is_interrupted: bool,
}

/// Parts of a message in which the window is counted.
const WINDOW_PARTS: u32 = 256;
/// Messages of the first window.
const FIRST_WINDOW: u32 = 2;

impl Calls {
    /// No calls yet; the first has the number `xid`, which should not be one of an earlier process.
    pub fn new(settings: CallSettings, xid: u32) -> Calls {
        let window = if settings.adapts { FIRST_WINDOW.min(settings.window) } else { settings.window };
        Calls {
            in_flight: 0,
            window: window.max(1).saturating_mul(WINDOW_PARTS),
            settings,
            next_xid: xid,
            pending: BTreeMap::new(),
            unsent: VecDeque::new(),
            done: BTreeMap::new(),
            retransmitted: 0,
            is_answered: false,
            is_interrupted: false,
        }
    }
    /// Begins a call and gives its number.
    pub fn begin(
        &mut self,
        target: Target,
        credentials: &Credentials,
        arguments: &impl Xdr,
        now: Instant,
    ) -> Result<u32, CallError> {
        if self.pending.len() + self.done.len() >= CALLS_LIMIT {
            return Err(CallError::Busy);
        }
        if std::mem::take(&mut self.is_interrupted) {
            return Err(CallError::Interrupted);
        }
        let xid = self.next_xid;
        self.next_xid = xid.wrapping_add(1);
        let mut to = Encoder::default();
        CallHeader { xid, target, credentials: credentials.clone() }.encode(&mut to);
        to.value(arguments);
        let pending = Pending {
            message: to.into_octets(),
            timeout: self.settings.first_timeout,
            again_at: None,
            give_up_at: now + self.settings.give_up_after,
        };
        self.pending.insert(xid, pending);
        self.unsent.push_back(xid);
        Ok(xid)
    }
    /// The next message to be sent.
    pub fn transmit(&mut self, now: Instant) -> Option<&[u8]> {
        loop {
            if self.in_flight >= self.window / WINDOW_PARTS {
                return None;
            }
            let xid = self.unsent.pop_front()?;
            if let Some(pending) = self.pending.get_mut(&xid) {
                pending.again_at = Some(now + pending.timeout);
                self.in_flight += 1;
                break self.pending.get(&xid).map(|pending| pending.message.as_slice());
            }
        }
    }
    /// A message came. False if it is not a reply to a call under way.
    pub fn received(&mut self, message: &[u8]) -> bool {
        let Ok((header, results)) = ReplyHeader::parse(message) else { return false };
        if !self.pending.contains_key(&header.xid) {
            return false;
        }
        self.remove(header.xid);
        self.is_answered = true;
        if self.settings.adapts {
            // One message more for each window that was answered.
            let most = self.settings.window.saturating_mul(WINDOW_PARTS);
            self.window = (self.window + WINDOW_PARTS * WINDOW_PARTS / self.window).min(most);
        }
        let result = match header.status {
            ReplyStatus::Success => Ok(results.to_vec()),
            other => Err(CallError::Refused(other)),
        };
        self.done.insert(header.xid, result);
        true
    }
    fn remove(&mut self, xid: u32) {
        if self.pending.remove(&xid).is_some_and(|pending| pending.again_at.is_some()) {
            self.in_flight -= 1;
        }
    }
    /// When [`timeout`](Calls::timeout) has something to do.
    pub fn deadline(&self) -> Option<Instant> {
        let first =
            |pending: &Pending| pending.again_at.map_or(pending.give_up_at, |at| at.min(pending.give_up_at));
        self.pending.values().map(first).min()
    }
    /// Has calls sent again, or gives them up, whose time has come. True if some are sent again: a driver of a connection
    /// makes a new one then.
    pub fn timeout(&mut self, now: Instant) -> bool {
        let late: Vec<u32> =
            self.pending.iter().filter(|(_, p)| p.give_up_at <= now).map(|(&xid, _)| xid).collect();
        for xid in late {
            self.remove(xid);
            self.done.insert(xid, Err(CallError::Timeout));
        }
        let mut is_again = false;
        for (&xid, pending) in &mut self.pending {
            if pending.again_at.is_some_and(|at| at <= now) {
                pending.again_at = None;
                self.in_flight -= 1;
                pending.timeout = pending.timeout.times(2).min(self.settings.longest_timeout);
                self.unsent.push_back(xid);
                self.retransmitted += 1;
                is_again = true;
            }
        }
        if is_again && self.settings.adapts {
            self.window = (self.window / 2).max(WINDOW_PARTS);
        }
        is_again
    }
    /// The connection is a new one: all calls under way are sent again, with the same numbers.
    pub fn reconnected(&mut self) {
        self.unsent.clear();
        self.in_flight = 0;
        for (&xid, pending) in &mut self.pending {
            self.retransmitted += u64::from(pending.again_at.take().is_some());
            self.unsent.push_back(xid);
        }
    }
    /// The connection is gone.
    pub fn disconnected(&mut self) {
        self.is_answered = false;
    }
    /// Nobody can be reached: all calls under way fail.
    pub fn fail(&mut self, why: &str) {
        self.fail_all(&CallError::Unreachable(why.to_owned()));
    }
    fn fail_all(&mut self, error: &CallError) {
        self.unsent.clear();
        self.in_flight = 0;
        let failed = std::mem::take(&mut self.pending).into_keys();
        self.done.extend(failed.map(|xid| (xid, Err(error.clone()))));
    }
    /// Ends an operation: all calls under way fail, or the next one if there is none. Those after that are done, so that
    /// the operation can clear up.
    pub fn interrupt(&mut self) {
        self.is_interrupted = self.pending.is_empty();
        self.fail_all(&CallError::Interrupted);
    }
    /// The result of a call, once it is there.
    pub fn take(&mut self, xid: u32) -> Option<Result<Vec<u8>, CallError>> {
        self.done.remove(&xid)
    }
    /// Nobody wants the result of a call.
    pub fn forget(&mut self, xid: u32) {
        self.remove(xid);
        self.unsent.retain(|&unsent| unsent != xid);
        self.done.remove(&xid);
    }
    /// Whether calls wait for a server that has not answered since the connection was made, or for a connection.
    pub fn is_waiting(&self) -> bool {
        !self.pending.is_empty() && !self.is_answered
    }
    /// Calls without a result.
    pub fn under_way(&self) -> usize {
        self.pending.len()
    }
    /// Messages that were sent more than once.
    pub fn retransmitted(&self) -> u64 {
        self.retransmitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET: Target = Target { program: 100_003, version: 3, procedure: 0 };

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }
    fn calls() -> Calls {
        Calls::new(CallSettings::datagrams(), u32::MAX)
    }
    fn begin(calls: &mut Calls, now: Instant) -> u32 {
        calls.begin(TARGET, &Credentials::None, &7u32, now).unwrap()
    }

    #[test]
    fn a_call_is_sent_again_ever_more_slowly_and_then_given_up() {
        let mut calls = calls();
        let xid = begin(&mut calls, at(0));
        let message = calls.transmit(at(0)).unwrap().to_vec();
        let mut sent = Vec::new();
        while let Some(deadline) = calls.deadline() {
            calls.timeout(deadline);
            if let Some(again) = calls.transmit(deadline) {
                assert_eq!(again, message, "the number is the same");
                sent.push(deadline.since(at(0)).as_millis() / 1000);
            }
        }
        assert_eq!(sent, [1, 3, 7, 15, 31, 63]);
        assert_eq!(calls.take(xid), Some(Err(CallError::Timeout)));
        assert_eq!((calls.take(xid), calls.under_way(), calls.retransmitted()), (None, 0, 6));
    }

    #[test]
    fn a_reply_is_taken_once_and_others_are_ignored() {
        let mut calls = calls();
        let (first, second) = (begin(&mut calls, at(0)), begin(&mut calls, at(0)));
        assert_eq!((first, second), (u32::MAX, 0), "numbers start again behind the last");
        while calls.transmit(at(0)).is_some() {}
        assert!(!calls.received(&ReplyHeader::octets(7, ReplyStatus::Success)));
        assert!(!calls.received(b"rubbish"));
        assert!(calls.received(&ReplyHeader::octets(second, ReplyStatus::SystemError)));
        assert!(!calls.received(&ReplyHeader::octets(second, ReplyStatus::Success)), "only the first counts");
        assert_eq!(calls.take(second), Some(Err(CallError::Refused(ReplyStatus::SystemError))));
        calls.reconnected();
        assert!(calls.transmit(at(5)).is_some() && calls.transmit(at(5)).is_none());
        assert_eq!(calls.retransmitted(), 1, "a call under way is sent again at a new connection");
        calls.fail("gone");
        assert_eq!(calls.take(first), Some(Err(CallError::Unreachable("gone".into()))));
    }

    #[test]
    fn losses_close_the_window_and_replies_open_it() {
        let mut calls = calls();
        for _ in 0..100 {
            begin(&mut calls, at(0));
        }
        let send = |calls: &mut Calls, now| {
            let mut sent = Vec::new();
            while let Some(message) = calls.transmit(now) {
                sent.push(CallHeader::parse(message).unwrap().0.xid);
            }
            sent
        };
        let mut flight = send(&mut calls, at(0));
        assert_eq!(flight.len(), 2);
        for _ in 0..40 {
            calls.received(&ReplyHeader::octets(flight.remove(0), ReplyStatus::Success));
            flight.extend(send(&mut calls, at(1)));
        }
        assert_eq!(flight.len(), 4, "the window has a limit");
        calls.timeout(at(5_000));
        assert_eq!(send(&mut calls, at(5_000)).len(), 2, "half of it after a loss");
        let xids: Vec<u32> = calls.pending.keys().copied().collect();
        xids.into_iter().for_each(|xid| calls.forget(xid));
        assert_eq!((calls.in_flight, calls.under_way()), (0, 0));
    }

    #[test]
    fn an_interrupt_ends_one_operation() {
        let mut calls = calls();
        let first = begin(&mut calls, at(0));
        assert!(calls.is_waiting());
        calls.interrupt();
        assert_eq!(calls.take(first), Some(Err(CallError::Interrupted)));
        let second = begin(&mut calls, at(1));
        assert!(calls.transmit(at(1)).is_some() && calls.transmit(at(1)).is_none(), "the first is forgotten");
        assert!(calls.received(&ReplyHeader::octets(second, ReplyStatus::Success)) && !calls.is_waiting());
        // Between two calls, it is the next one that fails.
        calls.interrupt();
        assert_eq!(calls.begin(TARGET, &Credentials::None, &0u32, at(2)), Err(CallError::Interrupted));
        begin(&mut calls, at(2));
        assert!(!calls.is_waiting(), "the server has answered");
        calls.disconnected();
        assert!(calls.is_waiting());
    }

    #[test]
    fn calls_have_a_limit() {
        let mut calls = calls();
        for _ in 0..CALLS_LIMIT {
            begin(&mut calls, at(0));
        }
        assert_eq!(calls.begin(TARGET, &Credentials::None, &0u32, at(0)), Err(CallError::Busy));
        calls.forget(u32::MAX);
        begin(&mut calls, at(0));
    }
}
