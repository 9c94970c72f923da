//! TCP connections, as far as numbers need it: relative sequence numbers and the scale of windows.

use std::net::SocketAddr;

use crate::recent::Recent;

/// The largest shift of a window (RFC 7323 §2.3).
const MAX_SHIFT: u8 = 14;

/// Interface and both ends, the lower one first.
type Key = (u32, SocketAddr, SocketAddr);

/// The connections of a trace: 10,000 at most; those that were silent for longest are forgotten.
#[derive(Clone, Debug, Default)]
pub struct Flows {
    /// Both directions; that of the lower end first.
    known: Recent<Key, [Half; 2]>,
    /// Numbers are shown as they are on the wire.
    is_absolute: bool,
    /// Ends that asked for a file by TFTP: what follows comes from another port than 69.
    transfers: Recent<SocketAddr, ()>,
}

/// One direction.
#[derive(Clone, Copy, Debug, Default)]
struct Half {
    /// The latest number, on the wire and relative, so that streams of more than 4 GiB count on.
    latest: Option<(u32, i64)>,
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
        let (latest, relative) = self.latest.unwrap_or_default();
        relative + i64::from(number.wrapping_sub(latest) as i32)
    }
    /// A number that was seen, as a relative one. The first is 1, as if a SYN had come before.
    fn see(&mut self, number: u32) -> i64 {
        self.latest.get_or_insert((number.wrapping_sub(1), 0));
        let now = self.relative(number);
        if now > self.latest.map_or(0, |(_, relative)| relative) {
            self.latest = Some((number, now));
        }
        now
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
        let is_lower = source <= destination;
        let key = match is_lower {
            true => (interface, source, destination),
            false => (interface, destination, source),
        };
        let [lower, upper] = self.known.entry(key, Default::default);
        let (own, other) = if is_lower { (lower, upper) } else { (upper, lower) };
        if is_syn {
            *own = Half { latest: Some((sequence, 0)), scale };
        }
        let relative = (own.see(sequence), acknowledgment.map_or(0, |number| other.see(number)));
        let (sequence, acknowledgment) = match self.is_absolute {
            true => (sequence.into(), acknowledgment.unwrap_or(0).into()),
            false => relative,
        };
        let (scales, is_absolute) = ([own.scale, other.scale], self.is_absolute);
        Seen { sequence, acknowledgment, scales, other: *other, is_absolute }
    }
    /// `end` asks for a transfer by TFTP.
    pub(crate) fn begin_transfer(&mut self, end: SocketAddr) {
        self.transfers.entry(end, || ());
    }
    /// One of both ends has asked for a transfer.
    pub(crate) fn is_transfer(&self, ends: [SocketAddr; 2]) -> bool {
        ends.iter().any(|end| self.transfers.find(end).is_some())
    }
}
