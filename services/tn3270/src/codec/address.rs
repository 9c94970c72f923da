//! Buffer addresses of 12 and 14 bits, and the six-bit code of control octets.
//!
//! A control octet has six bits; its upper two are chosen so that it is a graphic character of EBCDIC, which every
//! line and every table of translation lets through (GA23-0059, "Code Translation").

/// The graphic octet that stands for `value`, of which the low six bits count.
pub const fn six_bit(value: u8) -> u8 {
    let value = value & 0x3f;
    match value {
        0x00 | 0x10 | 0x20 => value | 0x40,
        0x21 => 0x61,
        _ if value & 0x0f <= 9 => value | 0xc0,
        _ => value | 0x40,
    }
}

/// Positions of a screen, at most: an address has 14 bits.
pub const POSITIONS_MAX: u16 = 1 << 14;

/// A buffer address in two octets: of 12 bits where the screen has at most 4096 `positions`, else of 14. `address` is less
/// than [`POSITIONS_MAX`].
pub fn encode_address(address: u16, positions: usize) -> [u8; 2] {
    let [high, low] = address.to_be_bytes();
    if positions > 1 << 12 {
        return [high & 0x3f, low];
    }
    [six_bit((address >> 6) as u8), six_bit(low)]
}

/// The buffer address of two octets: of 14 bits where the first two bits are zero, else of 12.
pub fn decode_address([high, low]: [u8; 2]) -> u16 {
    match high & 0xc0 {
        0 => u16::from_be_bytes([high, low]),
        _ => u16::from(high & 0x3f) << 6 | u16::from(low & 0x3f),
    }
}
