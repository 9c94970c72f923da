//! Configuration of one end of a transfer.

use inhost_base::Duration;

use crate::codec::numbering::Rollover;
use crate::machine::timer::LONGEST_TIMEOUT;

/// Timeout of an unconfirmed client.
pub(super) const UNMET_GIVE_UP_AFTER: Duration = Duration::from_secs(10);

/// Settings of one end that need no negotiation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// Timeout without any packet. Default: 30 seconds.
    pub give_up_after: Duration,
    /// Time for which a receiver dallies to acknowledge the last block again (RFC 1350 §6). Default: 8 seconds, the
    /// longest time-out of ours.
    pub dally: Duration,
    /// What follows block 65,535 where nothing is agreed on. Default: nothing said; then block 0 follows what is sent,
    /// and of what comes, in lock-step, either.
    pub rollover: Option<Rollover>,
    /// Octets that a file which comes may have. Default: no limit.
    pub size_limit_bytes: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            give_up_after: Duration::from_secs(30),
            dally: LONGEST_TIMEOUT,
            rollover: None,
            size_limit_bytes: u64::MAX,
        }
    }
}
