//! Segments without a connection: resets (RFC 9293 §3.5.2), final acknowledgments, and SYN cookies.

use crate::output::limit::RateLimit;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use inhost_base::{Instant, LinkId, Random};
use inhost_ip::Path;
use inhost_tcp::Header;

/// Most replies that wait on one link: enough for a few batches of frames.
const WAITING_PER_LINK: usize = 4 * inhost_buf::Batch::LIMIT;
/// Replies that may wait on one link for a neighbour each.
const NEIGHBOUR_WAITS_PER_LINK: usize = 64;

/// A segment without data, to be sent.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Reply {
    pub(crate) path: Path,
    /// Complete with ports.
    pub(crate) header: Header,
}

#[derive(Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
struct Queues {
    ready: VecDeque<Reply>,
    /// Those whose neighbour is being asked for.
    waiting: VecDeque<Reply>,
}

/// The replies of all links.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Replies {
    links: Vec<Queues>,
    /// On resets in answer to segments for which there is no connection.
    reset_limit: RateLimit,
}

impl Replies {
    pub(crate) fn new(resets_per_second: u32, now: Instant) -> Replies {
        Replies { links: Vec::new(), reset_limit: RateLimit::new(resets_per_second, now) }
    }
    /// Whether the rate allows a reset in answer to a segment.
    pub(crate) fn admits_reset(&mut self, now: Instant, random: &mut Random) -> bool {
        self.reset_limit.admit(now, random)
    }
    /// Adds one, unless too many wait.
    pub(crate) fn push(&mut self, reply: Reply) -> bool {
        let place = usize::from(reply.path.link.0);
        if self.links.len() <= place {
            self.links.resize_with(place + 1, Queues::default);
        }
        let queue = &mut self.links[place].ready;
        let fits = queue.len() < WAITING_PER_LINK;
        if fits {
            queue.push_back(reply);
        }
        fits
    }
    /// Whether any can be sent on `link`.
    #[inline]
    pub(crate) fn waits(&self, link: LinkId) -> bool {
        self.links.get(usize::from(link.0)).is_some_and(|queues| !queues.ready.is_empty())
    }
    /// The next to be sent on `link`.
    pub(crate) fn pop(&mut self, link: LinkId) -> Option<Reply> {
        self.links.get_mut(usize::from(link.0))?.ready.pop_front()
    }
    /// Puts one back that the device had no room for.
    pub(crate) fn put_back(&mut self, reply: Reply) {
        if let Some(queues) = self.links.get_mut(usize::from(reply.path.link.0)) {
            queues.ready.push_front(reply);
        }
    }
    /// Sets one aside until its neighbour is known; the oldest goes when too many are.
    pub(crate) fn wait_for_neighbour(&mut self, reply: Reply) {
        if let Some(queues) = self.links.get_mut(usize::from(reply.path.link.0)) {
            if queues.waiting.len() >= NEIGHBOUR_WAITS_PER_LINK {
                queues.waiting.pop_front();
            }
            queues.waiting.push_back(reply);
        }
    }
    /// Lets those on `link` try again that were set aside.
    pub(crate) fn wake(&mut self, link: LinkId) {
        if let Some(queues) = self.links.get_mut(usize::from(link.0)) {
            let room = (2 * WAITING_PER_LINK).saturating_sub(queues.ready.len());
            let count = queues.waiting.len().min(room);
            queues.ready.extend(queues.waiting.drain(..count));
        }
    }
}
