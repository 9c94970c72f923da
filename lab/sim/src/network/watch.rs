//! Watchers of frames.

use inhost_base::Instant;

use crate::check::Checker;
use crate::link::LinkConfig;

/// Sees every frame of a network.
pub trait Watcher {
    /// `host` sent `frame`, whatever the link does to it.
    fn sent(&mut self, host: usize, frame: &Seen<'_>);
    /// `frame` arrived at `host`.
    fn delivered(&mut self, host: usize, frame: &Seen<'_>);
}

impl<W: Watcher + ?Sized> Watcher for Box<W> {
    fn sent(&mut self, host: usize, frame: &Seen<'_>) {
        (**self).sent(host, frame);
    }
    fn delivered(&mut self, host: usize, frame: &Seen<'_>) {
        (**self).delivered(host, frame);
    }
}

/// A frame as a [`Watcher`] sees it.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// When.
    pub at: Instant,
    /// The link's number in the network.
    pub link: usize,
    /// Which end of the link the host has.
    pub end: usize,
    /// The whole frame.
    pub bytes: &'a [u8],
    /// Whether it begins with an Ethernet header.
    pub is_ethernet: bool,
    /// Whether it is as it was sent.
    pub is_intact: bool,
}

/// The checker, and others.
pub(super) struct Watch {
    pub checker: Checker,
    pub checks: bool,
    pub others: Vec<Box<dyn Watcher>>,
}

impl Watch {
    pub fn new() -> Watch {
        Watch { checker: Checker::default(), checks: true, others: Vec::new() }
    }
    /// A link carries frames so.
    pub fn hears_of(&mut self, config: &LinkConfig) {
        if config.corrupted_per_million > 0 {
            self.checker.expects_noise();
        }
    }
    pub fn sent(&mut self, host: usize, frame: &Seen<'_>) {
        for watcher in &mut self.others {
            watcher.sent(host, frame);
        }
        if self.checks {
            self.checker.sent(host, frame);
        }
    }
    pub fn delivered(&mut self, host: usize, frame: &Seen<'_>) {
        for watcher in &mut self.others {
            watcher.delivered(host, frame);
        }
        if self.checks {
            self.checker.delivered(host, frame);
        }
    }
}
