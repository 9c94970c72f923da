//! The batching hint: whether another read after a frame is likely to find one.

/// Single frames in a row before the next is expected to be single, too.
const BELIEVED_AFTER: u8 = 8;
/// Single frames after which one more read is tried.
const ASKED_AGAIN_AFTER: u8 = 16;

/// Whether frames come one at a time. In a request and reply exchange each frame comes alone, and the system call that
/// finds nothing behind it costs as much as the one that brought it. Skipping that call loses nothing: the descriptor
/// stays readable while a frame is left, so the next wait returns at once.
#[derive(Debug, Default)]
pub(super) struct BatchingHint {
    /// Single frames in a row.
    alone: u8,
}

impl BatchingHint {
    /// Whether the batch may end with the frame just read, the `received`th, without another read.
    pub(super) fn is_batch_over(&mut self, received: usize) -> bool {
        if received != 1 || self.alone < BELIEVED_AFTER {
            return false;
        }
        self.alone += 1;
        if self.alone > BELIEVED_AFTER + ASKED_AGAIN_AFTER {
            self.alone = BELIEVED_AFTER;
            return false;
        }
        true
    }
    /// Notes that a read found nothing after `received` frames.
    pub(super) fn batch_ended(&mut self, received: usize) {
        self.alone = match received {
            0 => self.alone,
            1 => self.alone.saturating_add(1).min(BELIEVED_AFTER),
            _ => 0,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks for another frame in so many receptions of one frame each.
    fn looks(hint: &mut BatchingHint, receptions: usize) -> usize {
        let mut looks = 0;
        for _ in 0..receptions {
            if !hint.is_batch_over(1) {
                looks += 1;
                hint.batch_ended(1);
            }
        }
        looks
    }

    #[test]
    fn who_comes_alone_is_believed_for_a_while() {
        let mut hint = BatchingHint::default();
        assert_eq!(looks(&mut hint, 8), 8);
        assert_eq!(looks(&mut hint, 1700), 100);
        // Two at once are seen within a few frames, and then every look is worth it again.
        while hint.is_batch_over(1) {}
        assert!(!hint.is_batch_over(2));
        hint.batch_ended(2);
        assert_eq!(looks(&mut hint, 8), 8);
    }

    #[test]
    fn another_frame_is_looked_for_until_nothing_is_left() {
        let mut hint = BatchingHint::default();
        looks(&mut hint, 8);
        while hint.is_batch_over(1) {}
        assert!((2..64).all(|received| !hint.is_batch_over(received)));
    }
}
