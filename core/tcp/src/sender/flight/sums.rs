//! Sums over the records of a flight, kept as each changes, so that nobody has to look at all of them.

use super::{Record, State};
use alloc::collections::VecDeque;
use core::ops::{AddAssign, SubAssign};

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Sums {
    pub sacked_bytes: u32,
    pub lost_bytes: u32,
    /// Records that end a burst.
    pub bursts: u32,
    /// Bytes of retransmissions that are in the network.
    pub resent_bytes: u32,
}

impl Sums {
    pub fn of(records: &VecDeque<Record>) -> Sums {
        let mut sums = Sums::default();
        records.iter().for_each(|record| sums.add(record));
        sums
    }
    pub fn add(&mut self, record: &Record) {
        self.apply(u32::add_assign, record);
    }
    pub fn remove(&mut self, record: &Record) {
        self.apply(u32::sub_assign, record);
    }
    #[inline]
    fn apply(&mut self, change: impl Fn(&mut u32, u32), record: &Record) {
        if record.ends_burst {
            change(&mut self.bursts, 1);
        }
        match record.state {
            State::InFlight if record.retransmitted => change(&mut self.resent_bytes, record.bytes()),
            State::InFlight => {}
            State::Sacked => change(&mut self.sacked_bytes, record.bytes()),
            State::Lost => change(&mut self.lost_bytes, record.bytes()),
        }
    }
}
