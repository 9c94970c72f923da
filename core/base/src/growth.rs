//! Growth of tables: the steps in which they get larger.

use alloc::vec::Vec;

/// The least that a table grows by, in elements.
const LEAST_STEP: usize = 16;

/// Reserves room in `table` for `length` elements in all. It grows by a sixteenth, so that with a million connections
/// little memory is unused, and each element is still moved only a few times.
pub fn make_room<T>(table: &mut Vec<T>, length: usize) {
    let capacity = table.capacity();
    if length > capacity {
        let step = (capacity / 16).max(LEAST_STEP);
        table.reserve_exact(length.max(capacity + step) - table.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_by_a_sixteenth() {
        let mut table = Vec::new();
        let mut moves = 0;
        for n in 0..100_000 {
            let before = table.capacity();
            make_room(&mut table, n + 1);
            moves += usize::from(table.capacity() != before);
            table.push(n);
            assert!(table.capacity() <= table.len() + table.len() / 16 + LEAST_STEP);
        }
        assert!(moves < 200, "{moves}");
    }
}
