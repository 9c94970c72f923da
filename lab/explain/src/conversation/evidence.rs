//! Frames that prove what was found.

use std::collections::BTreeMap;

use crate::cause::Sign;

/// Frames kept for each sign.
pub(crate) const MAX_FRAMES: usize = 10;

/// How often something was seen, and the first frames that show it.
#[derive(Clone, Default, Debug)]
pub(crate) struct Frames {
    pub(crate) count: u64,
    pub(crate) frames: Vec<u64>,
}

/// By sign. Its size is bounded by the number of signs.
#[derive(Clone, Default, Debug)]
pub(crate) struct Evidence(BTreeMap<Sign, Frames>);

impl Evidence {
    pub(crate) fn mark(&mut self, sign: Sign, frame: u64) {
        let found = self.0.entry(sign).or_default();
        found.count += 1;
        if found.frames.len() < MAX_FRAMES && found.frames.last() != Some(&frame) {
            found.frames.push(frame);
        }
    }
    pub(crate) fn count(&self, sign: Sign) -> u64 {
        self.0.get(&sign).map_or(0, |found| found.count)
    }
    pub(crate) fn frames(&self, sign: Sign) -> &[u64] {
        self.0.get(&sign).map_or(&[], |found| &found.frames)
    }
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Sign, &Frames)> {
        self.0.iter().map(|(&sign, found)| (sign, found))
    }
}
