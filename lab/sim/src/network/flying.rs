//! Frames on their way, for those who step a network: to look at, and to do something to one of them.

use inhost_base::{Duration, Instant};

use super::Network;

/// A frame that has left and not arrived.
#[derive(Clone, Copy, Debug)]
pub struct Flying<'a> {
    /// When it arrives.
    pub at: Instant,
    /// The link's number in the network.
    pub link: usize,
    /// The end of the link that sent it.
    pub end: usize,
    /// Its place among those of its direction, in the order in which they arrive.
    pub index: usize,
    /// The whole frame.
    pub bytes: &'a [u8],
    /// Whether it begins with an Ethernet header.
    pub is_ethernet: bool,
    /// Whether it is as it was sent.
    pub is_intact: bool,
}

/// What may be done to one frame on its way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tamper {
    /// It never arrives.
    Drop,
    /// It arrives twice.
    Duplicate,
    /// It arrives so much later, and others may overtake it.
    Delay(Duration),
    /// The next of its direction overtakes it.
    Reorder,
    /// Up to sixteen bits in a row are changed, which every checksum notices.
    Corrupt,
}

impl Network {
    /// Frames that have left and not arrived, by when they arrive; of one instant those of the lower link first.
    pub fn flying(&self) -> Vec<Flying<'_>> {
        let mut all: Vec<Flying<'_>> = Vec::new();
        for (number, link) in self.links.iter().enumerate() {
            for (end, direction) in link.directions.iter().enumerate() {
                all.extend(direction.flying().enumerate().map(|(index, flying)| Flying {
                    at: flying.at,
                    link: number,
                    end,
                    index,
                    bytes: flying.frame.bytes(),
                    is_ethernet: link.is_ethernet,
                    is_intact: flying.is_intact,
                }));
            }
        }
        all.sort_by_key(|flying| flying.at);
        all
    }
    /// Frames that wait for the line at an end of a link.
    pub fn waiting_frames(&self, link: usize, end: usize) -> usize {
        self.links[link].directions[end].waiting()
    }
    /// Does something to the frame that is `index` among those that [`Network::flying`] has of this end of a link. False
    /// when there is none, or when none follows that could overtake it.
    pub fn tamper(&mut self, link: usize, end: usize, index: usize, how: Tamper) -> bool {
        if how == Tamper::Corrupt {
            self.watch.checker.expects_noise();
        }
        let done = self.links[link].directions[end].tamper(index, how, &mut self.buffers);
        self.look_again(link, end);
        done
    }
}
