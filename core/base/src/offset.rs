//! Positions in a stream, and the sequence numbers that stand for them on the wire.

use crate::Sequence;
use core::fmt;
use core::ops::Add;

/// A position in one direction of a connection, counted from its SYN, which is 0. It does not wrap, so that what a
/// connection keeps stays comparable for ever; before the SYN it is negative.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct Offset(i64);

impl Offset {
    /// The SYN's.
    pub const SYN: Offset = Offset(0);

    /// Bytes from `earlier` up to `self`, which are fewer than 2^32; 0 where `earlier` is later.
    pub fn since(self, earlier: Offset) -> u32 {
        self.0.wrapping_sub(earlier.0).max(0) as u32
    }
    /// The same where `earlier` is known not to be later.
    #[inline(always)]
    pub fn after(self, earlier: Offset) -> u32 {
        debug_assert!(earlier <= self);
        self.0.wrapping_sub(earlier.0) as u32
    }
    /// `start <= self < start + length`.
    pub fn within(self, start: Offset, length: u32) -> bool {
        start <= self && self < start + length
    }
    /// `self - bytes`.
    pub fn back(self, bytes: u32) -> Offset {
        Offset(self.0.wrapping_sub(i64::from(bytes)))
    }
    /// Its number on the wire, where that of the SYN is `initial`.
    pub fn sequence(self, initial: Sequence) -> Sequence {
        initial + self.0 as u32
    }
    /// What `sequence` stands for, where that of the SYN is `initial`: of all positions the nearest to this one, which is
    /// right while they are less than 2^31 apart (RFC 9293 §3.4).
    pub fn nearest(self, sequence: Sequence, initial: Sequence) -> Offset {
        Offset(self.0.wrapping_add(i64::from(sequence.since(self.sequence(initial)) as i32)))
    }
    /// As a plain number.
    pub fn count(self) -> u64 {
        self.0.max(0) as u64
    }
}

impl Add<u32> for Offset {
    type Output = Offset;
    fn add(self, bytes: u32) -> Offset {
        Offset(self.0.wrapping_add(i64::from(bytes)))
    }
}
impl fmt::Debug for Offset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "+{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_is_found_on_either_side_of_each_wrap() {
        let initial = Sequence(u32::MAX - 5);
        for turns in [0, 1, 7] {
            let known = Offset::SYN + (u32::MAX - 100);
            let known = (0..turns).fold(known, |at, _| at + u32::MAX + 1);
            for (by, is_behind) in [(0, false), (1 << 30, false), (1 << 31, true), (1 << 30, true)] {
                let meant = if is_behind { known.back(by) } else { known + by };
                assert_eq!(known.nearest(meant.sequence(initial), initial), meant);
            }
        }
        // Before the SYN, too.
        let old = Offset::SYN.nearest(initial.back(3), initial);
        assert!(old < Offset::SYN && old + 3 == Offset::SYN && old.since(Offset::SYN) == 0);
    }
}
