//! Sizes as people write them.

/// A size such as "64M" in bytes: a number, alone or with K, M or G (KiB, MiB, GiB).
pub fn size_bytes(text: &str) -> Option<usize> {
    let text = text.trim();
    let (digits, unit) = match text.char_indices().find(|(_, c)| !c.is_ascii_digit()) {
        Some((at, _)) => text.split_at(at),
        None => (text, ""),
    };
    let shift = match unit {
        "" => 0,
        "K" | "KiB" => 10,
        "M" | "MiB" => 20,
        "G" | "GiB" => 30,
        _ => return None,
    };
    digits.parse::<usize>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units_and_an_end() {
        assert_eq!(
            [size_bytes("64M"), size_bytes(" 1KiB "), size_bytes("7")],
            [Some(64 << 20), Some(1024), Some(7)]
        );
        assert_eq!([size_bytes("M"), size_bytes("1T"), size_bytes("99999999999G")], [None; 3]);
    }
}
