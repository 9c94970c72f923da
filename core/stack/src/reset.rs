//! Resets that no connection sends: answers to segments for which there is none, and a connection's last word.

use inhost_base::LinkId;
use inhost_ip::Path;
use inhost_tcp::Header;
use std::collections::VecDeque;

/// Resets that may wait on one link, to be sent or for a neighbour each.
const WAITING_PER_LINK: usize = 64;

/// A reset to be sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reset {
    pub(crate) path: Path,
    /// Complete with ports.
    pub(crate) header: Header,
}

#[derive(Debug, Default)]
struct Queues {
    ready: VecDeque<Reset>,
    /// Those whose neighbour is being asked for.
    parked: VecDeque<Reset>,
}

/// The resets of all links.
#[derive(Debug, Default)]
pub(crate) struct Resets {
    links: Vec<Queues>,
}

impl Resets {
    /// Adds one, unless too many wait.
    pub(crate) fn push(&mut self, reset: Reset) -> bool {
        let place = usize::from(reset.path.link.0);
        if self.links.len() <= place {
            self.links.resize_with(place + 1, Queues::default);
        }
        let queue = &mut self.links[place].ready;
        let fits = queue.len() < WAITING_PER_LINK;
        if fits {
            queue.push_back(reset);
        }
        fits
    }
    /// Whether any can be sent on `link`.
    pub(crate) fn waits(&self, link: LinkId) -> bool {
        self.links.get(usize::from(link.0)).is_some_and(|queues| !queues.ready.is_empty())
    }
    /// The next to be sent on `link`.
    pub(crate) fn pop(&mut self, link: LinkId) -> Option<Reset> {
        self.links.get_mut(usize::from(link.0))?.ready.pop_front()
    }
    /// Puts one back that the device had no room for.
    pub(crate) fn put_back(&mut self, reset: Reset) {
        if let Some(queues) = self.links.get_mut(usize::from(reset.path.link.0)) {
            queues.ready.push_front(reset);
        }
    }
    /// Sets one aside until its neighbour is known; the oldest goes when too many are.
    pub(crate) fn park(&mut self, reset: Reset) {
        if let Some(queues) = self.links.get_mut(usize::from(reset.path.link.0)) {
            if queues.parked.len() >= WAITING_PER_LINK {
                queues.parked.pop_front();
            }
            queues.parked.push_back(reset);
        }
    }
    /// Lets those on `link` try again that were set aside.
    pub(crate) fn wake(&mut self, link: LinkId) {
        if let Some(queues) = self.links.get_mut(usize::from(link.0)) {
            let room = (2 * WAITING_PER_LINK).saturating_sub(queues.ready.len());
            let count = queues.parked.len().min(room);
            queues.ready.extend(queues.parked.drain(..count));
        }
    }
}
