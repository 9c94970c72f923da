//! The limit on challenge acknowledgments (RFC 5961 §7).

use crate::Config;
use inhost_base::{Duration, Instant};

/// Challenge acknowledgments sent so far.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Challenges {
    /// When they were last counted: in seconds of the host's time, or where an interval paces them in milliseconds.
    at: u32,
    count: u8,
}

/// Value of `count`: the peer repeated its SYN and acknowledged ours. In the Linux profile a listener's handshake then counts
/// as a connection, with a challenge count of its own.
const AS_CONNECTION: u8 = 2;

impl Challenges {
    /// Counts one; false when this second's are spent.
    // spec: RFC5961 7-1
    pub fn may_send(&mut self, config: &Config, now: Instant) -> bool {
        if let Some(interval) = config.policy.challenge_interval {
            let at = now.as_millis() as u32;
            let passed = Duration::from_millis(u64::from(at.wrapping_sub(self.at)));
            let may = self.count == 0 || passed >= interval;
            if may {
                *self = Challenges { at, count: 1 };
            }
            return may;
        }
        let second = (now.as_nanos() / 1_000_000_000) as u32;
        if second != self.at {
            *self = Challenges { at: second, count: 0 };
        }
        let may = self.count < config.challenge_limit_per_second;
        self.count += u8::from(may);
        may
    }
    /// None was sent.
    pub fn forget(&mut self) {
        self.count = 0;
    }
    /// The handshake is challenged as a connection is.
    pub fn count_as_connection(&mut self) {
        self.count = AS_CONNECTION;
    }
    /// The handshake is done: what it was answered is no business of the connection.
    pub fn opened(&mut self) {
        self.count = u8::from(self.count == AS_CONNECTION);
    }
}
