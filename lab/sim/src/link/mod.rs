//! A link on virtual time: how fast it is, how long, how it queues, and what it does to frames.

mod direction;
mod losses;
mod spoil;

pub(crate) use direction::{Direction, MediumQueue};
pub use losses::LossCause;
pub(crate) use losses::Losses;

use inhost_base::Duration;

use crate::loss::Loss;
use crate::queue::QueueConfig;

/// One direction of a link: its speed and its faults. Begin with [`LinkConfig::default`], a perfect wire of 1 ms.
/// Chances are in parts of a million.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkConfig {
    /// From the end of sending to arrival.
    pub delay: Duration,
    /// What comes on top of the delay, at most, anew for each frame. The order is kept.
    pub jitter: Duration,
    /// Bits sent in a second; `None` for any number, and then nothing ever queues.
    pub rate_bits_per_second: Option<u64>,
    /// The queue.
    pub queue: QueueConfig,
    /// The sender's device makes checksums and cuts large frames, as far as its queue never refuses any. Default: no.
    pub offloads: bool,
    /// The receiver's device looks at checksums, and hands up segments of one stream that come together as one large
    /// segment. Default: no.
    pub gathers: bool,
    /// After the first frame that comes, a receiver is notified only so much later, together with what else has come: a
    /// card's moderated interrupts. Makes runs faster. Default: at once.
    pub coalescing: Duration,
    /// The largest IP packet that passes; larger ones are dropped without an ICMP error: an MTU black hole. `None` for
    /// any.
    pub mtu_bytes: Option<u32>,
    /// Frames that are lost on the line.
    pub loss: Loss,
    /// Frames that arrive twice.
    pub duplicated_per_million: u32,
    /// Frames that are held back for up to ten times the delay, while others pass.
    pub reordered_per_million: u32,
    /// Frames in which up to sixteen bits in a row are changed, which every checksum notices.
    pub corrupted_per_million: u32,
}

impl Default for LinkConfig {
    fn default() -> Self {
        LinkConfig {
            delay: Duration::from_millis(1),
            jitter: Duration::ZERO,
            rate_bits_per_second: None,
            queue: QueueConfig::default(),
            offloads: false,
            gathers: false,
            coalescing: Duration::ZERO,
            mtu_bytes: None,
            loss: Loss::None,
            duplicated_per_million: 0,
            reordered_per_million: 0,
            corrupted_per_million: 0,
        }
    }
}

/// The same in both directions.
impl From<LinkConfig> for [LinkConfig; 2] {
    fn from(config: LinkConfig) -> Self {
        [config.clone(), config]
    }
}

/// Counters of one direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LinkStatistics {
    /// Frames given to it.
    pub sent: u64,
    /// Frames that arrived, repeats included.
    pub delivered: u64,
    /// Lost on the line.
    pub lost: u64,
    /// Arrived twice.
    pub duplicated: u64,
    /// Held back.
    pub reordered: u64,
    /// Changed on the line.
    pub corrupted: u64,
    /// Lost because the queue, or a paused receiver's ring, was full.
    pub overflowed: u64,
    /// Dropped by the queue's own decision.
    pub dropped_early: u64,
    /// Marked as having met congestion.
    pub marked: u64,
    /// Larger than the link takes.
    pub too_long: u64,
    /// Sent into a cut.
    pub cut: u64,
}
