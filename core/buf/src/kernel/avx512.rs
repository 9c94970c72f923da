//! The loops for x86-64 with AVX-512 and its multiply-add for neural networks, which adds the products of neighbouring
//! words to a lane in one instruction.
//!
//! As with AVX2 a 16-bit word `w` is turned into the signed `w - 2^15` by inverting its highest bit, and the bias is
//! added back at the end. The rest of a block is loaded through a mask, as if zeros followed: there is no loop for
//! single bytes.

use core::arch::x86_64::{
    __m512i, _mm512_add_epi32, _mm512_dpwssd_epi32, _mm512_loadu_si512, _mm512_mask_storeu_epi8,
    _mm512_maskz_loadu_epi8, _mm512_reduce_add_epi32, _mm512_set1_epi16, _mm512_setzero_si512,
    _mm512_storeu_si512, _mm512_xor_si512,
};

/// Bytes of a register.
const WIDE_BYTES: usize = 64;
/// Bytes that the loop takes at once, in four registers, each with lanes of its own.
const STRIDE_BYTES: usize = 4 * WIDE_BYTES;
/// Most registers without overflow: each register adds at most 2^20 to the amount in all lanes together, which is to be
/// less than 2^31.
const PIECE_BYTES: usize = STRIDE_BYTES << 8;

/// The sum of native 16-bit words, with carries.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
pub(super) fn sum(bytes: &[u8]) -> u64 {
    if bytes.len() <= PIECE_BYTES {
        return sum_piece(bytes);
    }
    bytes.chunks(PIECE_BYTES).map(|piece| sum_piece(piece)).sum()
}
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn sum_piece(piece: &[u8]) -> u64 {
    let mut lanes = Lanes::new();
    let (strides, rest) = piece.as_chunks::<STRIDE_BYTES>();
    for stride in strides {
        lanes.add(load(stride));
    }
    for few in rest.chunks(WIDE_BYTES) {
        lanes.add_one(load_few(few));
    }
    lanes.sum(piece.len().div_ceil(WIDE_BYTES))
}

/// Both slices are of one length.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
pub(super) fn copy_and_sum(into: &mut [u8], from: &[u8]) -> u64 {
    if from.len() <= PIECE_BYTES {
        return copy_and_sum_piece(into, from);
    }
    let pieces = into.chunks_mut(PIECE_BYTES).zip(from.chunks(PIECE_BYTES));
    pieces.map(|(into, from)| copy_and_sum_piece(into, from)).sum()
}
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn copy_and_sum_piece(into: &mut [u8], from: &[u8]) -> u64 {
    let mut lanes = Lanes::new();
    let (strides, rest) = from.as_chunks::<STRIDE_BYTES>();
    let (places, rest_into) = into.as_chunks_mut::<STRIDE_BYTES>();
    for (to, stride) in places.iter_mut().zip(strides) {
        let wide = load(stride);
        store(to, wide);
        lanes.add(wide);
    }
    for (to, few) in rest_into.chunks_mut(WIDE_BYTES).zip(rest.chunks(WIDE_BYTES)) {
        let wide = load_few(few);
        store_few(to, wide);
        lanes.add_one(wide);
    }
    lanes.sum(from.len().div_ceil(WIDE_BYTES))
}

/// Both slices are of one length.
#[target_feature(enable = "avx512f,avx512bw")]
pub(super) fn copy(into: &mut [u8], from: &[u8]) {
    let (strides, rest) = from.as_chunks::<STRIDE_BYTES>();
    let (places, rest_into) = into.as_chunks_mut::<STRIDE_BYTES>();
    for (to, stride) in places.iter_mut().zip(strides) {
        store(to, load(stride));
    }
    for (to, few) in rest_into.chunks_mut(WIDE_BYTES).zip(rest.chunks(WIDE_BYTES)) {
        store_few(to, load_few(few));
    }
}

/// Four registers of sixteen 32-bit sums.
struct Lanes([__m512i; 4]);

impl Lanes {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn new() -> Self {
        Lanes([_mm512_setzero_si512(); 4])
    }
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    fn add(&mut self, [a, b, c, d]: [__m512i; 4]) {
        let [e, f, g, h] = self.0;
        self.0 = [plus(e, a), plus(f, b), plus(g, c), plus(h, d)];
    }
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    fn add_one(&mut self, wide: __m512i) {
        self.0[3] = plus(self.0[3], wide);
    }
    /// The sum of what `registers` registers held.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn sum(&self, registers: usize) -> u64 {
        let [a, b, c, d] = self.0;
        let all = _mm512_add_epi32(_mm512_add_epi32(a, b), _mm512_add_epi32(c, d));
        // Each of a register's 32 words had 2^15 taken away.
        (i64::from(_mm512_reduce_add_epi32(all)) + ((registers as i64) << (15 + 5))) as u64
    }
}

/// Adds the words of a register to `lanes`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn plus(lanes: __m512i, wide: __m512i) -> __m512i {
    let signed = _mm512_xor_si512(wide, _mm512_set1_epi16(i16::MIN));
    _mm512_dpwssd_epi32(lanes, signed, _mm512_set1_epi16(1))
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load(from: &[u8; STRIDE_BYTES]) -> [__m512i; 4] {
    let from = from.as_ptr();
    // SAFETY: the reference is good for 256 bytes, and the loads ask for no alignment.
    unsafe {
        [
            _mm512_loadu_si512(from.cast()),
            _mm512_loadu_si512(from.add(WIDE_BYTES).cast()),
            _mm512_loadu_si512(from.add(2 * WIDE_BYTES).cast()),
            _mm512_loadu_si512(from.add(3 * WIDE_BYTES).cast()),
        ]
    }
}

/// Written out, since of a loop the compiler makes a call of `memcpy`.
#[inline]
#[target_feature(enable = "avx512f")]
fn store(into: &mut [u8; STRIDE_BYTES], [a, b, c, d]: [__m512i; 4]) {
    let into = into.as_mut_ptr();
    // SAFETY: the reference is good for 256 bytes and nobody else's, and the stores ask for no alignment.
    unsafe {
        _mm512_storeu_si512(into.cast(), a);
        _mm512_storeu_si512(into.add(WIDE_BYTES).cast(), b);
        _mm512_storeu_si512(into.add(2 * WIDE_BYTES).cast(), c);
        _mm512_storeu_si512(into.add(3 * WIDE_BYTES).cast(), d);
    }
}

/// The mask of so many bytes, one at least and no more than a register has.
#[inline]
fn mask_of(bytes: usize) -> u64 {
    u64::MAX >> ((WIDE_BYTES - bytes) % WIDE_BYTES)
}

/// At most as many bytes as a register has, and zeros behind them.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn load_few(from: &[u8]) -> __m512i {
    // SAFETY: only bytes under the mask are touched, which are no more than the slice has.
    unsafe { _mm512_maskz_loadu_epi8(mask_of(from.len()), from.as_ptr().cast()) }
}

/// Stores as many bytes of the register as there is place for, which are no more than it has.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn store_few(into: &mut [u8], wide: __m512i) {
    // SAFETY: only bytes under the mask are touched, which are no more than the slice has.
    unsafe { _mm512_mask_storeu_epi8(into.as_mut_ptr().cast(), mask_of(into.len()), wide) }
}
