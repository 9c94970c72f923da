//! Applies the outcome of a connection to the parts of the host.

use crate::parts::Parts;
use crate::sockets::{AnySocketId, SocketId, TcpSocketFlags, TcpSocketId};
use alloc::boxed::Box;
use inhost_base::{Endpoint, Instant, LinkId};
use inhost_event::{Connected, Ended, Event, Mask, Sink, TcpState};
use inhost_tcp::{Changes, ConnectionError, FastOpenState, Outcome, ResetReply};

impl Parts {
    /// Does what `outcome` asks for: timer, output, news for the application, the end.
    #[inline]
    pub(crate) fn apply(&mut self, key: TcpSocketId, outcome: Outcome, now: Instant, sink: &mut dyn Sink) {
        self.reschedule(key, now);
        if !outcome.changes.is_empty() || outcome.dropped.is_some() || outcome.reset.is_some() {
            self.apply_changes(key, &outcome, now, sink);
        }
    }
    fn apply_changes(&mut self, key: TcpSocketId, outcome: &Outcome, now: Instant, sink: &mut dyn Sink) {
        let Outcome { changes, ref dropped, ref reset } = *outcome;
        if changes.intersects(Changes::REACHED)
            && let Some(flow) = self.sockets.tcp(key)
            && (!flow.is_on_link() || self.ip.paths().has_neighbours(flow.link()))
        {
            self.ip.paths_mut().confirm(&flow.path(), now);
        }
        if changes.intersects(Changes::SUSPECT | Changes::CONNECTED | Changes::ENDED)
            || dropped.is_some()
            || reset.is_some()
        {
            self.apply_rare(key, outcome, now, sink);
        }
        let told = Changes::READABLE
            | Changes::WRITABLE
            | Changes::CONNECTED
            | Changes::PEER_CLOSED
            | Changes::URGENT
            | Changes::ERROR
            | Changes::CLOSED;
        if changes.intersects(told) {
            let Some(flow) = self.sockets.tcp(key) else { return };
            let waits = flow.has(TcpSocketFlags::AWAITS_DATA);
            if waits && changes.intersects(Changes::READABLE | Changes::PEER_CLOSED) {
                self.offer_to_accept(key);
            }
            if changes.intersects(Changes::PEER_CLOSED) {
                self.time_wait_began(key);
            }
            self.notify_tcp(key);
        }
        if changes.intersects(Changes::CLOSED) {
            self.finished(key, now);
        }
    }

    /// The part of it that few segments ask for.
    #[inline(never)]
    fn apply_rare(&mut self, key: TcpSocketId, outcome: &Outcome, now: Instant, sink: &mut dyn Sink) {
        let Some(flow) = self.sockets.tcp(key) else { return };
        let (link, path) = (flow.link(), flow.path());
        if let Some(why) = outcome.dropped {
            self.links.drop_frame(link, why, now, sink);
        }
        if let Some(reply) = outcome.reset {
            self.reset_flow(key, reply);
        }
        if outcome.changes.intersects(Changes::SUSPECT) {
            let mut environment = crate::parts::ip_environment!(self, now, sink);
            self.ip.paths_mut().suspect(&path, &mut environment);
        }
        if outcome.changes.intersects(Changes::CONNECTED) {
            self.connected(key, now, sink);
        }
        if outcome.changes.intersects(Changes::ENDED) {
            self.ended(key, now, sink);
        }
    }
    /// Brings a flow's timer and its place among the senders in line with its connection.
    #[inline]
    pub(crate) fn reschedule(&mut self, key: TcpSocketId, now: Instant) {
        if let Some(flow) = self.sockets.tcp(key) {
            self.schedule.reschedule(key.place(), flow, now);
        }
    }

    /// Arms the timer of a connection in TIME-WAIT for its end. Earlier deadlines no longer apply, and letting them
    /// expire would cost more.
    fn time_wait_began(&mut self, key: TcpSocketId) {
        let Some(flow) = self.sockets.tcp(key) else { return };
        let until = flow.connection().deadline();
        if flow.connection().state() == TcpState::TimeWait && !flow.has(TcpSocketFlags::OPTIONAL_STATE) {
            self.schedule.arm(key.place(), until);
        }
    }
    /// Queues a readiness notice for [`crate::Stack::ready`], unless the connection is an orphan.
    #[inline]
    pub(crate) fn notify_tcp(&mut self, key: TcpSocketId) {
        if !self.sockets.tcp(key).is_some_and(|flow| flow.has(TcpSocketFlags::SILENT)) {
            self.notify(key.into());
        }
    }
    /// Queues a readiness notice of a socket of any kind, unless it is an orphan.
    pub(crate) fn notify_holder(&mut self, socket: SocketId) {
        match self.sockets.typed(socket) {
            Some(AnySocketId::Tcp(key)) => self.notify_tcp(key),
            Some(_) => self.notify(socket),
            None => {}
        }
    }
    /// Names a socket in the next [`crate::Stack::ready`].
    #[inline]
    pub(crate) fn notify(&mut self, socket: SocketId) {
        self.schedule.notify(socket.0.index());
    }

    /// The handshake of a flow is done.
    fn connected(&mut self, key: TcpSocketId, now: Instant, sink: &mut dyn Sink) {
        let Some(flow) = self.sockets.tcp_mut(key) else { return };
        let (local, remote, active) = (flow.local(), flow.remote(), flow.listener().is_none());
        sink.emit(Mask::CONNECTION, now, || {
            Event::Connected(Connected { socket: key.key(), local, remote, active })
        });
        if active {
            self.learn_fast_open(key, now);
        } else {
            self.update_fast_open(key, false, now);
        }
        let Some(flow) = self.sockets.tcp_mut(key) else { return };
        let was_half_open = flow.has(TcpSocketFlags::HALF_OPEN);
        flow.clear(TcpSocketFlags::HALF_OPEN);
        let (unclaimed, listener) = (flow.has(TcpSocketFlags::UNCLAIMED), flow.listener());
        if was_half_open
            && unclaimed
            && let Some(listener) = listener
            && !self.defers_accept(key, listener, now)
        {
            self.listening.add_acceptable(listener, key);
            self.notify(listener.into());
        }
    }

