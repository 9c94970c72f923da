//! The timer of a connection.

use crate::environment::Environment;
use crate::flows::close::abort_flow;
use crate::flows::outcome::apply;
use crate::socket::TcpSocketId;
use crate::sockets::Sockets;
use crate::tcp::TcpSocketFlags;
use inhost_event::TcpState;

/// The timer of a connection has expired.
pub(crate) fn timer_expired(sockets: &mut Sockets, key: TcpSocketId, env: &mut Environment<'_>) {
    let now = env.now();
    let Some(flow) = sockets.tcp(key) else { return };
    let mut deadline = flow.connection().deadline();
    if flow.has(TcpSocketFlags::OPTIONAL_STATE) {
        if optional_expired(sockets, key, env) {
            return;
        }
        deadline = deadline.min(sockets.optional().until(key));
    }
    if deadline > now {
        // Its deadline has moved since it was armed.
        sockets.schedule_mut().arm(key.place(), deadline);
        return;
    }
    let Some(flow) = sockets.tcp_mut(key) else { return };
    let outcome = flow.connection_mut().timeout(&mut env.tcp(key.key()));
    apply(sockets, key, &outcome, env);
    if sockets.tcp(key).is_some_and(|flow| flow.has(TcpSocketFlags::OPTIONAL_STATE)) {
        let until = sockets.optional().until(key);
        sockets.schedule_mut().arm_no_later(key.place(), until);
    }
}

/// The instant of a connection's optional state may have come: true when the connection is gone.
fn optional_expired(sockets: &mut Sockets, key: TcpSocketId, env: &mut Environment<'_>) -> bool {
    if env.now() < sockets.optional().until(key) {
        return false;
    }
    sockets.times_mut(key).until = None;
    let Some(flow) = sockets.tcp(key) else { return true };
    let undelivered = matches!(
        flow.connection().state(),
        TcpState::SynSent
            | TcpState::SynReceived
            | TcpState::FinWait1
            | TcpState::Closing
            | TcpState::LastAck
    );
    if flow.has(TcpSocketFlags::AWAITS_DATA) {
        sockets.offer_to_accept(key);
    } else if flow.has(TcpSocketFlags::ORPHAN) && undelivered {
        abort_flow(sockets, key, env);
        return true;
    }
    false
}
