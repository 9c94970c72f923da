//! SYN cookies: the state of a SYN, encoded in the initial sequence number and the timestamp (RFC 4987 §3.6).

use crate::demux::{Name, hash};
use inhost_base::{Instant, Random, Sequence, SipKey};

/// How long one count of a cookie's clock lasts. A cookie holds for the rest of its count and all of the next one.
const COUNT_MS: u64 = 64_000;
/// Longest time after which a cookie can come back.
const LIFE_MS: u32 = 2 * COUNT_MS as u32;
/// Payloads that callers take; a cookie names the largest that is not too much for its own.
const SIZES: [u16; 8] = [216, 536, 1220, 1360, 1440, 1452, 1460, 8960];
/// Low bits of our timestamp that hold the negotiated options.
const TERMS_BITS: u32 = 6;
/// In place of a window scale: none.
const NO_SCALE: u8 = 15;

/// Negotiated options besides the MSS, as far as they fit the low bits of a timestamp.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Terms {
    /// Bits by which the caller's windows are shifted.
    pub(crate) scale: Option<u8>,
    pub(crate) sack: bool,
    pub(crate) ecn: bool,
}

impl Terms {
    fn bits(self) -> u32 {
        let scale = self.scale.map_or(NO_SCALE, |scale| scale.min(NO_SCALE - 1));
        u32::from(scale) | u32::from(self.sack) << 4 | u32::from(self.ecn) << 5
    }
    fn from_bits(bits: u32) -> Terms {
        let scale = (bits & 0xf) as u8;
        Terms {
            scale: (scale != NO_SCALE).then_some(scale),
            sack: bits & 1 << 4 != 0,
            ecn: bits & 1 << 5 != 0,
        }
    }
    /// `stamp`, moved back by less than twice 64 ms so that its low bits are these terms: a timestamp of ours must not
    /// be ahead of the clock, or the next one is older.
    pub(crate) fn stamp(self, stamp: u32) -> u32 {
        let mask = (1 << TERMS_BITS) - 1;
        let told = (stamp & !mask) | self.bits();
        if told & mask > stamp & mask { told.wrapping_sub(mask + 1) } else { told }
    }
    /// The terms in a timestamp that came back, unless it is none that was given away while a cookie lasts. `stamp` is
    /// ours now; other hosts cannot know it, so this is worth some bits of the cookie, too.
    pub(crate) fn of_echo(echo: u32, stamp: u32) -> Option<Terms> {
        let age_ms = stamp.wrapping_sub(echo);
        (age_ms <= LIFE_MS + (2 << TERMS_BITS)).then(|| Terms::from_bits(echo & ((1 << TERMS_BITS) - 1)))
    }
}

/// Makes cookies and knows them again. Its cost is one keyed hash to make, and two at most to check.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Cookies {
    key: SipKey,
}

impl Cookies {
    pub(crate) fn new(random: &mut Random) -> Cookies {
        Cookies { key: random.private_key() }
    }
    /// The initial sequence number that says all about a call whose SYN has the number `sequence`, `None` for callers that
    /// take next to nothing.
    pub(crate) fn make(
        &self,
        name: &Name,
        sequence: Sequence,
        mss: u16,
        terms: Option<Terms>,
        now: Instant,
    ) -> Option<Sequence> {
        let index = SIZES.iter().rposition(|&size| size <= mss)? as u32;
        Some(Sequence(self.tag(name, sequence, terms, count(now)) ^ index))
    }
    /// The size that the caller takes, if the number that it acknowledges is one that we made, and lately.
    pub(crate) fn check(
        &self,
        name: &Name,
        sequence: Sequence,
        cookie: Sequence,
        terms: Option<Terms>,
        now: Instant,
    ) -> Option<u16> {
        let count = count(now);
        // All but the lowest bits are compared, and those hide the size.
        let size = |count| self.tag(name, sequence, terms, count) ^ cookie.0;
        [count, count.wrapping_sub(1)].into_iter().find_map(|count| SIZES.get(size(count) as usize).copied())
    }
    /// The keyed hash in a cookie.
    fn tag(&self, name: &Name, sequence: Sequence, terms: Option<Terms>, count: u32) -> u32 {
        let call = u64::from(sequence.0) << 32 | u64::from(count);
        // Terms that were never given do not come back.
        let terms = terms.map_or(u64::MAX, |terms| terms.bits().into());
        let short = |[ends, ports]: [u64; 2]| self.key.secret_words([ends, ports, call, terms]);
        let long = |[a, b, c, d, ports]: [u64; 5]| self.key.secret_words([a, b, c, d, ports, call, terms]);
        hash(name, short, long) as u32
    }
}

