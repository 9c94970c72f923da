//! Segments without a connection: resets (RFC 9293 §3.5.2), final acknowledgments, and SYN cookies.

use alloc::collections::VecDeque;
use inhost_ip::Path;
use inhost_tcp::Header;

/// Most replies that wait on one link: enough for a few batches of frames.
const MOST_READY: usize = 4 * inhost_buf::Batch::LIMIT;
/// Replies that may wait on one link for a neighbour each.
const MOST_WAITING: usize = 64;

/// A segment without data, to be sent.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Reply {
    pub(crate) path: Path,
    /// Complete with ports.
    pub(crate) header: Header,
}

/// The replies of a link.
#[derive(Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Replies {
    ready: VecDeque<Reply>,
    /// Those whose neighbour is being asked for.
    waiting: VecDeque<Reply>,
}

impl Replies {
    /// Adds one, unless too many wait.
    pub(crate) fn push(&mut self, reply: Reply) -> bool {
        let fits = self.ready.len() < MOST_READY;
        if fits {
            self.ready.push_back(reply);
        }
        fits
    }
    /// Whether none is to be sent.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.ready.is_empty()
    }
    /// The next to be sent.
    pub(crate) fn first(&self) -> Option<&Reply> {
        self.ready.front()
    }
    /// Is done with the next to be sent, or sets it aside until its neighbour is known; the oldest goes when too many are.
    pub(crate) fn finish_first(&mut self, waits: bool) {
        let first = self.ready.pop_front().filter(|_| waits);
        if waits && self.waiting.len() >= MOST_WAITING {
            self.waiting.pop_front();
        }
        self.waiting.extend(first);
    }
    /// Lets those try again that were set aside.
    pub(crate) fn wake(&mut self) {
        let room = (2 * MOST_READY).saturating_sub(self.ready.len());
        let count = self.waiting.len().min(room);
        self.ready.extend(self.waiting.drain(..count));
    }
}
