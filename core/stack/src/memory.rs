//! Who may hold how much while memory is short: UCLA's criteria for sharing a buffer pool among many connections
//! (TR-46 §3.2), as a level of water. Below the level everybody keeps what it has and gets what it asks for; above it
//! nobody gets more. The level is where the memory of those below it and the level of all others make up what there is:
//! a thousand idle connections take nothing from the few that work, and a few that hoard take nothing from the rest.

use crate::entry::Socket;
use crate::stack::{Stack, tcp_environment};
use inhost_base::{Instant, Key};
use inhost_buf::Pressure;
use inhost_event::Sink;

/// Sockets that one call looks at while memory is short.
const LOOKED_AT: usize = 32;
/// What everybody may hold however short memory is: one chunk of a send queue, and four full segments in their buffers.
const LEAST_BYTES: usize = (17 << 10) + 4 * 2048;

/// Who holds less than the level divided by this does not come near it.
const FAR_BELOW: usize = 4;

/// The level, and the look at all sockets by which the next one is found.
#[derive(Debug, Default)]
pub(crate) struct Shares {
    /// `None` until a look was complete: then it is an equal part for each connection.
    level_bytes: Option<usize>,
    place: usize,
    /// What those hold that the look found far below the level: they do not come near it.
    small_bytes: usize,
    /// How many others there are.
    large: usize,
}

impl Stack {
    /// What each socket may hold while memory is short. The last sixteenth is for those who have next to nothing.
    pub(crate) fn share_bytes(&self) -> usize {
        match self.pool.pressure() {
            Pressure::Scarce => LEAST_BYTES,
            Pressure::Short | Pressure::Plenty => self.level_bytes(),
        }
    }
    fn level_bytes(&self) -> usize {
        let equal = self.pool.limit_bytes() / self.population.flows.max(2);
        self.shares.level_bytes.unwrap_or(equal).max(LEAST_BYTES)
    }
    /// Whether memory is short and this connection holds more of it than is its part. Looks at a few others meanwhile,
    /// so that the part is right; and when memory is all but spent, those above theirs give up what their peers will
    /// send again (RFC 2018 §8).
    pub(crate) fn takes_more_than_its_share(&mut self, key: Key, now: Instant, sink: &mut dyn Sink) -> bool {
        self.look_at_some(now, sink);
        self.sockets.at(key).is_some_and(|socket| held_bytes(socket, now) > self.share_bytes())
    }
    fn look_at_some(&mut self, now: Instant, sink: &mut dyn Sink) {
        let level_bytes = self.level_bytes();
        let is_scarce = self.pool.pressure() == Pressure::Scarce;
        for _ in 0..LOOKED_AT {
            let place = self.shares.place;
            if place >= self.sockets.places() {
                return self.find_level();
            }
            self.shares.place += 1;
            let Some(key) = self.sockets.key_at(place) else { continue };
            let Some(socket) = self.sockets.at_mut(key) else { continue };
            let held_bytes = held_bytes(socket, now);
            if held_bytes <= level_bytes / FAR_BELOW {
                self.shares.small_bytes += held_bytes;
                continue;
            }
            self.shares.large += 1;
            if let (true, Socket::Flow(flow)) = (is_scarce && held_bytes > level_bytes, socket) {
                flow.connection.shrink(&mut tcp_environment!(self, now, key, sink));
                self.follow(key, now);
                self.counters.connections_shrunk += 1;
            }
        }
    }
    /// Every socket was looked at.
    fn find_level(&mut self) {
        let Shares { level_bytes, small_bytes, large, .. } = self.shares;
        let usable = self.pool.limit_bytes() / 8 * 7;
        // Where nobody is near the level there is no reason to move it.
        let level_bytes = usable.saturating_sub(small_bytes).checked_div(large).or(level_bytes);
        self.shares = Shares { level_bytes, ..Shares::default() };
    }
}

/// Memory that a socket's data pins.
fn held_bytes(socket: &Socket, now: Instant) -> usize {
    match socket {
        Socket::Flow(flow) => {
            let info = flow.connection.info(now);
            info.receive_queue_capacity_bytes + info.reassembly_bytes + info.send_queue_capacity_bytes
        }
        Socket::Udp(udp) => udp.held_bytes(),
        Socket::Listener(_) | Socket::Echo(_) | Socket::Probe(_) => 0,
    }
}
