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
}

/// The links of a host, the loopback first.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Links {
    links: Vec<Link>,
    /// Of each link as far as there were any.
    replies: Vec<Replies>,
    /// The lengths of the frames of a pass, when a sink wants their events; empty between passes.
    #[cfg_attr(feature = "freeze", serde(skip))]
    sent_lengths: Vec<u32>,
}

impl Links {
    /// The loopback alone.
    pub(crate) fn new() -> Links {
        Links { links: vec![Link::default()], replies: Vec::new(), sent_lengths: Vec::new() }
    }
    /// Adds a link.
    pub(crate) fn add(&mut self, link: LinkId, gso: bool, gro: bool) {
        let count = usize::from(link.0) + 1;
        if self.links.len() < count {
            self.links.resize_with(count, Link::default);
        }
        if let Some(kept) = self.at(link) {
            (kept.gso, kept.gro) = (gso, gro);
        }
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
    /// Counts frames that a pass has sent, and tells of them, where their `lengths` are in the place that was taken.
    #[inline]
    pub(crate) fn count_sent(
        &mut self,
        link: LinkId,
        (frames, bytes): (u64, u64),
        lengths: Option<Vec<u32>>,
        now: Instant,
        sink: &mut dyn Sink,
    ) {
        if let Some(link) = self.at(link) {
            link.counters.sent_frames += frames;
            link.counters.sent_bytes += bytes;
        }
        let Some(mut lengths) = lengths else { return };
        for length_bytes in lengths.drain(..) {
            sink.emit(Mask::LINK, now, || Event::FrameSent(FrameSent { link, length_bytes }));
        }
        self.sent_lengths = lengths;
    }
    /// Counts a frame that went no further.
    pub(crate) fn count_drop(&mut self, link: LinkId, why: Drop) {
        if let Some(link) = self.at(link) {
            link.counters.dropped[why as usize] += 1;
        }
    }
    /// Adds a reply to those of its link, unless too many wait there.
    pub(crate) fn push_reply(&mut self, reply: Reply) -> bool {
        let place = usize::from(reply.path.link.0);
        if self.replies.len() <= place {
            self.replies.resize_with(place + 1, Replies::default);
        }
        self.replies[place].push(reply)
    }
    /// Whether a reply can be sent.
    #[inline]
    pub(crate) fn has_replies(&self, link: LinkId) -> bool {
        self.replies.get(usize::from(link.0)).is_some_and(|replies| !replies.is_empty())
    }
    /// The next reply to be sent.
    pub(crate) fn first_reply(&self, link: LinkId) -> Option<&Reply> {
        self.replies.get(usize::from(link.0))?.first()
    }
    /// Is done with the next reply, or sets it aside until its neighbour is known.
    pub(crate) fn finish_reply(&mut self, link: LinkId, waits: bool) {
        if let Some(replies) = self.replies.get_mut(usize::from(link.0)) {
            replies.finish_first(waits);
        }
    }
    /// Lets those replies try again that were set aside.
    pub(crate) fn wake_replies(&mut self, link: LinkId) {
        if let Some(replies) = self.replies.get_mut(usize::from(link.0)) {
            replies.wake();
        }
    }
    /// A place for the lengths of the frames of a pass.
    pub(crate) fn take_lengths(&mut self) -> Vec<u32> {
        core::mem::take(&mut self.sent_lengths)
    }
}
