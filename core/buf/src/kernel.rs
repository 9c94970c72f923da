//! The loops that touch every byte: copy, checksum, and both at once.

/// Copies `from` into the front of `into`, as far as the shorter reaches.
pub fn copy(into: &mut [u8], from: &[u8]) {
    let n = into.len().min(from.len());
    into[..n].copy_from_slice(&from[..n]);
}

/// The ones'-complement sum (RFC 1071) of `bytes` as big-endian 16-bit words, an odd last byte padded with zero;
/// not folded below 32 bits' worth of carries, not inverted.
pub fn sum(bytes: &[u8]) -> u32 {
    // Eight accumulators' worth of 32-bit halves in 64 bits never overflow below 2^32 words.
    let mut total: u64 = 0;
    let mut words = bytes.chunks_exact(32);
    for block in &mut words {
        let mut lanes = [0u64; 4];
        for (lane, word) in lanes.iter_mut().zip(block.chunks_exact(8)) {
            let word =
                u64::from_ne_bytes([word[0], word[1], word[2], word[3], word[4], word[5], word[6], word[7]]);
            *lane = (word & 0xffff_ffff) + (word >> 32);
        }
        total += lanes[0] + lanes[1] + lanes[2] + lanes[3];
    }
    let mut rest = words.remainder().chunks_exact(2);
    for pair in &mut rest {
        total += u64::from(u16::from_ne_bytes([pair[0], pair[1]]));
    }
    if let [last] = rest.remainder() {
        total += u64::from(u16::from_ne_bytes([*last, 0]));
    }
    u32::from(u16::from_be(fold(total)))
}

/// Copies `from` into the front of `into` and gives the [`sum`] of what was copied.
pub fn copy_and_sum(into: &mut [u8], from: &[u8]) -> u32 {
    let n = into.len().min(from.len());
    // Two passes over a piece that fits the first-level cache beat one fused scalar loop.
    const PIECE_BYTES: usize = 4096;
    let mut total: u64 = 0;
    for (to, piece) in into[..n].chunks_mut(PIECE_BYTES).zip(from[..n].chunks(PIECE_BYTES)) {
        to.copy_from_slice(piece);
        total += u64::from(sum(to));
    }
    u32::from(fold(total))
}

fn fold(mut total: u64) -> u16 {
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    total as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference(bytes: &[u8]) -> u16 {
        let mut total = 0u32;
        for (i, &b) in bytes.iter().enumerate() {
            total += if i % 2 == 0 { u32::from(b) << 8 } else { u32::from(b) };
            total = (total & 0xffff) + (total >> 16);
        }
        total as u16
    }

    #[test]
    fn every_length_agrees_with_the_byte_by_byte_sum() {
        let bytes: Vec<u8> = (0..9000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 11) as u8).collect();
        for length in (0..300).chain([1459, 1460, 4095, 4096, 4097, 8999, 9000]) {
            for start in 0..3.min(bytes.len() - length + 1) {
                let piece = &bytes[start..start + length];
                assert_eq!(sum(piece), u32::from(reference(piece)), "{length} bytes from {start}");
                let mut copied = vec![0; length];
                assert_eq!(copy_and_sum(&mut copied, piece), sum(piece));
                assert_eq!(copied, piece);
            }
        }
        assert_eq!(sum(&[0xff; 64]), 0xffff);
    }
}
