//! TCP connections, as far as numbers need it: relative sequence numbers and the scale of windows.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

/// Connections that are remembered; those that began first are forgotten.
const MAX_FLOWS: usize = 10_000;
/// The largest shift of a window (RFC 7323 §2.3).
const MAX_SHIFT: u8 = 14;

/// Interface, sender, receiver.
type Key = (u32, SocketAddr, SocketAddr);

/// The connections of a trace.
#[derive(Clone, Debug, Default)]
pub struct Flows {
    known: BTreeMap<Key, Half>,
    order: VecDeque<Key>,
    /// Numbers are shown as they are on the wire.
    is_absolute: bool,
}

/// One direction.
#[derive(Clone, Copy, Debug, Default)]
struct Half {
    /// The latest number, on the wire and relative, so that streams of more than 4 GiB count on.
    latest: (u32, i64),
    /// Of the windows that the sender advertises; none where the SYN was not seen or had none.
    scale: Option<u8>,
}

/// A segment's numbers, as they are on the wire.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbers {
    pub(crate) sequence: u32,
    /// Where the ACK flag is set.
    pub(crate) acknowledgment: Option<u32>,
    pub(crate) is_syn: bool,
    /// The window scale option.
    pub(crate) scale: Option<u8>,
}

/// The same as they are shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) sequence: i64,
    pub(crate) acknowledgment: i64,
    /// Of both ends, of who sent it first.
    scales: [Option<u8>; 2],
    other: Half,
    is_absolute: bool,
}

impl Half {
    fn relative(&self, number: u32) -> i64 {
        self.latest.1 + i64::from(number.wrapping_sub(self.latest.0) as i32)
    }
}

impl Seen {
    /// The window in bytes, where its scale is known, or as it is in the field.
    pub(crate) fn window(&self, field: u16, is_syn: bool) -> u64 {
        match self.scales {
            [Some(scale), Some(_)] if !is_syn => u64::from(field) << scale.min(MAX_SHIFT),
            _ => field.into(),
        }
    }
    /// A number of the other end's stream, such as one that is acknowledged selectively.
    pub(crate) fn near(&self, number: u32) -> i64 {
        if self.is_absolute { number.into() } else { self.other.relative(number) }
    }
}

impl Flows {
    /// Those that show numbers as they are on the wire, or relative ones.
    pub(crate) fn new(is_absolute: bool) -> Flows {
        Flows { is_absolute, ..Flows::default() }
    }
    /// Takes a segment.
    pub(crate) fn segment(
        &mut self,
        interface: u32,
        [source, destination]: [SocketAddr; 2],
        numbers: &Numbers,
    ) -> Seen {
        let Numbers { sequence, acknowledgment, is_syn, scale } = *numbers;
        let (has_ack, acknowledgment) = (acknowledgment.is_some(), acknowledgment.unwrap_or(0));
        let (own, other) = ((interface, source, destination), (interface, destination, source));
        if is_syn {
            self.begin(own, Half { latest: (sequence, 0), scale });
        } else if !self.known.contains_key(&own) {
            // The first byte that was seen is number 1, as if a SYN had come before.
            self.begin(own, Half { latest: (sequence.wrapping_sub(1), 0), scale: None });
        }
        if has_ack && !self.known.contains_key(&other) {
            self.begin(other, Half { latest: (acknowledgment.wrapping_sub(1), 0), scale: None });
        }
        let mut relative = |key: Key, number: u32| {
            let Some(half) = self.known.get_mut(&key) else { return 0 };
            let now = half.relative(number);
            if now > half.latest.1 {
                half.latest = (number, now);
            }
            now
        };
        let numbers = (relative(own, sequence), if has_ack { relative(other, acknowledgment) } else { 0 });
        let find = |key: Key| self.known.get(&key).copied().unwrap_or_default();
        let (own, other) = (find(own), find(other));
        let (sequence, acknowledgment) = match self.is_absolute {
            true => (sequence.into(), acknowledgment.into()),
            false => numbers,
        };
        let is_absolute = self.is_absolute;
        Seen { sequence, acknowledgment, scales: [own.scale, other.scale], other, is_absolute }
    }
    fn begin(&mut self, key: Key, half: Half) {
        if self.known.insert(key, half).is_none() {
            self.order.push_back(key);
            if self.order.len() > MAX_FLOWS
                && let Some(oldest) = self.order.pop_front()
            {
                self.known.remove(&oldest);
            }
        }
    }
}
