//! The loops for x86-64 with AVX2.
//!
//! A 16-bit word `w` is turned into the signed `w - 2^15` by inverting its highest bit; neighbours are then added in
//! one multiply-add into 32-bit lanes, and the bias is added back at the end. So 32 bytes cost three instructions, and
//! the sum is exact.

use super::portable;
use core::arch::x86_64::{
    __m256i, _mm256_add_epi32, _mm256_loadu_si256, _mm256_madd_epi16, _mm256_set1_epi16,
    _mm256_setzero_si256, _mm256_storeu_si256, _mm256_xor_si256,
};

/// Bytes of a register.
const WIDE_BYTES: usize = 32;
/// Bytes that the loop takes at once, in four registers, each with lanes of its own.
const STRIDE_BYTES: usize = 4 * WIDE_BYTES;
/// Most strides without overflow: each stride adds at most 2^16 to the amount in a lane, and a lane holds less than
/// 2^31.
const PIECE_BYTES: usize = STRIDE_BYTES << 14;

/// The sum of native 16-bit words, with carries.
#[target_feature(enable = "avx2")]
pub(super) fn sum(bytes: &[u8]) -> u64 {
    if bytes.len() <= PIECE_BYTES {
        return sum_piece(bytes);
    }
    bytes.chunks(PIECE_BYTES).map(|piece| sum_piece(piece)).sum()
}
#[inline]
#[target_feature(enable = "avx2")]
fn sum_piece(piece: &[u8]) -> u64 {
    let mut lanes = Lanes::new();
    let (strides, rest) = piece.as_chunks::<STRIDE_BYTES>();
    for stride in strides {
        lanes.add(load_four(stride));
    }
    let (registers, rest) = rest.as_chunks::<WIDE_BYTES>();
    for register in registers {
        lanes.add_one(load(register));
    }
    lanes.sum(piece.len() / WIDE_BYTES) + portable::sum_few(rest)
}

/// Both slices are of one length.
#[target_feature(enable = "avx2")]
pub(super) fn copy_and_sum(into: &mut [u8], from: &[u8]) -> u64 {
    if from.len() <= PIECE_BYTES {
        return copy_and_sum_piece(into, from);
    }
    let pieces = into.chunks_mut(PIECE_BYTES).zip(from.chunks(PIECE_BYTES));
    pieces.map(|(into, from)| copy_and_sum_piece(into, from)).sum()
}
#[inline]
#[target_feature(enable = "avx2")]
fn copy_and_sum_piece(into: &mut [u8], from: &[u8]) -> u64 {
    let mut lanes = Lanes::new();
    let (strides, rest) = from.as_chunks::<STRIDE_BYTES>();
    let (places, rest_into) = into.as_chunks_mut::<STRIDE_BYTES>();
    for (to, stride) in places.iter_mut().zip(strides) {
        let wide = load_four(stride);
        store_four(to, wide);
        lanes.add(wide);
    }
    let (registers, rest) = rest.as_chunks::<WIDE_BYTES>();
    let (to, rest_into) = rest_into.as_chunks_mut::<WIDE_BYTES>();
    for (to, register) in to.iter_mut().zip(registers) {
        let wide = load(register);
        store(to, wide);
        lanes.add_one(wide);
    }
    rest_into.copy_from_slice(rest);
    lanes.sum(from.len() / WIDE_BYTES) + portable::sum_few(rest)
}

/// Four registers of eight 32-bit sums.
struct Lanes([__m256i; 4]);

impl Lanes {
    #[inline]
    #[target_feature(enable = "avx2")]
    fn new() -> Self {
        Lanes([_mm256_setzero_si256(); 4])
    }
    #[inline]
    #[target_feature(enable = "avx2")]
    fn add(&mut self, [a, b, c, d]: [__m256i; 4]) {
        let [e, f, g, h] = self.0;
        self.0 = [plus(e, a), plus(f, b), plus(g, c), plus(h, d)];
    }
    #[inline]
    #[target_feature(enable = "avx2")]
    fn add_one(&mut self, wide: __m256i) {
        self.0[3] = plus(self.0[3], wide);
    }
    /// The sum of what `registers` full registers held.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn sum(&self, registers: usize) -> u64 {
        // No lane is beyond 2^30, so two add without overflow.
        let halves = [_mm256_add_epi32(self.0[0], self.0[1]), _mm256_add_epi32(self.0[2], self.0[3])];
        let mut signed = 0i64;
        for half in halves {
            let mut lanes = [0u8; WIDE_BYTES];
            store(&mut lanes, half);
            let (lanes, _) = lanes.as_chunks::<4>();
            signed += lanes.iter().map(|lane| i64::from(i32::from_ne_bytes(*lane))).sum::<i64>();
        }
        // Each of a register's sixteen words had 2^15 taken away.
        (signed + ((registers as i64) << (15 + 4))) as u64
    }
}

/// Adds the words of a register to `lanes`.
#[inline]
#[target_feature(enable = "avx2")]
fn plus(lanes: __m256i, wide: __m256i) -> __m256i {
    let signed = _mm256_xor_si256(wide, _mm256_set1_epi16(i16::MIN));
    _mm256_add_epi32(lanes, _mm256_madd_epi16(signed, _mm256_set1_epi16(1)))
}

#[inline]
#[target_feature(enable = "avx2")]
fn load(from: &[u8; WIDE_BYTES]) -> __m256i {
    // SAFETY: the reference is good for 32 bytes, and the load asks for no alignment.
    unsafe { _mm256_loadu_si256(from.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn store(into: &mut [u8; WIDE_BYTES], wide: __m256i) {
    // SAFETY: the reference is good for 32 bytes and nobody else's, and the store asks for no alignment.
    unsafe { _mm256_storeu_si256(into.as_mut_ptr().cast(), wide) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn load_four(from: &[u8; STRIDE_BYTES]) -> [__m256i; 4] {
    let from = from.as_ptr();
    // SAFETY: the reference is good for 128 bytes, and the loads ask for no alignment.
    unsafe {
        [
            _mm256_loadu_si256(from.cast()),
            _mm256_loadu_si256(from.add(WIDE_BYTES).cast()),
            _mm256_loadu_si256(from.add(2 * WIDE_BYTES).cast()),
            _mm256_loadu_si256(from.add(3 * WIDE_BYTES).cast()),
        ]
    }
}

/// Written out, since of a loop the compiler makes a call of `memcpy`.
#[inline]
#[target_feature(enable = "avx2")]
fn store_four(into: &mut [u8; STRIDE_BYTES], [a, b, c, d]: [__m256i; 4]) {
    let into = into.as_mut_ptr();
    // SAFETY: the reference is good for 128 bytes and nobody else's, and the stores ask for no alignment.
    unsafe {
        _mm256_storeu_si256(into.cast(), a);
        _mm256_storeu_si256(into.add(WIDE_BYTES).cast(), b);
        _mm256_storeu_si256(into.add(2 * WIDE_BYTES).cast(), c);
        _mm256_storeu_si256(into.add(3 * WIDE_BYTES).cast(), d);
    }
}
