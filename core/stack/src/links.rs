//! Per-link state of the stack: counters and offload settings.

use crate::counters::LinkCounters;
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
        if let Some(kept) = self.links.get_mut(usize::from(link.0)) {
            (kept.gso, kept.gro) = (gso, gro);
        }
        count
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
        if let Some(link) = self.links.get_mut(usize::from(link.0)) {
            link.counters.received_frames += frames;
            link.counters.received_bytes += bytes;
        }
    }
    /// Counts frames that have left.
    #[inline]
    pub(crate) fn count_sent(&mut self, link: LinkId, frames: u64, bytes: u64) {
        if let Some(link) = self.links.get_mut(usize::from(link.0)) {
            link.counters.sent_frames += frames;
            link.counters.sent_bytes += bytes;
        }
    }
    /// Counts a frame that went no further.
    pub(crate) fn count_drop(&mut self, link: LinkId, why: Drop) {
        if let Some(link) = self.links.get_mut(usize::from(link.0)) {
            link.counters.dropped[why as usize] += 1;
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
