//! Copy, checksum, and both in one pass: the loops over every byte. The variant is chosen at run time: 64 bytes a step
//! with AVX-512, 32 with AVX2, eight otherwise. One pass for both is faster only with wide registers; without them two
//! passes over a block in the first-level cache are faster (DEC: copy and checksum dominate all else).

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod avx2;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod avx512;
mod portable;

/// Line size of the first-level cache on most processors.
#[cfg(target_arch = "x86_64")]
const CACHE_LINE_BYTES: usize = 64;
/// Shortest length for which the wide loops are faster.
const WIDE_FROM_BYTES: usize = 64;
/// Longest length for which the wide copy is faster than the system's, which uses `rep movsb`.
#[cfg(target_arch = "x86_64")]
const COPY_WIDE_TO_BYTES: usize = 8 << 10;

/// Whether the processor has a feature: it is asked at run time, or, without the feature `std` of this crate, at build time.
#[cfg(target_arch = "x86_64")]
macro_rules! has {
    ($feature:tt) => {{
        #[cfg(feature = "std")]
        {
            std::is_x86_feature_detected!($feature)
        }
        #[cfg(not(feature = "std"))]
        {
            cfg!(target_feature = $feature)
        }
    }};
}

/// Whether the processor has the AVX-512 instructions that the widest loops need.
#[cfg(target_arch = "x86_64")]
#[inline]
fn has_avx512() -> bool {
    has!("avx512vnni") && has!("avx512bw")
}

/// Copies `from` into the front of `into`, up to the shorter of the two.
#[inline]
pub fn copy(into: &mut [u8], from: &[u8]) {
    let n = into.len().min(from.len());
    let (into, from) = (&mut into[..n], &from[..n]);
    #[cfg(target_arch = "x86_64")]
    if (WIDE_FROM_BYTES..=COPY_WIDE_TO_BYTES).contains(&n) && has_avx512() {
        // SAFETY: the processor was asked for AVX-512 just now.
        #[allow(unsafe_code)]
        return unsafe { avx512::copy(into, from) };
    }
    into.copy_from_slice(from);
}

/// The ones-complement sum (RFC 1071) of `bytes` as 16-bit words in network order, the first byte at an even offset, an
/// odd last byte followed by zero; not inverted.
#[inline]
pub fn sum(bytes: &[u8]) -> u16 {
    in_network_order(native_sum(bytes))
}

/// Copies `from` into the front of `into`, up to the shorter of the two, and returns the [`sum`] of the copied bytes.
pub fn copy_and_sum(into: &mut [u8], from: &[u8]) -> u16 {
    let n = into.len().min(from.len());
    let (into, from) = (&mut into[..n], &from[..n]);
    if n < WIDE_FROM_BYTES {
        into.copy_from_slice(from);
        return in_network_order(portable::sum_few(into));
    }
    #[cfg(target_arch = "x86_64")]
    if has_avx512() {
        // SAFETY: the processor was asked for AVX-512 just now.
        #[allow(unsafe_code)]
        return in_network_order(unsafe { avx512::copy_and_sum(into, from) });
    } else if has!("avx2") {
        // SAFETY: the processor was asked for AVX2 just now.
        #[allow(unsafe_code)]
        return in_network_order(unsafe { avx2::copy_and_sum(into, from) });
    }
    in_network_order(portable::copy_and_sum(into, from))
}

/// The sum of two consecutive blocks; the second starts at an odd offset when `at_odd`
/// (RFC 1071 §2 (B)).
#[inline]
pub fn join_sums(first: u16, second: u16, at_odd: bool) -> u16 {
    let second = if at_odd { second.swap_bytes() } else { second };
    fold_sum(u64::from(first) + u64::from(second))
}

/// Words are added in the machine's own order, which gives the swapped sum on a little-endian one (RFC 1071 §2 (B)).
#[inline]
fn native_sum(bytes: &[u8]) -> u64 {
    if bytes.len() < WIDE_FROM_BYTES {
        return portable::sum_few(bytes);
    }
    #[cfg(target_arch = "x86_64")]
    if has_avx512() {
        // SAFETY: the processor was asked for AVX-512 just now.
        #[allow(unsafe_code)]
        return unsafe { avx512::sum(bytes) };
    } else if has!("avx2") {
        // SAFETY: the processor was asked for AVX2 just now.
        #[allow(unsafe_code)]
        return unsafe { avx2::sum(bytes) };
    }
    portable::sum(bytes)
}

/// Asks for `bytes` to be brought near, because they will be read soon: a hint that changes nothing, and costs an
/// instruction for each line of the nearest cache.
#[inline]
pub fn prefetch(bytes: &[u8]) {
    prefetch_at(bytes.as_ptr(), bytes.len());
}

/// Asks for as many bytes again as there are `bytes`, those that lie behind them in memory: where data is lent piece by
/// piece from one place, the next piece. Whatever is there is not looked at.
#[inline]
pub fn prefetch_behind(bytes: &[u8]) {
    prefetch_at(bytes.as_ptr().wrapping_add(bytes.len()), bytes.len());
}

#[inline]
fn prefetch_at(start: *const u8, count_bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    for at in (0..count_bytes).step_by(CACHE_LINE_BYTES) {
        // SAFETY: every x86-64 processor has the instruction, and it may be given any address: it reads nothing.
        #[allow(unsafe_code)]
        unsafe {
            use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(start.wrapping_add(at).cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (start, count_bytes);
}

#[inline]
fn in_network_order(sum: u64) -> u16 {
    u16::from_be(fold_sum(sum))
}

/// The same modulo 2^16 - 1, and zero only for zero: the halves are added twice, the carry at the end each time. Turning
/// a word by its half adds both halves, and their carry, in its upper one.
#[inline]
pub const fn fold_sum(sum: u64) -> u16 {
    let (word, carry) = (sum as u32).overflowing_add((sum >> 32) as u32);
    let word = word + carry as u32;
    (word.wrapping_add(word.rotate_left(16)) >> 16) as u16
}

#[cfg(test)]
mod tests;
