//! Counters of an interface.

use inhost_event::Drop;

/// Counters of IP on one interface since it was added. The owner of the link counts frames and bytes, because it also
/// sees those of the transports.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct InterfaceCounters {
    /// Datagrams handed to transports.
    pub delivered_datagrams: u64,
    /// Fragments that came in.
    pub received_fragments: u64,
    /// Datagrams put together from fragments.
    pub reassembled_datagrams: u64,
    /// Fragments sent.
    pub sent_fragments: u64,
    /// ICMP errors that came in and were passed on.
    pub received_errors: u64,
    /// ICMP errors of ours that were queued.
    pub sent_errors: u64,
    /// ICMP errors of ours that the limit on their rate kept back.
    pub suppressed_errors: u64,
    /// Echo requests answered.
    pub answered_echoes: u64,
    /// Frames of our own that were not sent: queue full, no memory, neighbour silent.
    pub lost_control_frames: u64,
    /// Signs that another host uses an address of ours.
    pub address_conflicts: u64,
    /// Packets of others that were queued for this link, waiting for neighbours included.
    pub forwarded_datagrams: u64,
    /// Redirects of ours that were queued.
    pub sent_redirects: u64,
    /// Timestamp requests answered.
    pub answered_timestamps: u64,
    /// Redirects accepted.
    pub accepted_redirects: u64,
    /// Frames and datagrams that went no further, by reason, in the order of [`Drop::ALL`].
    // spec: RFC1122 3.1-5
    pub drops: [u64; Drop::COUNT],
}

impl InterfaceCounters {
    /// Frames or datagrams that went no further for this reason.
    pub fn drops(&self, why: Drop) -> u64 {
        self.drops.get(why as usize).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: RFC1122 3.1-5
    #[test]
    fn every_reason_has_its_own_counter() {
        let mut counters = InterfaceCounters::default();
        for (times, &why) in Drop::ALL.iter().enumerate() {
            (0..times).for_each(|_| counters.drops[why as usize] += 1);
        }
        for (times, &why) in Drop::ALL.iter().enumerate() {
            assert_eq!(counters.drops(why), times as u64);
        }
    }
}
