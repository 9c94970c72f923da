//! Connections that a listener took: what they inherit, and their way from the SYN queue to `accept`.

use crate::demux::Name;
use crate::environment::Environment;
use crate::listen::Verdict;
use crate::socket::{ConnectionOptions, ListenerId, TcpSocketId};
use crate::sockets::{Socket, Sockets};
use crate::tcp::{TcpSocket, TcpSocketFlags};
use inhost_base::Instant;
use inhost_event::{Drop, TcpState};
use inhost_tcp::Header;

impl Sockets {
    /// Gives a connection what its listener was asked for.
    pub(crate) fn inherit(&mut self, key: TcpSocketId, listener: ListenerId) {
        let Some(held) = self.listener(listener) else { return };
        let &ConnectionOptions { linger, differentiated_services, hop_limit, dont_fragment, .. } =
            held.inherited();
        if let Some(flow) = self.tcp_mut(key) {
            flow.set_traffic_class(differentiated_services << 2);
            flow.set_hop_limit(hop_limit);
            flow.set(TcpSocketFlags::FRAGMENTS, !dont_fragment);
        }
        if linger.is_some() {
            self.times_mut(key).linger = linger;
        }
    }
    /// Whether a listener has as many connections to accept as it may.
    pub(crate) fn is_backlog_full(&self, listener: ListenerId) -> bool {
        self.listener(listener).is_some_and(|held| self.listening.acceptable(listener) >= held.backlog())
    }
    /// Lets a connection be accepted.
    pub(crate) fn add_acceptable(&mut self, listener: ListenerId, key: TcpSocketId) {
        self.listening.add_acceptable(listener, key);
        self.notify(listener.into());
    }
    /// The handshake of a connection that was opened fast is done, or the connection is over.
    pub(crate) fn update_fast_open(&mut self, key: TcpSocketId, was_reset: bool, now: Instant) {
        let Some(flow) = self.tcp_mut(key) else { return };
        if !flow.has(TcpSocketFlags::FAST_OPEN) {
            return;
        }
        flow.set(TcpSocketFlags::FAST_OPEN, false);
        let Some(listener) = flow.listener() else { return };
        if let Some(held) = self.listener_mut(listener) {
            held.end_fast_open(was_reset, now);
        }
    }
    /// Decides about the Fast Open option and the data of a SYN.
    // RFC 7413 §4.1.2, §4.2.2
    pub(crate) fn decide_fast_open(
        &mut self,
        listener: ListenerId,
        syn: &Header,
        name: &Name,
        has_data: bool,
        env: &mut Environment<'_>,
    ) -> Verdict {
        let Sockets { slab, listening, .. } = self;
        let Some(Socket::Listener(held)) = slab.at_mut(listener.key()) else { return Verdict::default() };
        let (now, options) = (env.now(), held.options());
        if options.fast_open_queue == 0 || options.hold_syn {
            return Verdict::default();
        }
        let asked = syn.options.fast_open;
        let without_cookie = options.fast_open_without_cookie && (has_data || asked.is_some());
        let (mut accepts, mut grants) = (without_cookie, None);
        if let Some(cookie) = asked.filter(|_| !without_cookie) {
            let (holds, current) = listening.fast_open().judge(&cookie, name, now, env.random());
            accepts = holds;
            grants = (cookie != current).then_some((current, syn.options.fast_open_experimental));
        }
        if accepts && !held.begin_fast_open(now) {
            env.counters().fast_opens_over_limit += 1;
            return Verdict::default();
        }
        env.counters().fast_open_cookies_granted += u64::from(grants.is_some());
        env.counters().fast_opens_accepted += u64::from(accepts);
        Verdict { accepts, grants }
    }
    /// Checks the end of a connection that we called for.
    pub(crate) fn decide_experiment(&mut self, key: TcpSocketId, now: Instant) -> bool {
        match self.slab.at(key.key()) {
            Some(Socket::Tcp(flow)) => self.listening.fast_open().decide_experiment(flow, now),
            _ => false,
        }
    }
    /// The handshake of a connection is done: it can be accepted, or its listener wants it to have data first.
    pub(crate) fn handshake_done(&mut self, key: TcpSocketId, now: Instant) {
        let Some(flow) = self.tcp_mut(key) else { return };
        let was_half_open = flow.has(TcpSocketFlags::HALF_OPEN);
        flow.set(TcpSocketFlags::HALF_OPEN, false);
        let (unclaimed, listener) = (flow.has(TcpSocketFlags::UNCLAIMED), flow.listener());
        if was_half_open
            && unclaimed
            && let Some(listener) = listener
            && !self.defers_accept(key, listener, now)
        {
            self.add_acceptable(listener, key);
        }
    }
    /// A connection whose handshake is done waits among the handshakes until it has data, when its listener wants it
    /// so: true when it does.
    fn defers_accept(&mut self, key: TcpSocketId, listener: ListenerId, now: Instant) -> bool {
        let Some(held) = self.listener(listener) else { return false };
        let Some(timeout) = held.options().defer_accept else { return false };
        let Some(flow) = self.tcp_mut(key) else { return false };
        if flow.connection().receiver().readable_bytes() > 0
            || flow.connection().state() != TcpState::Established
        {
            return false;
        }
        flow.set(TcpSocketFlags::AWAITS_DATA.union(TcpSocketFlags::HALF_OPEN), true);
        self.listening.add_half_open(listener, key);
        self.look_at(key, now + timeout);
        true
    }
    /// The wait for the first data is over.
    pub(crate) fn offer_to_accept(&mut self, key: TcpSocketId) {
        let Some(flow) = self.tcp_mut(key) else { return };
        flow.set(TcpSocketFlags::AWAITS_DATA.union(TcpSocketFlags::HALF_OPEN), false);
        let Some(listener) = flow.listener() else { return };
        self.times_mut(key).until = None;
        self.add_acceptable(listener, key);
    }
    /// Whether a connection that is over before it was accepted stays in its listener's queue.
    pub(crate) fn is_given_out_all_the_same(&self, key: TcpSocketId) -> bool {
        let Some(listener) = self.tcp(key).and_then(TcpSocket::listener) else { return false };
        let waits = self.listening.is_acceptable(listener, key);
        let wanted = self.listener(listener).is_some_and(|held| held.options().gives_out_reset);
        waits && wanted
    }
    /// Checks a segment before a half-open connection receives it.
    pub(crate) fn check_half_open(&self, key: TcpSocketId, header: &Header) -> Result<(), Drop> {
        let Some(flow) = self.tcp(key) else { return Err(Drop::NoSocket) };
        if header.flags.rst() || !flow.has(TcpSocketFlags::CHECK_INPUT) {
            return Ok(());
        }
        // Nothing was answered yet, so nothing but the SYN once more, or a mistake, can come.
        if flow.has(TcpSocketFlags::HELD) {
            return Err(Drop::NotCredible);
        }
        // The last step of the handshake waits for room to be accepted in; the caller sends it again.
        let full = flow.listener().is_some_and(|listener| self.is_backlog_full(listener));
        if flow.has(TcpSocketFlags::UNCLAIMED) && header.flags.ack() && full {
            return Err(Drop::QueueFull);
        }
        Ok(())
    }
    /// Removes a listener whose queues are empty.
    pub(crate) fn remove_listener(&mut self, id: ListenerId) {
        self.unbind(id.into());
        self.schedule.cancel_notice(id.place());
        self.remove(id.into());
    }
}
