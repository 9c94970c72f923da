//! The time stamp option of an IPv4 header (RFC 791 §3.1, RFC 781).

use super::OptionPlace;
use super::options::BadOption;
use inhost_base::Ipv4Addr;

/// The content of each entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimestampKind {
    /// Times alone.
    Times,
    /// Address and time of each hop.
    Addresses,
    /// Prescribed addresses; only these hosts write a time.
    Prescribed,
}

impl TimestampKind {
    /// The flag on the wire.
    pub const fn to_u8(self) -> u8 {
        match self {
            TimestampKind::Times => 0,
            TimestampKind::Addresses => 1,
            TimestampKind::Prescribed => 3,
        }
    }
    /// The meaning of a flag.
    pub const fn from_u8(flag: u8) -> Option<Self> {
        match flag {
            0 => Some(TimestampKind::Times),
            1 => Some(TimestampKind::Addresses),
            3 => Some(TimestampKind::Prescribed),
            _ => None,
        }
    }
    /// Bytes of one entry.
    pub const fn entry_bytes(self) -> usize {
        match self {
            TimestampKind::Times => 4,
            TimestampKind::Addresses | TimestampKind::Prescribed => 8,
        }
    }
}

/// The entry of one hop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timestamp {
    /// Address of the hop, if recorded.
    pub address: Option<Ipv4Addr>,
    /// Milliseconds since midnight, Universal Time; with the high bit set, of some other clock.
    pub time: u32,
}

const FIRST: usize = 5;

/// A time stamp option in place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimestampOption<'a>(&'a [u8]);

impl<'a> TimestampOption<'a> {
    /// The option at `place` of a header.
    pub fn new(header: &'a [u8], place: OptionPlace) -> Option<Self> {
        let from = usize::from(place.offset);
        let bytes = header.get(from..from + usize::from(place.length))?;
        (bytes.len() >= FIRST - 1).then_some(TimestampOption(bytes))
    }
    /// The content of the entries.
    pub fn kind(&self) -> Option<TimestampKind> {
        TimestampKind::from_u8(self.0.get(3)? & 0xf)
    }
    /// How many could not write for want of room.
    pub fn overflow(&self) -> u8 {
        self.0.get(3).map_or(0, |byte| byte >> 4)
    }
    /// The entries written so far.
    pub fn entries(&self) -> impl Iterator<Item = Timestamp> + 'a {
        let kind = self.kind();
        let size = kind.map_or(usize::MAX, TimestampKind::entry_bytes);
        let end = self.0.get(2).map_or(0, |pointer| usize::from(*pointer).saturating_sub(1));
        let written = self.0.get(FIRST - 1..end.min(self.0.len())).unwrap_or(&[]);
        written.chunks_exact(size.min(8)).map(move |entry| {
            let (address, time) = entry.split_at(entry.len() - 4);
            Timestamp {
                address: address.first_chunk::<4>().map(|octets| Ipv4Addr::from(*octets)),
                time: time.first_chunk::<4>().map_or(0, |octets| u32::from_be_bytes(*octets)),
            }
        })
    }
}

/// Writes `time` into the option at `place` of `header`, if it is the turn of `own`. A full option increments its
/// overflow count; a full count and an undefined flag are errors.
// spec: RFC791 3.1
pub fn record_time(
    header: &mut [u8],
    place: OptionPlace,
    own: Ipv4Addr,
    is_ours: impl Fn(Ipv4Addr) -> bool,
    time: u32,
) -> Result<(), BadOption> {
    let bad = |within: u8| BadOption { pointer: place.offset + within };
    let from = usize::from(place.offset);
    let option = header.get_mut(from..from + usize::from(place.length)).ok_or(bad(1))?;
    let [_, length, pointer, flags, ..] = *option else { return Err(bad(1)) };
    let kind = TimestampKind::from_u8(flags & 0xf).ok_or(bad(3))?;
    if pointer > length {
        // All prescribed hosts had their turn; the overflow of others is not counted.
        if kind == TimestampKind::Prescribed {
            return Ok(());
        }
        let counted = flags.checked_add(0x10).ok_or(bad(3))?;
        option[3] = counted;
        return Ok(());
    }
    let at = usize::from(pointer).saturating_sub(1);
    let entry = option.get_mut(at..at + kind.entry_bytes()).ok_or(bad(2))?;
    let (address, written) = entry.split_at_mut(kind.entry_bytes() - 4);
    match (kind, address.first_chunk_mut::<4>()) {
        (TimestampKind::Addresses, Some(address)) => *address = own.octets(),
        (TimestampKind::Prescribed, Some(address)) if !is_ours(Ipv4Addr::from(*address)) => return Ok(()),
        _ => {}
    }
    written.copy_from_slice(&time.to_be_bytes());
    option[2] = pointer.saturating_add(kind.entry_bytes() as u8);
    Ok(())
}
