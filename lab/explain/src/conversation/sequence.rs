//! Sequence numbers from the beginning of a connection, in 64 bits.

/// Turns 32 bits into 64. The SYN is number 0; without one, the first byte that was seen is 1.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Unwrapper {
    /// A recent number, absolute and relative.
    recent: Option<(u32, i64)>,
}

impl Unwrapper {
    /// `number`, relative; it becomes the one that later ones are compared with if it is ahead.
    pub(crate) fn relative(&mut self, number: u32, is_syn: bool) -> i64 {
        let Some((last, relative)) = self.recent else {
            let first = if is_syn { 0 } else { 1 };
            self.recent = Some((number, first));
            return first;
        };
        let distance = i64::from(number.wrapping_sub(last) as i32);
        let now = relative + distance;
        if distance > 0 {
            self.recent = Some((number, now));
        }
        now
    }
    /// `number`, relative, without a trace.
    pub(crate) fn near(&self, number: u32) -> i64 {
        self.recent.map_or(0, |(last, relative)| relative + i64::from(number.wrapping_sub(last) as i32))
    }
}
