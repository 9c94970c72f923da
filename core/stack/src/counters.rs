//! Counters of a host.

use inhost_event::Drop;

/// Counted on one link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs)] // The names say it.
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct LinkCounters {
    pub received_frames: u64,
    pub received_bytes: u64,
    pub sent_frames: u64,
    pub sent_bytes: u64,
    /// By reason, in the order of [`Drop::ALL`].
    pub dropped: [u64; Drop::COUNT],
}

impl LinkCounters {
    /// Frames that went no further for one reason.
    pub fn dropped_for(&self, why: Drop) -> u64 {
        self.dropped[why as usize]
    }
    /// Every reason with its count, in the order of display.
    pub fn drops(&self) -> impl Iterator<Item = (Drop, u64)> + '_ {
        Drop::ALL.iter().map(|&why| (why, self.dropped_for(why)))
    }
}

/// Counted on the whole host.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct Counters {
    /// Connections that we opened.
    pub connections_opened: u64,
    /// Connections that listeners took.
    pub connections_accepted: u64,
    /// Connections that ended with an error.
    pub connections_failed: u64,
    /// SYNs not taken because a listener's queue, or the host, was full.
    pub listen_overflows: u64,
    /// SYNs answered with a cookie.
    pub cookies_sent: u64,
    /// Connections made of a cookie that came back.
    pub cookies_accepted: u64,
    /// Acknowledgments that were looked at for a cookie and had none that holds.
    pub cookies_refused: u64,
    /// Fast-open cookies given to callers.
    pub fast_open_cookies_granted: u64,
    /// Calls whose data was taken with their SYN.
    pub fast_opens_accepted: u64,
    /// Calls with a cookie that holds that had to wait for the handshake, because too many others had not.
    pub fast_opens_over_limit: u64,
    /// Our calls whose data was taken with their SYN.
    pub fast_opens_acknowledged: u64,
    /// Our calls whose data, or a part of it, was not taken with their SYN.
    pub fast_opens_refused: u64,
    /// Times that our calls stopped bearing data, because what followed it was swallowed.
    pub fast_open_pauses: u64,
    /// Connections aborted because too many were closing.
    pub orphans_aborted: u64,
    /// Times that a connection gave memory up because it was all but spent.
    pub connections_shrunk: u64,
    /// Connections reset because memory was short while their peer's window stayed closed.
    pub closed_windows_reset: u64,
    /// TIME-WAIT connections that ended early because too many were closing.
    pub time_waits_cut_short: u64,
    /// TIME-WAIT connections that gave way to a new one.
    pub time_wait_reused: u64,
    /// Resets sent without a connection, or at the end of one.
    pub resets_sent: u64,
    /// Resets not sent because of their rate.
    pub resets_limited: u64,
    /// UDP datagrams given to sockets.
    pub datagrams_received: u64,
    /// UDP datagrams sent.
    pub datagrams_sent: u64,
    /// Frames that the loopback had no room for.
    pub loopback_full: u64,
}
