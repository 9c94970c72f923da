//! The seeded random source of a host.

use core::hash::Hasher;
use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use siphasher::sip::SipHasher24;

/// A deterministic generator with two halves. The *private* half is for unpredictable values (ports, initial sequence
/// numbers, IP ids, keys); the *public* half is for observable ones (jitter, faults). Neither half reveals anything of
/// the other.
///
/// ```
/// use inhost_base::Random;
/// let (mut one, mut other) = (Random::from_number(7), Random::from_number(7));
/// assert_eq!(one.public_below(6), other.public_below(6), "the same seed gives the same numbers");
/// ```
#[derive(Clone, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct Random {
    private: ChaCha12Rng,
    public: ChaCha12Rng,
}

impl Random {
    /// A source that follows from `seed` alone: 32 bytes of entropy in production, any bytes in a test.
    pub fn from_seed(seed: [u8; 32]) -> Self {
        let mut private = ChaCha12Rng::from_seed(seed);
        let mut public_seed = [0; 32];
        private.fill_bytes(&mut public_seed);
        Random { private, public: ChaCha12Rng::from_seed(public_seed) }
    }
    /// A source for tests and simulations, from a number that a person can type.
    pub fn from_number(seed: u64) -> Self {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        Random::from_seed(bytes)
    }
    /// 32 bits that a peer cannot guess.
    pub fn private_u32(&mut self) -> u32 {
        self.private.next_u32()
    }
    /// A number below `limit` that a peer cannot guess; 0 when `limit` is 0.
    pub fn private_below(&mut self, limit: u32) -> u32 {
        below(self.private.next_u32(), limit)
    }
    /// A key for a keyed hash.
    pub fn private_key(&mut self) -> SipKey {
        SipKey([self.private.next_u64(), self.private.next_u64()])
    }
    /// 64 bits that may be seen.
    pub fn public_u64(&mut self) -> u64 {
        self.public.next_u64()
    }
    /// A number below `limit` that may be seen; 0 when `limit` is 0.
    pub fn public_below(&mut self, limit: u32) -> u32 {
        below(self.public.next_u32(), limit)
    }
    /// True once in `1 / probability` draws.
    pub fn public_chance(&mut self, probability: f64) -> bool {
        let unit = (self.public.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        unit < probability
    }
}

fn below(draw: u32, limit: u32) -> u32 {
    ((u64::from(draw) * u64::from(limit)) >> 32) as u32
}

/// The secret key of a SipHash.
#[derive(Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct SipKey([u64; 2]);

impl SipKey {
    /// A public key, for hashes that only need to be well distributed.
    pub const fn from_halves(first: u64, second: u64) -> SipKey {
        SipKey([first, second])
    }
    /// The keyed hash of `bytes`: SipHash-2-4.
    pub fn hash(&self, bytes: &[u8]) -> u64 {
        let mut hasher = SipHasher24::new_with_keys(self.0[0], self.0[1]);
        hasher.write(bytes);
        hasher.finish()
    }
    /// The keyed hash of a number of words known beforehand: SipHash-1-3 of their bytes in little-endian order, for
    /// tables, where a collision costs time and no more. About a hundred instructions for two words.
    #[inline]
    pub fn hash_words<const WORDS: usize>(&self, words: [u64; WORDS]) -> u64 {
        self.sip::<1, 3, WORDS>(words)
    }
    /// The same by SipHash-2-4, for values that a peer sees.
    #[inline]
    pub fn secret_words<const WORDS: usize>(&self, words: [u64; WORDS]) -> u64 {
        self.sip::<2, 4, WORDS>(words)
    }
    #[inline]
    fn sip<const ROUNDS: usize, const LAST_ROUNDS: usize, const WORDS: usize>(
        &self,
        words: [u64; WORDS],
    ) -> u64 {
        let mut v = [
            self.0[0] ^ 0x736f_6d65_7073_6575,
            self.0[1] ^ 0x646f_7261_6e64_6f6d,
            self.0[0] ^ 0x6c79_6765_6e65_7261,
            self.0[1] ^ 0x7465_6462_7974_6573,
        ];
        for word in words {
            v[3] ^= word;
            for _ in 0..ROUNDS {
                sip_round(&mut v);
            }
            v[0] ^= word;
        }
        let length = (WORDS as u64 * 8) << 56;
        v[3] ^= length;
        for _ in 0..ROUNDS {
            sip_round(&mut v);
        }
        v[0] ^= length;
        v[2] ^= 0xff;
        for _ in 0..LAST_ROUNDS {
            sip_round(&mut v);
        }
        v[0] ^ v[1] ^ v[2] ^ v[3]
    }
}

#[inline]
fn sip_round(v: &mut [u64; 4]) {
    v[0] = v[0].wrapping_add(v[1]);
    v[1] = v[1].rotate_left(13) ^ v[0];
    v[0] = v[0].rotate_left(32);
    v[2] = v[2].wrapping_add(v[3]);
    v[3] = v[3].rotate_left(16) ^ v[2];
    v[0] = v[0].wrapping_add(v[3]);
    v[3] = v[3].rotate_left(21) ^ v[0];
    v[2] = v[2].wrapping_add(v[1]);
    v[1] = v[1].rotate_left(17) ^ v[2];
    v[2] = v[2].rotate_left(32);
}
impl core::fmt::Debug for SipKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("SipKey(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_hash_as_their_bytes_do() {
        let mut random = Random::from_number(13);
        for _ in 0..1_000 {
            let key = random.private_key();
            let words = [random.public_u64(), random.public_u64(), random.public_u64()];
            let mut hasher = siphasher::sip::SipHasher13::new_with_keys(key.0[0], key.0[1]);
            for word in words {
                hasher.write(&word.to_le_bytes());
            }
            assert_eq!(key.hash_words(words), hasher.finish());
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            assert_eq!(key.secret_words(words), key.hash(&bytes));
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_draws() {
        let (mut a, mut b) = (Random::from_number(7), Random::from_number(7));
        for _ in 0..100 {
            assert_eq!((a.private_u32(), a.public_u64()), (b.private_u32(), b.public_u64()));
            assert!(a.public_below(10) < 10 && b.public_below(10) < 10);
        }
        assert!(!a.public_chance(0.0) && a.public_chance(1.0));
    }
}
