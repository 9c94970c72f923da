//! Connections while memory is short: what each may hold, and who has to give memory up.

use crate::environment::Environment;
use crate::flows::outcome::apply;
use crate::socket::TcpSocketId;
use crate::sockets::{Socket, Sockets};
use crate::tcp::TcpSocket;

/// Sockets that one call checks while memory is short.
const LOOKED_AT: usize = 8;

/// Whether a connection that receives holds more than its share while memory is short.
#[cold]
pub(crate) fn takes_more_than_its_share(
    sockets: &mut Sockets,
    key: TcpSocketId,
    env: &mut Environment<'_>,
) -> bool {
    check_holders(sockets, env);
    let share_bytes = env.resources().memory().share_bytes(sockets.connections());
    let flow = sockets.tcp(key);
    share_bytes == 0 || flow.is_some_and(|flow| flow.connection().held_bytes() > share_bytes)
}

/// Whether a connection that sends holds more than its share while memory is short.
#[cold]
pub(crate) fn sends_more_than_its_share(
    sockets: &mut Sockets,
    key: TcpSocketId,
    env: &mut Environment<'_>,
) -> bool {
    check_holders(sockets, env);
    let share_bytes = env.resources().memory().send_share_bytes(sockets.connections());
    sockets.tcp(key).map(TcpSocket::connection).is_some_and(|connection| {
        connection.held_bytes() > share_bytes || connection.sender().waits_behind_closed_window()
    })
}

/// Looks at a few sockets while memory is short, and resets one whose peer takes nothing: what waits for it is the
/// memory of others.
fn check_holders(sockets: &mut Sockets, env: &mut Environment<'_>) {
    let Some(key) = check_some(sockets, env) else { return };
    let Some(flow) = sockets.tcp_mut(key) else { return };
    let outcome = flow.connection_mut().abort(&mut env.tcp(key.key()));
    env.counters().closed_windows_reset += 1;
    apply(sockets, key, &outcome, env);
}

/// Scans a few sockets to update the shares, and drops recoverable data of sockets above theirs. Returns a connection
/// that must be reset because its peer keeps the window closed, if there is one.
fn check_some(sockets: &mut Sockets, env: &mut Environment<'_>) -> Option<TcpSocketId> {
    let level_bytes = env.resources().memory().level_bytes(sockets.connections());
    // Of those that may have to go, the one that holds most.
    let mut worst: Option<(usize, TcpSocketId)> = None;
    for _ in 0..LOOKED_AT {
        let Some(place) = env.resources().memory_mut().next_place(sockets.places()) else { break };
        let Some(id) = sockets.at_place(place) else { continue };
        let Some(socket) = sockets.any(id) else { continue };
        let held_bytes = socket.held_bytes();
        env.resources().memory_mut().count_holder(held_bytes, level_bytes);
        let Socket::Tcp(flow) = socket else { continue };
        let key = TcpSocketId::of(id.0);
        if flow.connection().sender().waits_behind_closed_window() {
            let may_go = env.resources().memory().may_end(held_bytes, level_bytes);
            if may_go && held_bytes > worst.map_or(0, |(most, _)| most) {
                worst = Some((held_bytes, key));
            }
        } else if held_bytes > level_bytes && worst.is_none() && env.pool().is_under_pressure() {
            shrink(sockets, key, env);
        }
    }
    let (_, key) = worst?;
    if !env.pool().is_full_to_send() {
        return None;
    }
    env.resources().memory_mut().note_release();
    Some(key)
}

/// Drops out-of-order data, which the peer will retransmit (RFC 2018 §8).
fn shrink(sockets: &mut Sockets, key: TcpSocketId, env: &mut Environment<'_>) {
    let Some(flow) = sockets.tcp_mut(key) else { return };
    let before = flow.connection().held_bytes();
    flow.connection_mut().shrink(&mut env.tcp(key.key()));
    if flow.connection().held_bytes() < before {
        env.resources().memory_mut().note_release();
        env.counters().connections_shrunk += 1;
    }
    sockets.reschedule(key, env.now());
}
