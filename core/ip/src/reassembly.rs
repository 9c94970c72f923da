//! Reassembly of fragments, both families, with limits on count, memory and time.

use crate::table::{Keyed, Map};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use inhost_base::{Duration, Instant, IpAddr, LinkId};
use inhost_buf::{HEADROOM_BYTES, Packet, Pool, Pressure};
use inhost_event::Drop;
use inhost_wire::{Ecn, ipv4, ipv6};

/// Most datagrams in the making.
pub(crate) const DATAGRAM_LIMIT: usize = 64;
/// Most of them from one source.
pub(crate) const SOURCE_LIMIT: usize = 16;
/// Most memory that they hold.
pub(crate) const MEMORY_LIMIT_BYTES: usize = 1 << 20;
/// Most separate byte ranges in one datagram. A datagram in more is discarded.
const RUN_LIMIT: usize = 64;
/// The longest datagram, of IPv4 with its header, of IPv6 with the payload alone (RFC 8200 §4.5).
const LONGEST_BYTES: usize = u16::MAX as usize;
/// How long the rest of an IPv4 datagram is waited for. RFC 1122 §3.3.2 says 60 to 120 s, for a slower net; the
/// identifications of a fast sender come round sooner (RFC 4963), so that 30 s do less harm.
const IPV4_LIFETIME: Duration = Duration::from_secs(30);
/// How long the rest of an IPv6 datagram is waited for.
// spec: RFC8200 4.5
const IPV6_LIFETIME: Duration = Duration::from_secs(60);

/// The identity of a datagram: fields that its fragments share.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Key {
    pub link: LinkId,
    pub source: IpAddr,
    pub destination: IpAddr,
    /// Of IPv4 only.
    pub protocol: u8,
    pub identification: u32,
}

/// One fragment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece<'a> {
    /// The headers that stand before the fragmentable part.
    pub header: &'a [u8],
    /// Offset of the next-header field in `header`, and its value after reassembly (IPv6).
    pub named: Option<(usize, u8)>,
    pub offset_bytes: usize,
    pub more_fragments: bool,
    pub payload: &'a [u8],
    pub ecn: Ecn,
}

/// The result of inserting a fragment.
#[derive(Debug)]
pub(crate) enum Insertion {
    /// Kept until the others arrive.
    Kept,
    /// The datagram is whole: headers and payload in the window.
    Complete(Packet),
    /// Dropped.
    Dropped(Drop),
}

#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
struct Assembly {
    expires: (Instant, u64),
    /// Payload bytes at their places, none before the first has room. A spoiled datagram has no memory.
    buffer: Packet,
    is_refused: bool,
    /// Received byte ranges: disjoint, not adjacent, in order.
    runs: Vec<(usize, usize)>,
    total_bytes: Option<usize>,
    #[cfg_attr(feature = "freeze", serde(with = "inhost_base::freeze::array"))]
    header: [u8; HEADROOM_BYTES],
    header_bytes: usize,
    named: Option<(usize, u8)>,
    is_marked: bool,
    is_unmarked: bool,
}

/// All datagrams in the making.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Reassembly {
    #[cfg_attr(feature = "freeze", serde(with = "crate::table::frozen"))]
    assemblies: Map<Key, Assembly>,
    timers: BTreeMap<(Instant, u64), Key>,
    serial: u64,
    memory_bytes: usize,
}

/// A datagram whose rest did not come.
pub(crate) struct Expired {
    pub link: LinkId,
    /// Headers and the first run of bytes; `None` when the first fragment never came.
    pub packet: Option<Packet>,
    /// IPv6's fragment header of the first fragment, and where it stood: the headers kept do without it.
    pub fragment_header: Option<(usize, [u8; ipv6::FRAGMENT_HEADER_LENGTH])>,
}

