//! Per-link state of the stack: counters, offload settings, and replies that wait.

use crate::counters::LinkCounters;
use crate::output::{Replies, Reply};
use alloc::vec;
use alloc::vec::Vec;
use inhost_base::{Instant, LinkId};
use inhost_event::{Drop, Event, FrameSent, Mask, Sink};

/// One link.
#[derive(Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
struct Link {
    counters: LinkCounters,
    /// See [`inhost_ip::InterfaceConfig::gso`].
    gso: bool,
    /// See [`inhost_ip::InterfaceConfig::gro`].
    gro: bool,
    replies: Replies,
}

/// The links of a host, the loopback first.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Links {
    links: Vec<Link>,
    /// The lengths of the frames of a pass, when a sink wants their events; empty between passes.
    #[cfg_attr(feature = "freeze", serde(skip))]
    sent_lengths: Vec<u32>,
}

impl Links {
    /// The loopback alone.
    pub(crate) fn new() -> Links {
        Links { links: vec![Link::default()], sent_lengths: Vec::new() }
    }
    /// Adds a link, and gives how many there are.
    pub(crate) fn add(&mut self, link: LinkId, gso: bool, gro: bool) -> usize {
        let count = usize::from(link.0) + 1;
        if self.links.len() < count {
            self.links.resize_with(count, Link::default);
        }
        if let Some(kept) = self.at(link) {
            (kept.gso, kept.gro) = (gso, gro);
        }
        count
    }
    #[inline]
    fn at(&mut self, link: LinkId) -> Option<&mut Link> {
        self.links.get_mut(usize::from(link.0))
    }
    #[cfg(feature = "freeze")]
    pub(crate) fn len(&self) -> usize {
        self.links.len()
    }
    pub(crate) fn ids(&self) -> impl Iterator<Item = LinkId> + use<> {
        (0..self.links.len() as u16).map(LinkId)
    }
    pub(crate) fn counters(&self, link: LinkId) -> Option<&LinkCounters> {
        self.links.get(usize::from(link.0)).map(|link| &link.counters)
    }
    /// Whether segments of one connection that come one after another are taken together.
    pub(crate) fn gro(&self, link: LinkId) -> bool {
        self.links.get(usize::from(link.0)).is_some_and(|link| link.gro)
    }
    /// Whether several segments may be given to the device as one frame.
    pub(crate) fn takes_gso(&self, link: LinkId) -> bool {
        self.links.get(usize::from(link.0)).is_none_or(|link| link.gso)
    }
    /// Counts frames that came in.
    #[inline]
    pub(crate) fn count_received(&mut self, link: LinkId, frames: u64, bytes: u64) {
        if let Some(link) = self.at(link) {
            link.counters.received_frames += frames;
            link.counters.received_bytes += bytes;
        }
    }
    /// Counts frames that have left.
    #[inline]
    pub(crate) fn count_sent(&mut self, link: LinkId, frames: u64, bytes: u64) {
        if let Some(link) = self.at(link) {
            link.counters.sent_frames += frames;
            link.counters.sent_bytes += bytes;
        }
    }
    /// Counts a frame that went no further.
    pub(crate) fn count_drop(&mut self, link: LinkId, why: Drop) {
        if let Some(link) = self.at(link) {
            link.counters.dropped[why as usize] += 1;
        }
    }
    /// Adds a reply to those of its link, unless too many wait there.
    pub(crate) fn push_reply(&mut self, reply: Reply) -> bool {
        self.at(reply.path.link).is_some_and(|link| link.replies.push(reply))
    }
    /// Whether a reply can be sent.
    #[inline]
    pub(crate) fn has_replies(&self, link: LinkId) -> bool {
        self.links.get(usize::from(link.0)).is_some_and(|link| !link.replies.is_empty())
    }
    /// The next reply to be sent.
    pub(crate) fn first_reply(&self, link: LinkId) -> Option<&Reply> {
        self.links.get(usize::from(link.0))?.replies.first()
    }
    /// Is done with the next reply, or sets it aside until its neighbour is known.
    pub(crate) fn finish_reply(&mut self, link: LinkId, waits: bool) {
        if let Some(link) = self.at(link) {
            link.replies.finish_first(waits);
        }
    }
    /// Lets those replies try again that were set aside.
    pub(crate) fn wake_replies(&mut self, link: LinkId) {
        if let Some(link) = self.at(link) {
            link.replies.wake();
        }
    }
    /// A place for the lengths of the frames of a pass.
    pub(crate) fn take_lengths(&mut self) -> Vec<u32> {
        core::mem::take(&mut self.sent_lengths)
    }
    /// Tells of the frames of a pass, whose lengths are in the place that was taken.
    pub(crate) fn emit_sent(
        &mut self,
        link: LinkId,
        mut lengths: Vec<u32>,
        now: Instant,
        sink: &mut dyn Sink,
    ) {
        for length_bytes in lengths.drain(..) {
            sink.emit(Mask::LINK, now, || Event::FrameSent(FrameSent { link, length_bytes }));
        }
        self.sent_lengths = lengths;
    }
}
