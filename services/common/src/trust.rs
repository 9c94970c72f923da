//! Files that a host believes although nobody named them.

/// Mode bits that let others write a file: group and world.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// Why `caller` cannot trust a file or folder of `owner` with `mode`: it belongs to another user than root, or others can
/// write it.
pub fn distrust(owner: u32, mode: u32, caller: u32) -> Option<String> {
    if owner != 0 && owner != caller {
        return Some(format!("it belongs to the user {owner}"));
    }
    (mode & WRITABLE_BY_OTHERS != 0).then(|| format!("others can write it (mode {:03o})", mode & 0o777))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_file_of_the_caller_or_root_is_trusted() {
        assert_eq!(distrust(1000, 0o100_644, 1000), None);
        assert_eq!(distrust(0, 0o100_644, 1000), None);
        assert!(distrust(1001, 0o100_600, 1000).is_some_and(|why| why.contains("1001")));
        assert!(distrust(1001, 0o100_600, 0).is_some(), "root trusts nobody else either");
        assert!(distrust(1000, 0o100_664, 1000).is_some() && distrust(0, 0o100_646, 1000).is_some());
    }
}
