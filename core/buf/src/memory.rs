//! Sharing of buffer memory under pressure: UCLA's criteria for a pool with many connections (TR-46 §3.2), as a water
//! level. A socket below the level keeps what it has and gets what it asks for; a socket above it gets no more. The
//! level is where the memory of those below it and the level of those above it add up to the limit.

use crate::{Pool, Pressure};

/// Memory that every socket may hold under pressure: one chunk of a send queue, and four full segments in their
/// buffers.
const LEAST_BYTES: usize = (17 << 10) + 4 * 2048;

/// A socket that holds less than the level divided by this counts as small.
const FAR_BELOW: usize = 4;

/// The level, and the scan of all sockets that computes the next one.
#[derive(Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
struct Shares {
    /// `None` until the first scan is complete; until then each connection has an equal part.
    level_bytes: Option<usize>,
    place: usize,
    /// Memory held by the small sockets found in the scan.
    small_bytes: usize,
    /// How many others there are.
    large: usize,
    /// A socket above the level has released memory since the scan began.
    gave_way: bool,
    /// The last pass found memory short and no socket above the level. Connections behind a closed window are then
    /// shrunk, whatever they hold.
    is_desperate: bool,
}

/// The memory of a host: its pool, and what each socket may hold of it.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct Memory {
    pool: Pool,
    shares: Shares,
}

impl Memory {
    /// Memory of which `limit_bytes` may be in use.
    pub fn new(limit_bytes: usize) -> Memory {
        Memory { pool: Pool::new(limit_bytes), shares: Shares::default() }
    }
    /// Checks a thawed state of places below `places`.
    #[cfg(feature = "freeze")]
    pub fn check(&self, places: usize) -> Result<(), inhost_base::freeze::Invalid> {
        let Shares { level_bytes, small_bytes, large, .. } = self.shares;
        let is_in_bounds = large <= places && small_bytes.max(level_bytes.unwrap_or(0)) <= usize::MAX / 8;
        inhost_base::freeze::require(is_in_bounds, "the shares of memory")
    }
    /// The pool, to read.
    #[inline]
    pub fn pool(&self) -> &Pool {
        &self.pool
    }
    /// The pool.
    #[inline]
    pub fn pool_mut(&mut self) -> &mut Pool {
        &mut self.pool
    }
    /// The share of each socket of a host with so many `connections` while memory is short. The last sixteenth is reserved
    /// for sockets that hold almost nothing; of the last batch of packets nobody keeps anything.
    pub fn share_bytes(&self, connections: usize) -> usize {
        match self.pool.pressure() {
            Pressure::Full => 0,
            Pressure::Scarce => LEAST_BYTES,
            Pressure::Short | Pressure::Plenty => self.level_bytes(connections),
        }
    }
    /// The share of each socket for data to send while memory is short. Senders have three quarters of the memory.
    pub fn send_share_bytes(&self, connections: usize) -> usize {
        send_share_of(self.share_bytes(connections))
    }
    /// The level of the scan in progress.
    pub fn level_bytes(&self, connections: usize) -> usize {
        let equal = self.pool.limit_bytes() / connections.max(2);
        self.shares.level_bytes.unwrap_or(equal).max(LEAST_BYTES)
    }
    /// The place that the scan looks at next, of so many; `None` at its end, where the next one begins.
    pub fn next_place(&mut self, places: usize) -> Option<usize> {
        let place = self.shares.place;
        if place >= places {
            self.find_level();
            return None;
        }
        self.shares.place += 1;
        Some(place)
    }
    /// Takes account of a socket that the scan found.
    pub fn count_holder(&mut self, held_bytes: usize, level_bytes: usize) {
        if held_bytes <= level_bytes / FAR_BELOW {
            self.shares.small_bytes += held_bytes;
        } else {
            self.shares.large += 1;
        }
    }
    /// Whether a connection behind a closed window may have to go.
    pub fn may_end(&self, held_bytes: usize, level_bytes: usize) -> bool {
        held_bytes > send_share_of(level_bytes) || self.shares.is_desperate
    }
    /// Notes that a socket above the level has released memory.
    pub fn note_release(&mut self) {
        self.shares.gave_way = true;
    }
    /// Every socket was looked at.
    fn find_level(&mut self) {
        let Shares { level_bytes, small_bytes, large, gave_way, is_desperate, .. } = self.shares;
        let usable = self.pool.limit_bytes() / 8 * 7;
        // Without a socket near the level there is no reason to move it.
        let level_bytes = usable.saturating_sub(small_bytes).checked_div(large).or(level_bytes);
        let is_desperate = match is_desperate {
            true => self.pool.is_full_to_send(),
            false => self.pool.is_under_pressure() && !gave_way,
        };
        self.shares = Shares { level_bytes, is_desperate, ..Shares::default() };
    }
}

/// Senders have three quarters of the memory, so their parts are smaller.
fn send_share_of(share_bytes: usize) -> usize {
    (share_bytes / 4 * 3).max(LEAST_BYTES)
}
