//! The 16-bit CRC of ITU-T V.41's polynomial, begun with all ones, high bit first.

/// The polynomial x¹⁶ + x¹² + x⁵ + 1, without its highest term.
const POLYNOMIAL: u16 = 0x1021;

/// The CRC of nothing.
pub(super) const START: u16 = 0xffff;

/// The CRC table, by octet.
const TABLE: [u16; 256] = {
    let mut table = [0; 256];
    let mut octet = 0;
    while octet < 256 {
        let mut crc = (octet as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 != 0 { crc << 1 ^ POLYNOMIAL } else { crc << 1 };
            bit += 1;
        }
        table[octet] = crc;
        octet += 1;
    }
    table
};

/// The CRC of what gave `crc`, followed by `bytes`.
pub(super) fn extend(crc: u16, bytes: &[u8]) -> u16 {
    bytes.iter().fold(crc, |crc, octet| {
        let [high, low] = crc.to_be_bytes();
        TABLE[usize::from(high ^ octet)] ^ u16::from(low) << 8
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_check_value() {
        assert_eq!(extend(START, b"123456789"), 0x29b1);
    }
}
