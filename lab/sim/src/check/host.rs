//! Checks of a host's internal state.

use std::collections::BTreeSet;

use inhost_base::{Duration, Endpoint};
use inhost_buf::MOST_RESERVE_BYTES;
use inhost_event::TcpState;
use inhost_socket::Host;

/// No timer of a connection that waits for an acknowledgment is further away (RFC 6298 §2.5: a
/// minute; Linux's profile: two).
const FURTHEST_TIMER: Duration = Duration::from_secs(125);

/// The current violation as text. `out_before` is what memory was out at the last look, the
/// least since there is too much.
pub(super) fn wrong_in(host: &Host, out_before: &mut usize) -> Option<String> {
    let deadline = host.deadline();
    host.with_stack(|stack, now| {
        let (out, limit) = (stack.memory().outstanding_bytes(), stack.memory().limit_bytes());
        // What is out when the limit falls stays out, and a batch is received on top of it.
        let before = std::mem::replace(out_before, if out > limit { out.min(*out_before) } else { out });
        if out > limit && out > before.max(limit) + MOST_RESERVE_BYTES {
            return Some(format!("{out} bytes are out, and {limit} may be"));
        }
        let wants_to_send = stack.links().any(|link| stack.wants_transmit(link));
        stack.instruments().sockets(now).find_map(|info| {
            let tcp = info.tcp.as_ref()?;
            let totals = (tcp.ledgers.send.total(), tcp.ledgers.receive.total());
            if totals != (info.age, info.age) {
                return Some(format!("ledgers hold {totals:?} of an age of {}: {info:?}", info.age));
            }
            let is_waiting = tcp.in_flight_bytes > 0 && tcp.state != TcpState::Closed;
            let is_armed = deadline.is_some_and(|at| at.since(now) <= FURTHEST_TIMER);
            (is_waiting && !is_armed && !wants_to_send)
                .then(|| format!("data is under way and no timer runs ({deadline:?}): {info:?}"))
        })
    })
}

/// The ends of every connection that the host knows of, whatever its state.
pub(super) fn connections(host: &Host) -> BTreeSet<(Endpoint, Endpoint)> {
    host.with_stack(|stack, now| {
        stack.instruments().sockets(now).filter_map(|info| Some((info.local, info.remote?))).collect()
    })
}

/// Whether a connection between these ends lives on.
pub(super) fn is_alive(host: &Host, own: Endpoint, peer: Endpoint) -> bool {
    host.with_stack(|stack, now| {
        stack.instruments().sockets(now).any(|info| {
            info.local == own
                && info.remote == Some(peer)
                && !matches!(
                    info.state,
                    None | Some(TcpState::Closed | TcpState::TimeWait | TcpState::SynReceived)
                )
        })
    })
}
