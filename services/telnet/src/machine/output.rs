//! Output queue with the position of the urgent mark, and the budget of replies.

use inhost_base::Instant;

use super::limits::{REPLY_BURST_BYTES, REPLY_BYTES_PER_SECOND};

/// Octets on their way to the peer. The last urgent octet is remembered by its place, because TCP has one
/// urgent pointer, and a later Synch moves it onward.
#[derive(Debug, Default)]
pub(crate) struct Output {
    bytes: Vec<u8>,
    start: usize,
    /// Up to where, from the start of `bytes`, the stream is urgent.
    urgent_end: usize,
}

impl Output {
    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }
    pub(crate) fn mark_urgent(&mut self) {
        self.urgent_end = self.bytes.len();
    }
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() - self.start
    }
    /// The next octets to send, and whether the last of them is to be marked urgent.
    pub(crate) fn next(&self) -> (&[u8], bool) {
        let urgent = self.urgent_end > self.start;
        let end = if urgent { self.urgent_end } else { self.bytes.len() };
        (self.bytes.get(self.start..end).unwrap_or_default(), urgent)
    }
    pub(crate) fn sent(&mut self, count: usize) {
        self.start = self.start.saturating_add(count).min(self.bytes.len());
        if self.start == self.bytes.len() {
            self.bytes.clear();
            self.bytes.shrink_to(2 * super::limits::OUTPUT_BYTES);
            (self.start, self.urgent_end) = (0, 0);
        } else if self.start > super::limits::OUTPUT_BYTES {
            self.bytes.drain(..self.start);
            self.urgent_end = self.urgent_end.saturating_sub(self.start);
            self.start = 0;
        }
    }
}

/// A bucket of reply octets, refilled by the time that the driver tells.
#[derive(Debug)]
pub(crate) struct ReplyBudget {
    left_bytes: u32,
    refilled: Instant,
}

impl ReplyBudget {
    pub(crate) fn new() -> Self {
        ReplyBudget { left_bytes: REPLY_BURST_BYTES, refilled: Instant::ZERO }
    }
    pub(crate) fn refill(&mut self, now: Instant) {
        let elapsed_ms = now.since(self.refilled).as_nanos() / 1_000_000;
        let earned = elapsed_ms.saturating_mul(u64::from(REPLY_BYTES_PER_SECOND)) / 1000;
        if earned > 0 {
            let earned = u32::try_from(earned).unwrap_or(u32::MAX);
            self.left_bytes = self.left_bytes.saturating_add(earned).min(REPLY_BURST_BYTES);
            self.refilled = now;
        }
    }
    pub(crate) fn spend(&mut self, bytes: usize) -> bool {
        match u32::try_from(bytes).ok().and_then(|bytes| self.left_bytes.checked_sub(bytes)) {
            Some(left) => {
                self.left_bytes = left;
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_urgent_mark_moves_with_the_queue() {
        let mut output = Output::default();
        output.extend(b"abc");
        output.mark_urgent();
        output.extend(b"def");
        assert_eq!(output.next(), (&b"abc"[..], true));
        output.sent(2);
        assert_eq!(output.next(), (&b"c"[..], true));
        output.sent(1);
        assert_eq!(output.next(), (&b"def"[..], false));
        output.mark_urgent();
        assert_eq!(output.next(), (&b"def"[..], true));
        output.sent(3);
        assert_eq!((output.next(), output.len()), ((&b""[..], false), 0));
    }

    #[test]
    fn replies_are_earned_back() {
        let mut budget = ReplyBudget::new();
        assert!(budget.spend(REPLY_BURST_BYTES as usize) && !budget.spend(1));
        budget.refill(Instant::from_millis(1000));
        assert!(budget.spend(REPLY_BYTES_PER_SECOND as usize) && !budget.spend(1));
        budget.refill(Instant::from_millis(1_000_000_000));
        assert!(budget.spend(REPLY_BURST_BYTES as usize) && !budget.spend(1));
    }
}
