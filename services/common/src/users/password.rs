//! Passwords that a host makes up, to be read off a screen and typed once.

/// Octets of entropy that [`one_time_password`] takes: 80 bits.
pub const ONE_TIME_ENTROPY_BYTES: usize = 10;

/// Lower-case letters and digits without those that look alike (0 o, 1 l i), and one more to make 32.
const ALPHABET: &[u8; 32] = b"abcdefghjkmnpqrstuvwxyz23456789+";

/// Four groups of four characters, five bits each: `kx3m-9f2a-ppqr-7hte`.
pub fn one_time_password(entropy: [u8; ONE_TIME_ENTROPY_BYTES]) -> String {
    let mut bits = entropy.iter().fold(0u128, |bits, &octet| bits << 8 | u128::from(octet));
    let mut password = String::with_capacity(19);
    for place in 0..16 {
        if place > 0 && place % 4 == 0 {
            password.push('-');
        }
        password.push(ALPHABET.get((bits & 31) as usize).map_or('a', |&octet| octet as char));
        bits >>= 5;
    }
    password
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_counts() {
        let zero = one_time_password([0; 10]);
        assert_eq!(zero, "aaaa-aaaa-aaaa-aaaa");
        let mut seen = std::collections::BTreeSet::from([zero]);
        for bit in 0..80 {
            let mut entropy = [0; 10];
            entropy[bit / 8] = 1 << (bit % 8);
            assert!(seen.insert(one_time_password(entropy)));
        }
    }
}
