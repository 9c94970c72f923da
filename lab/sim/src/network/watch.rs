//! Watchers of frames.

use inhost_base::{Instant, IpAddr};

use crate::check::Checker;
use crate::link::{LinkConfig, LossCause};

/// Sees every frame of a network, and hears what befalls its hosts and links.
pub trait Watcher {
    /// `host` sent `frame`, whatever the link does to it.
    fn sent(&mut self, host: usize, frame: &Seen<'_>);
    /// `frame` arrived at `host`.
    fn delivered(&mut self, host: usize, frame: &Seen<'_>);
    /// Whether [`Watcher::lost`] is to be called. Lost frames are kept for it, which takes time. Default: no.
    fn wants_losses(&self) -> bool {
        false
    }
    /// `frame`, which [`Watcher::sent`] has shown, was lost on the way over its link. [`Seen::end`] is the end that sent it over
    /// that link: a switch's where it came so far.
    fn lost(&mut self, frame: &Seen<'_>, why: LossCause) {
        let _ = (frame, why);
    }
    /// `host` has a name and addresses. Default: nothing.
    fn named(&mut self, host: usize, name: &str, addresses: &[IpAddr]) {
        let _ = (host, name, addresses);
    }
    /// Something befell a host, or the network where none is named: a crash, a restart, a pause, a partition. Default:
    /// nothing.
    fn noted(&mut self, at: Instant, host: Option<&str>, words: &str) {
        let _ = (at, host, words);
    }
}

impl<W: Watcher + ?Sized> Watcher for Box<W> {
    fn sent(&mut self, host: usize, frame: &Seen<'_>) {
        (**self).sent(host, frame);
    }
    fn delivered(&mut self, host: usize, frame: &Seen<'_>) {
        (**self).delivered(host, frame);
    }
    fn wants_losses(&self) -> bool {
        (**self).wants_losses()
    }
    fn lost(&mut self, frame: &Seen<'_>, why: LossCause) {
        (**self).lost(frame, why);
    }
    fn named(&mut self, host: usize, name: &str, addresses: &[IpAddr]) {
        (**self).named(host, name, addresses);
    }
    fn noted(&mut self, at: Instant, host: Option<&str>, words: &str) {
        (**self).noted(at, host, words);
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
    /// One of the others wants to know of lost frames.
    pub wants_losses: bool,
}

impl Watch {
    pub fn new() -> Watch {
        Watch { checker: Checker::default(), checks: true, others: Vec::new(), wants_losses: false }
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
