//! TCP sequence numbers: arithmetic modulo 2^32.

use core::fmt;
use core::ops::Add;

/// A TCP sequence number (RFC 9293 §3.4). Comparison is modular: `a.precedes(b)` means that `b` is
/// less than 2^31 ahead of `a`. There is no `Ord` on purpose: the order is not transitive.
///
/// ```
/// use inhost_base::Sequence;
/// let last = Sequence(u32::MAX);
/// let next = last + 10;
/// assert!(last.precedes(next));
/// assert_eq!(next.since(last), 10);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct Sequence(pub u32);

impl Sequence {
    /// Whether `self` comes before `other`.
    pub const fn precedes(self, other: Sequence) -> bool {
        (self.0.wrapping_sub(other.0) as i32) < 0
    }
    /// Bytes from `earlier` up to `self`. Meaningful when `earlier` is at or before `self`.
    pub const fn since(self, earlier: Sequence) -> u32 {
        self.0.wrapping_sub(earlier.0)
    }
    /// The later of two.
    pub const fn later(self, other: Sequence) -> Sequence {
        if self.precedes(other) { other } else { self }
    }
    /// `start <= self < start + length`.
    pub const fn within(self, start: Sequence, length: u32) -> bool {
        self.0.wrapping_sub(start.0) < length
    }
    /// `self - bytes`.
    pub const fn back(self, bytes: u32) -> Sequence {
        Sequence(self.0.wrapping_sub(bytes))
    }
}

impl Add<u32> for Sequence {
    type Output = Sequence;
    fn add(self, bytes: u32) -> Sequence {
        Sequence(self.0.wrapping_add(bytes))
    }
}
impl fmt::Debug for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}
impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_survives_the_wrap() {
        let before = Sequence(u32::MAX - 1);
        let after = before + 4;
        assert!(before.precedes(after) && !after.precedes(before));
        assert_eq!(after.since(before), 4);
        assert_eq!(after.back(4), before);
        assert!(after.within(before, 5) && !after.within(before, 4));
    }
}
