//! Sharing of buffer memory under pressure: UCLA's criteria for a pool with many connections (TR-46 §3.2), as a water
//! level. A socket below the level keeps what it has and gets what it asks for; a socket above it gets no more. The
//! level is where the memory of those below it and the level of those above it add up to the limit.

use crate::counters::Counters;
use crate::schedule::{Lists, Schedule};
use crate::sockets::{Socket, SocketId, Sockets, TcpSocketId};
use inhost_base::{Duration, Instant, Random};
use inhost_buf::{Packet, Pool, Pressure};
use inhost_event::Sink;
use inhost_tcp::Environment;

/// How long a socket waits that found no memory to send.
const MEMORY_RETRY: Duration = Duration::from_millis(50);
/// The list of sockets that wait for memory.
const WAITING: usize = 0;
/// Sockets that one call checks while memory is short.
const LOOKED_AT: usize = 8;
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

/// The sockets that a scan reads and changes.
pub(crate) struct Holders<'a> {
    sockets: &'a mut Sockets,
    schedule: &'a mut Schedule,
    random: &'a mut Random,
    counters: &'a mut Counters,
}

impl<'a> Holders<'a> {
    pub(crate) fn new(
        sockets: &'a mut Sockets,
        schedule: &'a mut Schedule,
        random: &'a mut Random,
        counters: &'a mut Counters,
    ) -> Holders<'a> {
        Holders { sockets, schedule, random, counters }
    }
}

/// The memory of a host: its pool, what each socket may hold of it, and who waits for it.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Memory {
    pool: Pool,
    shares: Shares,
    waiting: Lists,
    /// When those that wait try again.
    retry_at: Option<Instant>,
}

impl Memory {
    pub(crate) fn new(limit_bytes: usize) -> Memory {
        Memory {
            pool: Pool::new(limit_bytes),
            shares: Shares::default(),
            waiting: Lists::new(1),
            retry_at: None,
        }
    }
    /// Checks a thawed state of places below `places`.
    #[cfg(feature = "freeze")]
    pub(crate) fn check(&self, places: usize) -> Result<(), inhost_base::freeze::Invalid> {
        use inhost_base::freeze::require;
        let Shares { level_bytes, small_bytes, large, .. } = self.shares;
        let is_in_bounds = large <= places && small_bytes.max(level_bytes.unwrap_or(0)) <= usize::MAX / 8;
        require(is_in_bounds, "the shares of memory")?;
        self.waiting.check(places)
    }
    #[inline]
    pub(crate) fn pool(&self) -> &Pool {
        &self.pool
    }
    #[inline]
    pub(crate) fn pool_mut(&mut self) -> &mut Pool {
        &mut self.pool
    }
    /// Memory for a datagram that waits to be sent, and that `is_first` in its socket's queue.
    pub(crate) fn take_to_send(&mut self, is_first: bool, bytes: usize) -> Option<Packet> {
        if is_first { self.pool.take_bare(bytes) } else { self.pool.take_to_send(bytes) }
    }

    /// Lets a socket that found no memory to send try again soon.
    pub(crate) fn wait(&mut self, socket: SocketId, now: Instant) {
        self.waiting.push_back(WAITING, socket.0.index());
        self.retry_at.get_or_insert(now + MEMORY_RETRY);
    }
    /// When those that wait try again.
    pub(crate) fn retry_at(&self) -> Option<Instant> {
        self.retry_at
    }
    /// Whether those that wait are to try again now; they are all taken by [`Memory::pop_waiting`] then.
    pub(crate) fn retries(&mut self, now: Instant) -> bool {
        self.retry_at.take_if(|at| *at <= now).is_some()
    }
    /// The place of a socket that waits.
    pub(crate) fn pop_waiting(&mut self) -> Option<usize> {
        self.waiting.pop_front(WAITING)
    }
    /// Forgets a socket that goes away.
    #[inline]
    pub(crate) fn forget(&mut self, place: usize) {
        self.waiting.remove(place);
    }

    /// The share of each socket while memory is short. The last sixteenth is reserved for sockets that hold almost
    /// nothing; of the last batch of packets nobody keeps anything.
    pub(crate) fn share_bytes(&self, sockets: &Sockets) -> usize {
        match self.pool.pressure() {
            Pressure::Full => 0,
            Pressure::Scarce => LEAST_BYTES,
            Pressure::Short | Pressure::Plenty => self.level_bytes(sockets),
        }
    }
    /// The share of each socket for data to send while memory is short. Senders have three quarters of the memory.
    pub(crate) fn send_share_bytes(&self, sockets: &Sockets) -> usize {
        send_share_of(self.share_bytes(sockets))
    }
    fn level_bytes(&self, sockets: &Sockets) -> usize {
        let equal = self.pool.limit_bytes() / sockets.connections().max(2);
        self.shares.level_bytes.unwrap_or(equal).max(LEAST_BYTES)
    }
    /// Scans a few sockets to update the shares, and drops recoverable data of sockets above theirs. Returns a
    /// connection that must be reset because its peer keeps the window closed, if there is one.
    pub(crate) fn check_some(
        &mut self,
        holders: &mut Holders<'_>,
        now: Instant,
        sink: &mut dyn Sink,
    ) -> Option<TcpSocketId> {
        let level_bytes = self.level_bytes(holders.sockets);
        // Of those that may have to go, the one that holds most.
        let mut worst: Option<(usize, TcpSocketId)> = None;
        for _ in 0..LOOKED_AT {
            let place = self.shares.place;
            if place >= holders.sockets.places() {
                self.find_level();
                break;
            }
            self.shares.place += 1;
            let Some(id) = holders.sockets.at_place(place) else { continue };
            let Some(socket) = holders.sockets.any(id) else { continue };
            let held_bytes = socket.held_bytes();
            let is_above = held_bytes > level_bytes;
            if held_bytes <= level_bytes / FAR_BELOW {
                self.shares.small_bytes += held_bytes;
            } else {
                self.shares.large += 1;
            }
            let Socket::Tcp(flow) = socket else { continue };
            let key = TcpSocketId::of(id.0);
            if flow.connection().sender().waits_behind_closed_window() {
                let may_go = held_bytes > send_share_of(level_bytes) || self.shares.is_desperate;
                if may_go && held_bytes > worst.map_or(0, |(most, _)| most) {
                    worst = Some((held_bytes, key));
                }
            } else if is_above && worst.is_none() && self.pool.is_under_pressure() {
                self.shrink(key, holders, now, sink);
            }
        }
        let (_, key) = worst?;
        if !self.pool.is_full_to_send() {
            return None;
        }
        self.shares.gave_way = true;
        Some(key)
    }
    /// Drops out-of-order data, which the peer will retransmit (RFC 2018 §8).
    fn shrink(&mut self, key: TcpSocketId, holders: &mut Holders<'_>, now: Instant, sink: &mut dyn Sink) {
        let Holders { sockets, schedule, random, counters } = holders;
        let Some(flow) = sockets.tcp_mut(key) else { return };
        let before = flow.connection().held_bytes();
        let (pool, socket) = (&mut self.pool, key.key());
        let mut environment = Environment { now, socket, pool, random, sink, marks_layers: false };
        flow.connection_mut().shrink(&mut environment);
        let has_shrunk = flow.connection().held_bytes() < before;
        self.shares.gave_way |= has_shrunk;
        counters.connections_shrunk += u64::from(has_shrunk);
        schedule.reschedule(key.place(), flow, now);
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
