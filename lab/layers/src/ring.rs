//! The latest transitions, for time-lines.

use crate::size::Segment;
use inhost_event::Layer;
use std::collections::VecDeque;

/// What happened at an instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transition {
    /// From here on the processor works for this layer.
    Layer(Layer),
    /// A segment came in, or was taken by the device.
    Segment(Segment),
}

/// A bounded list of transitions; the oldest give way.
#[derive(Clone, Debug, Default)]
pub struct Ring {
    limit: usize,
    entries: VecDeque<(u64, Transition)>,
    lost: u64,
}

impl Ring {
    /// Keeps the last `limit` transitions.
    pub fn new(limit: usize) -> Ring {
        Ring { limit, entries: VecDeque::with_capacity(limit), lost: 0 }
    }
    /// Adds what happened at `at_ns`.
    pub fn push(&mut self, at_ns: u64, transition: Transition) {
        if self.limit == 0 {
            return;
        }
        if self.entries.len() == self.limit {
            self.entries.pop_front();
            self.lost += 1;
        }
        self.entries.push_back((at_ns, transition));
    }
    /// The transitions with their instants in nanoseconds, the oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &(u64, Transition)> {
        self.entries.iter()
    }
    /// How many it holds.
    pub fn len(&self) -> usize {
        self.entries.len()
    }
    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
    /// How many gave way.
    pub fn lost(&self) -> u64 {
        self.lost
    }
    /// Removes all.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.lost = 0;
    }
}
