//! What follows from what a connection says has changed.

use crate::entry::{Flow, Marks, Socket};
use crate::listener::{CHANGED, acceptable_of, embryos_of};
use crate::reply::Reply;
use crate::stack::{Stack, ready_on};
use inhost_base::{Endpoint, Instant, IpAddr, Key, LinkId};
use inhost_event::{Connected, Event, Mask, Sink, TcpPhase};
use inhost_ip::Path;
use inhost_tcp::{Changes, ConnectionError, Outcome, ResetReply};

impl Stack {
    /// Does what `outcome` asks for: timer, output, news for the application, the end.
    #[inline]
    pub(crate) fn apply(&mut self, key: Key, outcome: Outcome, now: Instant, sink: &mut dyn Sink) {
        self.follow(key, now);
        if !outcome.changes.is_empty() || outcome.dropped.is_some() || outcome.reset.is_some() {
            self.apply_changes(key, &outcome, now, sink);
        }
    }
    fn apply_changes(&mut self, key: Key, outcome: &Outcome, now: Instant, sink: &mut dyn Sink) {
        let Outcome { changes, ref dropped, ref reset } = *outcome;
        if changes.intersects(Changes::REACHED)
            && let Some(Socket::Flow(flow)) = self.sockets.at(key)
            && (!flow.goes_straight() || self.ip.has_neighbours(flow.link()))
        {
            self.ip.confirm(&flow.path(), now);
        }
        if changes.intersects(Changes::SUSPECT | Changes::CONNECTED) || dropped.is_some() || reset.is_some() {
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
            let Some(flow) = self.flow(key) else { return };
            let waits = flow.marks.any(Marks::AWAITS_DATA);
            if waits && changes.intersects(Changes::READABLE | Changes::PEER_CLOSED) {
                self.offer_to_accept(key);
            }
            if changes.intersects(Changes::PEER_CLOSED) {
                self.time_wait_began(key);
            }
            self.tell(key);
        }
        if changes.intersects(Changes::CLOSED) {
            self.finished(key, now);
        }
    }

    /// The part of it that few segments ask for.
    fn apply_rare(&mut self, key: Key, outcome: &Outcome, now: Instant, sink: &mut dyn Sink) {
        let Some(flow) = self.flow(key) else { return };
        let (link, path) = (flow.link(), flow.path());
        if let Some(why) = outcome.dropped {
            self.drop_frame(link, why, now, sink);
        }
        if let Some(reply) = outcome.reset {
            self.reset_flow(key, reply);
        }
        if outcome.changes.intersects(Changes::SUSPECT) {
            let mut environment = crate::stack::ip_environment!(self, now, sink);
            self.ip.suspect(&path, &mut environment);
        }
        if outcome.changes.intersects(Changes::CONNECTED) {
            self.connected(key, now, sink);
        }
    }
    /// Brings a flow's timer and its place among the senders in line with its connection.
    #[inline]
    pub(crate) fn follow(&mut self, key: Key, now: Instant) {
        let place = key.index();
        let Some(Socket::Flow(flow)) = self.sockets.at(key) else { return };
        let deadline = flow.connection.deadline();
        // Only an earlier deadline moves the entry; a later one is found when the entry expires.
        if deadline < self.timers.armed(place) {
            self.timers.arm(place, deadline);
        }
        if flow.connection.wants_transmit(now) && self.sending.list_of(place).is_none() {
            self.sending.push_back(ready_on(flow.link()), place);
        }
    }

    /// The timer of a flow that is in TIME-WAIT now is armed for its end at once: what it was armed for before is over,
    /// and serving it would cost more.
    fn time_wait_began(&mut self, key: Key) {
        let Some(flow) = self.flow(key) else { return };
        let until = flow.connection.deadline();
        if flow.connection.phase() == TcpPhase::TimeWait && !flow.marks.any(Marks::EXTRAS) {
            self.timers.arm(key.index(), until);
        }
    }
    /// Names a socket in the next [`Stack::ready`], unless nobody holds it.
    #[inline]
    pub(crate) fn tell(&mut self, key: Key) {
        let silent = self.flow(key).is_some_and(|flow| flow.marks.any(Marks::SILENT));
        if !silent && self.queues.list_of(key.index()).is_none() {
            self.queues.push_back(CHANGED, key.index());
        }
    }

    /// The handshake of a flow is done.
    fn connected(&mut self, key: Key, now: Instant, sink: &mut dyn Sink) {
        let Some(flow) = self.flow_mut(key) else { return };
        let (local, remote, active) = (flow.local(), flow.remote(), flow.listener().is_none());
        sink.emit(Mask::CONNECTION, now, || {
            Event::Connected(Connected { socket: key, local, remote, active })
        });
        if active {
            self.learn_fast_open(key, now);
        } else {
            self.settle_fast_open(key, false, now);
        }
        let Some(flow) = self.flow_mut(key) else { return };
        let was_embryo = flow.marks.any(Marks::EMBRYO);
        flow.marks.clear(Marks::EMBRYO);
        let (unclaimed, listener) = (flow.marks.any(Marks::UNCLAIMED), flow.listener());
        if was_embryo
            && unclaimed
            && let Some(listener) = listener
            && !self.defers_accept(key, listener, now)
        {
            self.queues.push_back(acceptable_of(listener.index()), key.index());
            self.tell(listener);
        }
    }

