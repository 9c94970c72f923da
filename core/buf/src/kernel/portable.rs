//! Copy and checksum loops for any processor.

/// Bytes that the inner loop takes at once.
const STRIDE_BYTES: usize = 32;
/// Block size that stays in the first-level cache between two passes.
const PIECE_BYTES: usize = 4096;

/// The sum of native 16-bit words, with carries: below 2^56 for anything that fits memory. Halves of 64-bit words go to
/// separate accumulators, so that no carry is lost and the compiler may use what vectors there are.
pub(super) fn sum(bytes: &[u8]) -> u64 {
    let mut low = [0u64; 4];
    let mut high = [0u64; 4];
    let (strides, rest) = bytes.as_chunks::<STRIDE_BYTES>();
    for stride in strides {
        let (words, _) = stride.as_chunks::<8>();
        for ((low, high), word) in low.iter_mut().zip(&mut high).zip(words) {
            let word = u64::from_ne_bytes(*word);
            *low += word & 0xffff_ffff;
            *high += word >> 32;
        }
    }
    let whole: u64 = low.iter().chain(&high).map(|part| (part & 0xffff_ffff) + (part >> 32)).sum();
    whole + sum_few(rest)
}

/// The same for a few bytes, less than a megabyte, without strides.
#[inline]
pub(super) fn sum_few(bytes: &[u8]) -> u64 {
    let mut total = 0;
    let (words, tail) = bytes.as_chunks::<8>();
    for word in words {
        let word = u64::from_ne_bytes(*word);
        total += (word & 0xffff_ffff) + (word >> 32);
    }
    let (halves, tail) = tail.as_chunks::<4>();
    if let [half] = halves {
        total += u64::from(u32::from_ne_bytes(*half));
    }
    match *tail {
        [] => total,
        [a] => total + u64::from(u16::from_ne_bytes([a, 0])),
        [a, b] => total + u64::from(u16::from_ne_bytes([a, b])),
        [a, b, c, ..] => {
            total + u64::from(u16::from_ne_bytes([a, b])) + u64::from(u16::from_ne_bytes([c, 0]))
        }
    }
}

/// Both slices are of one length.
pub(super) fn copy_and_sum(into: &mut [u8], from: &[u8]) -> u64 {
    let mut total = 0;
    for (to, piece) in into.chunks_mut(PIECE_BYTES).zip(from.chunks(PIECE_BYTES)) {
        to.copy_from_slice(piece);
        total += sum(to);
    }
    total
}
