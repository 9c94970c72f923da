//! Whether frames come alone: then nobody asks after each for another.

/// Frames that come alone before it is believed that the next does, too.
const BELIEVED_AFTER: u8 = 8;
/// After so many that were believed to come alone it is asked again.
const ASKED_AGAIN_AFTER: u8 = 16;

/// What is known of the company in which frames come. In an exchange of messages a frame comes alone, and the system
/// call that finds nothing behind it costs as much as the one that brought it. The descriptor stays readable where
/// something is left, so that it is not lost: it costs one wait that returns at once.
#[derive(Debug, Default)]
pub(super) struct Company {
    /// Frames that came alone, one after another.
    alone: u8,
}

impl Company {
    /// Whether the frame that was just read, `received` with those before it in this batch, may be the last for now
    /// without a further look.
    pub(super) fn is_over(&mut self, received: usize) -> bool {
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
    /// Nothing more was there after `received` frames.
    pub(super) fn found(&mut self, received: usize) {
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
    fn looks(company: &mut Company, receptions: usize) -> usize {
        let mut looks = 0;
        for _ in 0..receptions {
            if !company.is_over(1) {
                looks += 1;
                company.found(1);
            }
        }
        looks
    }

    #[test]
    fn who_comes_alone_is_believed_for_a_while() {
        let mut company = Company::default();
        assert_eq!(looks(&mut company, 8), 8);
        assert_eq!(looks(&mut company, 1700), 100);
        // Two at once are seen within a few frames, and then every look is worth it again.
        while company.is_over(1) {}
        assert!(!company.is_over(2));
        company.found(2);
        assert_eq!(looks(&mut company, 8), 8);
    }

    #[test]
    fn company_is_looked_for_until_nothing_is_left() {
        let mut company = Company::default();
        looks(&mut company, 8);
        while company.is_over(1) {}
        assert!((2..64).all(|received| !company.is_over(received)));
    }
}
