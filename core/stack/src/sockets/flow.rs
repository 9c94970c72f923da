//! Connections among the sockets: timers, notices, optional state, removal.

use crate::demux::Name;
use crate::resources::Resources;
use crate::schedule::Schedule;
use crate::socket::TcpSocketId;
use crate::sockets::{Socket, Sockets};
use crate::tcp::{TcpSocket, TcpSocketFlags, Times};
use alloc::boxed::Box;
use inhost_base::Instant;
use inhost_datagram::SocketError;
use inhost_event::{Ended, Event, Mask, Sink, TcpState};
use inhost_ip::SourceRoute;
use inhost_tcp::{Connection, ConnectionError, Environment};

impl Sockets {
    /// A connection whose SYN is held.
    pub(crate) fn held_back_mut(&mut self, socket: TcpSocketId) -> Result<&mut TcpSocket, SocketError> {
        let flow = self.tcp_mut(socket).ok_or(SocketError::NoSocket)?;
        let is_held = flow.has(TcpSocketFlags::HELD) && !flow.has(TcpSocketFlags::SILENT);
        if is_held { Ok(flow) } else { Err(SocketError::WrongKind) }
    }
    /// Lets the application call a connection that it holds.
    #[inline(always)]
    pub(crate) fn call<R, E: From<SocketError>>(
        &mut self,
        key: TcpSocketId,
        env: &mut Environment<'_>,
        call: impl FnOnce(&mut Connection, &mut Environment<'_>) -> Result<R, E>,
    ) -> Result<R, E> {
        let Sockets { slab, schedule, .. } = self;
        let Some(Socket::Tcp(flow)) = slab.at_mut(key.key()) else {
            return Err(SocketError::NoSocket.into());
        };
        if flow.has(TcpSocketFlags::SILENT) {
            return Err(SocketError::NoSocket.into());
        }
        let result = call(flow.connection_mut(), env);
        // An application that reads first has no data for the SYN.
        flow.release_deferred(env);
        // What a call brings forward is for sending: where that is done at once, the timer is set after the turn.
        match flow.connection().wants_transmit(env.now()) {
            true => schedule.keep_sender(flow.link(), key.place()),
            false => schedule.arm_no_later(key.place(), flow.connection().deadline()),
        }
        result
    }
    /// Lets a step of a pass change a connection.
    #[inline(always)]
    pub(crate) fn change<R>(
        &mut self,
        key: TcpSocketId,
        now: Instant,
        change: impl FnOnce(&mut Connection) -> R,
    ) -> Option<R> {
        let Sockets { slab, schedule, .. } = self;
        let Some(Socket::Tcp(flow)) = slab.at_mut(key.key()) else { return None };
        let result = change(flow.connection_mut());
        follow(schedule, flow, key.place(), now);
        Some(result)
    }
    /// Brings a flow's timer and its place among the senders in line with its connection.
    #[inline]
    pub(crate) fn reschedule(&mut self, key: TcpSocketId, now: Instant) {
        if let Some(Socket::Tcp(flow)) = self.slab.at(key.key()) {
            follow(&mut self.schedule, flow, key.place(), now);
        }
    }
    /// Arms the timer of a connection in TIME-WAIT for its end. Earlier deadlines no longer apply, and letting them
    /// expire would cost more.
    pub(crate) fn time_wait_began(&mut self, key: TcpSocketId) {
        let Some(flow) = self.tcp(key) else { return };
        let until = flow.connection().deadline();
        if flow.connection().state() == TcpState::TimeWait && !flow.has(TcpSocketFlags::OPTIONAL_STATE) {
            self.schedule.arm(key.place(), until);
        }
    }
    /// Tells what a connection was. A handshake that a listener waits for in vain is not one: who floods it makes no
    /// records.
    pub(crate) fn ended(&self, key: TcpSocketId, now: Instant, sink: &mut dyn Sink) {
        let Some(flow) = self.tcp(key) else { return };
        if flow.has(TcpSocketFlags::HALF_OPEN) {
            return;
        }
        sink.emit(Mask::ENDED, now, || {
            let info = flow.connection().info(now);
            Event::Ended(Box::new(Ended {
                socket: key.key(),
                local: flow.local(),
                remote: flow.remote(),
                active: flow.listener().is_none(),
                age: info.age,
                sent_bytes: info.sent_bytes,
                received_bytes: info.received_bytes,
                retransmitted_segments: info.retransmitted_segments,
                retransmitted_bytes: info.retransmitted_bytes,
                timeouts: info.timeouts,
                smoothed_round_trip: info.smoothed_round_trip,
                error: info.error.map(ConnectionError::text),
                ledgers: info.ledgers,
            }))
        });
    }
    /// Removes a flow and everything that refers to it.
    pub(crate) fn reap(&mut self, key: TcpSocketId, resources: &mut Resources) {
        self.update_fast_open(key, false, resources.now());
        self.unlist_tcp(key);
        self.schedule.forget(key.place());
        self.listening.forget(key);
        let Some(flow) = self.tcp_mut(key) else { return };
        flow.connection_mut().clear(resources.pool_mut());
        let has_times = flow.has(TcpSocketFlags::OPTIONAL_STATE);
        self.optional.forget(key, has_times);
        self.discard_tcp(key);
    }
    /// Ends an orphan in TIME-WAIT in favour of an active open with the same endpoints, which happens only when the
    /// application chose its port. The initial sequence number has moved on since, so that old segments do not fit (RFC
    /// 9293 §3.4.3). True when the endpoints are free.
    pub(crate) fn replace_time_wait(&mut self, name: &Name, now: Instant, resources: &mut Resources) -> bool {
        let Some(key) = self.find_tcp(name) else { return true };
        let Some(flow) = self.tcp(key) else { return true };
        let next = flow.connection().info(now).send_next;
        let (initial, _) = self.initial_sequence(name, now);
        let safe = next.precedes(initial) && flow.has(TcpSocketFlags::ORPHAN);
        let gives_way = safe && flow.connection().state() == TcpState::TimeWait;
        if gives_way {
            resources.counters_mut().time_wait_reused += 1;
            self.reap(key, resources);
        }
        gives_way
    }

    /// The optional times of a connection, to change.
    pub(crate) fn times_mut(&mut self, key: TcpSocketId) -> &mut Times {
        if let Some(flow) = self.tcp_mut(key) {
            flow.set(TcpSocketFlags::OPTIONAL_STATE, true);
        }
        self.optional.times_mut(key)
    }
    /// Sets the instant at which the optional state of a connection is looked at, if nothing clears it before.
    pub(crate) fn look_at(&mut self, key: TcpSocketId, until: Instant) {
        self.times_mut(key).until = Some(until);
        self.schedule.arm_no_later(key.place(), until);
    }
    /// Keeps the source route of a connection.
    pub(crate) fn set_route(&mut self, key: TcpSocketId, route: Option<SourceRoute>) {
        if let Some(route) = route {
            self.optional.set_route(key, route);
        }
    }
    /// Counts a connection among the orphans. Whether they are too many by it.
    pub(crate) fn set_orphan(&mut self, key: TcpSocketId) -> bool {
        let Some(flow) = self.tcp_mut(key) else { return false };
        flow.set(TcpSocketFlags::ORPHAN, true);
        self.schedule.add_orphan(key.place());
        self.schedule.orphans() > self.orphan_limit
    }
}

/// Brings a flow's timer and its place among the senders in line with its connection.
#[inline(always)]
fn follow(schedule: &mut Schedule, flow: &TcpSocket, place: usize, now: Instant) {
    // Only an earlier deadline moves the entry; a later one is found when the entry expires.
    schedule.arm_no_later(place, flow.connection().deadline());
    if flow.connection().wants_transmit(now) {
        schedule.keep_sender(flow.link(), place);
    }
}
