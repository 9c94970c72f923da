//! Closing connections and listeners. Orphans are connections that the application has closed and that still send. Their
//! number is limited; at the limit one is reset.

use crate::environment::Environment;
use crate::flows::outcome::apply;
use crate::socket::{ListenerId, TcpSocketId};
use crate::sockets::Sockets;
use crate::tcp::TcpSocketFlags;
use inhost_base::Duration;
use inhost_event::TcpState;
use inhost_tcp::Changes;

/// Orphans that are looked at when there are too many.
const LOOKED_AT: usize = 64;

/// Closes a connection. It becomes an orphan; where these are too many by it, one of them goes: `key` itself only when it
/// is the worst of those looked at.
pub(crate) fn close_flow(sockets: &mut Sockets, key: TcpSocketId, env: &mut Environment<'_>) {
    sockets.schedule_mut().cancel_notice(key.place());
    let Some(flow) = sockets.tcp(key) else { return };
    if flow.connection().state() == TcpState::Closed {
        return sockets.reap(key, env.resources());
    }
    let has_optional = flow.has(TcpSocketFlags::OPTIONAL_STATE);
    let linger = if has_optional { sockets.optional().linger(key) } else { None };
    if flow.has(TcpSocketFlags::HELD) || linger == Some(Duration::ZERO) {
        return abort_flow(sockets, key, env);
    }
    if sockets.set_orphan(key) {
        end_an_orphan(sockets, env);
        if sockets.tcp(key).is_none() {
            return;
        }
    }
    if let Some(linger) = linger {
        // Data not delivered by then is lost, and the peer gets a reset.
        sockets.look_at(key, env.now() + linger);
    }
    let Some(flow) = sockets.tcp_mut(key) else { return };
    // spec: RFC9293 SHLD-3
    let outcome = flow.connection_mut().detach(&mut env.tcp(key.key()));
    apply(sockets, key, &outcome, env);
}

/// Closes a listener, and resets the connections in its queues, unless the half-open ones are to end in silence.
pub(crate) fn close_listener(sockets: &mut Sockets, id: ListenerId, env: &mut Environment<'_>) {
    while let Some(place) = sockets.listening_mut().pop_any(id) {
        if let Some(flow) = sockets.tcp_at_place(place) {
            abort_flow(sockets, flow, env);
        }
    }
    sockets.remove_listener(id);
}

/// Ends an orphan. TIME-WAIT comes first: it guards against a rare case, while a reset loses data. Next comes a
/// connection with a closed window, then the one without progress for longest.
fn end_an_orphan(sockets: &mut Sockets, env: &mut Environment<'_>) {
    let mut worst: Option<((bool, Duration), TcpSocketId)> = None;
    for _ in 0..LOOKED_AT.min(sockets.schedule().orphans()) {
        let Some(place) = sockets.schedule_mut().next_orphan() else { break };
        let Some(key) = sockets.tcp_at_place(place) else { continue };
        let Some(flow) = sockets.tcp(key) else { continue };
        let connection = flow.connection();
        if connection.state() == TcpState::TimeWait {
            env.counters().time_waits_cut_short += 1;
            return sockets.reap(key, env.resources());
        }
        let rank = (
            connection.sender().waits_behind_closed_window(),
            env.now().since(connection.sender().progress_at()),
        );
        if worst.is_none_or(|(most, _)| rank > most) {
            worst = Some((rank, key));
        }
    }
    let Some((_, key)) = worst else { return };
    env.counters().orphans_aborted += 1;
    abort_flow(sockets, key, env);
}

/// Resets a flow and removes it.
pub(crate) fn abort_flow(sockets: &mut Sockets, key: TcpSocketId, env: &mut Environment<'_>) {
    let Some(flow) = sockets.tcp_mut(key) else { return };
    let outcome = flow.connection_mut().abort(&mut env.tcp(key.key()));
    if let Some(reply) = outcome.reset {
        env.reset(flow.path(), &flow.name(), reply);
    }
    if outcome.changes.intersects(Changes::ENDED) {
        sockets.ended(key, env.now(), env.sink());
    }
    sockets.reap(key, env.resources());
}
