//! Closing connections and listeners.

use crate::flows::orphans::{abort_flow, end_an_orphan};
use crate::flows::outcome::apply;
use crate::network::Network;
use crate::resources::Environment;
use crate::socket::{ListenerId, TcpSocketId};
use crate::sockets::Sockets;
use crate::tcp::TcpSocketFlags;
use inhost_base::Duration;

/// Closes a connection. It becomes an orphan; where these are too many by it, one of them goes: `key` itself only when it
/// is the worst of those looked at.
pub(crate) fn close_flow(
    sockets: &mut Sockets,
    network: &mut Network,
    key: TcpSocketId,
    env: &mut Environment<'_>,
) {
    sockets.schedule_mut().cancel_notice(key.place());
    let Some(flow) = sockets.tcp(key) else { return };
    if flow.is_over() {
        return sockets.reap(key, env.resources());
    }
    if flow.has(TcpSocketFlags::HELD) || sockets.optional().linger(key) == Some(Duration::ZERO) {
        return abort_flow(sockets, network, key, env);
    }
    if sockets.set_orphan(key) {
        end_an_orphan(sockets, network, env);
    }
    let Some(flow) = sockets.tcp(key) else { return };
    if flow.has(TcpSocketFlags::OPTIONAL_STATE)
        && let Some(linger) = sockets.optional().linger(key)
    {
        // Data not delivered by then is lost, and the peer gets a reset.
        sockets.look_at(key, env.now() + linger);
    }
    let Some(flow) = sockets.tcp_mut(key) else { return };
    // spec: RFC9293 SHLD-3
    let outcome = flow.connection_mut().detach(&mut env.tcp(key.key()));
    apply(sockets, network, key, outcome, env);
}

/// Closes a listener, and resets the connections in its queues, unless the half-open ones are to end in silence.
pub(crate) fn close_listener(
    sockets: &mut Sockets,
    network: &mut Network,
    id: ListenerId,
    env: &mut Environment<'_>,
) {
    while let Some(place) = sockets.listening_mut().pop_any(id) {
        if let Some(flow) = sockets.tcp_at_place(place) {
            abort_flow(sockets, network, flow, env);
        }
    }
    sockets.remove_listener(id);
}
