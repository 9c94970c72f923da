//! The options of an IPv4 header (RFC 791 §3.1): their places, their contents, and what each hop writes in place.

use super::LENGTH;
use inhost_base::Ipv4Addr;

/// Most addresses in a route option, recorded or to be followed.
pub const MAX_ROUTE_HOPS: usize = 9;
/// Most time stamps without addresses.
pub const MAX_TIMESTAMPS: usize = 9;

pub(super) const END: u8 = 0;
pub(super) const NOTHING: u8 = 1;
pub(super) const RECORD_ROUTE: u8 = 7;
pub(super) const TIMESTAMP: u8 = 68;
pub(super) const LOOSE_ROUTE: u8 = 131;
pub(super) const STRICT_ROUTE: u8 = 137;
const ROUTER_ALERT: u8 = 148;
/// Options of which the high bit of the kind is set go into every fragment (RFC 791 §3.1).
pub(super) const COPIED: u8 = 0x80;

/// Kind, length and pointer of a route option.
const ROUTE_FIRST: u8 = 4;
/// Kind, length, pointer and flags of a time stamp option.
const TIMESTAMP_FIRST: u8 = 5;

/// An option that makes no sense.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BadOption {
    /// The offending byte, counted from the start of the IP header: the pointer of a parameter problem.
    pub pointer: u8,
}

/// The place of an option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OptionPlace {
    /// Of its kind, from the start of the IP header.
    pub offset: u8,
    /// Its bytes, kind and length included.
    pub length: u8,
}

/// The options in which hosts and routers on the way have a part; the rest is read past.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OptionPlaces {
    /// Where to go, loose or strict.
    pub source_route: Option<OptionPlace>,
    /// Where it has been.
    pub record_route: Option<OptionPlace>,
    /// When it was where.
    pub timestamp: Option<OptionPlace>,
    /// Every router is to look at it (RFC 2113).
    pub router_alert: bool,
}

impl OptionPlaces {
    /// Finds the options of a header; `options` is what [`super::Ipv4View::options`] gives. Of each kind one is allowed.
    // spec: RFC791 3.1
    pub fn find(options: &[u8]) -> Result<OptionPlaces, BadOption> {
        let mut places = OptionPlaces::default();
        let mut at = 0;
        while let Some(&kind) = options.get(at) {
            let bad = |within: usize| BadOption { pointer: (LENGTH + at + within) as u8 };
            match kind {
                END => break,
                NOTHING => {
                    at += 1;
                    continue;
                }
                _ => {}
            }
            let length = options.get(at + 1).map_or(0, |length| usize::from(*length));
            let option = options.get(at..at + length).filter(|o| o.len() >= 2).ok_or(bad(1))?;
            let place = OptionPlace { offset: (LENGTH + at) as u8, length: length as u8 };
            let slot = match kind {
                LOOSE_ROUTE | STRICT_ROUTE => Some((&mut places.source_route, ROUTE_FIRST)),
                RECORD_ROUTE => Some((&mut places.record_route, ROUTE_FIRST)),
                TIMESTAMP => Some((&mut places.timestamp, TIMESTAMP_FIRST)),
                _ => None,
            };
            if let Some((slot, first)) = slot {
                if slot.is_some() {
                    return Err(bad(0));
                }
                if option.len() + 1 < usize::from(first) {
                    return Err(bad(1));
                }
                if option.get(2).is_none_or(|pointer| *pointer < first) {
                    return Err(bad(2));
                }
                *slot = Some(place);
            }
            places.router_alert |= kind == ROUTER_ALERT;
            at += length;
        }
        Ok(places)
    }
    /// Whether there is nothing on which anybody acts.
    pub fn is_empty(&self) -> bool {
        *self == OptionPlaces::default()
    }
}

impl OptionPlace {
    fn bytes<'a>(&self, header: &'a [u8]) -> &'a [u8] {
        let from = usize::from(self.offset);
        header.get(from..from + usize::from(self.length)).unwrap_or(&[])
    }
    fn bytes_mut<'a>(&self, header: &'a mut [u8]) -> &'a mut [u8] {
        let from = usize::from(self.offset);
        header.get_mut(from..from + usize::from(self.length)).unwrap_or(&mut [])
    }
    fn pointer(&self, header: &[u8]) -> usize {
        self.bytes(header).get(2).map_or(usize::MAX, |pointer| usize::from(*pointer))
    }
    /// Whether a source route at this place is strict.
    pub fn is_strict(&self, header: &[u8]) -> bool {
        self.bytes(header).first() == Some(&STRICT_ROUTE)
    }
    /// Of a source route: where it goes next, `None` once it is completed.
    pub fn next_hop(&self, header: &[u8]) -> Result<Option<Ipv4Addr>, BadOption> {
        let pointer = self.pointer(header);
        if pointer > usize::from(self.length) {
            return Ok(None);
        }
        let address =
            self.bytes(header).get(pointer.saturating_sub(1)..pointer + 3).and_then(|b| b.first_chunk::<4>());
        match address {
            Some(octets) => Ok(Some(Ipv4Addr::from(*octets))),
            None => Err(BadOption { pointer: self.offset + 2 }),
        }
    }
    /// Of a source route: where it goes in the end; `None` once it is completed.
    pub fn final_hop(&self, header: &[u8]) -> Option<Ipv4Addr> {
        self.next_hop(header).ok().flatten()?;
        self.bytes(header).last_chunk::<4>().map(|octets| Ipv4Addr::from(*octets))
    }
    /// Of a route or a record of one: writes `own` where the pointer is and moves that on. False when there is no room
    /// left, which is not a mistake.
    // spec: RFC791 3.1
    pub fn record(&self, header: &mut [u8], own: Ipv4Addr) -> Result<bool, BadOption> {
        let pointer = self.pointer(header);
        if pointer > usize::from(self.length) {
            return Ok(false);
        }
        let option = self.bytes_mut(header);
        let place = option
            .get_mut(pointer.saturating_sub(1)..pointer + 3)
            .ok_or(BadOption { pointer: self.offset + 2 })?;
        place.copy_from_slice(&own.octets());
        if let Some(place) = option.get_mut(2) {
            *place = (pointer + 4) as u8;
        }
        Ok(true)
    }
    /// The addresses up to the pointer: those that were recorded.
    pub fn recorded(&self, header: &[u8]) -> impl DoubleEndedIterator<Item = Ipv4Addr> + Clone {
        let end = self.pointer(header).saturating_sub(1).min(usize::from(self.length));
        let (addresses, _) = self.bytes(header).get(3..end).unwrap_or(&[]).as_chunks::<4>();
        addresses.iter().map(|octets| Ipv4Addr::from(*octets))
    }
}

#[cfg(test)]
mod tests;
