//! Octets that wait to be sent, some of which are urgent.

use std::collections::VecDeque;

/// Octets that wait; beyond it the shell is not read.
const LIMIT_BYTES: usize = 16 * 1024;

/// What waits to be sent. TCP has one mark, so that a second urgent octet takes it from the first.
#[derive(Clone, Debug, Default)]
pub(super) struct Output {
    octets: VecDeque<u8>,
    /// So many octets up to and with the urgent one.
    urgent_in: Option<usize>,
}

impl Output {
    pub(super) fn extend(&mut self, octets: &[u8]) {
        self.octets.extend(octets);
    }
    /// Sends a signal of RFC 1282.
    pub(super) fn signal(&mut self, octet: u8) {
        self.octets.push_back(octet);
        self.urgent_in = Some(self.octets.len());
    }
    /// Drops what is not yet sent, but for a signal.
    pub(super) fn discard(&mut self) {
        let signal = self.urgent_in.and_then(|place| self.octets.get(place - 1).copied());
        self.octets.clear();
        self.urgent_in = None;
        signal.into_iter().for_each(|octet| self.signal(octet));
    }
    /// The next octets, and whether the last of them is urgent.
    pub(super) fn pending(&mut self) -> (&[u8], bool) {
        let octets = &*self.octets.make_contiguous();
        match self.urgent_in {
            Some(place) => (&octets[..place], true),
            None => (octets, false),
        }
    }
    pub(super) fn sent(&mut self, count: usize) {
        let count = count.min(self.octets.len());
        self.octets.drain(..count);
        self.urgent_in = self.urgent_in.and_then(|place| place.checked_sub(count).filter(|&place| place > 0));
    }
    pub(super) fn len(&self) -> usize {
        self.octets.len()
    }
    pub(super) fn has_room(&self) -> bool {
        self.octets.len() < LIMIT_BYTES
    }
}