    /// Tells what a connection was. A handshake that a listener waits for in vain is not one: who floods it makes no
    /// records.
    pub(crate) fn ended(&self, key: TcpSocketId, now: Instant, sink: &mut dyn Sink) {
        let Some(flow) = self.sockets.tcp(key) else { return };
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
                send: info.ledgers.send.times(),
                receive: info.ledgers.receive.times(),
            }))
        });
    }
    /// Learns from the answer to a call of ours.
    fn learn_fast_open(&mut self, key: TcpSocketId, now: Instant) {
        let Some(flow) = self.sockets.tcp_mut(key) else { return };
        let remote = flow.remote().address;
        let Some(answer) = flow.connection_mut().opening().take_fast_open_answer() else { return };
        match answer.state {
            FastOpenState::DataAcknowledged => self.counters.fast_opens_acknowledged += 1,
            FastOpenState::DataRefused => self.counters.fast_opens_refused += 1,
            _ => {}
        }
        let limit = self.config.fast_open.destinations_limit;
        self.listening.fast_open().learn(remote, &answer, limit, now);
    }

    /// A connection is over. Its ends are free again; the entry stays for as long as the application holds it, or may
    /// still accept it.
    #[inline(never)]
    fn finished(&mut self, key: TcpSocketId, now: Instant) {
        let Some(flow) = self.sockets.tcp(key) else { return };
        if flow.listener().is_none() {
            let config = &self.config.fast_open;
            let pauses = self.listening.fast_open().decide_experiment(flow, config, now);
            self.counters.fast_open_pauses += u64::from(pauses);
        }
        let (flags, error) = (flow.flags(), flow.connection().error());
        self.update_fast_open(key, error == Some(ConnectionError::Reset), now);
        let failed = error.is_some();
        self.counters.connections_failed += u64::from(failed);
        let unclaimed =
            flags.any(TcpSocketFlags::UNCLAIMED) && (failed || flags.any(TcpSocketFlags::HALF_OPEN));
        let lost = flags.any(TcpSocketFlags::ORPHAN) || (unclaimed && !self.is_given_out_all_the_same(key));
        if lost {
            self.reap(key);
        } else {
            self.demux.unlist_tcp(&mut self.sockets, key);
        }
    }
    /// Removes a flow and everything that refers to it.
    pub(crate) fn reap(&mut self, key: TcpSocketId) {
        self.update_fast_open(key, false, self.now);
        self.demux.unlist_tcp(&mut self.sockets, key);
        let place = key.place();
        self.schedule.forget(place);
        self.listening.forget(key);
        self.memory.forget(place);
        self.source_routes.remove(place);
        if self.sockets.tcp(key).is_some_and(|flow| flow.has(TcpSocketFlags::OPTIONAL_STATE)) {
            self.optional.forget(key);
        }
        if let Some(flow) = self.sockets.tcp_mut(key) {
            flow.connection_mut().clear(self.memory.pool_mut());
            self.sockets.discard_tcp(key);
        }
    }
    /// Queues a connection's own reset.
    pub(crate) fn reset_flow(&mut self, key: TcpSocketId, reset: ResetReply) {
        let Some(flow) = self.sockets.tcp(key) else { return };
        let fits = self.replies.push_reset(flow.path(), flow.local(), flow.remote(), reset);
        self.counters.resets_limited += u64::from(!fits);
    }
    /// Answers a segment that came in on `link` with a reset, as far as the rate allows.
    pub(crate) fn answer_with_reset(
        &mut self,
        link: LinkId,
        local: Endpoint,
        remote: Endpoint,
        reply: ResetReply,
        now: Instant,
    ) {
        if !self.replies.admits_reset(now, &mut self.random) {
            self.counters.resets_limited += 1;
            return;
        }
        // A segment is answered on the link that it came in by, the loopback included.
        if let Ok(path) = self.ip.paths_mut().route(remote.address, Some(local.address), Some(link), now) {
            let fits = self.replies.push_reset(path, local, remote, reply);
            self.counters.resets_limited += u64::from(!fits);
        }
    }
    /// Sets the instant at which [`Parts::optional_expired`] looks at a connection, if nothing clears it before.
    pub(crate) fn look_at(&mut self, key: TcpSocketId, until: Instant) {
        self.optional.set_until(&mut self.sockets, key, Some(until));
        self.schedule.arm_no_later(key.place(), until);
    }

    /// The instant has come: true when the connection is gone.
    pub(crate) fn optional_expired(&mut self, key: TcpSocketId, now: Instant, sink: &mut dyn Sink) -> bool {
        if now < self.optional.until(key) {
            return false;
        }
        self.optional.set_until(&mut self.sockets, key, None);
        let Some(flow) = self.sockets.tcp(key) else { return true };
        let undelivered = matches!(
            flow.connection().state(),
            TcpState::SynSent
                | TcpState::SynReceived
                | TcpState::FinWait1
                | TcpState::Closing
                | TcpState::LastAck
        );
        if flow.has(TcpSocketFlags::AWAITS_DATA) {
            self.offer_to_accept(key);
        } else if flow.has(TcpSocketFlags::ORPHAN) && undelivered {
            self.abort_flow(key, now, sink);
            return true;
        }
        false
    }
}
