//! Blocks are counted without end, and written in sixteen bits.

/// Block number after 65,535. No RFC says it; most count on from 0, some from 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Rollover {
    /// Block 0.
    #[default]
    ToZero,
    /// Block 1.
    ToOne,
}

impl Rollover {
    /// Numbers before one comes again.
    const fn period(self) -> u64 {
        match self {
            Rollover::ToZero => 1 << 16,
            Rollover::ToOne => (1 << 16) - 1,
        }
    }
    /// The block's number on the wire.
    pub const fn wire(self, block: u64) -> u16 {
        match (self, block) {
            (Rollover::ToZero, block) => block as u16,
            (Rollover::ToOne, 0) => 0,
            (Rollover::ToOne, block) => ((block - 1) % self.period() + 1) as u16,
        }
    }
    /// The block that is written so, of `first` and those behind it; `None` when it is none of the first `count`.
    pub fn block(self, wire: u16, first: u64, count: u64) -> Option<u64> {
        let of_first = u64::from(self.wire(first));
        let wire = u64::from(wire);
        let ahead = match self {
            Rollover::ToZero => wire.wrapping_sub(of_first) & 0xffff,
            // Only the very first block that is counted from has the number 0.
            Rollover::ToOne if wire == 0 || of_first == 0 => {
                return (first == 0 && wire < count).then_some(wire);
            }
            Rollover::ToOne => (wire + self.period() - of_first) % self.period(),
        };
        (ahead < count).then(|| first + ahead)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_again() {
        for (rollover, after) in [(Rollover::ToZero, [0, 1, 2]), (Rollover::ToOne, [1, 2, 3])] {
            let written = [65_534, 65_535, 65_536, 65_537, 65_538].map(|block| rollover.wire(block));
            assert_eq!(written, [65_534, 65_535, after[0], after[1], after[2]]);
            assert_eq!(rollover.wire(0), 0);
            for first in [0, 1, 2, 65_530, 65_535, 65_536, 65_537, 200_000] {
                for block in first..first + 100 {
                    let wire = rollover.wire(block);
                    assert_eq!(rollover.block(wire, first, 100), Some(block), "{rollover:?} {first} {block}");
                }
                assert_eq!(rollover.block(rollover.wire(first + 100), first, 100), None);
            }
            assert_eq!(rollover.block(rollover.wire(65_500), 65_501, 100), None);
        }
        assert_eq!(Rollover::ToOne.block(0, 65_530, 100), None, "nobody counts so");
    }
}