impl Reassembly {
    pub fn new(keyed: Keyed) -> Self {
        Reassembly {
            assemblies: Map::with_hasher(keyed),
            timers: BTreeMap::new(),
            serial: 0,
            memory_bytes: 0,
        }
    }
    /// Calls `act` with each packet of a thawed state, and checks it.
    #[cfg(feature = "freeze")]
    pub fn thaw(
        &mut self,
        act: inhost_buf::freeze::ThawPacket<'_>,
    ) -> Result<(), inhost_base::freeze::Invalid> {
        use inhost_base::freeze::require;
        require(self.timers.len() == self.assemblies.len(), "the timers of fragments")?;
        require(self.serial < u64::MAX / 2, "the serial number of fragments")?;
        let mut memory_bytes = 0;
        // In the order of the timers, which is the order of a walk through them in every run.
        for (at, key) in &self.timers {
            let assembly = self.assemblies.get_mut(key).filter(|assembly| assembly.expires == *at);
            let Some(assembly) = assembly else {
                return Err(inhost_base::freeze::Invalid("a timer of fragments"));
            };
            act(&mut assembly.buffer)?;
            memory_bytes += assembly.buffer.capacity();
            assembly.check()?;
        }
        require(memory_bytes == self.memory_bytes, "the memory of fragments")
    }
    /// Chooses a new key.
    #[cfg(feature = "freeze")]
    pub fn rekey(&mut self, keyed: Keyed) {
        crate::table::rekey(&mut self.assemblies, keyed);
    }
    /// When the first is given up.
    pub fn deadline(&self) -> Instant {
        self.timers.first_key_value().map_or(Instant::FAR_FUTURE, |((at, _), _)| *at)
    }
    /// Datagrams in the making.
    pub fn len(&self) -> usize {
        self.assemblies.len()
    }
    /// Memory they hold.
    pub fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }
    /// Adds a fragment.
    // spec: RFC1122 3.2.1.4-1, 3.3.2-1, 3.3.2-2
    pub fn insert(&mut self, key: Key, piece: &Piece<'_>, now: Instant, pool: &mut Pool) -> Insertion {
        let end = piece.offset_bytes + piece.payload.len();
        let not_counted = if key.source.is_ipv6() { ipv6::LENGTH } else { 0 };
        let is_malformed = piece.payload.is_empty()
            || piece.more_fragments && !piece.payload.len().is_multiple_of(8)
            || piece.header.len() > HEADROOM_BYTES
            || piece.header.len() + end > LONGEST_BYTES + not_counted;
        if is_malformed {
            return Insertion::Dropped(Drop::Fragment);
        }
        if !self.assemblies.contains_key(&key) && !self.begin(key, now, pool) {
            return Insertion::Dropped(Drop::Fragment);
        }
        if let Err(why) = self.make_room(key, end, pool) {
            return Insertion::Dropped(why);
        }
        let Some(assembly) = self.assemblies.get_mut(&key) else { return Insertion::Dropped(Drop::Fragment) };
        match assembly.add(piece, end) {
            Added::Waiting => Insertion::Kept,
            Added::Duplicate => Insertion::Dropped(Drop::Fragment),
            Added::Spoiled => {
                self.refuse_rest(key, pool);
                Insertion::Dropped(Drop::Fragment)
            }
            Added::Whole => match self.remove(key).and_then(Assembly::finish) {
                Some(packet) => Insertion::Complete(packet),
                None => Insertion::Dropped(Drop::Fragment),
            },
        }
    }
    /// Gives up the first datagram whose time is over.
    pub fn pop_expired(&mut self, now: Instant) -> Option<Expired> {
        let ((at, _), key) = self.timers.first_key_value()?;
        if *at > now {
            return None;
        }
        let key = *key;
        let assembly = self.remove(key)?;
        let fragment_header = assembly.named.map(|(_, next_header)| {
            let mut header = [0; ipv6::FRAGMENT_HEADER_LENGTH];
            ipv6::emit_fragment_header(next_header, 0, true, key.identification, &mut header);
            (assembly.header_bytes, header)
        });
        Some(Expired { link: key.link, packet: assembly.first_run(), fragment_header })
    }
    /// Gives all memory back.
    pub fn clear(&mut self, pool: &mut Pool) {
        while let Some((_, key)) = self.timers.first_key_value() {
            let key = *key;
            match self.remove(key) {
                Some(assembly) => pool.give(assembly.buffer),
                None => return,
            }
        }
    }

    /// Makes an entry; false when the source has too many. When there are too many in all, the oldest goes.
    fn begin(&mut self, key: Key, now: Instant, pool: &mut Pool) -> bool {
        if self.assemblies.keys().filter(|other| other.source == key.source).count() >= SOURCE_LIMIT {
            return false;
        }
        if self.assemblies.len() >= DATAGRAM_LIMIT {
            self.give_up_oldest(key, pool);
        }
        let lifetime = if key.source.is_ipv4() { IPV4_LIFETIME } else { IPV6_LIFETIME };
        self.serial += 1;
        let expires = (now + lifetime, self.serial);
        self.timers.insert(expires, key);
        self.assemblies.insert(
            key,
            Assembly {
                expires,
                buffer: Packet::default(),
                is_refused: false,
                runs: Vec::new(),
                total_bytes: None,
                header: [0; HEADROOM_BYTES],
                header_bytes: 0,
                named: None,
                is_marked: false,
                is_unmarked: false,
            },
        );
        true
    }
    /// Gives the buffer of `key` room for `end` bytes, at the cost of the oldest others.
    fn make_room(&mut self, key: Key, end: usize, pool: &mut Pool) -> Result<(), Drop> {
        let Some(assembly) = self.assemblies.get(&key) else { return Err(Drop::Fragment) };
        let has_room = assembly.buffer.len() + assembly.buffer.tailroom() >= end;
        if assembly.is_refused {
            return Err(Drop::Fragment);
        }
        if has_room {
            return Ok(());
        }
        if pool.pressure() == Pressure::Full {
            return Err(Drop::NoMemory);
        }
        let mut larger = pool.take(end).ok_or(Drop::NoMemory)?;
        while self.memory_bytes + larger.capacity() > MEMORY_LIMIT_BYTES && self.give_up_oldest(key, pool) {}
        let Some(assembly) = self.assemblies.get_mut(&key) else { return Err(Drop::Fragment) };
        larger.append(assembly.buffer.bytes());
        self.memory_bytes += larger.capacity();
        let smaller = core::mem::replace(&mut assembly.buffer, larger);
        self.memory_bytes -= smaller.capacity();
        pool.give(smaller);
        Ok(())
    }
    /// Gives up the oldest datagram that is not `except`; false when there is none.
    fn give_up_oldest(&mut self, except: Key, pool: &mut Pool) -> bool {
        let Some(oldest) = self.timers.values().find(|key| **key != except).copied() else { return false };
        if let Some(assembly) = self.remove(oldest) {
            pool.give(assembly.buffer);
        }
        true
    }
    fn remove(&mut self, key: Key) -> Option<Assembly> {
        let assembly = self.assemblies.remove(&key)?;
        self.timers.remove(&assembly.expires);
        self.memory_bytes -= assembly.buffer.capacity();
        Some(assembly)
    }
    /// Overlap: the datagram is discarded, with its fragments still to come (RFC 5722).
    // spec: RFC5722 3
    fn refuse_rest(&mut self, key: Key, pool: &mut Pool) {
        if let Some(assembly) = self.assemblies.get_mut(&key) {
            assembly.is_refused = true;
            assembly.runs = Vec::new();
            let buffer = assembly.buffer.take();
            self.memory_bytes -= buffer.capacity();
            pool.give(buffer);
        }
    }
}

