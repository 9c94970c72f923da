//! The connections of a capture. Their number is bounded.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use super::outstanding::Budget;
use super::{Conversation, Flow};
use crate::capture::Segment;
use crate::live::Agreed;

/// A connection's key: interface and device, and both endpoints, the lower one first.
type Key = (u32, u32, SocketAddr, SocketAddr);

/// Connections under way. Those that are over, or idle for longest when there are too many, are given out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    open: BTreeMap<Key, Box<Conversation>>,
    pub(crate) budget: Budget,
    /// Whether connections keep when each cause held.
    pub(crate) keeps_spans: bool,
    /// What a host knows of its connections' handshakes: its end, and what was agreed.
    pub(crate) agreed: Option<(SocketAddr, Agreed)>,
}

impl Table {
    /// Takes a segment; what is over by it goes to `over`.
    pub(crate) fn take(
        &mut self,
        flow: Flow,
        segment: &Segment,
        limit: usize,
        over: &mut impl FnMut(Box<Conversation>),
    ) {
        let key = (
            flow.interface,
            flow.device,
            flow.source.min(flow.destination),
            flow.source.max(flow.destination),
        );
        let is_reused = self
            .open
            .get(&key)
            .is_some_and(|found| found.is_over_by(usize::from(found.flow.source != flow.source), segment));
        if is_reused && let Some(found) = self.open.remove(&key) {
            self.end(found, over);
        }
        if !self.open.contains_key(&key) && self.open.len() >= limit.max(1) {
            self.evict(over);
        }
        let found = self.open.entry(key).or_insert_with(|| {
            // A SYN with ACK comes from who was called.
            let opened = match segment.flags.syn() {
                true if segment.flags.ack() => flow.reversed(),
                true => flow,
                false => flow.as_of_client(),
            };
            let mut found = Box::new(Conversation::new(opened, segment));
            if let Some((local, agreed)) = &self.agreed
                && !segment.flags.syn()
            {
                found.knows(usize::from(found.flow.source != *local), agreed);
            }
            if self.keeps_spans {
                found.directions.iter_mut().for_each(|of| of.account.keep_spans());
            }
            found
        });
        found.take(usize::from(found.flow.source != flow.source), segment, &mut self.budget);
    }
    /// Those that are under way.
    pub(crate) fn open(&self) -> impl Iterator<Item = &Conversation> {
        self.open.values().map(|of| &**of)
    }
    /// Those under way go on without a frame until `at_ns`, or for so long as `age_ns` since their first SYN.
    pub(crate) fn last_until(&mut self, at_ns: Option<u64>, age_ns: u64) {
        for of in self.open.values_mut() {
            let born_here = of.has_handshake.then_some(of.started_ns.saturating_add(age_ns));
            of.last_ns = of.last_ns.max(at_ns.or(born_here).unwrap_or(0));
        }
    }
    /// Gives out all.
    pub(crate) fn finish(&mut self, over: &mut impl FnMut(Box<Conversation>)) {
        for (_, conversation) in std::mem::take(&mut self.open) {
            self.end(conversation, over);
        }
    }
    fn end(&mut self, mut conversation: Box<Conversation>, over: &mut impl FnMut(Box<Conversation>)) {
        conversation.finish(&mut self.budget);
        over(conversation);
    }
    /// Gives out the quarter that was idle for longest, so that the search is rare.
    fn evict(&mut self, over: &mut impl FnMut(Box<Conversation>)) {
        let mut ages: Vec<(u64, Key)> = self.open.iter().map(|(&key, of)| (of.last_ns, key)).collect();
        ages.sort_unstable();
        for (_, key) in ages.into_iter().take(self.open.len() / 4 + 1) {
            if let Some(conversation) = self.open.remove(&key) {
                self.end(conversation, over);
            }
        }
    }
}
