//! Noise on the line.

use inhost_base::Random;

/// Bytes of an Ethernet header, which its own check sequence protects.
const ETHERNET_BYTES: usize = 14;

/// Changes up to sixteen bits in a row, which every checksum notices. On an Ethernet, what only its check sequence
/// protects is lost instead: the link header, and ARP. False when the frame is lost.
pub(super) fn spoil(bytes: &mut [u8], is_ethernet: bool, random: &mut Random) -> bool {
    let from = if is_ethernet { ETHERNET_BYTES } else { 0 };
    if is_ethernet && bytes.get(12..14) == Some(&[8, 6]) || bytes.len() <= from {
        return false;
    }
    let bits = (bytes.len() - from) as u32 * 8;
    let first = random.public_below(bits);
    let run = 1 + random.public_below(16);
    for bit in first..(first + run).min(bits) {
        // The first bit for certain, the others by chance.
        if bit == first || random.public_below(2) == 0 {
            bytes[from + bit as usize / 8] ^= 0x80 >> (bit % 8);
        }
    }
    true
}
