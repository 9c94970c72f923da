//! Applies the outcome of a connection to the parts of the host.

use crate::environment::Environment;
use crate::resources::Resources;
use crate::socket::TcpSocketId;
use crate::sockets::Sockets;
use crate::tcp::TcpSocketFlags;
use inhost_base::Instant;
use inhost_event::{Connected, Event, Mask};
use inhost_tcp::{Changes, ConnectionError, FastOpenState, Outcome};

/// Does what `outcome` asks for: timer, output, news for the application, the end.
#[inline]
pub(crate) fn apply(sockets: &mut Sockets, key: TcpSocketId, outcome: &Outcome, env: &mut Environment<'_>) {
    if outcome.dropped.is_some() || outcome.reset.is_some() {
        refuse(sockets, key, outcome, env);
    }
    sockets.reschedule(key, env.now());
    if !outcome.changes.is_empty() {
        tell(sockets, key, outcome.changes, env);
    }
}

/// Counts a segment that was dropped, and sends the reset that answers it.
#[cold]
#[inline(never)]
fn refuse(sockets: &Sockets, key: TcpSocketId, outcome: &Outcome, env: &mut Environment<'_>) {
    let Some(flow) = sockets.tcp(key) else { return };
    if let Some(why) = outcome.dropped {
        env.drop_frame(flow.link(), why);
    }
    if let Some(reply) = outcome.reset {
        env.reset(flow.path(), &flow.name(), reply);
    }
}

/// Tells what has changed.
#[inline(never)]
pub(crate) fn tell(sockets: &mut Sockets, key: TcpSocketId, changes: Changes, env: &mut Environment<'_>) {
    if changes.intersects(Changes::REACHED)
        && let Some(flow) = sockets.tcp(key)
        && (!flow.is_on_link() || env.paths().has_neighbours(flow.link()))
    {
        let now = env.now();
        env.paths_mut().confirm(&flow.path(), now);
    }
    if changes.intersects(Changes::SUSPECT | Changes::CONNECTED | Changes::ENDED) {
        tell_rare(sockets, key, changes, env);
    }
    let told = Changes::all().difference(Changes::REACHED | Changes::SUSPECT | Changes::ENDED);
    if changes.intersects(told) {
        let Some(flow) = sockets.tcp(key) else { return };
        let waits = flow.has(TcpSocketFlags::AWAITS_DATA);
        if waits && changes.intersects(Changes::READABLE | Changes::PEER_CLOSED) {
            sockets.offer_to_accept(key);
        }
        if changes.intersects(Changes::PEER_CLOSED) {
            sockets.time_wait_began(key);
        }
        if changes.intersects(Changes::WRITABLE) {
            sockets.schedule_mut().has_room(key.place());
        }
        sockets.notify(key.into());
    }
    if changes.intersects(Changes::CLOSED) {
        finished(sockets, key, env.now(), env.resources());
    }
}

/// The part of it that few segments ask for.
#[inline(never)]
fn tell_rare(sockets: &mut Sockets, key: TcpSocketId, changes: Changes, env: &mut Environment<'_>) {
    let Some(flow) = sockets.tcp(key) else { return };
    if changes.intersects(Changes::SUSPECT) {
        let path = flow.path();
        let (ip, mut environment) = env.ip();
        ip.paths_mut().suspect(&path, &mut environment);
    }
    if changes.intersects(Changes::CONNECTED) {
        connected(sockets, key, env);
    }
    if changes.intersects(Changes::ENDED) {
        sockets.ended(key, env.now(), env.sink());
    }
}

/// The handshake of a flow is done.
fn connected(sockets: &mut Sockets, key: TcpSocketId, env: &mut Environment<'_>) {
    let now = env.now();
    let Some(flow) = sockets.tcp(key) else { return };
    let (local, remote, active) = (flow.local(), flow.remote(), flow.listener().is_none());
    env.sink().emit(Mask::CONNECTION, now, || {
        Event::Connected(Connected { socket: key.key(), local, remote, active })
    });
    if active {
        learn_fast_open(sockets, key, now, env.resources());
    } else {
        sockets.update_fast_open(key, false, now);
    }
    sockets.handshake_done(key, now);
}

/// Learns from the answer to a call of ours.
fn learn_fast_open(sockets: &mut Sockets, key: TcpSocketId, now: Instant, resources: &mut Resources) {
    let Some(flow) = sockets.tcp_mut(key) else { return };
    let remote = flow.remote().address;
    let Some(answer) = flow.connection_mut().take_fast_open_answer() else { return };
    match answer.state {
        FastOpenState::DataAcknowledged => resources.counters_mut().fast_opens_acknowledged += 1,
        FastOpenState::DataRefused => resources.counters_mut().fast_opens_refused += 1,
        _ => {}
    }
    sockets.listening_mut().fast_open().learn(remote, &answer, now);
}

/// A connection is over. Its ends are free again; the entry stays for as long as the application holds it, or may
/// still accept it.
#[inline(never)]
fn finished(sockets: &mut Sockets, key: TcpSocketId, now: Instant, resources: &mut Resources) {
    let Some(flow) = sockets.tcp(key) else { return };
    let (flags, error) = (flow.flags(), flow.connection().error());
    if flow.listener().is_none() {
        let pauses = sockets.decide_experiment(key, now);
        resources.counters_mut().fast_open_pauses += u64::from(pauses);
    }
    sockets.update_fast_open(key, error == Some(ConnectionError::Reset), now);
    let failed = error.is_some();
    resources.counters_mut().connections_failed += u64::from(failed);
    let unclaimed =
        flags.contains(TcpSocketFlags::UNCLAIMED) && (failed || flags.contains(TcpSocketFlags::HALF_OPEN));
    let lost =
        flags.contains(TcpSocketFlags::ORPHAN) || (unclaimed && !sockets.is_given_out_all_the_same(key));
    if lost {
        sockets.reap(key, resources);
    } else {
        sockets.unlist_tcp(key);
    }
}