enum Added {
    Waiting,
    Duplicate,
    Spoiled,
    Whole,
}

impl Assembly {
    /// Checks a thawed datagram in the making.
    #[cfg(feature = "freeze")]
    fn check(&self) -> Result<(), inhost_base::freeze::Invalid> {
        use inhost_base::freeze::require;
        let longest = LONGEST_BYTES + ipv6::LENGTH;
        let mut before = None;
        for &(start, end) in &self.runs {
            require(before.is_none_or(|before| before < start) && start < end, "the order of fragments")?;
            before = Some(end);
        }
        require(before.is_none_or(|last| last <= self.buffer.len()), "the length of fragments")?;
        require(self.total_bytes.is_none_or(|total| total <= longest), "the length of a datagram")?;
        require(self.header_bytes <= HEADROOM_BYTES, "the header of fragments")
    }
    /// Puts the piece in its place. There is room for it.
    fn add(&mut self, piece: &Piece<'_>, end: usize) -> Added {
        let start = piece.offset_bytes;
        let highest = self.runs.last().map_or(0, |run| run.1);
        let contradicts = match (self.total_bytes, piece.more_fragments) {
            (Some(total), true) => end > total,
            (Some(total), false) => end != total,
            (None, true) => false,
            (None, false) => highest > end,
        };
        if contradicts {
            return Added::Spoiled;
        }
        if self.runs.iter().any(|run| run.0 < end && start < run.1) {
            // The very bytes that are there already came twice, as nets do (RFC 8200 §4.5); anything else is an attack.
            let is_same = self.runs.iter().any(|run| run.0 <= start && end <= run.1)
                && self.buffer.bytes().get(start..end) == Some(piece.payload);
            return if is_same { Added::Duplicate } else { Added::Spoiled };
        }
        let lacking = end.saturating_sub(self.buffer.len());
        if self.buffer.extend(lacking).is_none() {
            return Added::Spoiled;
        }
        match self.buffer.bytes_mut().get_mut(start..end) {
            Some(place) => inhost_buf::copy(place, piece.payload),
            None => return Added::Spoiled,
        }
        if !self.note_run(start, end) {
            return Added::Spoiled;
        }
        if !piece.more_fragments {
            self.total_bytes = Some(end);
        }
        if start == 0 {
            inhost_buf::copy(&mut self.header, piece.header);
            self.header_bytes = piece.header.len();
            self.named = piece.named;
        }
        self.is_marked |= piece.ecn == Ecn::CongestionExperienced;
        self.is_unmarked |= piece.ecn == Ecn::NotCapable;
        match self.total_bytes {
            Some(total) if self.runs.as_slice() == [(0, total)] => {
                // A mark on one part of a datagram whose other parts cannot bear one is not a mark of a router.
                // spec: RFC3168 5.3
                let is_odd = self.is_marked && self.is_unmarked;
                if is_odd { Added::Spoiled } else { Added::Whole }
            }
            _ => Added::Waiting,
        }
    }
    /// Notes that `start..end` has come, which nothing overlapped; false when there are too many runs.
    fn note_run(&mut self, mut start: usize, mut end: usize) -> bool {
        let mut at = self.runs.partition_point(|run| run.1 < start);
        while let Some(&run) = self.runs.get(at)
            && run.0 <= end
        {
            start = start.min(run.0);
            end = end.max(run.1);
            self.runs.remove(at);
        }
        at = at.min(self.runs.len());
        self.runs.insert(at, (start, end));
        self.runs.len() <= RUN_LIMIT
    }
    /// The whole datagram, with headers that say so.
    fn finish(mut self) -> Option<Packet> {
        let payload_bytes = self.buffer.len();
        let header = self.header.get_mut(..self.header_bytes)?;
        let is_ipv4 = self.named.is_none();
        if is_ipv4 {
            let total = u16::try_from(header.len() + payload_bytes).ok()?;
            header.get_mut(2..4)?.copy_from_slice(&total.to_be_bytes());
            header.get_mut(6..8)?.copy_from_slice(&[0, 0]);
            if self.is_marked {
                *header.get_mut(1)? |= Ecn::CongestionExperienced.bits();
            }
            ipv4::renew_checksum(header);
        } else {
            let behind = header.len().checked_sub(inhost_wire::ipv6::LENGTH)?;
            let length = u16::try_from(behind + payload_bytes).ok()?;
            header.get_mut(4..6)?.copy_from_slice(&length.to_be_bytes());
            if self.is_marked {
                *header.get_mut(1)? |= Ecn::CongestionExperienced.bits() << 4;
            }
            let (at, next) = self.named?;
            *header.get_mut(at)? = next;
        }
        let place = self.buffer.prepend(header.len())?;
        inhost_buf::copy(place, header);
        Some(self.buffer)
    }
    /// Headers and the first contiguous bytes, for the ICMP error.
    fn first_run(mut self) -> Option<Packet> {
        let is_first_there = self.header_bytes > 0 && !self.is_refused;
        match self.runs.first() {
            Some(&(0, end)) if is_first_there => {
                self.buffer.truncate(end);
                let place = self.buffer.prepend(self.header_bytes)?;
                inhost_buf::copy(place, self.header.get(..self.header_bytes)?);
                Some(self.buffer)
            }
            _ => Some(self.buffer).filter(|buffer| buffer.capacity() > 0).map(|mut buffer| {
                buffer.truncate(0);
                buffer
            }),
        }
    }
}

#[cfg(test)]
mod tests;
