//! The Internet checksum (RFC 1071): the ones-complement sum of 16-bit words, and updates to it (RFC 1624).

use inhost_base::IpAddr;
use inhost_buf::fold_sum;

/// A ones-complement sum in progress. It can be kept with the data it covers and combined later, so that no
/// byte need be touched twice.
///
/// ```
/// use inhost_wire::checksum::Sum;
/// // The example of RFC 1071 §3.
/// let data = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
/// assert_eq!(Sum::of(&data).finish(), !0xddf2);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum(u64);

impl Sum {
    /// The sum of nothing.
    pub const ZERO: Sum = Sum(0);

    /// The sum of `bytes`, the first of which is at an even offset; an odd last byte counts as followed by zero.
    #[inline]
    pub fn of(bytes: &[u8]) -> Sum {
        Sum(u64::from(inhost_buf::sum(bytes)))
    }
    /// From a sum of words, or of pairs of words, in the machine's own order (RFC 1071 §2 (B)).
    #[inline]
    pub const fn of_native(words: u64) -> Sum {
        Sum(u16::from_be(fold_sum(words)) as u64)
    }
    /// From a sum of words, or of pairs of words, as numbers.
    #[inline]
    pub const fn of_words(words: u64) -> Sum {
        Sum(fold_once(words))
    }
    /// Adds `bytes`, the first of which is at an even offset of the summed data. An odd last byte counts as followed by
    /// zero, so that more bytes after it need [`Sum::combine`].
    #[must_use]
    #[inline]
    pub fn add_bytes(self, bytes: &[u8]) -> Sum {
        self.combine(Sum::of(bytes), false)
    }
    /// Adds one word.
    #[must_use]
    pub const fn add_u16(self, word: u16) -> Sum {
        Sum(fold_once(self.0) + word as u64)
    }
    /// Adds two words.
    #[must_use]
    pub const fn add_u32(self, words: u32) -> Sum {
        Sum(fold_once(self.0) + words as u64)
    }
    /// Adds the sum of other bytes, which begin at an odd offset when `other_is_at_odd_offset`.
    #[must_use]
    pub const fn combine(self, other: Sum, other_is_at_odd_offset: bool) -> Sum {
        // RFC 1071 §2 (B): bytes at an odd offset sum to the swapped sum.
        let other = if other_is_at_odd_offset { other.folded().swap_bytes() as u64 } else { other.0 };
        Sum(fold_once(self.0) + fold_once(other))
    }
    /// The sum as one word, not complemented: what [`Sum::from_folded`] takes back.
    pub const fn folded(self) -> u16 {
        fold_sum(self.0)
    }
    /// The sum that [`Sum::folded`] gave.
    pub const fn from_folded(word: u16) -> Sum {
        Sum(word as u64)
    }
    /// The checksum: the complement of the sum.
    pub const fn finish(self) -> u16 {
        !self.folded()
    }
    /// Whether the sum of data that includes its checksum is right.
    pub const fn is_valid(self) -> bool {
        self.finish() == 0
    }
}

/// Equal when they finish alike.
impl PartialEq for Sum {
    fn eq(&self, other: &Self) -> bool {
        self.folded() == other.folded()
    }
}
impl Eq for Sum {}

/// The sum of the pseudo-header that UDP, TCP and ICMPv6 include (RFC 9293 §3.1, RFC 8200 §8.1). `length` is
/// that of the transport header and payload in bytes. When one address is IPv4 and the other IPv6 there is no
/// such packet; each address is summed in its own width.
#[inline]
pub fn pseudo_header(source: IpAddr, destination: IpAddr, protocol: u8, length: u32) -> Sum {
    let addresses = words_of(source) + words_of(destination);
    Sum::of_words(addresses + u64::from(protocol) + u64::from(length))
}

/// The pairs of words in an address, added.
#[inline]
pub(crate) fn words_of(address: IpAddr) -> u64 {
    match address {
        IpAddr::V4(address) => u64::from(u32::from(address)),
        IpAddr::V6(address) => {
            let bits = u128::from(address);
            [bits >> 96, bits >> 64, bits >> 32, bits].iter().map(|&word| u64::from(word as u32)).sum()
        }
    }
}

/// The checksum after one word under it changed from `old` to `new` (RFC 1624 §3, equation 3).
#[must_use]
pub const fn update(checksum: u16, old: u16, new: u16) -> u16 {
    Sum(!checksum as u64).add_u16(!old).add_u16(new).finish()
}

/// Below 2^33, so that further words, and other such sums, can be added.
const fn fold_once(sum: u64) -> u64 {
    (sum & 0xffff_ffff) + (sum >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use inhost_base::Random;

    /// Byte by byte, as RFC 1071 §1 words it.
    fn reference(bytes: &[u8]) -> u16 {
        let mut sum = 0u32;
        for (i, byte) in bytes.iter().enumerate() {
            sum += u32::from(*byte) << if i % 2 == 0 { 8 } else { 0 };
            if sum > 0xffff {
                sum -= 0xffff;
            }
        }
        sum as u16
    }

    fn random_bytes(random: &mut Random, length: usize) -> Vec<u8> {
        (0..length).map(|_| random.public_u64() as u8).collect()
    }

    #[test]
    fn rfc_1071_example() {
        // spec: RFC1071 3
        let data = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(Sum::of(&data).folded(), 0xddf2);
        let (front, back) = data.split_at(3);
        assert_eq!(Sum::of(front).combine(Sum::of(back), true).folded(), 0xddf2);
    }

    #[test]
    fn every_length_and_alignment_agrees_with_the_reference() {
        let mut random = Random::from_number(1071);
        let bytes = random_bytes(&mut random, 700);
        for start in 0..9 {
            for length in 0..=300 {
                let part = &bytes[start..start + length];
                assert_eq!(Sum::of(part).folded(), reference(part), "start {start} length {length}");
            }
        }
        let ones = [0xff; 65_535];
        assert_eq!(Sum::of(&ones).folded(), reference(&ones));
    }

    #[test]
    fn parts_combine_in_any_split() {
        let mut random = Random::from_number(2);
        for _ in 0..2_000 {
            let length = random.public_below(1_600) as usize;
            let bytes = random_bytes(&mut random, length);
            let at = random.public_below(length as u32 + 1) as usize;
            let (front, back) = bytes.split_at(at);
            let combined = Sum::of(front).combine(Sum::of(back), at % 2 == 1);
            assert_eq!(combined.folded(), reference(&bytes));
            assert_eq!(Sum::from_folded(combined.folded()), combined);
        }
    }

    #[test]
    fn many_words_do_not_overflow() {
        let mut sum = Sum::ZERO;
        for _ in 0..1_000_000 {
            sum = sum.add_u32(u32::MAX).add_u16(u16::MAX);
        }
        assert_eq!(sum.folded(), 0xffff);
    }

    #[test]
    fn an_update_equals_a_new_sum() {
        // spec: RFC1624 4
        assert_eq!(update(0xdd2f, 0x5555, 0x3285), 0x0000);
        let mut random = Random::from_number(3);
        for _ in 0..10_000 {
            let mut bytes = random_bytes(&mut random, 20);
            let before = Sum::of(&bytes).finish();
            let old = u16::from_be_bytes([bytes[6], bytes[7]]);
            let new = random.public_u64() as u16;
            bytes[6..8].copy_from_slice(&new.to_be_bytes());
            assert_eq!(update(before, old, new), Sum::of(&bytes).finish());
        }
    }
}
