//! The duplicate-request cache: replies to calls that must not be done twice.
//!
//! A client retransmits a call that is not answered. A REMOVE that is executed twice fails with NOENT although it
//! succeeded; a WRITE that is executed late undoes a newer one. Such a call is executed once, and its reply is cached.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use inhost_base::IpAddr;

use crate::codec::rpc::Target;

/// Replies that are kept, at least until this many calls have come behind them.
pub const ENTRIES_LIMIT: usize = 4096;
/// Octets of all replies that are kept.
pub const REPLIES_BYTES: usize = 2 << 20;
/// A reply that is longer is not kept; those of such calls are not.
pub const REPLY_BYTES: usize = 1024;

/// Octets of a message that are hashed.
const DIGESTED_BYTES: usize = 512;

/// A call, as it is known again: the caller's address, its number and its octets. The port may be another after a
/// new connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct CallId {
    peer: IpAddr,
    xid: u32,
    target: Target,
    /// Hash of the message's length and beginning, so that a number that was used again is not taken for a repetition.
    digest: u64,
}

impl CallId {
    /// The identity of a call.
    pub fn new(peer: IpAddr, xid: u32, target: Target, message: &[u8]) -> CallId {
        let mut hasher = DefaultHasher::new();
        message.len().hash(&mut hasher);
        message[..message.len().min(DIGESTED_BYTES)].hash(&mut hasher);
        CallId { peer, xid, target, digest: hasher.finish() }
    }
}

/// What to do with a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Admittance {
    /// It is new: do it, and say [`done`](Duplicates::done).
    New,
    /// It is being done.
    InProgress,
    /// It was done: this is the reply.
    Done(Vec<u8>),
}

/// The cache; pure.
#[derive(Debug, Default)]
pub struct Duplicates {
    calls: BTreeMap<CallId, Option<Vec<u8>>>,
    /// Those that were done, the oldest first.
    order: VecDeque<CallId>,
    kept_bytes: usize,
}

impl Duplicates {
    /// Takes a call.
    pub fn admit(&mut self, call: CallId) -> Admittance {
        match self.calls.get(&call) {
            Some(Some(reply)) => Admittance::Done(reply.clone()),
            Some(None) => Admittance::InProgress,
            None => {
                self.calls.insert(call, None);
                Admittance::New
            }
        }
    }
    /// A call was done, or it was given up if there is no reply.
    pub fn done(&mut self, call: CallId, reply: Option<&[u8]>) {
        let Some(reply) = reply.filter(|reply| reply.len() <= REPLY_BYTES) else {
            self.calls.remove(&call);
            return;
        };
        self.kept_bytes += reply.len();
        self.calls.insert(call, Some(reply.to_vec()));
        self.order.push_back(call);
        while self.order.len() > ENTRIES_LIMIT || self.kept_bytes > REPLIES_BYTES {
            let Some(oldest) = self.order.pop_front() else { break };
            if let Some(Some(reply)) = self.calls.remove(&oldest) {
                self.kept_bytes -= reply.len();
            }
        }
    }
    /// Replies that are kept.
    pub fn kept(&self) -> usize {
        self.order.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET: Target = Target { program: 100_003, version: 3, procedure: 12 };

    fn call(xid: u32, message: &[u8]) -> CallId {
        CallId::new(IpAddr::from([10, 9, 0, 1]), xid, TARGET, message)
    }

    #[test]
    fn a_call_is_done_once_and_answered_twice() {
        let mut cache = Duplicates::default();
        assert_eq!(cache.admit(call(1, b"x")), Admittance::New);
        assert_eq!(cache.admit(call(1, b"x")), Admittance::InProgress);
        assert_eq!(cache.admit(call(1, b"other")), Admittance::New, "the number was used again");
        cache.done(call(1, b"x"), Some(b"reply"));
        assert_eq!(cache.admit(call(1, b"x")), Admittance::Done(b"reply".to_vec()));
        cache.done(call(1, b"other"), None);
        assert_eq!(cache.admit(call(1, b"other")), Admittance::New, "it was given up");
    }

    #[test]
    fn the_cache_is_bounded() {
        let mut cache = Duplicates::default();
        for xid in 0..10_000 {
            assert_eq!(cache.admit(call(xid, b"x")), Admittance::New);
            cache.done(call(xid, b"x"), Some(&[0; REPLY_BYTES]));
        }
        assert!(cache.kept_bytes <= REPLIES_BYTES && cache.calls.len() == cache.kept());
        assert_eq!(cache.kept(), REPLIES_BYTES / REPLY_BYTES);
        assert!(matches!(cache.admit(call(9_999, b"x")), Admittance::Done(_)));
        assert_eq!(cache.admit(call(1, b"x")), Admittance::New);
    }
}
