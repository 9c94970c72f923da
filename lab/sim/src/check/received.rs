//! Data received by one end of a connection.

use std::collections::BTreeMap;

use inhost_base::Sequence;
use inhost_wire::tcp::TcpOptions;

/// Numbers that are further away than this belong to another connection.
const FAR: i64 = 1 << 30;

/// Data received after one SYN. Positions are 64-bit stream offsets from it.
#[derive(Debug)]
pub(super) struct Received {
    /// The number of the SYN.
    pub initial: Sequence,
    /// It offered to scale its windows by so much.
    pub scale: Option<u8>,
    /// It offered timestamps.
    pub timestamps: bool,
    /// The newest timestamp that came.
    pub newest_timestamp: Option<u32>,
    /// It permitted SACK.
    pub sack_permitted: bool,
    /// The largest segment that it takes.
    pub mss: Option<u16>,
    /// Everything before this position has come.
    pub contiguous: u64,
    /// Data received out of order: start to end, without gaps or overlaps between entries.
    beyond: BTreeMap<u64, u64>,
}

impl Received {
    /// State after a SYN with this number and these options.
    pub fn new(initial: Sequence, timestamps: bool, options: &TcpOptions) -> Received {
        Received {
            initial,
            scale: options.window_scale.map(|scale| scale.min(14)),
            timestamps,
            newest_timestamp: None,
            sack_permitted: options.sack_permitted,
            mss: options.mss,
            contiguous: 0,
            beyond: BTreeMap::new(),
        }
    }
    /// The position of a number, as near to what has come as it can be.
    pub fn position(&self, number: Sequence) -> Option<u64> {
        position(self.initial, self.contiguous, number)
    }
    /// Whether a segment's timestamp is none of the old ones; then it is the newest.
    pub fn is_newer(&mut self, timestamps: Option<(u32, u32)>) -> bool {
        let timestamp = timestamps.map(|(value, _)| value);
        let is_newer = match (timestamp, self.newest_timestamp) {
            (Some(value), Some(before)) => value.wrapping_sub(before) as i32 >= 0,
            _ => true,
        };
        if is_newer && timestamp.is_some() {
            self.newest_timestamp = timestamp;
        }
        is_newer
    }
    pub fn add(&mut self, mut start: u64, mut end: u64) {
        if start >= end || end <= self.contiguous {
            return;
        }
        if start <= self.contiguous {
            self.contiguous = end;
            while let Some(first) = self.beyond.first_entry()
                && *first.key() <= self.contiguous
            {
                self.contiguous = self.contiguous.max(first.remove());
            }
            return;
        }
        while let Some((&from, &to)) = self.beyond.range(..=end).next_back()
            && to >= start
        {
            (start, end) = (start.min(from), end.max(to));
            self.beyond.remove(&from);
        }
        self.beyond.insert(start, end);
    }
    /// Whether all from `start` to `end` came.
    pub fn has(&self, start: u64, end: u64) -> bool {
        end <= self.contiguous
            || (start > self.contiguous
                && self.beyond.range(..=start).next_back().is_some_and(|(_, &to)| to >= end))
    }
}

/// The position of `number` in a stream of bytes that begins with `initial`, near `about`; `None` when it is nowhere
/// near.
pub(super) fn position(initial: Sequence, about: u64, number: Sequence) -> Option<u64> {
    let there = initial.0.wrapping_add(about as u32);
    let distance = i64::from(number.0.wrapping_sub(there) as i32);
    if distance.abs() > FAR {
        return None;
    }
    u64::try_from(about as i64 + distance).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_join_and_positions_go_beyond_four_gigabytes() {
        let mut received = Received::new(Sequence(0xffff_fff0), false, &TcpOptions::NONE);
        for (start, end) in [(0, 1), (30, 40), (10, 20), (20, 30)] {
            received.add(start, end);
        }
        assert_eq!(received.contiguous, 1);
        assert!(
            received.has(10, 40) && received.has(15, 20) && !received.has(9, 40) && !received.has(10, 41)
        );
        received.add(1, 12);
        assert_eq!((received.contiguous, received.beyond.len()), (40, 0));
        assert_eq!(received.position(Sequence(24)), Some(40));
        received.contiguous = (5 << 32) + 3;
        assert_eq!(received.position(Sequence(0xffff_fff5)), Some((5 << 32) + 5));
        assert_eq!(received.position(Sequence(0x7000_0000)), None);
    }
}
