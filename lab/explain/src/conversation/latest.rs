//! The largest of the last few values.

/// Values that are remembered.
const REMEMBERED: usize = 4;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Latest {
    values: [u64; REMEMBERED],
    next: usize,
}

impl Latest {
    pub(super) fn add(&mut self, value: u64) {
        self.values[self.next % REMEMBERED] = value;
        self.next = self.next.wrapping_add(1);
    }
    /// 0 before there is one.
    pub(super) fn largest(&self) -> u64 {
        self.values.iter().copied().max().unwrap_or(0)
    }
}