    /// A connection is over. Its ends are free again; the entry stays for as long as the application holds it, or may
    /// still accept it.
    fn finished(&mut self, key: Key, now: Instant) {
        self.judge_fast_open_end(key, now);
        let Some(flow) = self.flow(key) else { return };
        let (marks, error) = (flow.marks, flow.connection.error());
        self.settle_fast_open(key, error == Some(ConnectionError::Reset), now);
        let failed = error.is_some();
        self.counters.connections_failed += u64::from(failed);
        let unclaimed = marks.any(Marks::UNCLAIMED) && (failed || marks.any(Marks::EMBRYO));
        let lost = marks.any(Marks::ORPHAN) || (unclaimed && !self.is_given_out_all_the_same(key));
        if lost {
            self.reap(key);
        } else {
            self.unlist(key);
        }
    }

    /// Whether a connection that is over before it was accepted stays in its listener's queue.
    pub(crate) fn is_given_out_all_the_same(&self, key: Key) -> bool {
        let Some(listener) = self.flow(key).and_then(Flow::listener) else { return false };
        let waits = self.queues.list_of(key.index()) == Some(acceptable_of(listener.index()));
        let wanted = match self.sockets.at(listener) {
            Some(Socket::Listener(held)) => held.options.gives_out_reset,
            _ => false,
        };
        waits && wanted
    }
    /// Takes a flow out of the table of ends.
    pub(crate) fn unlist(&mut self, key: Key) {
        let Some(Socket::Flow(flow)) = self.sockets.at_mut(key) else { return };
        if !flow.marks.any(Marks::UNLISTED) {
            flow.marks.set(Marks::UNLISTED);
            self.flows.remove_hashed(flow.name_hash, key);
        }
    }

    /// Removes a flow and everything that refers to it.
    pub(crate) fn reap(&mut self, key: Key) {
        self.settle_fast_open(key, false, self.now);
        self.unlist(key);
        let place = key.index();
        self.timers.disarm(place);
        self.sending.remove(place);
        self.queues.remove(place);
        self.starved.remove(place);
        self.closing.remove(place);
        self.source_routes.remove(place);
        if self.flow(key).is_some_and(|flow| flow.marks.any(Marks::EXTRAS)) {
            self.extras.remove(&place);
        }
        if let Some(Socket::Flow(flow)) = self.sockets.at_mut(key) {
            flow.connection.clear(&mut self.pool);
            self.population.flows -= 1;
            self.population.orphans -= usize::from(flow.marks.any(Marks::ORPHAN));
            self.sockets.discard(key);
        }
    }

    /// Queues a connection's own reset.
    pub(crate) fn reset_flow(&mut self, key: Key, reply: ResetReply) {
        let Some(flow) = self.flow(key) else { return };
        let (path, local, remote) = (flow.path(), flow.local(), flow.remote());
        self.queue_reset(path, local, remote, reply);
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
        if !self.reset_limit.admit(now, &mut self.random) {
            self.counters.resets_limited += 1;
            return;
        }
        // What came in by a link is answered by it, the loopback's own included.
        if let Ok(path) = self.ip.route(remote.address, Some(local.address), Some(link), now) {
            self.queue_reset(path, local, remote, reply);
        }
    }
    fn queue_reset(&mut self, path: Path, local: Endpoint, remote: Endpoint, reply: ResetReply) {
        let mut header = reply.header();
        (header.source_port, header.destination_port) = (local.port, remote.port);
        if !self.replies.push(Reply { path, header }) {
            self.counters.resets_limited += 1;
        }
    }

    /// Where the first packet of a socket goes next, for those that wait for a neighbour.
    pub(crate) fn next_hop_of(&self, place: usize) -> Option<IpAddr> {
        match self.sockets.at(self.sockets.key_at(place)?)? {
            Socket::Flow(flow) => Some(flow.path().next_hop),
            Socket::Udp(udp) => udp.outgoing.front().map(|datagram| datagram.path.next_hop),
            Socket::Echo(echo) => echo.outgoing.front().map(|request| request.path.next_hop),
            Socket::Probe(prober) => prober.outgoing.front().map(|probe| probe.path.next_hop),
            Socket::Listener(_) => None,
        }
    }
    /// The listener's handshakes in progress.
    pub(crate) fn embryos(&self, listener: Key) -> usize {
        self.queues.count(embryos_of(listener.index()))
    }
    /// The listener's connections that can be accepted.
    pub(crate) fn acceptable(&self, listener: Key) -> usize {
        self.queues.count(acceptable_of(listener.index()))
    }
}

impl Flow {
    /// Whether the handshake is still to be done.
    pub(crate) fn is_opening(&self) -> bool {
        use inhost_event::TcpPhase;
        matches!(self.connection.phase(), TcpPhase::SynSent | TcpPhase::SynReceived)
    }
}

/// Whether a flow's connection is over for good.
pub(crate) fn is_over(flow: &Flow) -> bool {
    flow.connection.phase() == inhost_event::TcpPhase::Closed
}
