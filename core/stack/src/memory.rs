//! Who may hold how much while memory is short: UCLA's criteria for sharing a buffer pool among many connections
//! (TR-46 §3.2), as a level of water. Below the level everybody keeps what it has and gets what it asks for; above it
//! nobody gets more. The level is where the memory of those below it and the level of all others make up what there is:
//! a thousand idle connections take nothing from the few that work, and a few that hoard take nothing from the rest.

use crate::parts::{Parts, tcp_environment};
use crate::sockets::{Socket, TcpSocket, TcpSocketId};
use inhost_base::Instant;
use inhost_buf::{Packet, Pressure};
use inhost_event::Sink;

/// Sockets that one call looks at while memory is short.
const LOOKED_AT: usize = 8;
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
    /// Somebody above the level has given something up since the look began.
    gave_way: bool,
    /// The last look found memory short and nobody above the level to take it from. Then whoever waits behind a closed
    /// window gives way, whatever it holds.
    is_desperate: bool,
}

impl Parts {
    /// What each socket may hold while memory is short. The last sixteenth is for those who have next to nothing.
    pub(crate) fn share_bytes(&self) -> usize {
        match self.pool.pressure() {
            Pressure::Scarce => LEAST_BYTES,
            Pressure::Short | Pressure::Plenty => self.level_bytes(),
        }
    }
    fn level_bytes(&self) -> usize {
        let equal = self.pool.limit_bytes() / self.sockets.connections().max(2);
        self.shares.level_bytes.unwrap_or(equal).max(LEAST_BYTES)
    }
    /// Whether this connection holds more than its part while memory is short. Looks at a few others meanwhile, so that
    /// the part is right, and so that those above theirs give up what can be had again.
    pub(crate) fn takes_more_than_its_share(
        &mut self,
        key: TcpSocketId,
        now: Instant,
        sink: &mut dyn Sink,
    ) -> bool {
        self.look_at_some(now, sink);
        self.sockets.tcp(key).is_some_and(|flow| flow.connection().held_bytes() > self.share_bytes())
    }
    /// The same of one that wants to send.
    pub(crate) fn sends_more_than_its_share(
        &mut self,
        key: TcpSocketId,
        now: Instant,
        sink: &mut dyn Sink,
    ) -> bool {
        self.look_at_some(now, sink);
        let share_bytes = send_share_of(self.share_bytes());
        self.sockets.tcp(key).map(TcpSocket::connection).is_some_and(|connection| {
            connection.held_bytes() > share_bytes || connection.waits_behind_closed_window()
        })
    }
    fn look_at_some(&mut self, now: Instant, sink: &mut dyn Sink) {
        let level_bytes = self.level_bytes();
        // Of those that may have to go, the one that holds most.
        let mut worst: Option<(usize, TcpSocketId)> = None;
        for _ in 0..LOOKED_AT {
            let place = self.shares.place;
            if place >= self.sockets.places() {
                self.find_level();
                break;
            }
            self.shares.place += 1;
            let Some(id) = self.sockets.at_place(place) else { continue };
            let Some(socket) = self.sockets.any(id) else { continue };
            let held_bytes = held_bytes(socket);
            let is_above = held_bytes > level_bytes;
            if held_bytes <= level_bytes / FAR_BELOW {
                self.shares.small_bytes += held_bytes;
            } else {
                self.shares.large += 1;
            }
            let Socket::Tcp(flow) = socket else { continue };
            let key = TcpSocketId::of(id.0);
            if flow.connection().waits_behind_closed_window() {
                let may_go = held_bytes > send_share_of(level_bytes) || self.shares.is_desperate;
                if may_go && held_bytes > worst.map_or(0, |(most, _)| most) {
                    worst = Some((held_bytes, key));
                }
            } else if is_above && worst.is_none() && self.pool.is_under_pressure() {
                self.shrink(key, now, sink);
            }
        }
        if let Some((_, key)) = worst
            && self.pool.is_full_to_send()
        {
            self.give_way(key, now, sink);
        }
    }
    /// Takes what a peer will send again (RFC 2018 §8).
    fn shrink(&mut self, key: TcpSocketId, now: Instant, sink: &mut dyn Sink) {
        let Some(flow) = self.sockets.tcp_mut(key) else { return };
        let before = flow.connection().held_bytes();
        flow.connection_mut().shrink(&mut tcp_environment!(self, now, key, sink));
        let has_shrunk = flow.connection().held_bytes() < before;
        self.shares.gave_way |= has_shrunk;
        self.counters.connections_shrunk += u64::from(has_shrunk);
        self.follow(key, now);
    }
    /// Resets a connection whose peer takes nothing: what waits for it is the memory of others.
    fn give_way(&mut self, key: TcpSocketId, now: Instant, sink: &mut dyn Sink) {
        let Some(flow) = self.sockets.tcp_mut(key) else { return };
        let outcome = flow.connection_mut().abort(&mut tcp_environment!(self, now, key, sink));
        self.shares.gave_way = true;
        self.counters.closed_windows_reset += 1;
        self.apply(key, outcome, now, sink);
    }
    /// Memory for a datagram that waits to be sent, and that `is_first` in its socket's queue.
    pub(crate) fn take_to_send(&mut self, is_first: bool, bytes: usize) -> Option<Packet> {
        if is_first { self.pool.take_first_to_send(bytes) } else { self.pool.take_to_send(bytes) }
    }
    /// Every socket was looked at.
    fn find_level(&mut self) {
        let Shares { level_bytes, small_bytes, large, gave_way, is_desperate, .. } = self.shares;
        let usable = self.pool.limit_bytes() / 8 * 7;
        // Where nobody is near the level there is no reason to move it.
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

/// Memory that a socket's data pins, with the records of it.
fn held_bytes(socket: &Socket) -> usize {
    match socket {
        Socket::Tcp(flow) => flow.connection().held_bytes(),
        Socket::Udp(udp) => udp.held_bytes(),
        Socket::Echo(echo) => echo.held_bytes(),
        Socket::Probe(prober) => prober.held_bytes(),
        Socket::Listener(_) => 0,
    }
}