fn count(now: Instant) -> u32 {
    (now.as_millis() / COUNT_MS) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use inhost_base::{Endpoint, Ipv4Addr};

    const TERMS: Terms = Terms { scale: Some(7), sack: true, ecn: false };

    /// The number of the SYN.
    const SYN: Sequence = Sequence(77);

    fn caller(port: u16) -> Name {
        let end = |last, port| Endpoint::new(Ipv4Addr::new(10, 0, 0, last), port);
        Name::tcp(end(1, 80), end(2, port))
    }

    #[test]
    fn a_cookie_gives_back_the_size_and_holds_for_one_count_at_least() {
        let cookies = Cookies::new(&mut Random::from_number(1));
        for (mss, kept) in [(216, 216), (535, 216), (536, 536), (1460, 1460), (1461, 1460), (65_495, 8960)] {
            let at = |millis| Instant::from_millis(1_000_000 + millis);
            let cookie = cookies.make(&caller(5), SYN, mss, Some(TERMS), at(0)).unwrap();
            let check = |millis| cookies.check(&caller(5), SYN, cookie, Some(TERMS), at(millis));
            assert_eq!((check(0), check(COUNT_MS)), (Some(kept), Some(kept)));
            assert_eq!(check(u64::from(LIFE_MS) + 1), None);
        }
        assert_eq!(cookies.make(&caller(5), SYN, 215, None, Instant::ZERO), None);
    }

    #[test]
    fn nothing_about_a_call_can_be_changed() {
        let cookies = Cookies::new(&mut Random::from_number(2));
        let now = Instant::from_millis(5);
        let cookie = cookies.make(&caller(5), SYN, 1460, Some(TERMS), now).unwrap();
        let other = Terms { ecn: true, ..TERMS };
        assert_eq!(cookies.check(&caller(6), SYN, cookie, Some(TERMS), now), None);
        assert_eq!(cookies.check(&caller(5), SYN, cookie, Some(other), now), None);
        assert_eq!(cookies.check(&caller(5), SYN, cookie, None, now), None);
        assert_eq!(cookies.check(&caller(5), Sequence(78), cookie, Some(TERMS), now), None);
        let other = Cookies::new(&mut Random::from_number(3));
        assert_eq!(other.check(&caller(5), SYN, cookie, Some(TERMS), now), None);
        // One guess in 2^28 fits: two counts, and 29 bits that are compared.
        let fitting = (0..1 << 20).filter(|&guess| {
            cookies.check(&caller(5), SYN, Sequence(guess << 12), Some(TERMS), now).is_some()
        });
        assert!(fitting.count() <= 1);
    }

    #[test]
    fn terms_come_back_in_a_timestamp_that_is_not_ahead() {
        for scale in (0..=14).map(Some).chain([None]) {
            for bits in 0..4 {
                let terms = Terms { scale, sack: bits & 1 != 0, ecn: bits & 2 != 0 };
                for stamp in [0, 1, 63, 64, 1000, u32::MAX] {
                    let told = terms.stamp(stamp);
                    assert!(stamp.wrapping_sub(told) < 128, "{stamp} {told}");
                    assert_eq!(Terms::of_echo(told, stamp.wrapping_add(LIFE_MS)), Some(terms));
                    assert_eq!(Terms::of_echo(told.wrapping_add(128), stamp), None);
                }
            }
        }
    }
}
