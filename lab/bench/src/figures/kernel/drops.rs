//! Which packets a wire loses: decided by their number and a seed, so that both of a pair meet the same wire.

use super::cell::Loss;
use inhost_base::SipKey;

/// Packets that a bad time lasts, on average.
const BAD_PACKETS: f64 = 4.0;
/// Share of packets that a bad time loses.
const BAD_LOSS: f64 = 0.75;
/// Packets lost in a bad time, on average.
pub const LOST_A_BURST: f64 = BAD_PACKETS * BAD_LOSS;

/// The decisions of one run, asked for in the order of packets. Losses in bursts follow Gilbert and Elliott: two
/// states, good and bad, with a loss and a probability to leave for each; nothing is lost in the good one.
pub struct Drops {
    loss: Loss,
    key: SipKey,
    number: u64,
    is_bad: bool,
}

impl Drops {
    /// The decisions that follow from `seed`.
    pub fn new(loss: Loss, seed: u64) -> Drops {
        Drops { loss, key: SipKey::from_halves(seed, 0x6472_6f70), number: 0, is_bad: false }
    }
    /// Whether the next packet is lost.
    pub fn next_is_lost(&mut self) -> bool {
        self.number += 1;
        match self.loss {
            Loss::None => false,
            Loss::Random(probability) => self.happens(0, probability),
            Loss::Bursty(probability) => {
                // The share of bad time is `probability / BAD_LOSS`.
                let bad = probability / BAD_LOSS;
                let leaves_good = bad / (1.0 - bad) / BAD_PACKETS;
                let leaves = if self.is_bad { 1.0 / BAD_PACKETS } else { leaves_good };
                self.is_bad ^= self.happens(1, leaves);
                self.is_bad && self.happens(2, BAD_LOSS)
            }
        }
    }
    /// A draw of its own for each packet and purpose.
    fn happens(&self, purpose: u8, probability: f64) -> bool {
        let mut words = [purpose; 9];
        words[..8].copy_from_slice(&self.number.to_le_bytes());
        let unit = (self.key.hash(&words) >> 11) as f64 / 2f64.powi(53);
        unit < probability
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(loss: Loss, seed: u64) -> Vec<bool> {
        let mut drops = Drops::new(loss, seed);
        (0..400_000).map(|_| drops.next_is_lost()).collect()
    }

    #[test]
    fn a_seed_decides_and_the_share_is_right() {
        for loss in [Loss::Random(0.01), Loss::Bursty(0.01), Loss::Random(0.001), Loss::Bursty(0.001)] {
            let first = lost(loss, 7);
            assert_eq!(first, lost(loss, 7));
            assert_ne!(first, lost(loss, 8));
            let share = first.iter().filter(|lost| **lost).count() as f64 / first.len() as f64;
            assert!((share / loss.probability() - 1.0).abs() < 0.2, "{loss:?}: {share}");
        }
        assert!(lost(Loss::None, 7).iter().all(|lost| !lost));
    }

    #[test]
    fn bursts_are_bursts() {
        let after_a_loss = |loss| {
            let lost = lost(loss, 3);
            let again = lost.windows(2).filter(|two| two[0] && two[1]).count();
            again as f64 / lost.iter().filter(|lost| **lost).count() as f64
        };
        assert!(after_a_loss(Loss::Random(0.01)) < 0.05);
        // The bad state goes on with 3/4, and loses 3/4.
        let bursty = after_a_loss(Loss::Bursty(0.01));
        assert!((0.5..0.62).contains(&bursty), "{bursty}");
    }
}
