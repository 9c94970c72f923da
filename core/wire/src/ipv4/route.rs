//! Source routes as values, and options to be sent.

use super::MAX_OPTIONS_BYTES;
use super::options::{
    COPIED, END, LOOSE_ROUTE, MAX_ROUTE_HOPS, MAX_TIMESTAMPS, NOTHING, OptionPlace, RECORD_ROUTE,
    STRICT_ROUTE, TIMESTAMP,
};
use super::timestamp::TimestampKind;
use crate::Bounded;
use inhost_base::Ipv4Addr;

/// Hosts that a datagram is to pass, in order, on the way to its destination, which is not one of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct SourceRoute {
    strict: bool,
    hops: Bounded<[u8; 4], MAX_ROUTE_HOPS>,
}

impl SourceRoute {
    /// `None` unless there are 1 to [`MAX_ROUTE_HOPS`] hops.
    pub fn new(strict: bool, hops: impl IntoIterator<Item = Ipv4Addr>) -> Option<Self> {
        let mut route = SourceRoute { strict, hops: Bounded::new() };
        let fit = hops.into_iter().all(|hop| route.hops.push(hop.octets()));
        (fit && !route.hops.is_empty()).then_some(route)
    }
    /// The reversed route of a datagram from `source` that arrived with the completed route at `place` of `header`.
    /// `None` when it passed no hop. Some senders put themselves first, which is left out (RFC 1122 §3.2.1.8 (c), case
    /// B).
    pub fn back(header: &[u8], place: OptionPlace, source: Ipv4Addr) -> Option<Self> {
        let mut hops = place.recorded(header);
        if hops.clone().next() == Some(source) {
            hops.next();
        }
        SourceRoute::new(place.is_strict(header), hops.rev())
    }
    /// Whether it is a strict route: no other hops are allowed.
    pub fn is_strict(&self) -> bool {
        self.strict
    }
    /// The first hop, to which the header is addressed.
    pub fn first(&self) -> Ipv4Addr {
        self.hops.first().map_or(Ipv4Addr::UNSPECIFIED, |octets| Ipv4Addr::from(*octets))
    }
    /// All hops in order.
    pub fn hops(&self) -> impl ExactSizeIterator<Item = Ipv4Addr> + '_ {
        self.hops.as_slice().iter().map(|octets| Ipv4Addr::from(*octets))
    }
    /// Bytes that it takes in a header, padding included.
    pub fn length(&self) -> usize {
        4 + 4 * self.hops.len()
    }
}

/// Options ready to be written behind a header: whole words, at most 40 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct OptionBytes(Bounded<u8, MAX_OPTIONS_BYTES>);

impl OptionBytes {
    /// No options.
    pub fn new() -> Self {
        OptionBytes::default()
    }
    /// The bytes, for [`super::Ipv4Header::emit_with_options`].
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_slice()
    }
    /// Adds a source route for a datagram whose header is addressed to [`SourceRoute::first`], and that goes to
    /// `destination` in the end. False, and no change, when there is no room.
    pub fn add_source_route(&mut self, route: &SourceRoute, destination: Ipv4Addr) -> bool {
        let kind = if route.strict { STRICT_ROUTE } else { LOOSE_ROUTE };
        let rest = route.hops().skip(1).chain([destination]);
        let octets = rest.flat_map(|hop| hop.octets());
        self.add(&[NOTHING, kind, (3 + 4 * route.hops().len()) as u8, 4], octets)
    }
    /// Adds a record of the route with room for `slots` addresses. False, and no change, when there is no room.
    pub fn add_record_route(&mut self, slots: usize) -> bool {
        let length = 3 + 4 * slots.min(MAX_ROUTE_HOPS + 1);
        self.add(&[NOTHING, RECORD_ROUTE, length as u8, 4], core::iter::repeat_n(0, 4 * slots))
    }
    /// Adds time stamps with room for `slots` entries, the first of which is that of the sender, `own` at `time`
    /// (RFC 1122 §3.2.1.8 (e)). False, and no change, when there is no room, and of [`TimestampKind::Prescribed`], for
    /// which see [`OptionBytes::add_timestamps_of`].
    // spec: RFC1122 3.2.1.8-9
    pub fn add_timestamp(&mut self, kind: TimestampKind, slots: usize, own: Ipv4Addr, time: u32) -> bool {
        let (address, bytes) = match kind {
            TimestampKind::Times => (&[][..], 4 * slots.min(MAX_TIMESTAMPS + 1)),
            TimestampKind::Addresses => (&own.octets()[..], 8 * slots.min(MAX_TIMESTAMPS + 1)),
            TimestampKind::Prescribed => return false,
        };
        let first = address.iter().copied().chain(time.to_be_bytes());
        let entries = first.chain(core::iter::repeat(0)).take(bytes);
        let pointer = 5 + bytes.min(kind.entry_bytes());
        self.add(&[TIMESTAMP, (4 + bytes) as u8, pointer as u8, kind.to_u8()], entries)
    }
    /// Adds time stamps that only `hosts` are to write. False, and no change, when there is no room.
    pub fn add_timestamps_of(&mut self, hosts: &[Ipv4Addr]) -> bool {
        let front = [TIMESTAMP, (4 + 8 * hosts.len().min(5)) as u8, 5, TimestampKind::Prescribed.to_u8()];
        let entries = hosts.iter().flat_map(|host| host.octets().into_iter().chain([0; 4]));
        self.add(&front, entries)
    }
    /// Adds those of a header's options that go into every fragment (RFC 791 §3.1).
    // spec: RFC791 3.2
    pub fn copied(options: &[u8]) -> OptionBytes {
        let mut copied = OptionBytes::new();
        let mut rest = options;
        while let Some((&kind, behind)) = rest.split_first() {
            let length = match kind {
                END => break,
                NOTHING => 1,
                _ => behind.first().map_or(0, |length| usize::from(*length)),
            };
            let Some((option, others)) = rest.split_at_checked(length.max(1)) else { break };
            if kind & COPIED != 0 {
                copied.add(&[], option.iter().copied());
            }
            rest = others;
        }
        copied
    }
    /// Copies the option at `place` of a received header. False, without a change, when there is no room.
    pub fn add_copy(&mut self, header: &[u8], place: OptionPlace) -> bool {
        let from = usize::from(place.offset);
        let Some(option) = header.get(from..from + usize::from(place.length)) else { return false };
        self.add(&[], option.iter().copied())
    }
    fn add(&mut self, front: &[u8], rest: impl Iterator<Item = u8>) -> bool {
        let before = self.0.len();
        let mut all = front.iter().copied().chain(rest);
        let mut fits = all.all(|byte| self.0.push(byte));
        while fits && !self.0.len().is_multiple_of(4) {
            fits = self.0.push(NOTHING);
        }
        if !fits {
            self.0.truncate(before);
        }
        fits
    }
}
