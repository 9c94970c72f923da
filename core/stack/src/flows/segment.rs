//! Segments for a connection.

use crate::environment::Environment;
use crate::flows::outcome::apply;
use crate::flows::pressure::takes_more_than_its_share;
use crate::socket::TcpSocketId;
use crate::sockets::Sockets;
use crate::tcp::TcpSocketFlags;
use inhost_base::{LinkId, Sequence};
use inhost_buf::Packet;
use inhost_event::Drop;
use inhost_ip::{Path, RouteError};
use inhost_tcp::{Ecn, Header, Outcome};
use inhost_wire::tcp::Flags;

/// Gives a segment to its connection and applies the outcome.
pub(crate) fn flow_input(
    sockets: &mut Sockets,
    key: TcpSocketId,
    header: &Header,
    payload: &mut Packet,
    ecn: Ecn,
    env: &mut Environment<'_>,
) -> Result<(), Drop> {
    let outcome = flow_segment(sockets, key, header, payload, ecn, env)?;
    if env.network().ip().return_route().is_some() && outcome.dropped.is_none() {
        learn_route(sockets, key, env);
    }
    apply(sockets, key, &outcome, env);
    Ok(())
}

/// Gives a segment to its connection. The caller applies the outcome.
#[inline]
pub(crate) fn flow_segment(
    sockets: &mut Sockets,
    key: TcpSocketId,
    header: &Header,
    payload: &mut Packet,
    ecn: Ecn,
    env: &mut Environment<'_>,
) -> Result<Outcome, Drop> {
    let Some(mut flow) = sockets.tcp_mut(key) else { return Err(Drop::NoSocket) };
    if flow.has(TcpSocketFlags::CHECK_INPUT) {
        sockets.check_half_open(key, header)?;
        flow = sockets.tcp_mut(key).ok_or(Drop::NoSocket)?;
    }
    let mut keeps_data = true;
    if !payload.is_empty() && env.pool().is_under_pressure() {
        keeps_data = !takes_more_than_its_share(sockets, key, env);
        flow = sockets.tcp_mut(key).ok_or(Drop::NoSocket)?;
    }
    Ok(flow.connection_mut().receive(header, payload, ecn, keeps_data, &mut env.tcp(key.key())))
}

/// Ends a connection in TIME-WAIT in favour of a new one with the same endpoints, where that is safe and a listener
/// exists. Returns the least initial sequence number of the new one.
// spec: RFC9293 MAY-2
pub(crate) fn yield_time_wait(
    sockets: &mut Sockets,
    key: TcpSocketId,
    (header, link): (&Header, LinkId),
    env: &mut Environment<'_>,
) -> Option<Sequence> {
    if !header.flags.contains(Flags::SYN) {
        return None;
    }
    let flow = sockets.tcp(key)?;
    if !flow.connection().receiver().yields_to(header) {
        return None;
    }
    let (least, name) = (flow.connection().sender().successor(), flow.name());
    sockets.find_binding(env.paths(), link, &name)?;
    if sockets.tcp(key)?.has(TcpSocketFlags::ORPHAN) {
        sockets.reap(key, env.resources());
    } else {
        // The application still holds the socket and can read its received data.
        sockets.unlist_tcp(key);
    }
    env.counters().time_wait_reused += 1;
    Some(least)
}

/// Asks for the path of a connection again: by its source route, or else through the gateway that its caller came by, while
/// that works.
// spec: RFC9293 MUST-45
pub(crate) fn ask_path(
    sockets: &Sockets,
    key: TcpSocketId,
    env: &mut Environment<'_>,
) -> Result<Path, RouteError> {
    let now = env.now();
    let flow = sockets.tcp(key).ok_or(RouteError::NoRoute)?;
    let (remote, local, bound) = (flow.remote().address, Some(flow.local().address), flow.bound_link());
    let gateway = flow.listener().map(|_| flow.path().next_hop);
    match sockets.optional().route(key) {
        Some(route) => env.paths_mut().route_by(&route, remote, local, bound, now),
        None => env.paths_mut().route_through(gateway, remote, local, bound, now),
    }
}

/// A segment that a connection took came by a source route: from now on it is answered by the same. Where we called
/// it is the application that chose the way.
// spec: RFC9293 MUST-52, MUST-53, SHLD-24
fn learn_route(sockets: &mut Sockets, key: TcpSocketId, env: &mut Environment<'_>) {
    let now = env.now();
    let Some(route) = env.network().ip().return_route().copied() else { return };
    let Some(flow) = sockets.tcp(key) else { return };
    let (local, remote, link) = (flow.local(), flow.remote(), flow.bound_link());
    let routes = sockets.optional();
    let held = routes.route(key);
    if flow.listener().is_none() || held == Some(route) || held.is_none() && !routes.has_room_for_route() {
        return;
    }
    if env.paths_mut().route_by(&route, remote.address, Some(local.address), link, now).is_err() {
        return;
    }
    sockets.set_route(key, Some(route));
    if let Some(flow) = sockets.tcp_mut(key) {
        // The path, and what then fits a segment, are asked for before the next one leaves.
        flow.expire_path(env.paths().generation());
    }
}
