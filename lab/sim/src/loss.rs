//! Which frames a link loses.

use inhost_base::Random;

/// How a link loses frames. Chances are in parts of a million.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Loss {
    /// None.
    #[default]
    None,
    /// Each frame by itself.
    Random {
        /// Frames in a million.
        per_million: u32,
    },
    /// In bursts.
    GilbertElliott(GilbertElliott),
    /// Each `0`th frame: with 3 the third, the sixth, and so on. 0 loses none.
    EveryNth(u64),
    /// The frames with these numbers, the first of the direction being 1.
    Scripted(Vec<u64>),
}

impl Loss {
    /// Frames in a thousand, each by itself.
    pub const fn per_mille(frames: u32) -> Loss {
        Loss::Random { per_million: frames * 1000 }
    }
}

/// A line that is now good and now bad, and loses by its state (Gilbert 1960, Elliott 1963). Before each frame the
/// state may change; then the frame is lost by the state's chance. All are frames in a million.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GilbertElliott {
    /// The chance that a good line turns bad.
    pub to_bad_per_million: u32,
    /// The chance that a bad line turns good; bad spells last `1_000_000 /` this many frames on average.
    pub to_good_per_million: u32,
    /// Lost while good.
    pub lost_in_good_per_million: u32,
    /// Lost while bad.
    pub lost_in_bad_per_million: u32,
}

/// Decides on the frames of one direction.
#[derive(Debug)]
pub(crate) struct LossState {
    frames: u64,
    is_bad: bool,
    random: Random,
}

impl LossState {
    pub(crate) fn new(random: Random) -> LossState {
        LossState { frames: 0, is_bad: false, random }
    }
    /// Whether the next frame is lost.
    pub(crate) fn loses(&mut self, loss: &Loss) -> bool {
        self.frames += 1;
        match loss {
            Loss::None => false,
            &Loss::Random { per_million } => happens(&mut self.random, per_million),
            Loss::GilbertElliott(chances) => {
                let turns =
                    if self.is_bad { chances.to_good_per_million } else { chances.to_bad_per_million };
                self.is_bad ^= happens(&mut self.random, turns);
                let lost = if self.is_bad {
                    chances.lost_in_bad_per_million
                } else {
                    chances.lost_in_good_per_million
                };
                happens(&mut self.random, lost)
            }
            &Loss::EveryNth(count) => count > 0 && self.frames.is_multiple_of(count),
            Loss::Scripted(frames) => frames.contains(&self.frames),
        }
    }
}

/// Whether something happens that happens so often in a million times.
pub(crate) fn happens(random: &mut Random, per_million: u32) -> bool {
    per_million > 0 && random.public_below(1_000_000) < per_million
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAMES: usize = 200_000;

    fn lost(loss: &Loss, frames: usize) -> Vec<bool> {
        let mut state = LossState::new(Random::from_number(1));
        (0..frames).map(|_| state.loses(loss)).collect()
    }
    fn count(lost: &[bool]) -> usize {
        lost.iter().filter(|&&lost| lost).count()
    }

    #[test]
    fn what_is_prescribed_is_lost_and_nothing_else() {
        assert_eq!(count(&lost(&Loss::None, FRAMES)), 0);
        assert_eq!(count(&lost(&Loss::EveryNth(0), FRAMES)), 0);
        assert_eq!(lost(&Loss::EveryNth(3), 7), [false, false, true, false, false, true, false]);
        assert_eq!(lost(&Loss::Scripted(vec![1, 4]), 5), [true, false, false, true, false]);
    }

    #[test]
    fn random_loss_has_its_rate() {
        let share = count(&lost(&Loss::per_mille(20), FRAMES)) as f64 / FRAMES as f64;
        assert!((0.018..0.022).contains(&share), "{share}");
    }

    #[test]
    fn bursts_have_the_length_and_the_share_of_the_chain() {
        // Bad one frame in 11 on average, for ten frames at a time; everything is lost while bad.
        let loss = Loss::GilbertElliott(GilbertElliott {
            to_bad_per_million: 10_000,
            to_good_per_million: 100_000,
            lost_in_good_per_million: 0,
            lost_in_bad_per_million: 1_000_000,
        });
        let lost = lost(&loss, FRAMES);
        let bursts = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count();
        let (share, length) = (count(&lost) as f64 / FRAMES as f64, count(&lost) as f64 / bursts as f64);
        assert!((0.08..0.10).contains(&share), "{share}");
        assert!((9.0..11.0).contains(&length), "{length}");
    }
}
